"""Renders one cluster of many, and writes or checks its folder: what a worker process does.

A process opens the templates once, and reads once what all clusters share. What it answers is small.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.assemble import Assembly, assembly_of, open_template_set
from renderer.catalog.releases import load_releases
from renderer.cli.input_options import cluster_problems_of, form_problems_of, skip_warnings, warnings_of
from renderer.cli.program import GARBAGE
from renderer.clusters.plan_template import PlanTemplate
from renderer.clusters.rendered_cluster import RenderedCluster, counted
from renderer.context.nodes import forget_objects
from renderer.delivery.delivery_rules import load_rules
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.prepare_delivery import prepare_delivery
from renderer.errors import Problems
from renderer.files.cluster_folders import ClusterFolder
from renderer.files.code import CodeCache
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.files.tree import check_tree, write_tree
from renderer.files.tree_state import CLUSTERS
from renderer.frozen import frozen
from renderer.input_rules import needs_name
from renderer.layout.credentials import RenderedCredential, credentials_of, redacted_problems
from renderer.layout.index import index_of, pending_of
from renderer.layout.trees import INDEX, PAGE, files_of
from renderer.layout.upgrade_page import page_of
from renderer.model.rendered import RenderedPlan
from renderer.redaction import Redactor
from renderer.source_document import Role, is_plan_or_release
from renderer.validation import document_problems
from renderer.yaml_io import dump

if TYPE_CHECKING:
    from renderer.delivery.delivery_tree import Delivery
    from renderer.documents import Inputs
    from renderer.yaml_io import Document

_UNTOUCHED = 10_000
"""Texts that redaction has left as they are, and of which that is remembered."""


@frozen
class WorkerSetup:
    """All that a worker gets: the same for every cluster. `options` are those of a delivery, None for a `layout`;
    without `write` folders are only compared."""

    templates: tuple[str, ...]
    shared: tuple[Document, ...]
    plan_template: tuple[str, str] | None
    output: str
    layout: str
    options: DeliveryOptions | None
    version: str
    allow_secrets: bool
    write: bool
    keeps_plan: bool


class ClusterWorker:
    """Raises `Problems` for templates that do not hold together."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._code = CodeCache()
        self._tree = read_templates([Path(folder) for folder in setup.templates])
        self.template_set = open_template_set(self._tree, code=self._code)
        self._rules = load_rules(self._tree, document_problems)
        self._releases = load_releases(self._tree, document_problems)
        self._untouched: set[str] = set()
        template = setup.plan_template
        self._template = PlanTemplate(*template, self._code) if template else None
        self._shared = [it for it in setup.shared if not (template and is_plan_or_release(it) is Role.PLAN)]

    def render(self, cluster: ClusterFolder) -> RenderedCluster:
        """The cluster's rendering, written to its folder, or all that is wrong with it."""
        try:
            return self._rendered(cluster)
        except Problems as error:
            return RenderedCluster(name=cluster.name, problems=error.problems, warnings=error.warnings)
        finally:
            forget_objects()

    def save(self) -> None:
        """Keeps what was compiled for the next run."""
        self._code.save()

    def _rendered(self, cluster: ClusterFolder) -> RenderedCluster:
        inputs = self._inputs(cluster)
        if inputs.plan and inputs.generated:
            raise Problems([needs_name(inputs.plan)])
        assembly = assembly_of(inputs, self.template_set)
        plan = assembly.render()
        warnings = [*warnings_of(inputs), *skip_warnings(inputs, plan)]
        if problems := [*form_problems_of(plan, self._tree), *redacted_problems(plan)]:
            raise Problems(problems, warnings=warnings)
        credentials = credentials_of(plan, self.template_set.catalog.redaction, self._redactor())
        folder = f"{CLUSTERS}/{cluster.name}/{plan.plan}"
        delivery = self._delivery(folder, assembly, plan, credentials)
        files = self._files(assembly, plan, credentials, delivery)
        bundle = delivery.waited_plan() if delivery and self._setup.keeps_plan else None
        write = write_tree if self._setup.write else check_tree
        return RenderedCluster(
            name=cluster.name,
            plan=plan.plan,
            digest=plan.digest,
            folder=folder,
            files=len(files),
            changes=counted(write(Path(self._setup.output) / folder, files)),
            pending=tuple(pending_of(plan).items()),
            bundle=bundle.texts() if bundle else {},
            jobs=tuple((ref.namespace, ref.name) for ref in bundle.refs if ref.kind == "Job") if bundle else (),
            warnings=(*warnings, *(item.warning() for item in credentials)),
        )

    def _inputs(self, cluster: ClusterFolder) -> Inputs:
        """The cluster's inputs. Those of its own count first, then what the template renders, then what all share."""
        made: Sequence[Document] = ()
        refusal: Problems | None = None
        try:
            made = self._template.documents(cluster.name, cluster.values) if self._template else ()
        except Problems as error:
            refusal = error
        inputs = read_inputs((cluster.path,), shared=(*self._shared, *made))
        if refusal and inputs.plan is None:
            raise refusal
        if problems := cluster_problems_of(inputs):
            raise Problems(problems, warnings=inputs.warnings)
        return inputs

    def _redactor(self) -> Redactor:
        """A new one for each use: it remembers what it has hidden. All share what needs no hiding."""
        if len(self._untouched) > _UNTOUCHED:
            self._untouched.clear()
        return Redactor(self.template_set.catalog.redaction, untouched=self._untouched)

    def _delivery(
        self, folder: str, assembly: Assembly, plan: RenderedPlan, credentials: tuple[RenderedCredential, ...]
    ) -> Delivery | None:
        """None for a layout that is for no agent."""
        setup = self._setup
        if setup.options is None:
            return None
        return prepare_delivery(
            assembly,
            plan,
            _for_folder(setup.options, folder),
            credentials,
            page_of(assembly.facts, self._tree, self._releases),
            version=setup.version,
            allow_secrets=setup.allow_secrets,
            rules=self._rules,
        )

    def _files(
        self,
        assembly: Assembly,
        plan: RenderedPlan,
        credentials: tuple[RenderedCredential, ...],
        delivery: Delivery | None,
    ) -> dict[str, str]:
        """All files of the cluster's folder."""
        redactor, setup = self._redactor(), self._setup
        if delivery is not None:
            files = delivery.files()
            return {**files, INDEX: dump(delivery.index(files, redactor))}
        page = page_of(assembly.facts, self._tree, self._releases)
        files = files_of(plan, setup.layout, credentials, allow_secrets=setup.allow_secrets)
        files |= {PAGE: page} if page else {}
        index = index_of(plan, self.template_set.catalog.kinds, files, setup.layout, credentials, redactor)
        return {**files, INDEX: dump(index)}


def _for_folder(options: DeliveryOptions, folder: str) -> DeliveryOptions:
    """The options of a delivery, for a folder of the output."""
    repository = options.repository
    return replace(options, repository=replace(repository, path=repository.below(folder)))


_OF_THIS_PROCESS: list[ClusterWorker] = []


def become(worker: ClusterWorker) -> None:
    """Makes it the worker of this process, and of those that are forks of it."""
    _OF_THIS_PROCESS[:] = [worker]


def begin(setup: WorkerSetup) -> None:
    """Makes this process a worker, unless it is a fork of one. Ctrl-C is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(GARBAGE)
    if not _OF_THIS_PROCESS:
        become(ClusterWorker(setup))


def render_one(cluster: ClusterFolder) -> RenderedCluster:
    """The same in the worker of this process."""
    return _OF_THIS_PROCESS[0].render(cluster)
