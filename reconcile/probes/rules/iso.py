"""The ISO image and where it is kept: its architecture, the StorageClass of its volume."""

from __future__ import annotations

import re
from dataclasses import replace

from reconcile.probes.look import NODES, Group
from reconcile.probes.rules.call import RuleCall, listed
from reconcile.probes.rules.named import named
from reconcile.probes.verdict import Verdict, passed, waiting
from renderer.model.path import look_up
from renderer.model.ref import Ref, ref_of

_CLASSES = Group(api_version="storage.k8s.io/v1", kind="StorageClass")
_ARCHITECTURE = re.compile(r"(?<![a-z0-9])(amd64|x86_64|arm64|aarch64)(?![a-z0-9])", re.IGNORECASE)
_SAME = {"x86_64": "amd64", "aarch64": "arm64"}


def fits_nodes(call: RuleCall) -> Verdict:
    """The last architecture that the URL names counts; a URL that names none is not judged."""
    named_there = _ARCHITECTURE.findall(str(look_up(call.body, ("spec", "isoURL")) or ""))
    if not named_there:
        return passed("spec.isoURL names no architecture")
    architecture = _SAME.get(named_there[-1].lower(), named_there[-1].lower())
    found = listed(call, NODES)
    if isinstance(found, Verdict):
        return found
    others = {
        ref_of(body): other
        for body in found[0]
        if isinstance(other := look_up(body, ("status", "nodeInfo", "architecture")), str) and other != architecture
    }
    if not others:
        return passed(f"spec.isoURL is for {architecture}, as the nodes are")
    shown = ", ".join(f"{ref} is {other}" for ref, other in others.items())
    return waiting(f"spec.isoURL is for {architecture}, and {shown}")


def has_storage_class(call: RuleCall) -> Verdict:
    """An image that has no class of its own keeps its data where no StorageClass is asked for."""
    name = look_up(call.body, ("status", "storageClassName")) or look_up(call.body, ("spec", "targetStorageClassName"))
    if not isinstance(name, str) or not name:
        return passed("names no StorageClass")
    found = listed(call, _CLASSES)
    if isinstance(found, Verdict):
        return found
    (classes,) = found
    expected = Ref(api_version=_CLASSES.api_version, kind=_CLASSES.kind, name=name)
    return replace(named(expected, [ref_of(body) for body in classes]), offenders=())  # it is the image that is wrong
