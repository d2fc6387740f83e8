"""On a real control plane: `diff` and `apply` beside kubectl's, and the loop as a process of its own."""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

from controlplane import binaries, build, cluster
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.installed import ACCOUNT, objects_of, text_of
from support.seeding import seed

from bench.inputs import EXAMPLE, ROOT, write_inputs
from bench.largest import LIMIT, largest_status
from bench.measure import Command, Figures, side_by_side
from bench.outage import bench_outage
from bench.table import Budget, Line
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.status.plan_body import status_body
from renderer.assemble import open_template_set
from renderer.catalog.kinds import Kinds
from renderer.documents import Inputs, plan_of
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Kind

UPGRADEPLAN = str(Path(sys.executable).parent / "upgradeplan")
USER = f"system:serviceaccount:{ACCOUNT[0]}:{ACCOUNT[1]}"
PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
IMAGES = "/apis/harvesterhci.io/v1beta1/namespaces/harvester-system/virtualmachineimages"
SKIP_DISK_CHECK = "management.harvesterhci.io/skip-garbage-collection-threshold-check"
MANY = 1000
_SEEDERS = 8
"""Requests at the same time while a cluster is seeded: 1,000 nodes are some 10,000 requests."""
QUIET_SECONDS = 20.0
LOG = "loop.log"
AS_INSTALLED = "import sys; sys.modules['kubernetes_validate'] = None; from renderer.cli import main; sys.exit(main())"
"""The program without a package of the tests that the Kubernetes client imports where it is there."""
METRICS_PORT = 18443
BEGUN = {
    "currentPhase": "NodeUpgrading",
    "previousVersion": "v1.7.1",
    "isoImageID": "hvst-upgrade-864fh-iso",
}


def bench_live(work: Path) -> Iterator[Line]:
    with _plane() as plane:
        yield from _commands(plane, work)
        yield from _reaction(plane, work)
        yield from _largest_plan(plane)
        yield from bench_outage(plane)


def bench_many_nodes(work: Path) -> Iterator[Line]:
    with _plane() as plane:
        yield from _many_nodes(plane, work)


def _plane() -> AbstractContextManager[ControlPlane]:
    return cluster.running(binaries.built() or build.build(_say), [ROOT / "schemas" / "crds"], _say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _commands(plane: ControlPlane, work: Path) -> Iterator[Line]:
    """`diff` of the whole upgrade, and ISODownload applied for the first time and once more, its import played."""
    seed_cluster(plane, EXAMPLE)
    tree = work / "tree"
    subprocess.run([UPGRADEPLAN, "render", str(EXAMPLE), "--output-dir", str(tree)], check=True, capture_output=True)
    plane.api.create(PLANS, without_disk_check(EXAMPLE))
    folders = sorted(folder for folder in next(tree.iterdir()).iterdir() if any(folder.glob("*.yaml")))
    kubectl = (os.fspath(plane.kubectl_path), f"--kubeconfig={plane.kubeconfig}")
    ours = ("--kubeconfig", str(plane.kubeconfig), str(EXAMPLE))
    image = next(str(folder) for folder in folders if "iso-download" in folder.name)
    apply = (UPGRADEPLAN, "apply", "--phase", "ISODownload", "--yes", *ours)

    def forget() -> None:
        for item in plane.api.get(IMAGES)["items"]:
            plane.api.delete(f"{IMAGES}/{item['metadata']['name']}")

    with _imports(plane):
        figures = side_by_side(
            {
                "diff, 3 nodes": Command(argv=(UPGRADEPLAN, "diff", *ours), codes=(0, 1)),
                "kubectl diff --server-side, 3 nodes": Command(
                    argv=(
                        *kubectl,
                        "diff",
                        "--server-side",
                        *(part for folder in folders for part in ("-f", str(folder))),
                    ),
                    codes=(0, 1),
                ),
                "apply --phase, 1 object, new": Command(argv=apply, before=forget),
                "apply --phase, 1 object, nothing to do": Command(argv=apply),
                "kubectl apply --server-side, 1 object": Command(
                    argv=(*kubectl, "apply", "--server-side", "-f", image)
                ),
            },
            7,
            {"XDG_CACHE_HOME": str(work / "cache")},
        )
    plane.api.delete(f"{PLANS}/{without_disk_check(EXAMPLE)['metadata']['name']}")
    peers = {"diff": "kubectl diff --server-side, 3 nodes", "apply": "kubectl apply --server-side, 1 object"}
    for name, taken in figures.items():
        peer = peers.get(name.split()[0].rstrip(","))
        yield _line(name, taken, ratio=taken.seconds / figures[peer].seconds if peer else None)


def _reaction(plane: ControlPlane, work: Path) -> Iterator[Line]:
    """From a plan's creation to the loop's first write to it, as another client's watch brings it."""
    plan = without_disk_check(EXAMPLE)
    path = f"{PLANS}/{plan['metadata']['name']}"
    taken = []
    watcher = _admin(plane)
    plans = Selection(
        kind=Kind(api_version=PLAN_API_VERSION, kind="UpgradePlan", plural="upgradeplans", namespaced=False)
    )
    with _loop(plane, work):
        for _ in range(15):
            until("the last plan is gone", lambda: _absent(plane, path))
            time.sleep(0.5)
            start = time.perf_counter()
            made = plane.api.create(PLANS, plan)["metadata"]["resourceVersion"]
            next(iter(watcher.watch(plans, resource_version=made, window=30)))
            taken.append(time.perf_counter() - start)
            plane.api.delete(path)
        until("the last plan is gone", lambda: _absent(plane, path))
    held = statistics.median(taken) <= 0.1
    yield Line(
        what="loop: from a new plan to the first write",
        seconds=statistics.median(taken),
        quickest=min(taken),
        slowest=max(taken),
        budgets=(Budget(text="100 ms", held=held),),
    )


def _largest_plan(plane: ControlPlane) -> Iterator[Line]:
    """As the server has it, with its own record of who set which field."""
    plan = without_disk_check(EXAMPLE)
    path = f"{PLANS}/{plan['metadata']['name']}"
    plane.api.create(PLANS, plan)
    plane.api.patch(f"{path}/status", {"status": status_body(largest_status(in_flight=50))})
    size = len(json.dumps(plane.api.get(path), separators=(",", ":")).encode())
    budget = Budget(text=f"512 KiB: {size:,} bytes,", held=size <= LIMIT)
    yield Line(what=f"plan with {MANY:,} nodes at its largest", mib=size / 2**20, budgets=(budget,))


def _many_nodes(plane: ControlPlane, work: Path) -> Iterator[Line]:
    """The loop with 1,000 nodes that all wait for Rancher, everything rendered; and then with nothing happening.

    The plan is one that another manager has begun: this server has no API server certificates to look at, which the
    first phase would wait for.
    """
    inputs = write_inputs(MANY, work / "many")
    _say(f"seeding {MANY:,} nodes")
    seed_cluster(plane, inputs)
    plan = without_disk_check(inputs)
    path = f"{PLANS}/{plan['metadata']['name']}"
    plane.api.create(PLANS, plan)
    plane.api.patch(f"{path}/status", {"status": {**BEGUN, "releaseMetadata": _release(inputs)}})
    with _loop(plane, work) as pid:
        until("all nodes wait", lambda: _is_waiting(work), 120)
        begun = _cpu(pid)
        time.sleep(QUIET_SECONDS)
        mark, cpu = plane.audit_mark(), _cpu(pid)
        time.sleep(QUIET_SECONDS)
        calls = [event for event in plane.audit(since=mark, user=USER) if event.verb != "watch"]
        calls = [event for event in calls if event.resource != "leases"]
        idle = _cpu(pid) - cpu
        scraped = _scraped_bytes()
        peak = _peak_mib(pid)
    limit = memory_limit_mib()
    yield Line(
        what=f"loop: {MANY:,} nodes, from its start until all nodes wait; memory at its largest",
        cpu=begun,
        mib=peak,
        budgets=(
            Budget(text="128 MiB", held=peak <= 128),
            Budget(text=f"half of the pod's limit of {limit} MiB", held=2 * peak <= limit),
            Budget(text=f"256 KiB of metrics: {scraped:,} bytes", held=scraped <= 256 * 1024),
        ),
    )
    yield Line(
        what=f"loop: {MANY:,} nodes, {QUIET_SECONDS:.0f} s in which nothing happens",
        cpu=idle,
        budgets=(Budget(text=f"no call but watches and the lease: {len(calls)}", held=not calls),),
    )


def memory_limit_mib() -> int:
    """Of the container in an installation by default."""
    (deployment,) = (body for body in objects_of("deployment") if body["kind"] == "Deployment")
    limit = str(deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"])
    return int(limit.removesuffix("Mi"))


def environment_of_image() -> dict[str, str]:
    """The environment variables of the allocator that an image sets."""
    words = re.findall(r"\b(MALLOC_\w+)=(\S+)", (ROOT / "Containerfile").read_text())
    return dict(words)


def _scraped_bytes() -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics") as answer:
        return len(answer.read())


def _is_waiting(work: Path) -> bool:
    whole = (work / LOG).read_text().rpartition("\n")[0]
    rounds = (json.loads(line) for line in whole.splitlines())
    return any(entry["msg"] == "waiting" for entry in rounds)


def _release(inputs: Path) -> dict[str, Any]:
    release = read_inputs([str(inputs)]).release
    if release is None:
        raise SystemExit(f"{inputs} has no release")
    return dict(release.body)


def _line(what: str, taken: Figures, *, ratio: float | None = None, budgets: tuple[Budget, ...] = ()) -> Line:
    return Line(
        what=what,
        seconds=taken.seconds,
        quickest=taken.quickest,
        slowest=taken.slowest,
        cpu=taken.cpu,
        mib=taken.mib,
        ratio=ratio,
        budgets=budgets,
    )


def seed_cluster(plane: ControlPlane, inputs: Path) -> None:
    """The cluster's objects, and the loop's account with its rights."""
    seed_objects(plane, inputs)
    plane.kubectl("apply", "-f", "-", stdin=text_of("rbac"))


def seed_objects(plane: ControlPlane, inputs: Path) -> None:
    """The cluster's objects; nodes without addresses, since nothing answers there."""
    bodies = [copy.deepcopy(source.body) for source in _inputs(inputs).objects]
    for body in bodies:
        if body["kind"] == "Node":
            body.get("status", {}).pop("addresses", None)
    wanted = [body for body in bodies if body["kind"] != "EndpointSlice"]
    admin = _admin(plane)
    with ThreadPoolExecutor(_SEEDERS) as pool:
        parts = (wanted[number::_SEEDERS] for number in range(_SEEDERS))
        list(pool.map(lambda part: seed(admin, part, _kinds()), parts))


@functools.cache
def _kinds() -> Kinds:
    return open_template_set(read_templates()).catalog.kinds


@functools.cache
def _inputs(folder: Path) -> Inputs:
    return read_inputs([str(folder)])


def _admin(plane: ControlPlane) -> Cluster:
    return connect(find_access({}, kubeconfig=str(plane.kubeconfig)), environ={}, now=lambda: datetime.now(UTC))


def without_disk_check(inputs: Path) -> dict[str, Any]:
    """The inputs' plan, which does not ask the kubelets, since there are none."""
    plan = {key: value for key, value in plan_of(_inputs(inputs)).body.items() if key != "status"}
    return {**plan, "metadata": {**plan["metadata"], "annotations": {SKIP_DISK_CHECK: "true"}}}


@contextmanager
def _imports(plane: ControlPlane) -> Iterator[None]:
    """Every image counts as imported as soon as it is there."""
    stop = Event()
    done = {"type": "Imported", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    status = {"progress": 100, "conditions": [done]}

    def work() -> None:
        while not stop.wait(0.05):
            for item in plane.api.get(IMAGES)["items"]:
                if not item.get("status"):
                    with suppress(ApiError):  # it is gone again
                        plane.api.patch(f"{IMAGES}/{item['metadata']['name']}", {"status": status})

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=10)


@contextmanager
def _loop(plane: ControlPlane, work: Path) -> Iterator[int]:
    """`upgradeplan run` under its own account, leading; answers its process id."""
    kubeconfig = plane.service_account_kubeconfig(*ACCOUNT)
    log = work / LOG
    served = ["--health-address=", f"--metrics-address=127.0.0.1:{METRICS_PORT}", "--no-metrics-secure"]
    argv = [
        sys.executable,
        "-c",
        AS_INSTALLED,
        "run",
        "--kubeconfig",
        str(kubeconfig),
        "--namespace",
        ACCOUNT[0],
        *served,
    ]
    environ = {**os.environ, **environment_of_image()}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{ACCOUNT[0]}/leases"
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out, env=environ) as process:
        try:
            until(
                "the loop leads", lambda: any(i["spec"].get("holderIdentity") for i in plane.api.get(leases)["items"])
            )
            time.sleep(1)
            yield process.pid
        except BaseException:
            _say(log.read_text())
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _absent(plane: ControlPlane, path: str) -> bool:
    try:
        plane.api.get(path)
    except ApiError as error:
        if error.code != 404:
            raise
        return True
    return False


def _cpu(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
