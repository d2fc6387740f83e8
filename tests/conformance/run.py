"""Runs a case on a stage: one Protocol call a step, and what it answered as facts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from conformance.case import Case, KindWords, verb_of
from conformance.facts import Facts
from conformance.stages import Stage
from reconcile.cluster.errors import ClusterError, NotFound
from reconcile.cluster.protocol import Answer, Cluster, EventType, Permission, Propagation, Selection
from renderer.model.ref import Body

Step = Mapping[str, Any]


def run(case: Case, stage: Stage) -> list[Any]:
    """The facts of each step, in order."""
    namespace = stage.begin()
    try:
        return _Run(stage, namespace).all(case.in_namespace(namespace))
    finally:
        stage.end(namespace)


class _Run:
    def __init__(self, stage: Stage, namespace: str) -> None:
        self._stage = stage
        self._namespace = namespace
        self._facts = Facts(namespace)
        self._words = KindWords()
        self._remembered: dict[str, str] = {}

    def all(self, case: Case) -> list[Any]:
        return [self._step(step) for step in case.steps]

    def _step(self, raw: Step) -> Any:
        step = self._filled(raw)
        cluster = self._stage.client(step.get("as", ""), self._namespace)
        try:
            found = self._DO[verb_of(step)](self, cluster, step)
        except ClusterError as error:
            return self._facts.of_error(error)
        if isinstance(found, Answer):
            self._remember(step, found.body)
            return self._facts.of_answer(found)
        return found

    def _remember(self, step: Step, body: Body) -> None:
        if name := step.get("remember"):
            for what in ("uid", "resourceVersion"):
                self._remembered[f"${name}.{what}"] = str(body["metadata"].get(what, ""))

    def _filled(self, value: Any) -> Any:
        """The step with `$name.uid` and `$name.resourceVersion` of remembered answers in it."""
        if isinstance(value, Mapping):
            return {self._filled(key): self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return self._remembered.get(value, value) if isinstance(value, str) else value

    def _create(self, cluster: Cluster, step: Step) -> Answer:
        body = self._placed(step["create"])
        return cluster.create(self._words.of(body), body, **_options(step))

    def _apply(self, cluster: Cluster, step: Step) -> Answer:
        body = self._placed(step["apply"])
        return cluster.apply(self._words.of(body), body, force=step.get("force", False), **_options(step))

    def _get(self, cluster: Cluster, step: Step) -> Answer:
        return cluster.get(*self._words.ref(step["get"], self._namespace))

    def _patch(self, cluster: Cluster, step: Step) -> Answer:
        kind, ref = self._words.ref(step["patch"], self._namespace)
        return cluster.patch(kind, ref, step["body"], subresource=step.get("subresource", ""), **_options(step))

    def _json_patch(self, cluster: Cluster, step: Step) -> Answer:
        kind, ref = self._words.ref(step["jsonPatch"], self._namespace)
        return cluster.json_patch(kind, ref, step["operations"], **_options(step))

    def _delete(self, cluster: Cluster, step: Step) -> Any:
        kind, ref = self._words.ref(step["delete"], self._namespace)
        answer = cluster.delete(
            kind,
            ref,
            uid=step.get("uid", ""),
            resource_version=step.get("resourceVersion", ""),
            propagation=Propagation(step.get("propagation", "Background")),
            dry_run=step.get("dryRun", False),
        )
        return "deleted" if step.get("quiet") else answer

    def _put(self, cluster: Cluster, step: Step) -> Answer:
        kind, ref = self._words.ref(step["put"], self._namespace)
        return cluster.put(kind, ref, step["subresource"])

    def _read(self, cluster: Cluster, step: Step) -> Any:
        kind, ref = self._words.ref(step["read"], self._namespace)
        return cluster.read(kind, ref, step["subresource"]).decode()

    def _selection(self, word: str, step: Step) -> Selection:
        kind = self._words[word]
        namespace = self._namespace if kind.namespaced and not step.get("everywhere") else ""
        return Selection(kind=kind, namespace=namespace, labels=step.get("labels", ""), fields=step.get("fields", ""))

    def _list(self, cluster: Cluster, step: Step) -> Any:
        listing = cluster.list(self._selection(step["list"], step))
        if name := step.get("remember"):
            self._remembered[f"${name}.resourceVersion"] = listing.resource_version
        return self._facts.of_names(listing.items)

    def _watch(self, cluster: Cluster, step: Step) -> Any:
        """The first `count` events; with none to come, what a whole window brings."""
        window = cluster.watch(
            self._selection(step["watch"], step), resource_version=step["from"], window=self._stage.patience
        )
        events = (event for event in window if event.type is not EventType.BOOKMARK)
        found = [self._facts.of_event(event.type, event.body) for event in itertools.islice(events, step["count"])]
        window.close()
        return found or "none"

    def _review(self, cluster: Cluster, step: Step) -> Any:
        return {"allowed": cluster.review(Permission(**{"namespace": self._namespace, **step["review"]})).allowed}

    def _settle(self, cluster: Cluster, step: Step) -> Any:
        """Waits until the objects under `there` are there, those under `gone` are gone, those under `marked` are being
        deleted, and those under `released` have neither owner nor finalizer."""
        for word, is_so in _SETTLED.items():
            for text in step["settle"].get(word, ()):
                self._stage.settle(f"{text} {word}", partial(self._is, cluster, text, is_so))
        return "settled"

    def _is(self, cluster: Cluster, text: str, is_so: Callable[[Body | None], bool]) -> bool:
        return is_so(self._look(cluster, text))

    def _look(self, cluster: Cluster, text: str) -> Body | None:
        try:
            return cluster.get(*self._words.ref(text, self._namespace)).body
        except NotFound:
            return None

    def _placed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body, in the case's namespace if its kind has namespaces and it says nothing else."""
        if not self._words.of(body).namespaced:
            return dict(body)
        return {**body, "metadata": {"namespace": self._namespace, **body["metadata"]}}

    _DO: Mapping[str, Callable[[_Run, Cluster, Step], Any]] = {
        "create": _create,
        "apply": _apply,
        "get": _get,
        "patch": _patch,
        "jsonPatch": _json_patch,
        "delete": _delete,
        "put": _put,
        "read": _read,
        "list": _list,
        "watch": _watch,
        "review": _review,
        "settle": _settle,
    }


def _options(step: Step) -> dict[str, Any]:
    return {"field_manager": step.get("manager", "tester"), "dry_run": step.get("dryRun", False)}


def _is_released(body: Body | None) -> bool:
    return body is not None and not {"ownerReferences", "finalizers"} & set(body["metadata"])


def _is_marked(body: Body | None) -> bool:
    return body is not None and "deletionTimestamp" in body["metadata"]


_SETTLED: Mapping[str, Callable[[Body | None], bool]] = {
    "there": lambda body: body is not None,
    "gone": lambda body: body is None,
    "marked": _is_marked,
    "released": _is_released,
}
