"""Where an object lives: URL paths from kinds and refs, as the API conventions lay them out. Asks no server."""

from __future__ import annotations

from urllib.parse import quote

from renderer.model.ref import Kind, Ref


def collection_path(kind: Kind, namespace: str = "") -> str:
    """The path of a list or create; over all namespaces where `namespace` is empty."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    if not namespace:
        return f"{root}/{kind.plural}"
    if not kind.namespaced:
        raise ValueError(f"{kind} has no namespace, but {namespace!r} was given")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{kind.plural}"


def object_path(kind: Kind, ref: Ref, subresource: str = "") -> str:
    """The path of one object or of its subresource; slashes in `subresource` stay, its `?` does not."""
    require_complete(kind, ref)
    path = f"{collection_path(kind, ref.namespace)}/{quote(ref.name, safe=':')}"
    return f"{path}/{quote(subresource)}" if subresource else path


def require_complete(kind: Kind, ref: Ref) -> None:
    """Raises ValueError, since it is our bug, for a ref that does not name one object of `kind`."""
    if (ref.api_version, ref.kind) != (kind.api_version, kind.kind):
        raise ValueError(f"{ref.api_version} {ref} is not of kind {kind}")
    if not ref.name:
        raise ValueError(f"{ref} has no name")
    if kind.namespaced != bool(ref.namespace):
        raise ValueError(f"{ref} {'needs a' if kind.namespaced else 'takes no'} namespace")
