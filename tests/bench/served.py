"""A large cluster that an HTTP server makes up: lists of any length, page by page, of objects as large as real ones.

No store stands behind it, so that it costs the machine little beside the program that is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from bench.inputs import EXAMPLE, node_name
from renderer.catalog.kinds import Kinds

Json = dict[str, Any]
PAGE = "500"
MACHINES = 10
"""Virtual machines on a node."""
_NAME, _NODE, _TIME = "NAME-OF-OBJECT", "NAME-OF-NODE", "TIME-OF-OBJECT"
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_DISK = {"node": {"fs": {"capacityBytes": 200 << 30, "usedBytes": 60 << 30, "availableBytes": 140 << 30}}}
_PROXIED = {"stats/summary": _DISK, "configz": {"kubeletconfig": {"imageGCHighThresholdPercent": 85}}}
_TOLD = ("Pod", "VirtualMachine", "VirtualMachineInstance")
"""Kinds whose objects have much that no check reads."""
PER_NODE = {"Node": 1, "VirtualMachineInstance": MACHINES, "VirtualMachine": MACHINES, "Volume": MACHINES}
PER_NODE |= {"Replica": 3 * MACHINES, "Pod": 2 * MACHINES, "PersistentVolumeClaim": MACHINES, "Machine": 1}


class ServedCluster:
    """`nodes` of the three-node example, and what runs on them."""

    def __init__(self, nodes: int, kinds: Kinds) -> None:
        self._lists: dict[tuple[str, str], list[tuple[str, str, Callable[[], str]]]] = {}
        for body in _examples():
            row = kinds.find(str(body["apiVersion"]), str(body["kind"]))
            if row is None:
                continue
            group = body["apiVersion"]
            found = self._lists.setdefault((group, row.kind.plural), [])
            found += _copies(body, nodes)

    def answer(self, path: str, query: Mapping[str, list[str]]) -> Any:
        parts = path.strip("/").split("/")
        if "proxy" in parts:
            return _PROXIED.get(path.partition("/proxy/")[2])
        version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = rest[1] if len(rest) > 2 and rest[0] == "namespaces" else ""
        plural, *named = rest[2:] if namespace else rest
        labelled = "labelSelector" in query  # nothing here has the labels that are asked for
        listed = () if labelled else self._lists.get((version, plural), ())
        there = [item for item in listed if item[0] == namespace] if namespace else listed
        name = named[0] if named else query.get("fieldSelector", [""])[0].partition("metadata.name=")[2]
        there = [item for item in there if item[1] == name] if name else there
        if named:
            return json.loads(there[0][2]()) if there else None
        start, limit = (int(query.get(key, [default])[0]) for key, default in (("continue", "0"), ("limit", PAGE)))
        items = ",".join(make() for _, _, make in there[start : start + limit])
        more = f', "continue": "{start + limit}"' if start + limit < len(there) else ""
        return (
            f'{{"kind": "List", "apiVersion": "v1", "metadata": {{"resourceVersion": "7"{more}}}, "items": [{items}]}}'
        )


def _examples() -> Iterator[Json]:
    """One object of each kind that is made many times, all of the others."""
    seen: set[str] = set()
    for file in (
        "nodes.yaml",
        "rancher.yaml",
        "vms.yaml",
        "checked.yaml",
        "components.yaml",
        "settings.yaml",
        "version.yaml",
    ):
        for document in yaml.safe_load_all((EXAMPLE / file).read_text()):
            for body in document.get("items", [document]):
                if body["kind"] not in PER_NODE:
                    yield body
                elif body["kind"] not in seen:
                    seen.add(body["kind"])
                    yield body
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk-claim", "namespace": "default"},
    }
    yield {
        **claim,
        "spec": {"resources": {"requests": {"storage": "10Gi"}}, "volumeName": "a"},
        "status": {"phase": "Bound"},
    }


def _copies(body: Json, nodes: int) -> Iterator[tuple[str, str, Callable[[], str]]]:
    count = PER_NODE.get(body["kind"], 0) * nodes
    namespace, name = str(body["metadata"].get("namespace", "")), str(body["metadata"]["name"])
    if not count:
        text = json.dumps(body)
        yield namespace, name, lambda: text
        return
    text = json.dumps(_as_large_as_real({**body, "metadata": {**body["metadata"], "name": _NAME}}, name))
    each = count // nodes
    for number in range(count):
        node = node_name(number // each)
        called = node if body["kind"] in ("Node", "Machine") else f"{name}-{number}"
        time = f"{_BEGAN + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}"
        yield namespace, called, partial(_with_names, text, {_NAME: called, _NODE: node, _TIME: time})


def _with_names(text: str, names: Mapping[str, str]) -> str:
    for mark, name in names.items():
        text = text.replace(mark, name)
    return text


def _as_large_as_real(body: Json, name: str) -> Json:
    """With what a server adds, and the rest of a pod or a machine that no example has."""
    made: Json = json.loads(json.dumps(body).replace(name, _NAME))
    fields: Json = {f"f:field{number}": {"f:value": {}, "f:other": {}, ".": {}} for number in range(60)}
    made["metadata"] |= {
        "uid": f"uid-{_NAME}",
        "resourceVersion": f"7{_TIME}",
        "creationTimestamp": _TIME,
        "managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}],
    }
    made["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/last-applied-configuration"] = (
        f"{_NAME}{'x' * 2000}"
    )
    if body["kind"] in _TOLD:  # of volumes to be made, and of networks
        made["metadata"]["annotations"]["example.com/told"] = f"{_NAME}{'x' * 800}"
    spec, status = made.setdefault("spec", {}), made.setdefault("status", {})
    for condition in status.get("conditions", ()):
        condition["lastTransitionTime"] = _TIME
    if "nodeName" in spec:
        spec["nodeName"] = _NODE
    if "nodeID" in spec:
        spec["nodeID"] = _NODE
    if body["kind"] == "Node":
        made["metadata"]["annotations"]["cluster.x-k8s.io/machine"] = _NAME
    if "nodeRef" in status:
        status["nodeRef"]["name"] = _NODE
    if "nodeName" in status:
        status["nodeName"] = _NODE
    if body["kind"] in _TOLD:
        status["rest"] = [
            {"name": f"{_NAME}-{number}", "image": f"image-{number}", "ready": True} for number in range(30)
        ]
        spec["rest"] = [{"name": f"VAR_{number}", "value": f"{_NAME}-{number}"} for number in range(60)]
    return made


@contextmanager
def serving(cluster: ServedCluster, folder: Path) -> Iterator[Path]:
    """The kubeconfig of an API server that answers for it."""

    class ServedHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            found = cluster.answer(url.path, parse_qs(url.query))
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            text = found if isinstance(found, str) else json.dumps(missing if found is None else found)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            data = text.encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), ServedHandler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield _kubeconfig(f"http://127.0.0.1:{server.server_address[1]}", folder / "served.kubeconfig")
    finally:
        server.shutdown()
        server.server_close()


def _kubeconfig(address: str, path: Path) -> Path:
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "served",
        "clusters": [{"name": "served", "cluster": {"server": address}}],
        "users": [{"name": "served", "user": {}}],
        "contexts": [{"name": "served", "context": {"cluster": "served", "user": "served"}}],
    }
    path.write_text(yaml.dump(body))
    return path
