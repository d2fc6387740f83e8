"""The table of annotations names every key that the code and the templates use, and no other."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

import pytest
from jsonschema import Draft202012Validator
from support.reference.sources import document, known_annotations, schema
from support.rendered_plans import ROOT
from support.source_code import modules
from support.used_keys import Used, in_code, in_templates

from renderer.redaction import packaged_rules

pytestmark = pytest.mark.lane("our own code")

LISTED = {item["key"].partition("<")[0] for item in known_annotations()}
"""Of a key that goes on with a rendered name, what it begins with."""

SIMULATED = "reconcile/simulator/"
NO_KEYS: Mapping[str, str] = {
    "argocd.argoproj.io/hook": "refused in a delivered tree",
    "argocd.argoproj.io/installation-id": "refused in a delivered tree",
    "client.authentication.k8s.io/exec": "begins an API version of credential plug-ins",
    "config.k8s.io/owning-inventory": "refused in a delivered tree",
    "kluctl.io/delete": "refused in a delivered tree",
    "kluctl.io/hook": "refused in a delivered tree",
    "kubernetes.io/arch": "a taint that pods tolerate",
    "kubernetes.io/hostname": "a topology key",
    "kubevirt.io/drain": "a taint that pods tolerate",
    "node-role.kubernetes.io/control-plane": "a taint that pods tolerate",
    "node-role.kubernetes.io/etcd": "a taint that pods tolerate",
    "node-labeller.kubevirt.io/skip-node": "what a note on a release says to write",
    "node.kubernetes.io/not-ready": "a taint that pods tolerate",
    "node.kubernetes.io/unreachable": "a taint that pods tolerate",
    "node.kubernetes.io/unschedulable": "a taint that pods tolerate",
}
REDACTION = "templates/_redaction/rules.yaml"
DIFF_RULES = "templates/_diff/"
"""Names what the server and its controllers set, so that a diff leaves it out."""


@functools.cache
def used() -> Sequence[Used]:
    templates = (path for path in sorted((ROOT / "templates").rglob("*")) if path.is_file())
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in templates}
    found = [
        *in_code(modules()),
        *in_templates(texts),
        *(Used(key=key, place=REDACTION) for key in packaged_rules().copies),
    ]
    return [item for item in found if not item.place.startswith((SIMULATED, DIFF_RULES)) and item.key not in NO_KEYS]


@pytest.mark.slow
def test_every_key_is_listed() -> None:
    missing = sorted({f"{item.key} ({item.place})" for item in used() if item.key not in LISTED})
    assert missing == [], "add it to schemas/reference/annotations.yaml, then run `make reference`"


def test_every_listed_key_is_used() -> None:
    assert sorted(LISTED - {item.key for item in used()}) == []


def test_the_table_has_the_form_of_its_schema() -> None:
    whole = document("schemas/reference/annotations.yaml")
    assert [error.message for error in Draft202012Validator(schema("annotations")).iter_errors(whole)] == []
    keys = [item["key"] for item in known_annotations()]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("KEY = 'management.harvesterhci.io/retry'", ["management.harvesterhci.io/retry"]),
        ("KEY = f'{PREFIX}retry'", ["management.harvesterhci.io/retry"]),
        ("KEY = PREFIX + 'retry'", ["management.harvesterhci.io/retry"]),
        ("KEY = 'harvesterhci.io/v1beta1'", []),
        ("KEY = 'apiextensions.k8s.io/v1'", []),
    ],
)
def test_a_key_in_code_is_found(code: str, expected: list[str]) -> None:
    assert [item.key for item in in_code({"file.py": ast.parse(code)})] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  management.harvesterhci.io/node: a", ["management.harvesterhci.io/node"]),
        ("path: 'metadata.annotations[\"rke.cattle.io/pre-drain\"]'", ["rke.cattle.io/pre-drain"]),
        ("skip: \"{{ annotation('skip-check') }}\"", ["management.harvesterhci.io/skip-check"]),
        ("path: 'metadata.labels[\"plan.upgrade.cattle.io/{{ name }}\"]'", ["plan.upgrade.cattle.io/"]),
        ("# about rke.cattle.io/pre-drain", []),
        ("{# about rke.cattle.io/pre-drain #}", []),
    ],
)
def test_a_key_in_a_template_is_found(text: str, expected: list[str]) -> None:
    assert [item.key for item in in_templates({"file.yaml": text})] == expected
