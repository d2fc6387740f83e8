"""Collects the logs of the plans that a manager works on, pass by pass, into a folder. It gates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Lock

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.loop.round import Round
from reconcile.observe.container_log import LogLine, LogUnavailableError, after, moment_of_line, read_log
from reconcile.observe.source import Source
from reconcile.pod_logs.folder import LogEntry, LogFolder
from reconcile.pod_logs.plan_pods import PlanPod, pods_of_plan
from reconcile.probes.look import ReadFailure
from renderer.model.ref import Body
from renderer.redaction import Redactor

EVERY = 5.0
"""Seconds between two passes: of a pod that vanishes, so much may be lost."""

Log = Callable[[str, Mapping[str, object]], None]


class LogCollector:
    """`on_round` says which plans there are. `run` collects until it is stopped; a plan that has ended is collected
    once more, and stays in the folder."""

    def __init__(self, cluster: Cluster, source: Source, folder: LogFolder, redactor: Redactor, log: Log) -> None:
        self._cluster, self._source, self._folder = cluster, source, folder
        self._redactor, self._log = redactor, log
        self._plans: dict[str, Body] = {}
        self._ended: set[str] = set()
        self._told: set[str] = set()
        self._lock, self._stopped = Lock(), Event()

    def on_round(self, done: Round) -> None:
        with self._lock:
            if done.plan is not None:
                self._plans[done.name] = done.plan
            if done.over:
                self._ended.add(done.name)
            else:
                self._ended.discard(done.name)

    def run(self) -> None:
        try:
            self._folder.open()
        except OSError as error:
            self._say("logs are not collected", str(error))
            return
        while not self._stopped.wait(EVERY):
            self.collect()

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
            self._say("logs are not collected", str(error))
            return
        with self._lock:
            for name in ended & self._ended:
                self._plans.pop(name, None)
                self._ended.discard(name)

    def _collect_plan(self, name: str, plan: Body) -> None:
        pods = pods_of_plan(self._source, plan)
        if isinstance(pods, ReadFailure):
            self._say("logs are not collected", pods.why)
            return
        seen = {self._collect_container(name, pod, container) for pod in pods for container in pod.containers}
        for entry in [*self._folder.entries.values()]:
            if entry.plan == name and entry.name not in seen and not entry.ended:
                self._folder.keep(replace(entry, ended=True, lost=(*entry.lost, _gone(entry))))

    def _collect_container(self, plan: str, pod: PlanPod, container: str) -> str:
        entry = LogEntry(
            plan=plan,
            namespace=pod.ref.namespace,
            pod=pod.ref.name,
            container=container,
            component=pod.component,
            node=pod.node,
        )
        entry = self._folder.entries.get(entry.name, entry)
        if entry.ended:
            return entry.name
        try:
            since = moment_of_line(entry.last) if entry.last else None
            lines = after(read_log(self._cluster, pod.ref, container, since=since), entry.last)
            entry = self._folder.append(entry, map(self._redacted, lines))
            entry = replace(entry, ended=pod.ended)
        except LogUnavailableError as error:
            self._say("a log cannot be read", f"{pod.ref}, container {container}: {error}")
            entry = replace(entry, lost=tuple(dict.fromkeys((*entry.lost, str(error)))))
        self._folder.keep(entry)
        return entry.name

    def _redacted(self, line: LogLine) -> LogLine:
        return replace(line, text=self._redactor.text(line.text))

    def _say(self, what: str, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            self._log(what, {"why": why})


def _gone(entry: LogEntry) -> str:
    return f"what was printed after {entry.last or 'its beginning'}: the pod is gone"
