"""Makes the manifests of one step: template text, parsed strictly, put into the one written form, checked, hashed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.load import Declared
from renderer.context.build import Context
from renderer.context.scope import RUN_TIME
from renderer.digest import digest_of
from renderer.errors import Problem, Problems, problem
from renderer.frozen import frozen
from renderer.manifest_rules import images_of, manifest_problems
from renderer.model.manifest_spec import Borrowed, Expression, ManifestSpec, Owned
from renderer.model.path import Path, walk
from renderer.model.phase import Step
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import Manifest, RenderedStep
from renderer.names import label_value
from renderer.templating import Templates
from renderer.yaml_io import parse

REVIEW = "review/"
"""Prefix of the files of manifests that nobody but the loop may apply: borrowed, triggered, per node, or with run-time
values."""

NOT_READ = ".txt"
"""Ends the name of a file that neither kubectl nor an agent reads as YAML, unless a kustomization lists it."""

DigestOf = Callable[[Body], str]
"""Gives a body's digest: `digest_of`, except for what is rendered from redacted inputs."""

LeftOut = tuple[tuple[str, str], ...]


@frozen
class Made:
    """A manifest and what is wrong with it."""

    manifest: Manifest
    problems: tuple[Problem, ...]


@frozen
class ManifestRenderer:
    """Renders the manifests of steps of one phase in one context."""

    kinds: Kinds
    templates: Templates
    declared: Declared
    context: Context
    made_by: Collection[str] | None = None
    """The templates whose objects the step has made already; None where it has not."""
    digest: DigestOf = digest_of

    def render(self, step: Step) -> tuple[tuple[Made, ...], LeftOut]:
        """The manifests in their declared order, and (template, reason) of those that the plan does not need."""
        made: list[Made] = []
        left_out: list[tuple[str, str]] = []
        for spec in step.manifests:
            if spec.when and not self._when_holds(spec, spec.when):
                left_out.append((spec.file, spec.when.reason))
            else:
                made += self._objects(step, self._as_taken_over(spec))
        return tuple(made), tuple(left_out)

    def _when_holds(self, spec: ManifestSpec, when: Expression) -> bool:
        """True if the step makes it, or has made it."""
        if self.made_by is not None and isinstance(spec, Owned):
            return spec.file in self.made_by
        return bool(self._evaluate(when.expr))

    def _as_taken_over(self, spec: ManifestSpec) -> ManifestSpec:
        """The manifest with those originals for a take-over that count for this plan."""
        if not isinstance(spec, Borrowed) or not spec.originals_on_take_over:
            return spec
        held = tuple(item for item in spec.originals_on_take_over if item.when is None or self._evaluate(item.when))
        return replace(spec, originals_on_take_over=held)

    def _evaluate(self, expression: str) -> Any:
        return self.templates.evaluate(expression, self.context.names, of=self.declared.document)

    def _objects(self, step: Step, spec: ManifestSpec) -> list[Made]:
        path = f"{self.declared.phase.folder}/{spec.file}"
        shown = self.templates.shown(path)
        text = self.templates.render_text(path, self.context.names)
        try:
            bodies = _bodies(text, shown)
        except Problems as error:
            raise Problems(_of_rendered(item) for item in error.problems) from error
        _must_be_objects(bodies, shown)
        if isinstance(spec, Borrowed):
            _must_differ(bodies, shown)
        marks = self.context.marks if RUN_TIME in text else frozenset()
        return [self._made(step, spec, shown, written(body), marks) for body in bodies]

    def _made(self, step: Step, spec: ManifestSpec, shown: str, body: Body, marks: frozenset[str]) -> Made:
        row = self.kinds.find(str(body.get("apiVersion")), str(body.get("kind")))
        run_time = (
            tuple(path for path, value in walk(body) if isinstance(value, str) and value in marks) if marks else ()
        )
        manifest = Manifest(
            file=self._file(step, spec, run_time),
            template=shown,
            spec=spec,
            body=body,
            run_time=run_time,
            images=images_of(body, row),
            digest=self.digest(body),
        )
        return Made(manifest=manifest, problems=tuple(manifest_problems(manifest, row)))

    def _file(self, step: Step, spec: ManifestSpec, run_time: tuple[Path, ...]) -> str:
        stem = f"{spec.file.removesuffix('.yaml.j2')}.yaml"
        folder = self.declared.phase.folder
        if step.node:
            return file_for_review(f"{folder}/{label_value(step.node)}/{stem}")
        bound = run_time or step.trigger or self.context.undoing or isinstance(spec, Borrowed)
        return file_for_review(f"{folder}/{stem}") if bound else f"{folder}/{stem}"


def file_for_review(file: str) -> str:
    """The place of a manifest that is to be read and not applied, given the place that it would have otherwise."""
    return file if file.startswith(REVIEW) else f"{REVIEW}{file}{NOT_READ}"


def step_for_review(step: RenderedStep) -> RenderedStep:
    """The step with all its manifests where nobody applies them. Its digest is of what is applied, so it stays."""
    undo = step_for_review(step.undo) if step.undo else None
    return replace(step, manifests=tuple(map(_for_review, step.manifests)), undo=undo)


def _for_review(manifest: Manifest) -> Manifest:
    return replace(manifest, file=file_for_review(manifest.file))


def written(body: Body) -> Body:
    """A body in its one written form: the four keys that people look for first, then by name; an empty map of labels or
    annotations says nothing and is left out."""
    head = {key: _by_name(body[key]) for key in _FIRST if key in body}
    if isinstance(head.get("metadata"), dict):
        head["metadata"] = {key: value for key, value in head["metadata"].items() if value != {}}
    return head | {key: _by_name(body[key]) for key in sorted(body) if key not in _FIRST}


_FIRST = ("apiVersion", "kind", "metadata", "spec")


def _by_name(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _by_name(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_by_name(item) for item in value]
    return value


def _must_be_objects(bodies: tuple[Any, ...], shown: str) -> None:
    if not bodies:
        raise problem("EmptyManifest", "renders no object", file=shown, remedy="use `when` to leave a manifest out")
    if any(not isinstance(body, dict) for body in bodies):
        remedy = "render mappings with apiVersion, kind and metadata"
        raise problem("InvalidManifest", "renders a document that is not an object", file=shown, remedy=remedy)
    if any(not isinstance(body.get("metadata"), dict) for body in bodies):
        remedy = "give the manifest a name: metadata is a mapping"
        raise problem("InvalidManifest", "renders an object without metadata", file=shown, remedy=remedy)


def _must_differ(bodies: tuple[Any, ...], shown: str) -> None:
    """Fields of one object in two documents would be borrowed twice."""
    refs = [ref_of(body) for body in bodies]
    if twice := next((ref for ref in refs if refs.count(ref) > 1), None):
        remedy = "put all of its fields into one document"
        raise problem("InvalidManifest", f"borrows from {twice} twice", file=shown, remedy=remedy)


@lru_cache(maxsize=256)
def _bodies(text: str, shown: str) -> tuple[Any, ...]:
    """The bodies of a rendered text: many plans have most of them in common, and what is kept is a copy."""
    return tuple(document.value for document in parse(text, shown))


def _of_rendered(item: Problem) -> Problem:
    """A problem of the rendered text, whose lines are not those of the template."""
    where = f" (line {item.line} of what it renders)" if item.line else ""
    return replace(item, line=None, message=f"{item.message}{where}")


_ORDER = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("ServiceAccount", "Role", "ClusterRole"),
    ("RoleBinding", "ClusterRoleBinding"),
    ("ConfigMap", "Secret", "PersistentVolumeClaim"),
)
_LAST = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_RANKS = {kind: rank for rank, kinds in enumerate(_ORDER) for kind in kinds} | dict.fromkeys(_LAST, len(_ORDER) + 1)


def in_order(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Those of one rank keep the order in which they are declared; what is borrowed exists, so its kind has no rank."""
    return tuple(sorted(manifests, key=_rank))


def _rank(manifest: Manifest) -> int:
    return len(_ORDER) if manifest.borrowed else _RANKS.get(manifest.ref.kind, len(_ORDER))
