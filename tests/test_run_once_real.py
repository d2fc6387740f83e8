"""The command that keeps a Job from running twice, by the real kubectl, under the role that was rendered beside it."""

from __future__ import annotations

import select
from pathlib import Path

import pytest
from agents.rendered_tree import RenderedTree
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.site_job import ACCOUNT, FOLDER, NAMESPACE, SitePod, overlay

pytestmark = [pytest.mark.slow, pytest.mark.full("the script by the real kubectl; tests/test_delivery.py")]


@pytest.fixture
def pod(wiped_control_plane: ControlPlane, tmp_path: Path) -> SitePod:
    """The pod of a Job that kubectl has made from its folder."""
    tree = RenderedTree(
        tmp_path / "tree", "single-node", "--deliver", "phases", "--templates", str(overlay(tmp_path / "own"))
    )
    wiped_control_plane.kubectl("apply", "-k", str(tree.current / tree.plan / "phases" / FOLDER))
    return SitePod(plane=wiped_control_plane, folder=tmp_path)


def test_a_job_runs_again_only_where_it_has_failed(pod: SitePod) -> None:
    code, said = pod.run(code=3)
    assert (code, pod.times, pod.record) == (3, 1, {}), said
    code, said = pod.run()
    assert (code, pod.times, [*pod.record.values()]) == (0, 2, ["done"]), said
    code, said = pod.run()
    assert (code, pod.times) == (0, 2), said
    assert "done before" in said


def test_its_account_keeps_this_record_and_no_other(pod: SitePod) -> None:
    account = pod.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    denied = pod.plane.kubectl("get", "configmaps", "-n", NAMESPACE, kubeconfig=account, check=False)
    assert "Forbidden" in denied.stderr
    words = ("apply", "--server-side", "-f", "-")
    other = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: other, namespace: {NAMESPACE}}}, data: {{a: b}}}}"
    denied = pod.plane.kubectl(*words, stdin=other, kubeconfig=account, check=False)
    assert "Forbidden" in denied.stderr or "forbidden" in denied.stderr
    assert pod.run()[0] == 0


def test_jobs_of_one_step_leave_each_others_record(pod: SitePod) -> None:
    """As it is after another Job of the step has written its own digest."""
    assert pod.run()[0] == 0
    (name,) = (f"{role['metadata']['name']}" for role in _roles(pod.plane))
    words = ("create", "configmap", name, "-n", NAMESPACE, "--from-literal", "0123456789ab=done")
    made = pod.plane.kubectl(*words, "--dry-run=client", "-o", "yaml").stdout
    pod.plane.kubectl("apply", "--server-side", "--field-manager", "run-once-0123456789ab", "-f", "-", stdin=made)
    assert len(pod.record) == 2
    assert (pod.run()[0], pod.times) == (0, 1)


def test_what_it_does_not_know_it_does_not_run(pod: SitePod) -> None:
    """While the API server cannot be reached it waits, and then goes on."""
    good = pod.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT).read_text(encoding="utf-8")
    given = pod.folder / "kubeconfig"
    given.write_text(good.replace(_port(good), ":1"), encoding="utf-8")
    process = pod.start(kubeconfig=given)
    said = process.stdout
    assert said is not None
    waiting.until("a refused connection", lambda: select.select([said.fileno()], [], [], 0)[0])
    assert "refused" in said.readline()
    assert (process.poll(), pod.times) == (None, 0)
    given.write_text(good, encoding="utf-8")
    process.communicate(timeout=120)
    assert (process.returncode, pod.times, len(pod.record)) == (0, 1, 1)


def _port(kubeconfig: str) -> str:
    """With its colon, of the server's address."""
    return ":" + kubeconfig.partition("127.0.0.1:")[2].split()[0].strip("\"',}")


def _roles(plane: ControlPlane) -> list[dict[str, dict[str, str]]]:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"
    return [role for role in plane.api.get(path)["items"] if role["metadata"]["name"].endswith("-do-done")]
