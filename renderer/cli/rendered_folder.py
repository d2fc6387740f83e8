"""The files of a rendering, in a layout or for agents, and the folder that is written or checked with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.cli.answer import Model, again, answer, pending_lines, pending_models, redactor, warn
from renderer.delivery.agents import AGENTS, LAYOUT
from renderer.errors import ExitCode, Problems
from renderer.frozen import frozen
from renderer.layout.table import LAYOUTS
from renderer.model.document_type import RENDERED_FOLDER

if TYPE_CHECKING:
    from renderer.catalog.kinds import Kinds
    from renderer.cli.input_options import RenderedInputs
    from renderer.delivery.options import DeliveryOptions
    from renderer.delivery.summary import AgentPatch
    from renderer.layout.credentials import RenderedCredential
    from renderer.markdown.limited_page import Block
    from renderer.model.rendered import RenderedPlan


@frozen
class RenderedFiles:
    """The files of a rendering and their index. `given` says for each agent what is applied once, and which folders it
    pulls."""

    plan: RenderedPlan
    layout: str
    files: dict[str, str]
    index: Model
    given: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    patches: tuple[AgentPatch, ...] = ()


def in_layout(
    plan: RenderedPlan,
    kinds: Kinds,
    layout: str,
    credentials: tuple[RenderedCredential, ...],
    page: str,
    *,
    allowed: bool,
) -> RenderedFiles:
    from renderer.layout.index import index_of
    from renderer.layout.trees import PAGE, files_of

    files = files_of(plan, layout, credentials, allow_secrets=allowed) | ({PAGE: page} if page else {})
    index = index_of(plan, kinds, files, layout, credentials, redactor())
    return RenderedFiles(plan=plan, layout=layout, files=files, index=index)


def for_agents(
    rendering: RenderedInputs,
    options: DeliveryOptions,
    credentials: tuple[RenderedCredential, ...],
    page: str,
    *,
    allowed: bool,
) -> RenderedFiles:
    from renderer.cli.version import installed_version
    from renderer.delivery.prepare_delivery import prepare_delivery

    delivery = prepare_delivery(
        rendering.assembly,
        rendering.plan,
        options,
        credentials,
        page,
        version=installed_version(),
        allow_secrets=allowed,
    )
    files = delivery.files()
    warn(options.warnings())
    return RenderedFiles(
        plan=rendering.plan,
        layout=LAYOUT,
        files=files,
        index=delivery.index(files, redactor()),
        given=delivery.given(),
        patches=delivery.patches,
    )


def answer_folder(chosen: RenderedFiles, review: Model, folder: Path, *, check: bool, output: str) -> ExitCode:
    from renderer.files.tree import check_tree, write_tree
    from renderer.files.tree_state import texts_below
    from renderer.layout.trees import INDEX
    from renderer.yaml_io import dump

    plan, files = chosen.plan, {**chosen.files, INDEX: dump(chosen.index)}
    if chosen.layout == LAYOUT:
        refuse_changed_jobs(texts_below(folder, "phases"), files)
    done = check_tree(folder, files) if check else write_tree(folder, files)
    model = {
        "plan": plan.plan,
        "digest": plan.digest,
        "layout": chosen.layout,
        "folder": str(folder),
        "files": len(files),
        "written": not check,
        "changes": {name: list(getattr(done, name)) for name in ("missing", "changed", "stale", "foreign")},
        "pending": pending_models(plan),
    }
    if chosen.given:
        model["agents"] = [dict(zip(("agent", "apply", "pulls"), row, strict=True)) for row in chosen.given]
    if chosen.patches:
        model["patches"] = [
            {"agent": item.agent, "command": item.command, "file": item.file} for item in chosen.patches
        ]
    if review:
        model["review"] = review

    def page(shown: Model) -> Iterator[Block]:
        from renderer.cli.render_review import review_page

        return review_page(chosen.index, shown["review"], shown["changes"] if check else None)

    answer(RENDERED_FOLDER, model, output, _checked if check else _written, page)
    return ExitCode.NO if check and done else ExitCode.YES


def refuse_changed_jobs(before: Mapping[str, str], files: Mapping[str, str]) -> None:
    """Raises `Problems` for each Job of phases that an earlier tree has with another content."""
    from renderer.delivery.delivered_jobs import changed_jobs

    if found := list(changed_jobs(before, files)):
        raise Problems(found)


def _written(model: Model) -> Iterator[str]:
    changes = model["changes"]
    new, changed, removed, others = (len(changes[name]) for name in ("missing", "changed", "stale", "foreign"))
    yield f"wrote {model['folder']}: {model['files']} files ({new} new, {changed} changed, {removed} removed)"
    if others:
        yield f"left alone: {others} files that upgradeplan did not write"
    yield f"digest: {model['digest']}"
    yield from pending_lines(model["pending"])
    for item in model.get("agents", ()):
        yield f"{item['agent']}: apply {model['folder']}/{item['apply']} once; it pulls {', '.join(item['pulls'])}"
    for item in model.get("patches", ()):
        yield f"{item['agent']}: {item['command']} {model['folder']}/{item['file']}"
    if (layout := LAYOUTS.get(model["layout"])) and layout.pulled:
        yield (
            f"agents: {model['folder']} itself is not for an agent, its index.yaml is no Kubernetes object; give it a "
            f"folder that has a kustomization.yaml, or render with --format {', '.join(AGENTS)}"
        )
    yield f"next: read {model['folder']}/index.yaml; in CI, `{again(add='--check')}` exits 1 if the folder is stale"


def _checked(model: Model) -> Iterator[str]:
    changes = model["changes"]
    stale = [(word, path) for word in ("missing", "changed", "stale") for path in changes[word]]
    if not stale:
        yield f"{model['folder']} is up to date: {model['files']} files, digest {model['digest']}"
        return
    yield f"{model['folder']} is stale; it differs from what these inputs render:"
    yield from (f"  {word:<8} {path}" for word, path in stale)
    yield f"next: `{again(leave_out='--check')}` renders it again"
