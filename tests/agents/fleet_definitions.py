"""Fleet's definitions, as far as a rendered tree has objects of them.

GitRepo and ClusterGroup have every field of the specifications in `charts/fleet-crd` of rancher/fleet. FleetFile stands
for fleet.yaml, which no API server knows: its fields are those of FleetYAML, BundleSpec and BundleDeploymentOptions in
`pkg/apis`, but for those that only charts have. Rules of single values are kept where Fleet has any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
FILE = ("fleet.test/v1", "FleetFile")
"""The apiVersion and kind that stand for fleet.yaml; its content is the spec."""


def _object(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: Schema) -> dict[str, Any]:
    return {"type": "array", "nullable": True, "items": items}


def _or_null(schema: Schema) -> dict[str, Any]:
    return {**schema, "nullable": True}


FLAG = {"type": "boolean"}
NUMBER = {"type": "integer", "format": "int64"}
TEXT = {"type": "string", "nullable": True}
INTERVAL = {**TEXT, "minLength": 1, "maxLength": 32}
SHARE = {"x-kubernetes-int-or-string": True, "nullable": True}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
REQUIREMENT = _object(key={"type": "string"}, operator={"type": "string"}, values=_list({"type": "string"}))
SELECTOR = _or_null(
    _object(matchLabels=LABELS, matchExpressions=_list({**REQUIREMENT, "required": ["key", "operator"]}))
)
RELEASE = {
    **TEXT,
    "maxLength": 53,
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
DRIFT = _object(enabled=FLAG, force=FLAG, keepFailHistory=FLAG)
CHOSEN = {
    "name": TEXT,
    "clusterName": TEXT,
    "clusterSelector": SELECTOR,
    "clusterGroup": TEXT,
    "clusterGroupSelector": SELECTOR,
}
"""By what a cluster is chosen."""

GIT_REPO = {
    **_object(
        repo={"type": "string", "minLength": 1},
        branch=TEXT,
        revision=TEXT,
        targetNamespace=TEXT,
        clientSecretName=TEXT,
        helmSecretName=TEXT,
        helmSecretNameForPaths=TEXT,
        helmRepoURLRegex=TEXT,
        caBundle={**TEXT, "format": "byte"},
        insecureSkipTLSVerify=FLAG,
        paths=_list({"type": "string"}),
        paused=FLAG,
        serviceAccount=TEXT,
        pollingInterval=INTERVAL,
        forceSyncGeneration=NUMBER,
        imageScanInterval=INTERVAL,
        imageScanCommit=_object(authorName=TEXT, authorEmail=TEXT, messageTemplate=TEXT),
        keepResources=FLAG,
        deleteNamespace=FLAG,
        correctDrift=DRIFT,
        disablePolling=FLAG,
        ociRegistrySecret=TEXT,
        webhookSecret=TEXT,
        targets=_list(_object(**CHOSEN)),
    ),
    "required": ["repo"],
}
OPERATION = _object(op=TEXT, path=TEXT, value=TEXT)
PATCH = _object(
    apiVersion=TEXT,
    kind=TEXT,
    namespace=TEXT,
    name=TEXT,
    jsonPointers=_list({"type": "string"}),
    operations=_list(OPERATION),
)
OPTIONS = {
    "defaultNamespace": TEXT,
    "namespace": TEXT,
    "kustomize": _or_null(_object(dir=TEXT)),
    "helm": _or_null(
        _object(
            releaseName=RELEASE,
            timeoutSeconds=NUMBER,
            force=FLAG,
            takeOwnership=FLAG,
            maxHistory=NUMBER,
            waitForJobs=FLAG,
            atomic=FLAG,
            disablePreProcess=FLAG,
            disableDNS=FLAG,
            skipSchemaValidation=FLAG,
        )
    ),
    "serviceAccount": TEXT,
    "forceSyncGeneration": NUMBER,
    "yaml": _or_null(_object(overlays=_list({"type": "string"}))),
    "diff": _or_null(_object(comparePatches=_list(PATCH))),
    "keepResources": FLAG,
    "ignore": _object(conditions=_list(LABELS)),
    "correctDrift": DRIFT,
    "namespaceLabels": LABELS,
    "namespaceAnnotations": LABELS,
}
"""How a bundle is deployed: for all clusters, or for some."""
FLEET_FILE = _object(
    name={"type": "string"},
    labels=LABELS,
    paused=FLAG,
    dependsOn=_list(_object(name=TEXT, selector=SELECTOR, acceptedStates=_list({"type": "string"}))),
    rolloutStrategy=_object(
        maxUnavailable=SHARE,
        maxUnavailablePartitions=SHARE,
        autoPartitionSize=SHARE,
        partitions=_list(_object(**CHOSEN, maxUnavailable=SHARE)),
    ),
    overrideTargets=_list(_object(**CHOSEN)),
    targetCustomizations=_list(_object(**CHOSEN, **OPTIONS, doNotDeploy=FLAG)),
    **OPTIONS,
)


def _definition(api_version: str, kind: str, spec: Schema) -> dict[str, Any]:
    group, _, version = api_version.partition("/")
    singular = kind.lower()
    served = {"name": version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": f"{singular}s", "singular": singular, "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{**served, "schema": {"openAPIV3Schema": _object(spec=spec)}}],
        },
    }


DEFINITIONS = (
    _definition("fleet.cattle.io/v1alpha1", "GitRepo", GIT_REPO),
    _definition("fleet.cattle.io/v1alpha1", "ClusterGroup", _object(selector=SELECTOR)),
    _definition(*FILE, FLEET_FILE),
)
