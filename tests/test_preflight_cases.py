"""Pre-flight checks by case files, `preflight/<check-id>/*.yaml`: `support.preflight_cases` says what they look like.

A file whose name begins with `near-miss` has objects that nearly match and must not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from schemas.definitions import CRDS, openapi
from schemas.strict import refused
from schemas.structural import PRESERVE
from support.preflight_cases import CASES, PreflightCase, answer, case, checks, paths
from support.rendered_plans import ROOT, templates

from reconcile.cli.checked_inputs import BEFORE
from reconcile.preflight.accepting import ACCEPT_RISK, SKIP_WEBHOOK
from reconcile.preflight.check_result import FOUND, CheckOutcome, CheckResult
from renderer.assemble import open_template_set
from renderer.catalog.check_rules import wrong_with
from renderer.catalog.load import load_catalog
from renderer.catalog.named_kinds import named_in_probe
from renderer.catalog.template_tree import Template
from renderer.model.check import CheckTime
from renderer.model.path import ABSENT, look_up, path_name
from renderer.model.probe import ConditionPredicate, EveryTarget, FieldPredicate
from renderer.model.ref import Body
from renderer.validation import document_problems
from renderer.yaml_io import parse

PATHS = paths()
SOURCES: Any = parse((CASES / "sources.yaml").read_text(encoding="utf-8"), "sources.yaml")[0].value
COUNTED = {"webhook": 16, "controller": 2, "built-in webhook": 3, "pre-check script": 20}
"""How many there are; the webhook's seventh is two, and one test of the script's 21 asks where it runs."""
NODE_INFO = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)
ATTENTION = (CheckOutcome.BLOCKED, CheckOutcome.WARNED, CheckOutcome.ADVISED)


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_case(path: Path) -> None:
    given = case(path)
    result = answer(given)
    assert shown(result, given.expected) == {"findings": [], "readFailures": [], **given.expected}
    assert all("\n" not in text for item in result.findings for text in (item.offender, item.says, item.remedy))
    assert all(item.says and item.remedy for item in result.findings)
    assert bool(result.findings) or result.outcome not in ATTENTION


def shown(result: CheckResult, expected: Any) -> dict[str, Any]:
    """The answer with the keys that a case speaks of; findings and what was not seen in any case."""
    listed = expected.get("findings", [])
    keys = [list(item) for item in listed] + [["offender", "says"]] * len(result.findings)
    whole = {
        "outcome": result.outcome.value,
        "reason": result.reason,
        "accepted": result.accepted and result.accepted.by,
        "notes": list(result.notes),
    }
    return {
        **{key: value for key, value in whole.items() if key in expected},
        "findings": [
            {key: getattr(item, key) for key in names} for item, names in zip(result.findings, keys, strict=False)
        ],
        "readFailures": [item.why for item in result.read_failures],
    }


def test_every_folder_is_a_check() -> None:
    assert {path.parent.name for path in PATHS} - set(checks()) == set()


@pytest.mark.parametrize("check", sorted(checks()))
def test_every_check_has_its_cases(check: str) -> None:
    """Passed, a finding, one that nearly matches, could not look, and each override."""
    declared = checks()[check].check
    files = {path.stem: answer(case(path)) for path in PATHS if path.parent.name == check}
    outcomes = {result.outcome for result in files.values()}
    assert {CheckOutcome.PASSED, FOUND[declared.severity], CheckOutcome.UNKNOWN} - outcomes == set()
    near = [result.outcome for stem, result in files.items() if stem.startswith("near-miss")]
    assert near
    assert set(near) <= {CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE}
    if declared.override:
        by = {result.accepted.by for result in files.values() if result.accepted}
        assert [name for name in by if "accept-risk" not in name and "skip-webhook" not in name], "the override's case"
    if declared.applies:
        assert CheckOutcome.NOT_APPLICABLE in outcomes


FINDS_NOTHING = (CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE)
SKIPPED_TIMES = (CheckTime.CREATE, CheckTime.START)
SEEN_IN_ANY_CASE = ("version-or-image-given", "version-exists", "image-name", "image-exists", "other-plan-in-progress")
"""Without a Version or an image nothing can run, and neither can two plans."""
NEVER_SKIPPED = ("disk-headroom", "disk-not-full", "api-server-certificates", "maintenance-window")


def cases_of(check: str) -> list[PreflightCase]:
    """Those in which something is found or could not be seen, be there a plan or not, and nothing accepts it."""
    found = [case(path) for path in PATHS if path.parent.name == check]
    return [each for each in found if answer(each, {}).outcome not in (*FINDS_NOTHING, CheckOutcome.ACCEPTED)]


@pytest.mark.parametrize("check", sorted(checks()))
def test_its_id_accepts_what_is_found_and_what_could_not_be_seen(check: str) -> None:
    """Whatever the case; unless nothing accepts the check."""
    declared, outcomes = checks()[check].check, set()
    for each in cases_of(check):
        before, after = answer(each, {}), answer(each, {ACCEPT_RISK: f"some-other, {check}"})
        assert answer(each, {ACCEPT_RISK: f"some-other-{check}"}) == before
        assert (after.findings, after.read_failures) == (before.findings, before.read_failures), "it is still told"
        assert after.outcome is (CheckOutcome.ACCEPTED if declared.acceptable else before.outcome)
        assert not after.holds or not declared.acceptable
        outcomes.add(before.outcome)
    assert FOUND[declared.severity] in outcomes
    assert outcomes <= {FOUND[declared.severity], CheckOutcome.UNKNOWN}


@pytest.mark.parametrize("check", sorted(checks()))
def test_skip_webhook_accepts_what_is_asked_at_creation_and_no_more(check: str) -> None:
    declared = checks()[check].check
    skips = declared.acceptable and CheckTime.CREATE in declared.when
    for each in cases_of(check):
        for time in declared.when:
            result = answer(each, {SKIP_WEBHOOK: "true"}, time)
            assert (result.outcome is CheckOutcome.ACCEPTED) is (skips and time in SKIPPED_TIMES), time
        assert answer(each, {SKIP_WEBHOOK: "false"}) == answer(each, {})
    assert not (skips and check in (*SEEN_IN_ANY_CASE, *NEVER_SKIPPED))


def test_the_limits_of_skip_webhook_name_checks_that_there_are() -> None:
    assert {*SEEN_IN_ANY_CASE, *NEVER_SKIPPED} - set(checks()) == set()
    assert [
        check for check in checks() if check.startswith("host-") and CheckTime.CREATE in checks()[check].check.when
    ] == []


@pytest.mark.slow
def test_packaged_checks_keep_the_rules_of_overlays() -> None:
    """What the program asks of an overlay's file only, since packaged ones are proven here; known causes too."""
    kinds = load_catalog(templates(), document_problems).kinds
    assert [problem for item in checks().values() for problem in wrong_with(item, kinds)] == []
    own = {
        path: Template(text=file.text, shown=file.shown, packaged=False)
        for path, file in templates().items()
        if path.startswith(("preflight/", "diagnosis/"))
    }
    assert open_template_set({**templates(), **own}).catalog.warnings == ()


def test_the_sources_are_covered() -> None:
    """Every check of the existing tools is one of ours, or several: the table names them."""
    assert {name: len(rows) for name, rows in SOURCES.items()} == COUNTED
    assert [row["what"] for rows in SOURCES.values() for row in rows if not row["checks"]] == []
    ids = {id_ for rows in SOURCES.values() for row in rows for id_ in row["checks"]}
    assert ids - set(checks()) == set()


@pytest.mark.parametrize("source", [row for rows in SOURCES.values() for row in rows], ids=lambda row: row["what"])
def test_each_source_is_asked_offline_live_and_in_the_loop(source: Any) -> None:
    """Files and a cluster are asked everything that is asked before an upgrade, and the loop what is asked at its
    start; a check with other times alone would be missing on one of these paths."""
    asked = {id_: set(checks()[id_].check.when) for id_ in source["checks"]}
    assert [id_ for id_, times in asked.items() if not times.intersection(BEFORE)] == []
    assert [id_ for id_, times in asked.items() if CheckTime.START not in times] == []


def test_texts_that_nobody_fills_in_are_written_plainly() -> None:
    """A title is shown as it is."""
    assert [item.check.id for item in checks().values() if "{{" in item.check.title] == []
    assert (ROOT / "tests" / "preflight").is_dir()


# ------------------------------------------------------------------------- objects and fields are as they really are


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_the_objects_of_a_case_are_as_their_definitions_say(path: Path) -> None:
    """The real definitions of custom resources, trimmed to what is read of them, and Kubernetes' own schemas."""
    for body in case(path).bodies:
        if crd := CRDS.get(f"{body['apiVersion']} {body['kind']}"):
            assert refused(crd, body) == ()
        else:
            kubernetes_validate.validate(whole(body), "1.35", strict=True)


def whole(body: Body) -> Body:
    """A Node with the fields of nodeInfo that a kubelet always writes, which cases leave out."""
    info = look_up(body, ("status", "nodeInfo"))
    if body["kind"] != "Node" or info is ABSENT:
        return body
    return {**body, "status": {**body["status"], "nodeInfo": {**dict.fromkeys(NODE_INFO, ""), **info}}}


@pytest.mark.parametrize("check", sorted(checks()))
def test_every_field_that_a_check_looks_at_is_in_the_definition_of_its_kind(check: str) -> None:
    """A misspelt field is absent on every cluster, and the check would never find anything, or always."""
    probe = checks()[check].check.probe
    kind = named_in_probe(probe)
    crd = CRDS.get(f"{kind.api_version} {kind.kind}") if kind else None
    if crd is None or kind is None:
        return
    where = probe.target.where if isinstance(probe.target, EveryTarget) else ()
    paths = {item.path for item in (*where, *kind.all) if isinstance(item, FieldPredicate)}
    paths |= {("status", "conditions", 0, "type") for item in kind.all if isinstance(item, ConditionPredicate)}
    assert [path_name(path) for path in paths if path[0] != "metadata" and not is_declared(openapi(crd), path)] == []


def is_declared(schema: Any, path: Sequence[str | int]) -> bool:
    if not path or set(schema) == {"type", "nullable", PRESERVE}:  # what is below is a chart's
        return True
    step, *rest = path
    inner = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
    inner = inner or (schema.get("additionalProperties") if isinstance(step, str) else None)
    return isinstance(inner, dict) and is_declared(inner, rest)
