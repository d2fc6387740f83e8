"""The options of `render` that say how files are laid out, and for which agents."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from renderer.delivery.agents import AGENTS, LAYOUT, DeliveryShape, agents_help, shapes_help
from renderer.errors import ExitCode, Problems
from renderer.frozen import frozen
from renderer.layout.table import DEFAULT, LAYOUTS, layout_help

if TYPE_CHECKING:
    from renderer.delivery.options import DeliveryOptions

_OPTIONS = (
    click.option(
        "--format",
        "formats",
        type=click.Choice([*LAYOUTS, *AGENTS]),
        metavar="LAYOUT",
        multiple=True,
        help=f"{layout_help()} {agents_help()}",
    ),
    click.option(
        "--deliver", type=click.Choice([shape.value for shape in DeliveryShape]), metavar="SHAPE", help=shapes_help()
    ),
    click.option("--repo", metavar="URL", help="Address of the Git repository that the agents pull from."),
    click.option("--branch", metavar="NAME", help="Branch that the agents pull. Default: main."),
    click.option(
        "--repo-path",
        metavar="PATH",
        help="The plan's folder in the repository. Default: --output-dir and the plan's name.",
    ),
)

_CREDENTIALS_IN_ADDRESS = r"://[^/@\s]*:[^/@\s]*@"

Command = Callable[..., ExitCode]


@frozen
class DeliveryWords:
    """The command line's words about layouts and agents; nothing is read yet."""

    formats: tuple[str, ...]
    deliver: str | None
    repo: str | None
    branch: str | None
    repo_path: str | None

    @property
    def layout(self) -> str | None:
        """The layout that is for no agent. Raises `UsageError` where it is not the only one."""
        found = [name for name in self.formats if name in LAYOUTS]
        if found and len({*self.formats}) > 1:
            raise click.UsageError(
                f"--format {found[0]} is not for an agent, so it cannot be combined with another format"
            )
        return found[0] if found else None

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(name for name in AGENTS if name in self.formats)

    @property
    def is_for_agents(self) -> bool:
        return bool(self.agents or self.deliver)

    @property
    def first(self) -> str | None:
        """The option of these that is given, for a message."""
        given = {
            "--format": self.formats,
            "--deliver": self.deliver,
            "--repo": self.repo,
            "--branch": self.branch,
            "--repo-path": self.repo_path,
        }
        return next((name for name, value in given.items() if value), None)


def delivery_options(command: Command) -> Command:
    """Adds the options; the command gets them as one, `delivered`."""

    @wraps(command)
    def with_delivery(
        formats: tuple[str, ...],
        deliver: str | None,
        repo: str | None,
        branch: str | None,
        repo_path: str | None,
        **others: Any,
    ) -> ExitCode:
        words = DeliveryWords(formats=formats, deliver=deliver, repo=repo, branch=branch, repo_path=repo_path)
        return command(delivered=words, **others)

    for option in reversed(_OPTIONS):
        with_delivery = option(with_delivery)
    return with_delivery


def layout_in(folder: Path | None) -> str:
    """The layout that an earlier render has given the folder."""
    from renderer.files.tree_state import layout_of

    try:
        found = (layout_of(folder) if folder else None) or DEFAULT
    except OSError:
        return DEFAULT  # the next read or write of the folder reports it
    if found not in (*LAYOUTS, LAYOUT):
        names = ", ".join([*LAYOUTS, *AGENTS])
        raise click.UsageError(f"{folder} has the layout {found!r}; choose one with --format: {names}")
    return found


def options_of(
    words: DeliveryWords, folder: Path | None, *, through: str | None, also: tuple[str, ...], path: str
) -> DeliveryOptions | None:
    """The delivery that is asked for; None for a layout that is for no agent. An option that is not given is as in the
    folder, where that is for agents; `path` is the place in the repository where none is given. Raises `UsageError`."""
    if words.layout:
        _refuse_others(words)
        return None
    kept = _kept(folder) if layout_in(folder) == LAYOUT else None
    if not (words.agents or words.deliver or kept):
        _refuse_others(words)
        return None
    return _merged(words, kept, through=through, also=also, path=path)


def _refuse_others(words: DeliveryWords) -> None:
    given = [("--deliver", words.deliver), ("--repo", words.repo)]
    given += [("--branch", words.branch), ("--repo-path", words.repo_path)]
    for name, value in given:
        if value:
            raise click.UsageError(f"{name} needs a --format that an agent pulls: {', '.join(AGENTS)}")


def _merged(
    words: DeliveryWords, kept: DeliveryOptions | None, *, through: str | None, also: tuple[str, ...], path: str
) -> DeliveryOptions:
    from renderer.delivery.options import DeliveryOptions, Repository

    agents = words.agents or (kept.agents if kept else ())
    shape = DeliveryShape(words.deliver) if words.deliver else kept.shape if kept else DeliveryShape.PLAN
    same = kept if kept and kept.shape is shape else None
    if not agents and shape is not DeliveryShape.REVIEW:
        raise click.UsageError(f"--deliver {shape} needs a --format that an agent pulls: {', '.join(AGENTS)}")
    _refuse_parts(shape, through, also)
    if words.repo and re.search(_CREDENTIALS_IN_ADDRESS, words.repo):
        raise click.UsageError("--repo has a password, and the tree is for Git; let the agent read it from a Secret")
    known = kept.repository if kept else Repository(path=path)
    return DeliveryOptions(
        agents=agents,
        shape=shape,
        through=through or (same.through if same else None),
        also=also or (same.also if same else ()),
        repository=Repository(
            url=words.repo or known.url,
            branch=words.branch or known.branch,
            path=words.repo_path.strip("/") if words.repo_path else known.path,
        ),
    )


def _refuse_parts(shape: DeliveryShape, through: str | None, also: tuple[str, ...]) -> None:
    if shape is DeliveryShape.PLAN and through:
        raise click.UsageError("--through is not for --deliver plan: the manager runs all phases of the plan")
    if shape is not DeliveryShape.PHASES and also:
        raise click.UsageError(f"--phase is not for --deliver {shape}")


def _kept(folder: Path | None) -> DeliveryOptions | None:
    """The options that the folder's index has; None if it is damaged, which writing reports."""
    from renderer.delivery.options import options_from
    from renderer.files.tree_state import INDEX
    from renderer.yaml_io import parse

    try:
        text = ((folder or Path()) / INDEX).read_text(encoding="utf-8")
        return options_from(parse(text, INDEX)[0].value["delivery"])
    except (OSError, Problems, LookupError, TypeError, ValueError):
        return None


def path_in_repository(folder: Path | None, otherwise: str) -> str:
    """The place of a folder in the repository, if it is named from its root."""
    path = PurePosixPath(folder.as_posix()) if folder else PurePosixPath(otherwise)
    return str(path) if not path.is_absolute() and ".." not in path.parts else otherwise
