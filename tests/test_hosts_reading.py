"""The reading `hosts`: the reports of the last Jobs that have looked at the nodes, and what is no report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.rbac import Rbac
from support.rehearsals import template_set
from support.rendered_plans import Json

from reconcile.observe.hosts import hosts_of
from reconcile.probes.look import Answer, ReadFailure
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.status.times import time_text

KINDS = template_set().catalog.kinds
START = datetime(2026, 11, 2, 8, tzinfo=UTC)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
LABELS = {"management.harvesterhci.io/upgrade-component": "host-check", "management.harvesterhci.io/node": "n1"}
COMPLETE = {"type": "Complete", "status": "True"}
EXCEEDED = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active too long"}


def look(number: int, condition: Mapping[str, str] | None, message: str | None, **labels: str) -> tuple[Json, ...]:
    """A Job that looks at n1, the later the higher its number, and its pod if that has ended."""
    name = f"up-host-check-n1-{number}"
    created = time_text(START + timedelta(minutes=number))
    metadata = {"name": name, "namespace": "harvester-system", "labels": LABELS | labels, "creationTimestamp": created}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**metadata, "uid": name},
        "status": {"conditions": [condition] if condition else []},
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    end = {"exitCode": 0, **({} if message is None else {"message": message})}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [owner]},
        "status": {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": end}}]},
    }
    return (job, pod) if message is not None else (job,)


def read(*objects: Json) -> Answer:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([NODE, *objects])
    answer: Answer = hosts_of(cluster.client(), KINDS, [NODE])["n1"]()
    return answer


def test_a_node_answers_by_the_termination_message_of_its_last_pod_that_has_ended() -> None:
    bios, uefi = look(1, COMPLETE, '{"firmware": "bios"}'), look(2, COMPLETE, '{"firmware": "uefi"}')
    assert read(*uefi, *bios) == {"firmware": "uefi"}
    assert read(*bios, *look(2, None, None)) == {"firmware": "bios"}


def test_a_report_says_when_it_was_made() -> None:
    job, pod = look(1, COMPLETE, '{"firmware": "bios"}')
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-11-02T08:01:30Z"
    assert read(job, pod) == {"firmware": "bios", "reportedAt": "2026-11-02T08:01:30Z"}


def test_that_nobody_has_looked_at_a_host_is_out_of_reach() -> None:
    for objects in ((), look(1, COMPLETE, "{}", **{"management.harvesterhci.io/node": "n2"})):
        answer = read(*objects)
        assert isinstance(answer, ReadFailure)
        assert answer.out_of_reach
        assert answer.why == "it has not been checked: a plan does that when it begins, with a Job on each node"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        (look(1, None, None), "Job up-host-check-n1-1 on node n1 has not ended yet"),
        (
            look(1, EXCEEDED, None),
            "Job up-host-check-n1-1 on node n1 has not answered: DeadlineExceeded, Job was active too long",
        ),
        (look(1, COMPLETE, ""), "Job up-host-check-n1-1 on node n1 has not answered"),
        ((*look(1, COMPLETE, "{}"), *look(2, EXCEEDED, None)), "Job up-host-check-n1-2 on node n1 has not answered"),
    ],
)
def test_a_job_without_an_answer_is_named_and_can_be_looked_at(objects: tuple[Json, ...], why: str) -> None:
    answer = read(*objects)
    assert isinstance(answer, ReadFailure)
    assert answer.why.startswith(why)
    assert not answer.out_of_reach
    assert answer.remedy is not None
    assert "kubectl -n harvester-system get jobs,pods" in answer.remedy


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("sh: not found", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 4000, "is not JSON"),
        ("{}\n---\n{}", "is not JSON"),
        ("", "has not answered"),
        ("[]", "is not a report"),
        ("null", "is not a report"),
        ('{"cosState": {"kilobytes": NaN}}', "is not a report"),
        (json.dumps({"firmware": "coreboot"}), "is not a report"),
        (json.dumps({"cosState": {"kilobytes": "many"}}), "is not a report"),
        (json.dumps({"cosState": {"kilobytes": -1}}), "is not a report"),
        (json.dumps({"certificate": {"notAfter": "soon"}}), "is not a report"),
        (json.dumps({"nics": {"unpinned": ["eth0\n\x1b[2J"]}}), "is not a report"),
        (json.dumps({"couldNotLook": {"oem": "x" * 201}}), "is not a report"),
        (json.dumps({"firmware": "uefi", "more": "x" * 4096}), "is longer than 4096 bytes"),
    ],
)
def test_what_is_no_report_could_not_be_looked_at(message: str, why: str) -> None:
    answer = read(*look(1, COMPLETE, message))
    assert isinstance(answer, ReadFailure), answer
    assert why in answer.why
    assert "Job up-host-check-n1-1 on node n1" in answer.why, "of several nodes nobody knew which"
    assert answer.why.isprintable()


def test_who_may_not_list_jobs_is_told_which_rule_is_missing() -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    metadata = {"name": "reader", "namespace": "harvester-system"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    role = {"kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"kind": "Role", "name": "reader"},
        "subjects": [subject],
    }
    access = Rbac([role, binding], namespace="default", account="reader")
    cluster = EmbeddedCluster(SimulatedClock(START))
    answer = hosts_of(cluster.client(access=access), KINDS, [NODE])["n1"]()
    assert isinstance(answer, ReadFailure)
    assert (answer.remedy or "").count('"resources": ["jobs"]') == 1


def test_jobs_and_pods_are_listed_once_for_all_nodes() -> None:
    cluster = EmbeddedCluster(SimulatedClock(START))
    nodes: list[Any] = [{**NODE, "metadata": {"name": f"n{number}"}} for number in range(5)]
    client = cluster.client()
    asks = hosts_of(client, KINDS, nodes)
    assert len(client.log.requests) == 0
    for ask in asks.values():
        ask()
    assert len(client.log.requests) == 2
