"""In which order the manifests of one step are applied: what others stand in or run with comes first. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.model.rendered import Manifest

_FIRST = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("ServiceAccount", "Role", "ClusterRole"),
    ("RoleBinding", "ClusterRoleBinding"),
    ("ConfigMap", "Secret", "PersistentVolumeClaim"),
)
_LAST = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_RANKS = {kind: rank for rank, kinds in enumerate(_FIRST) for kind in kinds} | dict.fromkeys(_LAST, len(_FIRST) + 1)


def in_order(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Those of one rank keep the order in which they are declared; what is borrowed exists, so its kind has no rank."""
    return tuple(sorted(manifests, key=_rank))


def _rank(manifest: Manifest) -> int:
    return len(_FIRST) if manifest.borrowed else _RANKS.get(manifest.ref.kind, len(_FIRST))
