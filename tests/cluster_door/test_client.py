"""What the client sends for each call, how it reads answers, and what its windows yield."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cluster_door.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    SERVICE,
    UPGRADE_PLAN,
    VIRTUAL_MACHINE,
    config_map,
    ref,
)
from cluster_door.loopback import client_of
from cluster_door.server import Reply, Stream
from reconcile.cluster import errors
from reconcile.cluster.protocol import Cluster, EventType, Permission, Propagation, Selection, WatchEvent

A = ref(CONFIG_MAP, "a", "default")
PLAN = ref(UPGRADE_PLAN, "to-v1.7.0")
MAPS = "/api/v1/namespaces/default/configmaps"
PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
WRITE = {"fieldManager": "upgradeplan", "fieldValidation": "Strict"}


CALLS: dict[str, tuple[Callable[[Cluster], object], tuple[str, str, dict[str, str], str, Any]]] = {
    "get": (lambda c: c.get(CONFIG_MAP, A), ("GET", f"{MAPS}/a", {}, "application/json", None)),
    "get of a cluster-scoped object": (
        lambda c: c.get(UPGRADE_PLAN, PLAN),
        ("GET", f"{PLANS}/to-v1.7.0", {}, "application/json", None),
    ),
    "apply": (
        lambda c: c.apply(CONFIG_MAP, config_map("a", x="1")),
        ("PATCH", f"{MAPS}/a", WRITE, "application/apply-patch+yaml", config_map("a", x="1")),
    ),
    "apply, dry and forced": (
        lambda c: c.apply(CONFIG_MAP, config_map("a"), force=True, dry_run=True),
        (
            "PATCH",
            f"{MAPS}/a",
            {**WRITE, "dryRun": "All", "force": "true"},
            "application/apply-patch+yaml",
            config_map("a"),
        ),
    ),
    "merge patch of the status": (
        lambda c: c.patch(UPGRADE_PLAN, PLAN, {"status": {"x": None}}, subresource="status", field_manager="loop"),
        (
            "PATCH",
            f"{PLANS}/to-v1.7.0/status",
            {**WRITE, "fieldManager": "loop"},
            "application/merge-patch+json",
            {"status": {"x": None}},
        ),
    ),
    "JSON patch": (
        lambda c: c.json_patch(CONFIG_MAP, A, ({"op": "remove", "path": "/metadata/managedFields/0"},), dry_run=True),
        (
            "PATCH",
            f"{MAPS}/a",
            {**WRITE, "dryRun": "All"},
            "application/json-patch+json",
            [{"op": "remove", "path": "/metadata/managedFields/0"}],
        ),
    ),
    "create": (
        lambda c: c.create(CONFIG_MAP, config_map("a")),
        ("POST", MAPS, WRITE, "application/json", config_map("a")),
    ),
    "delete with preconditions": (
        lambda c: c.delete(CONFIG_MAP, A, uid="u", resource_version="7", propagation=Propagation.ORPHAN, dry_run=True),
        (
            "DELETE",
            f"{MAPS}/a",
            {},
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Orphan",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
        ),
    ),
    "delete": (
        lambda c: c.delete(CONFIG_MAP, A),
        (
            "DELETE",
            f"{MAPS}/a",
            {},
            "application/json",
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"},
        ),
    ),
    "start of a VM": (
        lambda c: c.put(VIRTUAL_MACHINE, ref(VIRTUAL_MACHINE, "vm", "default"), "start"),
        (
            "PUT",
            "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/vm/start",
            {},
            "application/json",
            {},
        ),
    ),
    "node proxy": (
        lambda c: c.read(NODE, ref(NODE, "n1"), "proxy/stats/summary", {"only_cpu_and_memory": "true"}),
        ("GET", "/api/v1/nodes/n1/proxy/stats/summary", {"only_cpu_and_memory": "true"}, "application/json", None),
    ),
    "service proxy": (
        lambda c: c.read(SERVICE, ref(SERVICE, "http:upgrade-repo:80", "default"), "proxy/a b?.yaml"),
        (
            "GET",
            "/api/v1/namespaces/default/services/http:upgrade-repo:80/proxy/a%20b%3F.yaml",
            {},
            "application/json",
            None,
        ),
    ),
    "list": (
        lambda c: c.list(Selection(kind=CONFIG_MAP, labels="a in (b,c),!d", fields="metadata.name=x")),
        (
            "GET",
            "/api/v1/configmaps",
            {"limit": "500", "labelSelector": "a in (b,c),!d", "fieldSelector": "metadata.name=x"},
            "application/json",
            None,
        ),
    ),
    "watch": (
        lambda c: c.watch(Selection(kind=CONFIG_MAP, namespace="default"), resource_version="7", window=290),
        (
            "GET",
            MAPS,
            {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", "timeoutSeconds": "290"},
            "application/json",
            None,
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_call_is_one_request(name: str) -> None:
    call, expected = CALLS[name]
    with client_of(Reply()) as (client, server):
        call(client)
    [seen] = server.seen
    assert (seen.method, seen.path, dict(seen.query), seen.header("Content-Type")[0], seen.body) == expected
    assert seen.header("User-Agent") == ["upgradeplan"]
    assert seen.header("Authorization") == ["Bearer secret"]


@pytest.mark.parametrize(
    ("permission", "expected", "allowed"),
    [
        (
            Permission(verb="get", group="", resource="nodes/proxy"),
            {"verb": "get", "resource": "nodes", "subresource": "proxy"},
            True,
        ),
        (
            Permission(verb="patch", group="apps", resource="deployments", namespace="n", name="d"),
            {"verb": "patch", "group": "apps", "resource": "deployments", "namespace": "n", "name": "d"},
            False,
        ),
    ],
)
def test_review_asks_about_one_permission(permission: Permission, expected: dict[str, str], allowed: bool) -> None:
    with client_of(Reply(status=201, body={"status": {"allowed": allowed, "reason": "so"}})) as (client, server):
        verdict = client.review(permission)
    assert (verdict.allowed, verdict.reason) == (allowed, "so")
    [seen] = server.seen
    assert (seen.method, seen.path) == ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    assert seen.body["spec"] == {"resourceAttributes": expected}


def page(names: str, version: str, token: str = "") -> Reply:
    items = [{"metadata": {"name": name, "namespace": "default"}} for name in names]
    return Reply(body={"metadata": {"resourceVersion": version, "continue": token}, "items": items})


def test_list_reads_all_pages_and_names_every_item() -> None:
    with client_of(page("ca", "5", "t1"), page("b", "5")) as (client, server):
        listing = client.list(Selection(kind=CONFIG_MAP))
    assert [body["metadata"]["name"] for body in listing.items] == ["a", "b", "c"]
    assert {(body["apiVersion"], body["kind"]) for body in listing.items} == {("v1", "ConfigMap")}
    assert listing.resource_version == "5"
    assert [dict(seen.query) for seen in server.seen] == [{"limit": "500"}, {"limit": "500", "continue": "t1"}]


def test_list_that_loses_history_between_pages_is_read_in_one_piece() -> None:
    gone = Reply(status=410, body={"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    with client_of(page("ab", "5", "t1"), gone, page("abc", "9")) as (client, server):
        listing = client.list(Selection(kind=CONFIG_MAP))
    assert ([body["metadata"]["name"] for body in listing.items], listing.resource_version) == (["a", "b", "c"], "9")
    assert [dict(seen.query) for seen in server.seen][2] == {}


def test_warnings_reach_the_caller() -> None:
    headers = [
        ("Warning", '299 - "v1 ComponentStatus is deprecated in v1.19+"'),
        ("Warning", '299 - "say \\"no\\"", 299 - "and no"'),
    ]
    with client_of(Reply(headers=headers)) as (client, _):
        answer = client.get(CONFIG_MAP, A)
    assert answer.warnings == ("v1 ComponentStatus is deprecated in v1.19+", 'say "no"', "and no")


DELETED = {"name": "a", "deletionTimestamp": "2026-11-28T00:00:00Z"}


@pytest.mark.parametrize(
    ("body", "remains"),
    [
        ({"kind": "Status", "status": "Success"}, False),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, False),
        ({"kind": "ConfigMap", "metadata": {**DELETED, "finalizers": ["example.org/hold"]}}, True),
        ({"kind": "ConfigMap", "metadata": DELETED, "spec": {"finalizers": ["kubernetes"]}}, True),
        ({"kind": "ConfigMap", "metadata": {**DELETED, "deletionGracePeriodSeconds": 30}}, True),
        ({"kind": "ConfigMap", "metadata": {**DELETED, "deletionGracePeriodSeconds": 0}}, False),
    ],
)
def test_delete_says_whether_the_object_stays_for_now(body: dict[str, Any], remains: bool) -> None:
    with client_of(Reply(body=body)) as (client, _):
        assert client.delete(CONFIG_MAP, A).body == (body if remains else {})


def event(kind: str, version: str) -> str:
    return json.dumps({"type": kind, "object": {"metadata": {"name": "a", "resourceVersion": version}}})


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until the connection closes"])
def test_watch_yields_events_until_the_window_ends(chunked: bool) -> None:
    lines = [event("ADDED", "6"), event("BOOKMARK", "9"), event("DELETED", "10")]
    with client_of(Stream(lines=lines, chunked=chunked)) as (client, _):
        window = client.watch(Selection(kind=CONFIG_MAP), resource_version="5", window=1)
        got = [(str(e.type), e.body["metadata"]["resourceVersion"]) for e in window]
    assert got == [("ADDED", "6"), ("BOOKMARK", "9"), ("DELETED", "10")]


def read_until_error(client: Cluster) -> tuple[list[WatchEvent], errors.ClusterError]:
    got: list[WatchEvent] = []
    try:
        got.extend(client.watch(Selection(kind=CONFIG_MAP), resource_version="5", window=1))
    except errors.ClusterError as error:
        return got, error
    pytest.fail("the window ended without an error")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}, errors.Gone),
        ({"type": "ERROR", "object": {"kind": "Status", "code": 503, "message": "boom"}}, errors.Away),
        ({"type": "ERROR", "object": {"kind": "Status", "message": "boom"}}, errors.ServerFailed),
    ],
)
def test_error_event_is_raised_after_what_came_before(line: Any, expected: type[Exception]) -> None:
    with client_of(Stream(lines=[event("ADDED", "6"), json.dumps(line)], end="hang")) as (client, _):
        got, error = read_until_error(client)
    assert [one.type for one in got] == [EventType.ADDED]
    assert type(error) is expected


@pytest.mark.parametrize(
    "step",
    [
        Stream(lines=[event("ADDED", "6")], end="cut"),
        Stream(lines=[event("ADDED", "6") + '\n{"type": "ADD'], line_end="", end="cut"),
        Stream(lines=[event("ADDED", "6") + '\n{"type": "ADD'], line_end="", chunked=False),
    ],
    ids=["after a line", "within a line", "within a line, not chunked"],
)
def test_cut_stream_is_away(step: Stream) -> None:
    with client_of(step) as (client, _):
        got, error = read_until_error(client)
    assert [one.type for one in got] == [EventType.ADDED]
    assert type(error) is errors.Away


def test_close_from_another_thread_ends_a_silent_window() -> None:
    with client_of(Stream(lines=[event("ADDED", "6")], end="hang")) as (client, _):
        window = client.watch(Selection(kind=CONFIG_MAP), resource_version="5", window=290)
        got = []
        for one in window:
            got.append(one)
            closer = threading.Thread(target=window.close)
            closer.start()
            closer.join()
        window.close()
    assert len(got) == 1


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (CONFIG_MAP, ref(NAMESPACE, "a")),
        (CONFIG_MAP, ref(CONFIG_MAP, "a")),
        (CONFIG_MAP, ref(CONFIG_MAP, "", "default")),
        (NAMESPACE, ref(NAMESPACE, "a", "default")),
    ],
    ids=["other kind", "no namespace", "no name", "a namespace too much"],
)
def test_ref_that_does_not_fit_its_kind_is_our_bug(kind: Any, wrong: Any) -> None:
    with client_of() as (client, server), pytest.raises(ValueError, match=r"kind|name"):
        client.get(kind, wrong)
    assert server.seen == []


def test_only_the_transport_loads_the_library() -> None:
    modules = "client listwatch events protocol errors kubeconfig credential"
    code = (
        "import importlib, sys\n"
        f"for name in {modules.split()}: importlib.import_module('reconcile.cluster.' + name)\n"
        "print([m for m in ('kubernetes', 'requests', 'urllib3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
