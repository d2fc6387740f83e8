"""Checks if a Plan of the system-upgrade-controller has a failed Job, which is what lasts of a failure.

The controller writes `JobFailed` to the Plan when a Job fails, and overwrites it as soon as the Job of another node
ends. A Plan that is Complete is done on every node that it selects: a Job that had failed was made again.
"""

from __future__ import annotations

from dataclasses import replace

from reconcile import objects
from reconcile.probes.look import Group, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, unread, waiting
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_NODE = "upgrade.cattle.io/node"
_MOST_NAMED = 3  # Jobs that are named; the others are counted


def job_failed(call: RuleCall) -> Verdict:
    """Passed if one has failed: the rule is one of those by which an object fails. The failed Jobs are offenders."""
    complete = objects.condition(call.body, "Complete")
    if complete is not None and complete.status == "True":
        return waiting("condition Complete is True")
    jobs = call.look.list(_jobs(call.object.namespace, call.object.name))
    if isinstance(jobs, ReadFailure):
        return unread("its Jobs", jobs)
    failed = [job for job in jobs if _has_failed(job) and not _is_older(job, call.body)]
    if not failed:
        return waiting(f"none of its {len(jobs)} Jobs has failed")
    more = [f"and {len(failed) - _MOST_NAMED} more Jobs"] if len(failed) > _MOST_NAMED else []
    reason = "; ".join([*map(_said, failed[:_MOST_NAMED]), *more])
    return replace(passed(reason), offenders=tuple(map(ref_of, failed)))


def _jobs(namespace: str, plan: str = "") -> Group:
    labels = ((objects.NODE_PLAN_LABEL, plan),) if plan else ()
    return Group(api_version="batch/v1", kind="Job", namespace=namespace, labels=labels)


def _has_failed(job: Body) -> bool:
    found = objects.condition(job, "Failed")
    return found is not None and found.status == "True"


def _is_older(job: Body, plan: Body) -> bool:
    """True if the Job was made for an earlier Plan of the same name: the controller deletes it."""
    made, since = (str(look_up(body, ("metadata", "creationTimestamp")) or "") for body in (job, plan))
    return bool(made and since) and made < since  # RFC 3339 in UTC, as the API server writes them


def _said(job: Body) -> str:
    found = objects.condition(job, "Failed")
    why = ": ".join(part for part in (found.reason, found.message) if part) if found else ""
    return f"{ref_of(job)} failed on Node {objects.label(job, _NODE)}" + (f" ({why})" if why else "")
