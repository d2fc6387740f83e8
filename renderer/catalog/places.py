"""Finds files of an overlay that nothing reads: such a file would change nothing without anybody noticing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath as Path

from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem
from renderer.suggest import closest, did_you_mean

PHASE_FILE = "phase.yaml"
VALUES_FILE = "values.yaml"
PREFLIGHT = "preflight"
RELEASES = f"{PREFLIGHT}/releases"
DIAGNOSIS = "diagnosis"
"""Known causes of trouble."""
BUILT_IN_UPGRADE = f"{DIAGNOSIS}/built-in/upgrade.yaml"
INSTALL = "install"
"""The manifests of the manager itself."""
INSTALL_VALUES = f"{INSTALL}/{VALUES_FILE}"
REPORT = "report"
"""The page of a run's report."""
DELIVERY = "delivery"
"""The files that agents which pull from Git need beside the manifests."""
DELIVERY_RULES = f"{DELIVERY}/rules.yaml"
DELIVERY_GATE = f"{DELIVERY}/gate/gate.yaml.j2"
"""The Job of a gate, with what it reads and its role."""
DELIVERY_RUN_ONCE = f"{DELIVERY}/gate/run-once.yaml.j2"
"""The role by which Jobs keep the record of their success."""
DELIVERY_FOLDERS = ("argocd", "fleet", "flux", "phase", "plan", "waves")
"""Its folders of which every template is rendered; one beside them is read where another template includes it."""
NAMES_FILE = f"{PREFLIGHT}/_names.j2"
"""The macros by which checks name objects for people."""

SHARED: Mapping[str, str] = {
    "_diff": ".yaml",
    "_kinds": ".yaml",
    "_macros": ".j2",
    "_node-states": ".yaml",
    "_redaction": ".yaml",
    DELIVERY: ".j2",
    INSTALL: ".j2",
    PREFLIGHT: ".yaml",
    DIAGNOSIS: ".yaml",
    REPORT: ".j2",
}
"""The folders beside the phases, and how their files end."""

RESERVED = ("fleet.yaml", "kustomization.yaml")
"""File names in a rendered phase's folder that the layouts and the agents keep for themselves."""

_TEMPLATE = ".j2"
_NOTES = ".md"

Wrong = tuple[str, str]
"""A message and a remedy."""


def own_knowledge(tree: TemplateTree) -> TemplateTree:
    """The files of overlays that no rendering needs: checks, what is known about releases, known causes, rules of
    deliveries."""
    folders = (f"{PREFLIGHT}/", f"{DIAGNOSIS}/", DELIVERY_RULES)
    return {path: file for path, file in tree.items() if not file.packaged and path.startswith(folders)}


def unused(tree: TemplateTree) -> Iterator[Problem]:
    """Yields a problem for each file of an overlay that nothing uses."""
    own = [path for path, template in tree.items() if not template.packaged and not path.endswith(_NOTES)]
    phases = {Path(path).parent for path in tree if path.rpartition("/")[2] == PHASE_FILE} if own else set()
    for path in own:
        if (wrong := _wrong(Path(path), phases, tree)) and not _is_named(path, tree):
            message, remedy = wrong
            yield Problem(reason="UnusedFile", message=message, file=tree[path].shown, remedy=remedy)


def _is_named(path: str, tree: TemplateTree) -> bool:
    """True if a template names the file from the tree's root, as `include` and `import` expect it."""
    texts = [template.text for other, template in tree.items() if other.endswith(_TEMPLATE)]
    return any(f"{quote}{path}{quote}" in text for text in texts for quote in "\"'")


def _wrong(path: Path, phases: set[Path], tree: TemplateTree) -> Wrong | None:
    if str(path) in (NAMES_FILE, INSTALL_VALUES, DELIVERY_RULES):
        return None
    if path.parent == Path():
        return _at_the_root(path, phases)
    top = path.parts[0]
    if top == DELIVERY and path.suffix == SHARED[top] and str(path) not in (DELIVERY_GATE, DELIVERY_RUN_ONCE):
        if len(path.parts) > 2 and path.parts[1] in DELIVERY_FOLDERS:
            return None
        remedy = f"put it into one of the folders {', '.join(DELIVERY_FOLDERS)} of {DELIVERY}"
        return _nothing_reads(path.name, _beside(path, tree)), remedy
    if top in SHARED:
        remedy = f"correct its name, or remove it; files of {top} end in {SHARED[top]}"
        return None if path.suffix == SHARED[top] else (_nothing_reads(path.name, _beside(path, tree)), remedy)
    if phases.isdisjoint(path.parents[:-1]):
        return _in_no_phase(path, phases)
    remedy = f"correct its name, or remove it; a phase has {PHASE_FILE} and templates that end in {_TEMPLATE}"
    is_read = path.suffix == _TEMPLATE or path.name == PHASE_FILE
    return None if is_read else (_nothing_reads(path.name, _beside(path, tree)), remedy)


def _at_the_root(path: Path, phases: set[Path]) -> Wrong | None:
    if path.name == VALUES_FILE:
        return None
    if Path() in phases:
        return "a phase needs a folder of its own", "name the folder above with --templates"
    return _nothing_reads(path.name, [VALUES_FILE]), "correct its name, or remove it"


def _in_no_phase(path: Path, phases: set[Path]) -> Wrong:
    if closest(path.name, [PHASE_FILE]):
        return _nothing_reads(path.name, [PHASE_FILE]), f"call it {PHASE_FILE}"
    hint = did_you_mean(path.parts[0], [*SHARED, *map(str, phases)])
    message = f"nothing reads it: '{path.parent}' has no {PHASE_FILE}{hint}"
    return message, f"correct the folder's name, or add its {PHASE_FILE}"


def _beside(path: Path, tree: TemplateTree) -> list[str]:
    return [Path(other).name for other in tree if Path(other).parent == path.parent and other != str(path)]


def _nothing_reads(name: str, known: Iterable[str]) -> str:
    return f"nothing reads it{did_you_mean(name, known)}"
