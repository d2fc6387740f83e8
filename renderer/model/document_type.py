"""The documents that people write and machines read: API group and version, kind, and the schema of each.

One table; no other module spells out an `apiVersion` of these. The content of documents is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.frozen import frozen

TEMPLATES = "templates.upgradeplan/v1"
"""The API version of documents in a template tree."""

FILES = "upgradeplan/v1"
"""The API version of documents beside it: inputs of our own, rendered trees, journals."""

ANSWERS = "cli.upgradeplan/v1"
"""The API version of answers with `-o json`."""

COMMON = f"urn:upgradeplan:{ANSWERS}:common"
"""The `$id` of the parts that several answers have in common; they are no document."""


@frozen
class DocumentType:
    """`schema` is the name of a file below `schemas/`, without its ending."""

    api_version: str
    kind: str
    schema: str

    @property
    def schema_id(self) -> str:
        """The `$id` of a schema for this type alone."""
        return f"urn:upgradeplan:{self.api_version}:{self.kind}"

    def document(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`body` as a document of this type."""
        return {"apiVersion": self.api_version, "kind": self.kind, **body}

    def is_type_of(self, value: Any) -> bool:
        """True if a document says that it is of this type."""
        return (
            isinstance(value, Mapping)
            and value.get("kind") == self.kind
            and value.get("apiVersion") == self.api_version
        )


PHASE = DocumentType(api_version=TEMPLATES, kind="Phase", schema="phase")
KINDS = DocumentType(api_version=TEMPLATES, kind="Kinds", schema="kinds")
NODE_STATES = DocumentType(api_version=TEMPLATES, kind="NodeStates", schema="node-states")
DIFF_RULES = DocumentType(api_version=TEMPLATES, kind="DiffRules", schema="diff-rules")
REDACTION_RULES = DocumentType(api_version=TEMPLATES, kind="RedactionRules", schema="redaction-rules")
CHECKS = DocumentType(api_version=TEMPLATES, kind="Checks", schema="checks")
BUILT_IN_UPGRADE_STATES = DocumentType(api_version=TEMPLATES, kind="BuiltInUpgrade", schema="built-in-upgrade")
CAUSES = DocumentType(api_version=TEMPLATES, kind="Causes", schema="causes")
RELEASE_NOTES = DocumentType(api_version=TEMPLATES, kind="ReleaseNotes", schema="release-notes")
DELIVERY_RULES = DocumentType(api_version=TEMPLATES, kind="DeliveryRules", schema="delivery-rules")
VALUES = DocumentType(api_version=TEMPLATES, kind="Values", schema="values")
ANNOTATIONS = DocumentType(api_version=TEMPLATES, kind="Annotations", schema="annotations")
REASONS = DocumentType(api_version=TEMPLATES, kind="Reasons", schema="reasons")

FACTS = DocumentType(api_version=FILES, kind="Facts", schema="facts")
RENDERED_PLAN = DocumentType(api_version=FILES, kind="RenderedPlan", schema="rendered-plan")
RENDERED_CLUSTERS = DocumentType(api_version=FILES, kind="RenderedClusters", schema="rendered-clusters")
CLUSTER_VALUES = DocumentType(api_version=FILES, kind="ClusterValues", schema="cluster-values")
WAVES = DocumentType(api_version=FILES, kind="Waves", schema="waves")
GATE = DocumentType(api_version=FILES, kind="Gate", schema="resolved-gate")
JOURNAL_ENTRY = DocumentType(api_version=FILES, kind="JournalEntry", schema="journal")

APPROVAL_REPORT = DocumentType(api_version=ANSWERS, kind="ApprovalReport", schema="approve")
COMPARISON_REPORT = DocumentType(api_version=ANSWERS, kind="ComparisonReport", schema="compare")
DIAGNOSIS_REPORT = DocumentType(api_version=ANSWERS, kind="DiagnosisReport", schema="diagnose")
DIFF_REPORT = DocumentType(api_version=ANSWERS, kind="DiffReport", schema="diff")
EXPLAIN_REPORT = DocumentType(api_version=ANSWERS, kind="ExplainReport", schema="explain")
GATE_REPORT = DocumentType(api_version=ANSWERS, kind="GateReport", schema="gate")
IMAGE_LIST = DocumentType(api_version=ANSWERS, kind="ImageList", schema="images")
PHASE_CONTEXT = DocumentType(api_version=ANSWERS, kind="PhaseContext", schema="phases")
PHASE_LIST = DocumentType(api_version=ANSWERS, kind="PhaseList", schema="phases")
PROBLEM_LIST = DocumentType(api_version=ANSWERS, kind="ProblemList", schema="problems")
PREFLIGHT_REPORT = DocumentType(api_version=ANSWERS, kind="PreflightReport", schema="preflight")
REHEARSAL_REPORT = DocumentType(api_version=ANSWERS, kind="RehearsalReport", schema="rehearse")
RENDERED_FOLDER = DocumentType(api_version=ANSWERS, kind="RenderedFolder", schema="render")
RENDERED_CLUSTER_FOLDERS = DocumentType(api_version=ANSWERS, kind="RenderedClusterFolders", schema="render")
RENDERING = DocumentType(api_version=ANSWERS, kind="Rendering", schema="render")
REPLAY_REPORT = DocumentType(api_version=ANSWERS, kind="ReplayReport", schema="replay")
RUN_REPORT = DocumentType(api_version=ANSWERS, kind="RunReport", schema="report")
CLUSTERS_STATUS = DocumentType(api_version=ANSWERS, kind="ClustersStatus", schema="status")
STATUS_REPORT = DocumentType(api_version=ANSWERS, kind="StatusReport", schema="status")
VALIDATION_REPORT = DocumentType(api_version=ANSWERS, kind="ValidationReport", schema="validate")
VERIFICATION_REPORT = DocumentType(api_version=ANSWERS, kind="VerificationReport", schema="verify")
VERSION_INFO = DocumentType(api_version=ANSWERS, kind="VersionInfo", schema="version")

ALL = tuple(item for item in dict(globals()).values() if isinstance(item, DocumentType))
"""Every type, in the order in which they are written above."""
