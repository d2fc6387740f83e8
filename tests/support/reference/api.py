"""The pages for those who run an upgrade: fields, conditions, events, node states, annotations, reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.catalog.load import load_catalog
from renderer.validation import document_problems
from support.reference.markdown import code, codes, link, page, section, table
from support.reference.schema_tables import sections
from support.reference.sources import document, known_annotations, plan_schema, reasons
from support.rendered_plans import NODE_STATES, templates

_REASONS = "reasons.md"


def upgrade_plan() -> str:
    names = document("schemas/crds/upgradeplan.yaml")["spec"]["names"]
    properties = plan_schema()["properties"]
    rules = [rule["message"] for rule in properties["spec"].get("x-kubernetes-validations", ())]
    return page(
        "UpgradePlan",
        f"`management.harvesterhci.io/v1beta1`, cluster-scoped; short names {codes(names['shortNames'])}. The CRD is"
        " [schemas/crds/upgradeplan.yaml](../../schemas/crds/upgradeplan.yaml); `kubectl explain"
        " upgradeplan.spec` prints"
        " the same. The status is written by the loop only.",
        plan_schema()["description"],
        sections(properties["spec"], root="spec"),
        "\n".join(f"- {rule}" for rule in rules),
        sections(properties["status"], root="status"),
    )


def conditions() -> str:
    return page(
        "Conditions",
        "The conditions of an UpgradePlan. While a plan is in a phase, the reason of `Progressing`, `Ready`,"
        " `Reconciling` and `Stalled` is the phase's value, such as `NodeUpgrading`; all other reasons are"
        " listed here.",
        *(section(name, _CONDITIONS[name], table(_REASON_HEAD, _of_condition(name))) for name in _CONDITIONS),
    )


_CONDITIONS: Mapping[str, str] = {
    "Available": "True while the plan may run; False while another upgrade is in progress, and after the end.",
    "Progressing": "True until the plan has ended. The message says what it waits for.",
    "Degraded": "True if something is wrong or takes too long; the message says what. False again once that is over.",
    "Ready": "True once the plan has succeeded. For Flux, Helm and `kubectl wait`.",
    "Reconciling": "True until the plan has ended. For tools that know kstatus.",
    "Stalled": "True if the plan has failed. For tools that know kstatus.",
}
_REASON_HEAD = ("Reason", "Meaning", "Effect")


def _of_condition(name: str) -> Iterator[tuple[str, ...]]:
    for item in reasons():
        if name in item.get("conditions", ()):
            yield link(item["reason"], file=_REASONS), item["meaning"], item["effect"]


def events() -> str:
    return page(
        "Events",
        "Events are recorded on the UpgradePlan, in namespace default: `kubectl get events --field-selector"
        " involvedObject.kind=UpgradePlan`. The loop emits none for objects that do not exist yet.",
        table(("Reason", "Type", "Meaning", "Effect"), _events()),
    )


def _events() -> Iterator[tuple[str, ...]]:
    for item in reasons():
        if "event" in item["where"]:
            yield link(item["reason"], file=_REASONS), item["event"], item["meaning"], item["effect"]


def node_states() -> str:
    return page(
        "Node states",
        "`status.nodeUpgradeStatuses` has one entry for each node. States only move forward, in the order of"
        " this table;"
        " states with the same number exclude each other. `reason` and `message` say why a node is held or has"
        " failed; a"
        " failed node has the reason of its Job, such as `BackoffLimitExceeded`.",
        table(("Order", "State", "Used by", "Meaning"), _states()),
        section("Reasons", table(_REASON_HEAD, _of_nodes())),
    )


def _states() -> Iterator[tuple[str, ...]]:
    texts = {
        f"{declared.phase.name}/{step['name']}": json.dumps(step)
        for declared in load_catalog(templates(), document_problems).phases
        for part in ("enter", "steps", "leave")
        for step in declared.document.value.get(part, ())
    }
    for state in NODE_STATES:
        users = [step for step, text in texts.items() if re.search(rf"\b{state.name}\b", text)]
        yield str(state.ordinal), code(state.name), ", ".join(users), state.description


def _of_nodes() -> Iterator[tuple[str, ...]]:
    for item in reasons():
        if "node" in item["where"]:
            yield link(item["reason"], file=_REASONS), item["meaning"], item["effect"]


def annotation_table() -> str:
    return page(
        "Annotations and labels",
        "Every annotation, label, finalizer and Secret type that upgradeplan reads or writes. Those of origin"
        " `harvester`"
        " are the Harvester Upgrade Manager's and mean the same here.",
        *(section(title, table(_KEYS, map(_key, found))) for title, found in _keys()),
    )


_KEYS = ("Key", "Form", "On", "Set by", "Values", "Effect", "Origin")


def _keys() -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    found = known_annotations()
    yours = [item for item in found if item["setBy"].startswith(("you", "`upgradeplan"))]
    hidden = [item for item in found if item["effect"] == "As above." or item["effect"].startswith("Left out of ")]
    installed = [item for item in found if item["object"].startswith("any of an installation")]
    others = [item for item in found if item not in (*yours, *hidden, *installed)]
    yield "Set by you", yours
    yield "Set by the loop, the templates and others", others
    yield "Of an installation", [item for item in installed if item not in yours]
    yield "Never shown or kept", hidden


def _key(item: Mapping[str, Any]) -> tuple[str, ...]:
    return code(item["key"]), *(str(item[part]) for part in ("form", "object", "setBy", "values", "effect", "origin"))


def reason_catalogue() -> str:
    found = reasons()
    return page(
        "Reasons",
        "Every reason that upgradeplan gives, the same word in text, `-o json`, conditions and events."
        " `upgradeplan explain` says more of a plan that waits.",
        "Effect: **blocks** – the command refuses, or the plan ends, until the cause is fixed. **waits** – the"
        " plan stays"
        " where it is and continues automatically when the cause is gone; a command exits with 3. **informs** –"
        " nothing is"
        " held up.",
        *(
            section(title, table(_HEAD, map(_row, (i for i in found if i["about"] == about))))
            for about, title in _ABOUT
        ),
    )


_HEAD = ("Reason", "Appears in", "Meaning", "Effect", "Remedy")
_ABOUT = (
    ("plan", "The plan"),
    ("node", "Nodes"),
    ("connection", "Kubeconfig and connection"),
    ("cluster", "Answers of the API server"),
    ("command", "Commands on a cluster"),
    ("usage", "Command line"),
    ("input", "Inputs"),
    ("output", "Output folder"),
    ("template", "Templates"),
)


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f'<a id="{item["reason"].lower()}"></a>{code(item["reason"])}',
        _places(item),
        item["meaning"],
        item["effect"],
        item["remedy"],
    )


def _places(item: Mapping[str, Any]) -> str:
    words = {
        "condition": f"condition {', '.join(item.get('conditions', ()))}",
        "event": f"{item.get('event')} event",
        "node": "node state",
        "problem": "problem",
    }
    return ", ".join(words[place] for place in item["where"])
