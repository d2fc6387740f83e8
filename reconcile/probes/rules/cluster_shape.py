"""The make-up of a cluster: witnesses, taints, the drain hooks that Rancher waits for."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile import objects
from reconcile.probes.look import NODES, ReadFailure
from reconcile.probes.rules.call import RuleCall, listed
from reconcile.probes.rules.named import names_in
from reconcile.probes.verdict import Verdict, passed, unknown, unread, waiting
from renderer.model.node_labels import is_witness
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_CLUSTER = Ref(api_version="provisioning.cattle.io/v1", kind="Cluster", namespace="fleet-local", name="local")
_STRATEGY = ("spec", "rkeConfig", "upgradeStrategy")
_OPTIONS = ("controlPlaneDrainOptions", "workerDrainOptions")
_HOOKS = ("preDrainHooks", "postDrainHooks")


def witnesses(call: RuleCall) -> Verdict:
    found = listed(call, NODES)
    if isinstance(found, Verdict):
        return found
    names = [ref_of(body).name for body in found[0] if is_witness(body)]
    says = f"{len(names)} witness node{'' if len(names) == 1 else 's'}"
    if len(names) <= call.number("atMost"):
        return passed(says)
    return waiting(f"{says} ({', '.join(names)}), expected at most {call.text('atMost')}")


def has_taint(call: RuleCall) -> Verdict:
    expected = (call.text("key"), call.text("value"), call.text("effect"))
    taints = [
        tuple(str(look_up(taint, (part,)) or "") for part in ("key", "value", "effect"))
        for taint in objects.items(look_up(call.body, ("spec", "taints")))
    ]
    says = "taint {}={}:{}".format(*expected)
    return passed(f"has {says}") if expected in taints else waiting(f"has no {says}")


def no_drain_hooks(call: RuleCall) -> Verdict:
    """Asks what Rancher's Cluster wants, even if its status is older. Hooks of others do not count."""
    cluster = call.look.get(_CLUSTER)
    if isinstance(cluster, ReadFailure):
        return unread(_CLUSTER, cluster)
    hooks = names_in(call.text("annotations"))
    left = sorted({hook for hook in _drain_hooks(cluster or {}) if hook in hooks})
    if left:
        return waiting(f"spec.rkeConfig.upgradeStrategy still has the drain hooks {', '.join(left)}", _CLUSTER)
    return passed(f"{_CLUSTER} has no drain hook {' or '.join(hooks)}")


def votes(call: RuleCall) -> Verdict:
    """RKE2 reports for every member of etcd whether it votes; without a report it is unknown."""
    found = objects.condition(call.body, "EtcdIsVoter")
    if found is None:
        return unknown("does not say whether it votes in etcd: condition EtcdIsVoter is absent")
    why = ": ".join(part for part in (found.reason, call.scope.redactor.text(found.message)) if part)
    says = f"condition EtcdIsVoter is {found.status}{f' ({why})' if why else ''}"
    return passed(says) if found.status == "True" else waiting(says)


def _drain_hooks(cluster: Body) -> Iterator[str]:
    for options in _OPTIONS:
        for hooks in _HOOKS:
            for hook in objects.items(look_up(cluster, (*_STRATEGY, options, hooks))):
                yield str(look_up(hook, ("annotation",)) or "")
