"""The folders of many clusters: writes or checks the one beside them, and answers for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.cli.answer import Model, again, answer
from renderer.clusters.cluster_rollout import ROLLOUT, ClusterRollout
from renderer.clusters.rendered_cluster import FolderChanges, counted
from renderer.clusters.wave_choice import some_of
from renderer.delivery.agents import AGENTS
from renderer.errors import ExitCode
from renderer.files.tree import check_tree, remove_tree, write_tree
from renderer.files.tree_state import INDEX, cluster_folders
from renderer.frozen import frozen
from renderer.model.document_type import RENDERED_CLUSTER_FOLDERS
from renderer.yaml_io import dump

if TYPE_CHECKING:
    from renderer.markdown.limited_page import Block

_SHOWN = 20
"""Clusters whose files are named as text; JSON has all of them."""
_COUNTS = ("missing", "changed", "stale", "foreign")


@frozen
class ClustersAsked:
    """The command line's words about many clusters. `jobs` is the number of processes, 0 for one a CPU."""

    folder: str
    output: str
    check: bool
    allow_secrets: bool
    jobs: int


def answer_clusters(rollout: ClusterRollout, asked: ClustersAsked, output: str) -> ExitCode:
    """Writes or checks the folder of all clusters together, and what is left of earlier ones, and answers for all."""
    out = Path(asked.output)
    files = rollout.files()
    files[INDEX] = dump(rollout.index(files))
    gone = _gone(rollout, out, check=asked.check)
    done = counted((check_tree if asked.check else write_tree)(out / ROLLOUT, files))
    agents = rollout.options.agents if rollout.options else ()
    model: Model = {
        "folder": asked.output,
        "name": rollout.name,
        "layout": rollout.layout,
        "written": not asked.check,
        "waves": rollout.index(files).get("waves", []),
        "clusters": _rows(rollout),
        "rollout": {"folder": ROLLOUT, "files": len(files), "changes": _changes(done)},
        "gone": gone,
        "agents": [{"agent": AGENTS[agent], "apply": f"{ROLLOUT}/agents/{agent}"} for agent in agents],
    }
    answer(RENDERED_CLUSTER_FOLDERS, model, output, _checked if asked.check else _written, _page)
    return ExitCode.NO if asked.check and any(map(_differs, _folders(model))) else ExitCode.YES


def _gone(rollout: ClusterRollout, out: Path, *, check: bool) -> list[Model]:
    """Removes the files of the last rendering whose cluster or plan is no longer there; answers the folders."""
    known = {cluster.folder for cluster in rollout.clusters.values()}
    folders = [name for name in cluster_folders(out / ROLLOUT) if name not in known and (out / name).is_dir()]
    found = {name: check_tree(out / name, {}) if check else remove_tree(out / name) for name in folders}
    return [{"folder": name, "files": 0, "changes": _changes(counted(done))} for name, done in found.items()]


def _rows(rollout: ClusterRollout) -> list[Model]:
    waves = {name: wave.name for wave in rollout.waves for name in wave.clusters}
    return [
        {
            "name": name,
            "wave": waves.get(name, ""),
            "plan": item.plan,
            "digest": item.digest,
            "folder": item.folder,
            "files": item.files,
            "changes": _changes(item.changes),
            "pending": [{"input": missing, "remedy": remedy} for missing, remedy in item.pending],
        }
        for name, item in sorted(rollout.clusters.items())
    ]


def _changes(found: FolderChanges) -> Model:
    return {**{word: getattr(found, word) for word in _COUNTS}, "first": list(found.first)}


def _folders(model: Model) -> list[Model]:
    """Everything that has a folder and changes."""
    return [*model["clusters"], model["rollout"], *model["gone"]]


def _differs(row: Mapping[str, Model]) -> bool:
    return any(row["changes"][word] for word in _COUNTS[:3])


def _sum(model: Model, word: str) -> int:
    return sum(row["changes"][word] for row in _folders(model))


def _written(model: Model) -> Iterator[str]:
    files = sum(row["files"] for row in _folders(model))
    new, changed, removed, others = (_sum(model, word) for word in _COUNTS)
    yield (
        f"wrote {model['folder']}: {_clusters(model)}, {files} files ({new} new, {changed} changed, {removed} removed)"
    )
    if others:
        yield f"left alone: {others} files that upgradeplan did not write"
    yield from _said_of_both(model)
    for item in model["agents"]:
        yield f"{item['agent']}: apply {model['folder']}/{item['apply']} once, on the cluster that it delivers from"
    yield f"next: read {model['folder']}/{ROLLOUT}/SUMMARY.md; in CI, `{again(add='--check')}` exits 1 if it is stale"


def _checked(model: Model) -> Iterator[str]:
    stale = [row for row in _folders(model) if _differs(row)]
    if not stale:
        yield f"{model['folder']} is up to date: {_clusters(model)}"
        yield from _said_of_both(model)
        return
    yield f"{model['folder']} is stale; it differs from what these inputs render:"
    for row in stale[:_SHOWN]:
        yield from (f"  {row['folder']}: {text}" for text in row["changes"]["first"])
        if (more := sum(row["changes"][word] for word in _COUNTS[:3]) - len(row["changes"]["first"])) > 0:
            yield f"  {row['folder']}: and {more} more"
    if len(stale) > _SHOWN:
        yield f"  and {len(stale) - _SHOWN} more folders"
    yield f"next: `{again(leave_out='--check')}` renders it again"


def _said_of_both(model: Model) -> Iterator[str]:
    rows = model["clusters"]
    changed = [row["name"] for row in rows if _differs(row)]
    if changed and len(changed) < len(rows):
        yield f"changed: {some_of(changed)}"
    for wave in model["waves"]:
        pause = f", pause: {wave['pause']}" if wave.get("pause") else ""
        yield f"wave {wave['name']}: {some_of(wave['clusters'])}{pause}"
    pending: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for item in row["pending"]:
            pending.setdefault((item["input"], item["remedy"]), []).append(row["name"])
    for (missing, remedy), names in pending.items():
        yield f"pending: {missing} of {some_of(names)}; {remedy}"


def _clusters(model: Model) -> str:
    count = len(model["clusters"])
    return f"{count} cluster{'' if count == 1 else 's'}"


def _page(model: Model) -> Iterator[Block]:
    """For a pull request: the waves, and the clusters that change first."""
    from renderer.markdown.limited_page import Table
    from renderer.markdown.quoting import code

    yield f"### Upgrade of {_clusters(model)}{': ' if model['name'] else ''}{model['name']}"
    waves = [(code(it["name"]), it.get("pause", ""), str(len(it["clusters"]))) for it in model["waves"]]
    yield Table(heading=("wave", "pause before it", "clusters"), rows=waves, noun=("wave", "waves"))
    yield "#### Clusters"
    rows = sorted(model["clusters"], key=lambda row: not _differs(row))
    cells = [(code(row["name"]), code(row["plan"]), row["wave"], _files(row), code(row["digest"])) for row in rows]
    heading = ("cluster", "plan", "wave", "files that change", "digest")
    yield Table(heading=heading, rows=cells, noun=("cluster", "clusters"))
    if not model["written"] and any(map(_differs, _folders(model))):
        yield "#### The folder is stale: render again, and commit it"


def _files(row: Model) -> str:
    changes = row["changes"]
    return str(sum(changes[word] for word in _COUNTS[:3]) or "")
