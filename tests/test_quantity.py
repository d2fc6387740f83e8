"""Quantities, against what k8s.io/apimachinery's own tests of resource.Quantity say, and where values are compared by
amount."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path as File
from typing import Any

import pytest
import yaml
from support.rehearsals import ROOT

from reconcile.schemas import Schemas, packaged_schemas
from reconcile.values import same, satisfies
from renderer.assemble import open_template_set
from renderer.catalog.probes import AmountError, predicate_from
from renderer.errors import Problems
from renderer.files.templates import read_templates
from renderer.model.path import Path, parse_path
from renderer.model.probe import Test
from renderer.quantity import canonical, quantity_of

AMOUNTS = """
0 0 | 0n 0 | 0Ki 0 | 0T 0 | 1 1 | 1Ki 1024 | 7Mi 7340032 | 6Gi 6442450944 | 3Ei 3458764513820540928
10Ti 10995116277760
5n 0.000000005 | 4u 0.000004 | 3m 0.003 | 8k 8000 | 7M 7000000 | 1E 1e18 | 300T 3e14
1E-3 0.001 | 1e3 1000 | 1E6 1e6 | 1E18 1e18 | 1e14 1e14 | 100.035k 100035 | 1.3E+6 1.3e6 | 0.5e-2 0.005
0.001 0.001 | 0.00050k 0.5 | 10.035M 10035000 | 6.987654321G 6987654321 | 1.01E 1.01e18
3.001n 4e-9 | 1.1E-9 2e-9 | 0.0000000001 1e-9 | 0.9n 1e-9 | 0.00000012345 1.24e-7 | 0.00000012354 1.24e-7
9Ei 9223372036854775807 | 9223372036854775807Ki 9223372036854775807 | 12E 12e18
100.035Ki 102435.84 | 0.5Mi 524288 | 0.05Gi 53687091.2 | 0.000000000001Ki 2e-9
.001 0.001 | .0001k 0.1 | 1. 1 | 1.G 1e9 | +1 1 | 1e1000000 1e1000000
"""


@pytest.mark.parametrize("row", AMOUNTS.replace("\n", "|").strip("|").split("|"))
@pytest.mark.parametrize("sign", ["", "-"])
def test_what_a_text_amounts_to(row: str, sign: str) -> None:
    text, amount = row.split()
    if sign and text.startswith("+"):
        text = text[1:]
    found = quantity_of(f"{sign}{text}")
    assert found is not None
    assert found == Decimal(f"{sign}{amount}")


NO_QUANTITIES = "1.1.M 1+1.0M 0.1mi 0.1am aoeu .5i 1i -3.01i -3.01e- Ki m . -. 1e 1e+ 1_000 0x10 NaN Infinity -inf 5GiB"
NO_TEXTS = (True, None, [1], float("nan"), float("inf"))


@pytest.mark.parametrize("value", [*NO_QUANTITIES.split(), "", " 1", "1 ", "5 Gi", "5m30s", "١", *NO_TEXTS])
def test_what_is_no_quantity(value: Any) -> None:
    assert quantity_of(value) is None


def test_numbers_are_quantities() -> None:
    assert quantity_of(1.5) == quantity_of("1500m")
    assert quantity_of(10) == quantity_of("10")
    assert quantity_of(1e16) == quantity_of("10P")


ORDER = "-1Gi -1 -1n 0 1n 1u 1m 0.5 1 1.5 2e0 1k 1Ki 1M 1Mi 1e9 1Gi 100Gi 10000T 1E 1Ei 1000E"


def test_amounts_are_in_order_without_rounding() -> None:
    found = [quantity_of(text) for text in ORDER.split()]
    assert found == sorted(found, key=lambda amount: amount or 0)
    assert len(set(found)) == len(found)
    assert quantity_of("9007199254740993") != quantity_of("9007199254740992")  # one float


CANONICAL = """
1024Mi=1Gi 300Mi=300Mi 6Gi=6Gi 1001Mi=1001Mi 1024=1024 1k=1k 1000000k=1G 1000m=1 64k=64k
1.00000000001Gi=1073741824010737419n
0.5Ki=512 1.5Ki=1536 100Ki=100Ki 1025Ki=1025Ki -1k=-1k -0.5Mi=-512Ki 12e1=120 1e3=1e3 1e-6=1e-6 0Ki=0 1000E=1e21 .5=500m
not=not 5m30s=5m30s
"""


@pytest.mark.parametrize("pair", CANONICAL.split())
def test_canonical_form(pair: str) -> None:
    text, expected = pair.split("=")
    assert canonical(text) == expected
    assert canonical(expected) == expected


SCHEMAS = packaged_schemas()
JOB = {"apiVersion": "batch/v1", "kind": "Job"}
LIMITS = 'spec.template.spec.containers[0].resources.limits["cpu"]'
FIELDS = [
    (JOB, LIMITS, True),
    (JOB, "spec.template.spec.volumes[0].emptyDir.sizeLimit", True),
    (JOB, 'metadata.annotations["a/b"]', False),
    (JOB, "spec.backoffLimit", False),
    (JOB, "spec.nothing.of.that.name", False),
    ({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}, "spec.resources.requests.storage", True),
    ({"apiVersion": "longhorn.io/v1beta2", "kind": "Setting"}, "value", False),
    ({"apiVersion": "a.b/v1", "kind": "Unknown"}, "spec.size", False),
]


@pytest.mark.parametrize(("body", "path", "is_one"), FIELDS)
def test_the_schema_says_which_fields_are_quantities(body: Any, path: str, is_one: bool) -> None:
    assert SCHEMAS.quantities_of(body)(parse_path(path)) is is_one


def test_a_quantity_of_a_custom_kind_is_known_by_its_pattern() -> None:
    """As controller-gen declares one."""
    sign, number = r"(\+|-)", r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    definition = yaml.safe_load(
        """
        spec:
          group: a.b
          names: {kind: Disk}
          versions:
          - name: v1
            schema:
              openAPIV3Schema:
                properties:
                  spec:
                    properties:
                      label: {type: string}
                      size:
                        anyOf: [{type: integer}, {type: string}]
                        pattern: PATTERN
                        x-kubernetes-int-or-string: true
        """.replace("PATTERN", f"^{sign}?{number}(([KMGTPE]i)|[numkMGTPE]|([eE]{sign}?{number}))?$")
    )
    is_quantity = Schemas({"kinds": {}, "$defs": {}}, lambda: [definition]).quantities_of(
        {"apiVersion": "a.b/v1", "kind": "Disk"}
    )
    assert is_quantity(("spec", "size"))
    assert not is_quantity(("spec", "label"))


def limits(value: Any) -> Any:
    return {"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": value}}}]}}}}


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [("1", "1.0", True), ("1000m", 1, True), ("1Gi", "1024Mi", True), ("1", "1m", False), (True, "1", False)],
)
def test_amounts_count_only_where_the_api_declares_a_quantity(left: Any, right: Any, alike: bool) -> None:
    is_quantity = SCHEMAS.quantities_of(JOB)
    assert same(limits(left), limits(right), is_quantity) is alike
    assert satisfies({**limits(left), "status": {}}, limits(right), is_quantity) is alike
    for one, other in ((left, right), (right, left)):
        annotated, expected = ({"metadata": {"annotations": {"a": value}}} for value in (one, other))
        assert not same(annotated, expected, is_quantity)
        assert not satisfies(annotated, expected, is_quantity)
        assert not same(limits(one), limits(other))


def test_schemas_are_asked_only_where_amounts_agree() -> None:
    asked: list[Path] = []

    def is_quantity(path: Path) -> bool:
        asked.append(path)
        return False

    assert not same({"a": "x", "b": 1}, {"a": "y", "b": 2}, is_quantity)
    assert not same({"b": 1}, {"b": 2}, is_quantity)
    assert asked == []
    assert not same({"b": "1"}, {"b": "1.0"}, is_quantity)
    assert asked == [("b",)]


def asking(word: str, limit: Any) -> Any:
    return predicate_from({"field": {"path": "status.capacity.storage", word: limit}})


@pytest.mark.parametrize("word", ["atLeast", "atMost"])
@pytest.mark.parametrize("limit", ["many", "10GiB", "5m30s", True, None, [1], {"path": "spec.a", "default": "few"}])
def test_a_limit_that_nothing_can_pass_is_refused_when_it_is_read(word: str, limit: Any) -> None:
    with pytest.raises(AmountError, match="is not a number or a quantity"):
        asking(word, limit)


@pytest.mark.parametrize(
    "limit",
    [1, 1.5, "10Gi", "500m", "{{ values.least }}", {"path": "spec.a"}, {"captured": "x"}, {"path": "a", "default": 1}],
)
def test_a_limit_may_be_a_quantity_or_be_filled_in_later(limit: Any) -> None:
    assert asking("atLeast", limit).test is Test.AT_LEAST


def test_a_wrong_limit_of_an_overlay_is_reported_with_its_line(tmp_path: File) -> None:
    folder = tmp_path / "15-pre-check"
    shutil.copytree(ROOT / "examples" / "pre-check-overlay" / "templates" / "15-pre-check", folder)
    phase = folder / "phase.yaml"
    text = phase.read_text(encoding="utf-8")
    wrong = text.replace("[{builtin: true}]", "[{field: {path: status.ready, atLeast: plenty}}]")
    phase.write_text(wrong, encoding="utf-8")
    line = wrong[: wrong.index("plenty")].count("\n") + 1
    with pytest.raises(Problems) as caught:
        open_template_set(read_templates([tmp_path]))
    told = [(problem.reason, problem.line, problem.message) for problem in caught.value.problems]
    assert ("InvalidDeclaration", line, "atLeast 'plenty' is not a number or a quantity such as 10Gi or 500m") in told
