"""Collects the logs of the plans that a manager works on, pass by pass, into a folder. It gates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Lock

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.loop.round import Round
from reconcile.observe.container_log import LogLine, LogUnavailableError, read_after
from reconcile.observe.source import Source
from reconcile.pod_logs.folder import LogEntry, LogFolder
from reconcile.pod_logs.plan_pods import PlanPod, is_collected, pods_of_plan
from renderer.model.ref import Body
from renderer.redaction import Redactor

EVERY = 5.0
"""Seconds between two passes: of a pod that vanishes, so much may be lost."""

Log = Callable[[str, Mapping[str, object]], None]


class LogCollector:
    """`follow` and `on_round` say which plans there are; `every_plan` is False where only those are collected whose
    annotation says so. `run` collects until it is stopped; a plan that has ended is collected once more, and stays in
    the folder."""

    def __init__(
        self,
        cluster: Cluster,
        source: Source,
        folder: LogFolder,
        redactor: Redactor,
        log: Log,
        *,
        every_plan: bool = True,
    ) -> None:
        self._cluster, self._source, self._folder = cluster, source, folder
        self._redactor, self._log, self._every_plan = redactor, log, every_plan
        self._plans: dict[str, Body] = {}
        self._ended: set[str] = set()
        self._told: set[str] = set()
        self._lock, self._stopped = Lock(), Event()

    def on_round(self, done: Round) -> None:
        self.follow(done.name, done.plan, over=done.over)

    def follow(self, name: str, plan: Body | None, *, over: bool) -> None:
        """`plan` is None where it is gone, or was not read; what is known of it counts then."""
        with self._lock:
            if plan is not None and is_collected(plan, unless_annotated=self._every_plan):
                self._plans[name] = plan
            elif plan is not None:
                self._plans.pop(name, None)
            if over:
                self._ended.add(name)
            else:
                self._ended.discard(name)

    def run(self, look: Callable[[], None] = lambda: None) -> bool:
        """`look` is called before each pass. There is a last one once it is stopped. False if the folder cannot be
        used."""
        try:
            self._folder.open()
        except OSError as error:
            self.say("logs are not collected", str(error))
            return False
        is_last = False
        while not is_last:
            is_last = self._stopped.wait(EVERY)
            self._look(look)
            self.collect()
        return True

    def _look(self, look: Callable[[], None]) -> None:
        """A refusal is logged: the API server may answer before the next pass."""
        try:
            look()
        except Away:
            return
        except ClusterError as error:
            self.say("logs are not collected", str(error))

    def stop(self) -> None:
        self._stopped.set()

    def collect(self) -> None:
        """One pass over all plans. What fails is logged once; the next pass tries again."""
        with self._lock:
            plans, ended = dict(self._plans), set(self._ended)
        try:
            for name, plan in plans.items():
                self._collect_plan(name, plan)
            self._folder.close()
        except Away:
            return  # as the loop says
        except (OSError, ClusterError) as error:
            self.say("logs are not collected", str(error))
            return
        with self._lock:
            for name in ended & self._ended:
                self._plans.pop(name, None)
                self._ended.discard(name)

    def _collect_plan(self, name: str, plan: Body) -> None:
        found = pods_of_plan(self._source, plan)
        for failure in found.unread.values():
            self.say("logs are not collected", failure.why)
        seen = {self._collect_container(name, pod, container) for pod in found.pods for container in pod.containers}
        for entry in [*self._folder.entries.values()]:
            is_gone = entry.name not in seen and entry.namespace not in found.unread
            if entry.plan == name and is_gone and not entry.ended:
                self._folder.keep(replace(entry.without(_gone(entry)), ended=True))

    def _collect_container(self, plan: str, pod: PlanPod, container: str) -> str:
        entry = self._folder.known(
            LogEntry(
                plan=plan,
                namespace=pod.ref.namespace,
                pod=pod.ref.name,
                container=container,
                component=pod.component,
                node=pod.node,
            )
        )
        if entry.ended:
            return entry.name
        try:
            entry = self._before_restart(entry, pod)
            entry = replace(self._read(entry, pod), ended=pod.ended)
        except LogUnavailableError as error:
            self.say("a log cannot be read", f"{pod.ref}, container {container}: {error}")
            entry = entry.without(str(error))
        self._folder.keep(entry)
        return entry.name

    def _before_restart(self, entry: LogEntry, pod: PlanPod) -> LogEntry:
        """With what the container printed before it was started again: the kubelet keeps that of the last time."""
        restarts = pod.restarts[entry.container]
        missed = restarts - entry.restarts
        if missed > 1:
            entry = entry.without(f"what was printed before {missed - 1} of its {restarts} restarts")
        if missed > 0:
            try:
                entry = self._read(entry, pod, previous=True)
            except LogUnavailableError as error:
                entry = entry.without(f"what was printed before restart {restarts}: {error}")
        return replace(entry, restarts=restarts)

    def _read(self, entry: LogEntry, pod: PlanPod, *, previous: bool = False) -> LogEntry:
        lines = read_after(self._cluster, pod.ref, entry.container, entry.last, previous=previous)
        return self._folder.append(entry, map(self._redacted, lines))

    def _redacted(self, line: LogLine) -> LogLine:
        return replace(line, text=self._redactor.text(line.text))

    def say(self, what: str, why: str) -> None:
        """Logs each reason once."""
        if why not in self._told:
            self._told.add(why)
            self._log(what, {"why": why})


def _gone(entry: LogEntry) -> str:
    return f"what was printed after {entry.last or 'its beginning'}: the pod is gone"
