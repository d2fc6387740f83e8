"""Every command in a remedy of a pre-flight check is one that kubectl can carry out: a resource that exists, in a
namespace where it has one, and a patch that is JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

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


COMMANDS = sorted({(check, found.strip()) for check, text in remedies() for found in COMMAND.findall(text)})


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 80


@pytest.mark.parametrize(
    ("check", "command"), COMMANDS, ids=[f"{check}-{at}" for at, (check, _) in enumerate(COMMANDS)]
)
def test_kubectl_knows_it(check: str, command: str) -> None:
    del check
    words = command.split()[1:]
    namespace = words[words.index("-n") + 1] if "-n" in words else ""
    words = [word for at, word in enumerate(words) if word != "-n" and (at == 0 or words[at - 1] != "-n")]
    verb, *others = words
    assert verb in VERBS, command
    for patch in re.findall(r"-p '([^']*)'", command):
        json.loads(patch.replace("NUMBER", "1"))
    if verb in WITHOUT_RESOURCE:
        return
    resource = others[1] if verb == "rollout" else others[0]
    for name in resource.split(","):
        assert name in resources(), f"{name} is no resource: {command}"
        assert resources()[name] is bool(namespace or "-A" in words), f"namespace of {name}: {command}"
