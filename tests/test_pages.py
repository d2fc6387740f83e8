"""Statements of the pages on compatibility, security and troubleshooting that the product can be held to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from support.installed import installation
from support.rehearsals import ROOT, template_set

UPSTREAM = {
    *("conditions", "currentPhase", "isoImageID", "nodeUpgradeStatuses", "phaseTransitionTimestamps"),
    *("previousVersion", "provisionGeneration", "releaseMetadata", "singleNode", "version"),
}
"""Fields of the status that the Harvester Upgrade Manager has."""
KINDS = {"secrets": "Secret", "nodes": "Nodes", "plans": "Plans", "kubevirts": "KubeVirt", "clusters": "Cluster"}
NOT_OF_ITS_OWN = {"upgradeplans", "upgradeplans/status", "events", "leases"}
"""What the manager writes of its own kinds, or to say what it does."""
NAMES = {"managedcharts": "ManagedCharts", "virtualmachineimages": "VirtualMachineImages", "configmaps": "ConfigMaps"}
NAMES |= {"validatingwebhookconfigurations": "webhook's configuration"}
NAMES |= {"tokenreviews": "TokenReviews", "subjectaccessreviews": "SubjectAccessReviews"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_page_on_compatibility_lists_the_fields_that_are_added() -> None:
    crd = yaml.safe_load((ROOT / "schemas" / "crds" / "upgradeplan.yaml").read_text(encoding="utf-8"))
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    line = next(line for line in page("compatibility.md").splitlines() if line.startswith("Fields of the status"))
    assert set(re.findall(r"`([a-zA-Z]+)`", line)) == set(status) - UPSTREAM


def written() -> Iterator[str]:
    """Resources that the manager's account may write."""
    for body in (body for file in installation().files for body in file.objects):
        for rule in body.get("rules", ()) if body["kind"] in ("Role", "ClusterRole") else ():
            if not {"create", "patch", "update", "delete"}.isdisjoint(rule["verbs"]):
                yield from rule.get("resources", ())


def test_the_page_on_security_names_everything_that_the_manager_may_write() -> None:
    text = page("security.md")
    table = text[text.index("| permission |") : text.index("The collector of logs has an account")]
    found = {resource: KINDS.get(resource) or NAMES.get(resource) or resource.title() for resource in written()}
    assert {"jobs", "deployments", "nodes", "addons"} <= set(found)
    assert [each for each, word in found.items() if word not in table and each not in NOT_OF_ITS_OWN] == []


def test_the_page_on_troubleshooting_has_every_state_of_the_built_in_upgrade() -> None:
    file = ROOT / "templates" / "diagnosis" / "built-in" / "upgrade.yaml"
    states = {item["state"] for item in yaml.safe_load(file.read_text(encoding="utf-8"))["states"]}
    text = page("troubleshooting.md")
    rows = text[text.index("| state of the Upgrade |") : text.index("`explain` and `diagnose` look for")]
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", rows)) == states


def test_the_page_on_troubleshooting_knows_how_long_a_node_may_take() -> None:
    (phase,) = (item.phase for item in template_set().catalog.phases if item.phase.name == "NodeUpgrade")
    limits = {step.name: {gate.slow_after for gate in step.gates} for step in phase.steps}
    assert limits["Reboot"] == {30 * 60}
    assert limits["PreDrain"] == limits["PostDrain"] == {3600}
    assert limits["SingleNode"] == {2 * 3600}
    said = "30 minutes of a reboot (1 hour of the Job before or after the drain, 2 hours of the Job of a single node)"
    assert said in page("troubleshooting.md")
