"""Every command in a remedy of a pre-flight check is one that kubectl can carry out: a resource that exists, in a
namespace where it has one, and a patch that is JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import pytest
from support.preflight_cases import answer, case, paths, template_set

COMMAND = re.compile(r"kubectl (?:(?!kubectl )[^;,'\"(){}]|'[^']*'|\([^)]*\))*")
VERBS = (
    "annotate",
    "create",
    "delete",
    "describe",
    "edit",
    "get",
    "label",
    "logs",
    "patch",
    "rollout",
    "taint",
    "uncordon",
    "apply",
)
WITHOUT_RESOURCE = ("apply", "create", "logs", "uncordon")
ELSEWHERE = {
    # Kinds that no check looks at, by whether they have a namespace.
    "pcidevices.devices.harvesterhci.io": False,
    "sriovgpudevices.devices.harvesterhci.io": False,
    "cdis.cdi.kubevirt.io": False,
    "volumeattachments.longhorn.io": True,
}


def resources() -> dict[str, bool]:
    """Every name by which a kind can be asked for, and whether its objects have a namespace."""
    found = dict(ELSEWHERE)
    for row in template_set().catalog.kinds:
        kind = row.kind
        names = [f"{kind.plural}.{kind.group}"] if kind.group else [kind.plural, kind.kind.lower()]
        names += [kind.plural] if kind.group in ("management.harvesterhci.io", "storage.k8s.io") else []
        found |= dict.fromkeys(names, kind.namespaced)
    return found | {"pvc": True, "vm": True, "vmi": True}


def remedies() -> Iterator[tuple[str, str]]:
    for path in paths():
        for finding in answer(case(path)).findings:
            yield path.parent.name, finding.remedy


@pytest.fixture(scope="module")
def commands() -> Sequence[tuple[str, str]]:
    """The commands of all remedies, each with its check."""
    return sorted({(check, found.strip()) for check, text in remedies() for found in COMMAND.findall(text)})


@pytest.mark.slow
def test_there_are_commands(commands: Sequence[tuple[str, str]]) -> None:
    assert len(commands) > 80


def test_kubectl_knows_each(commands: Sequence[tuple[str, str]]) -> None:
    assert [f"{check}: {wrong}" for check, command in commands for wrong in wrongs(command, resources())] == []


def wrongs(command: str, known: Mapping[str, bool]) -> Iterator[str]:
    words = command.split()[1:]
    namespace = words[words.index("-n") + 1] if "-n" in words else ""
    words = [word for at, word in enumerate(words) if word != "-n" and (at == 0 or words[at - 1] != "-n")]
    verb, *others = words
    if verb not in VERBS:
        yield f"{verb} is no verb: {command}"
    for patch in re.findall(r"-p '([^']*)'", command):
        json.loads(patch.replace("NUMBER", "1"))
    if verb in WITHOUT_RESOURCE:
        return
    resource = others[1] if verb == "rollout" else others[0]
    for name in resource.split(","):
        if name not in known:
            yield f"{name} is no resource: {command}"
        elif known[name] is not bool(namespace or "-A" in words):
            yield f"namespace of {name}: {command}"


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("kubectl look pods -A", "look is no verb"),
        ("kubectl get podds -A", "podds is no resource"),
        ("kubectl get nodes -n a", "namespace of nodes"),
        ("kubectl get pods", "namespace of pods"),
    ],
)
def test_a_wrong_command_is_found(command: str, wrong: str) -> None:
    assert [text.partition(":")[0] for text in wrongs(command, resources())] == [wrong]
