"""Finds the tag of the toolkit's image that a cluster suggests for an installation, and says where it is known from.

The toolkit is not part of the release that runs: that release's version is never taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconcile.cluster.errors import NoSuchKind
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.install.installed_kinds import KINDS, is_ours, read
from reconcile.install.removal import plans_of, under_way
from reconcile.objects import items
from renderer.image_names import is_tag
from renderer.install.install_values import Values
from renderer.model.path import look_up
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.versions import is_older, is_release, parse_version

VALUE = "toolkitTag"
_VARIABLE = "UPGRADEPLAN_TOOLKIT_TAG"
_TOOLKIT = "harvester-upgrade-toolkit"
_DEPLOYMENT = KINDS["apps/v1", "Deployment"]
_VERSION = Kind(api_version="harvesterhci.io/v1beta1", kind="Version", plural="versions", namespaced=True)
_VERSIONS_PLACE = "harvester-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTag:
    """`tag` is empty where the cluster suggests none; `source` says in words why it is this one."""

    tag: str
    source: str


def tag_of_release(version: str, file: str) -> KnownTag:
    """The tag that the toolkit of a release has: an image's tag holds no `+`."""
    return KnownTag(tag=version.replace("+", "-"), source=f"from the release in {file}")


def known_tag(cluster: Cluster, values: Values, usual: str | None) -> KnownTag:
    """The first that is known: while a plan is under way the tag that the installed manager has, so that the upgrade
    goes on as it began; the tag of another manager's image; the only Version for which there is a toolkit.

    `usual` is the tag of the templates, which is used where none is suggested.
    """
    return _kept(cluster, values) or _of_other_manager(cluster) or _of_versions(cluster, usual)


def _kept(cluster: Cluster, values: Values) -> KnownTag | None:
    name, namespace = f"{values['name']}-controller-manager", str(values["namespace"])
    ref = Ref(api_version=_DEPLOYMENT.api_version, kind=_DEPLOYMENT.kind, namespace=namespace, name=name)
    live = read(cluster, ref, _DEPLOYMENT)
    if live is None or not is_ours(live) or not any(under_way(plans_of(cluster))):
        return None
    variables = (item for container in _containers(live) for item in items(container.get("env")))
    tag = next((str(item.get("value", "")) for item in variables if item.get("name") == _VARIABLE), "")
    return KnownTag(tag=tag, source=f"as {ref} has it, since a plan is under way")


def _of_other_manager(cluster: Cluster) -> KnownTag | None:
    selection = Selection(kind=_DEPLOYMENT, labels="control-plane=controller-manager")
    for live in cluster.list(selection).items:
        for container in () if is_ours(live) else _containers(live):
            if tag := _toolkit_tag(str(container.get("image", ""))):
                return KnownTag(tag=tag, source=f"from the image of {ref_of(live)}")
    return None


def _toolkit_tag(image: str) -> str:
    """Empty if it is another image, or has no tag."""
    repository, _, tag = image.partition("@")[0].rpartition(":")
    return tag if repository.rpartition("/")[2] == _TOOLKIT and is_tag(tag) else ""


def _of_versions(cluster: Cluster, usual: str | None) -> KnownTag:
    found = sorted(set(_versions(cluster, usual)))
    if len(found) == 1:
        return KnownTag(tag=found[0], source=f"from Version {_VERSIONS_PLACE}/{found[0]}")
    among = f", since Versions {' and '.join(found)} are there; --release or --values chooses one" if found else ""
    return KnownTag(tag="", source=f"from values.yaml of the templates{among}")


def _versions(cluster: Cluster, usual: str | None) -> Iterator[str]:
    """Names of Versions that are no older than the toolkit of the templates, the first one that was published."""
    try:
        bodies = cluster.list(Selection(kind=_VERSION, namespace=_VERSIONS_PLACE)).items
    except NoSuchKind:
        return
    least = parse_version(usual) if usual and is_release(usual) else None
    for name in (str(body["metadata"]["name"]) for body in bodies):
        if is_tag(name) and is_release(name) and not (least and is_older(parse_version(name), least)):
            yield name


def _containers(deployment: Body) -> Iterator[Body]:
    yield from items(look_up(deployment, ("spec", "template", "spec", "containers")))
