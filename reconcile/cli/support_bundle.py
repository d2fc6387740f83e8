"""The support bundle that `explain` offers: evidence to be kept before anybody repairs anything. Harvester collects it
from all nodes once its object is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.cli.prompt import agreed
from renderer.cli.answer import say
from renderer.errors import ExitCode, problem
from renderer.model.ref import Body, Kind
from renderer.names import safe_concat

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster

KIND = Kind(api_version="harvesterhci.io/v1beta1", kind="SupportBundle", plural="supportbundles", namespaced=True)
NAMESPACE = "harvester-system"


def offer_bundle(cluster: Cluster, plan: str, why: str, *, yes: bool) -> None:
    """Creates it if that is agreed to. Raises `Problems` where there is one, `ClusterError`."""
    from reconcile.cluster.errors import AlreadyExists

    body = bundle_of(plan, why)
    name = body["metadata"]["name"]
    if not yes and not agreed(f"Create SupportBundle {NAMESPACE}/{name}? Harvester collects logs on all nodes then"):
        return
    try:
        cluster.create(KIND, body)
    except AlreadyExists:
        remedy = f"download it, or delete it: kubectl -n {NAMESPACE} delete {KIND.plural}.harvesterhci.io {name}"
        message = f"SupportBundle {NAMESPACE}/{name} already exists"
        raise problem("SupportBundleExists", message, remedy=remedy, exit_code=ExitCode.NO) from None
    follow = f"kubectl -n {NAMESPACE} get {KIND.plural}.harvesterhci.io {name} -o yaml"
    say(
        [f"SupportBundle {NAMESPACE}/{name} created; to see when it can be downloaded in Harvester's UI, run: {follow}"]
    )


def bundle_of(plan: str, why: str) -> Body:
    """The support bundle of a plan, named after it. `why` is the message of the plan's own conditions."""
    metadata = {"name": safe_concat("bundle", plan), "namespace": NAMESPACE}
    description = f"UpgradePlan {plan}: {why or 'support bundle before a repair'}"
    spec = {"issueURL": "", "description": description}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": metadata, "spec": spec}
