"""Reads case files of admission: `admission/*.yaml` are a request, the cluster that it comes to, and the answer.

    request: {operation: CREATE, name: ..., plan: {...}, old: {...}}   # a plan's parts; CREATE if left out
    away: [Volume]                  # kinds that the API server does not answer for
    silent: [Volume]                # kinds for which it answers too late
    without: [Version v1.8.0-rc1]   # objects of the cluster that are not there
    expect: {causes: [{field: ..., reason: ..., message: ...}], warnings: [...]}

All causes are listed; messages and warnings by their beginning.

The cluster is examples/three-node; the other documents are objects that are there as well, or in place of one of its.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from reconcile.admission.judging import AdmissionJudge, JudgeConfig
from reconcile.admission.review import AdmissionRequest, read_review
from reconcile.cluster.errors import Away, ClusterError
from reconcile.observe.readings import Readings
from reconcile.preflight.given_objects import GivenObjects
from reconcile.probes.look import Group, ReadFailure
from reconcile.schemas import packaged_schemas
from renderer.model.collected import CollectedKind
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of
from renderer.yaml_io import parse
from support.preflight_cases import NOW, checks, template_set
from support.rehearsals import inputs_of
from support.rendered_plans import ROOT

CASES = ROOT / "tests" / "admission"
EXAMPLE = "three-node"
SECONDS = 0.5
"""What there is for an answer, on a clock on which all of it has passed at the second look."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCase:
    head: Mapping[str, Any]
    bodies: tuple[Body, ...]

    @property
    def request(self) -> AdmissionRequest:
        return read_review(json.dumps(review_of(**self.head.get("request", {}))).encode())


def paths() -> list[Path]:
    return sorted(CASES.glob("*.yaml"))


def case(path: Path) -> AdmissionCase:
    head, *bodies = (document.value for document in parse(path.read_text(encoding="utf-8"), path.name))
    return AdmissionCase(head=head, bodies=tuple(bodies))


def review_of(operation: str = "CREATE", name: str = "up", **parts: Any) -> Body:
    """As an API server asks."""
    request: dict[str, Any] = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "management.harvesterhci.io", "version": "v1beta1", "kind": "UpgradePlan"},
        "resource": {"group": "management.harvesterhci.io", "version": "v1beta1", "resource": "upgradeplans"},
        "name": name,
        "operation": operation,
        "userInfo": {"username": "admin"},
        "object": _plan(name, parts.get("plan", {})),
        "oldObject": _plan(name, parts["old"]) if "old" in parts else None,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _plan(name: str, parts: Mapping[str, Any]) -> Body:
    spec = parts.get("spec", {"version": "v1.8.0-rc1", "restoreVM": True})
    metadata = {"name": name, **parts.get("metadata", {})}
    return {"apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan", "metadata": metadata, "spec": spec}


class NoAnswerError(Exception):
    """Tells `ReadAtOnce` to leave a read under way."""


class ReadAtOnce(Executor):
    """A pool whose reads have ended when they have begun, or never end: no test waits, however slow the machine is."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        read: Future[T] = Future()
        try:
            read.set_result(fn(*args, **kwargs))
        except ClusterError as error:
            read.set_exception(error)
        except NoAnswerError:
            read.set_running_or_notify_cancel()
        return read


class GivenCluster:
    """A `Source` over objects. A kind that is `silent` never answers."""

    def __init__(self, bodies: Iterator[Body], away: tuple[str, ...] = (), silent: tuple[str, ...] = ()) -> None:
        kinds = template_set().catalog.kinds
        whole = (CollectedKind(api_version=row.versions[0], kind=row.kind.kind, namespace="", name="") for row in kinds)
        self._given = GivenObjects(bodies, kinds, collected=whole)
        self._away = away
        self._silent = silent

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self._reach(ref.kind)
        return self._given.get(ref)

    def held(self) -> Mapping[Ref, Body]:
        return {}

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        self._reach(group.kind)
        return self._given.list(group)

    def note(self, body: Body) -> None:
        return None

    def _reach(self, kind: str) -> None:
        if kind in self._silent:
            raise NoAnswerError
        if kind in self._away:
            raise Away("connection refused")


def source_of(found: AdmissionCase) -> GivenCluster:
    gone = set(found.head.get("without", ()))
    bodies = {ref_of(body): body for body in (*(source.body for source in inputs_of(EXAMPLE).objects), *found.bodies)}
    there = (body for ref, body in bodies.items() if f"{ref.kind} {ref.name}" not in gone)
    return GivenCluster(there, tuple(found.head.get("away", ())), tuple(found.head.get("silent", ())))


@contextmanager
def judge_of(source: GivenCluster) -> Iterator[AdmissionJudge]:
    no_cluster: Any = None  # no check of creation takes a reading
    judge = AdmissionJudge(
        JudgeConfig(
            source=source,
            pool=ReadAtOnce(),
            readings=Readings(no_cluster, template_set().catalog.kinds, lambda: NOW, lambda address, port: None),
            template_set=template_set(),
            checks=tuple(checks().values()),
            schemas=packaged_schemas(),
            clock=itertools.count(step=SECONDS).__next__,
            now=lambda: NOW,
        )
    )
    try:
        yield judge
    finally:
        judge.stop()
