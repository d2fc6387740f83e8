"""The names that the texts of pre-flight checks see: those of templates and more about versions.

A plan and a release need not be given. What was not given is no undefined name: looking at it says how to give it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from renderer.catalog.releases import minimum_of
from renderer.catalog.verify import INPUTS
from renderer.context.build import context_of
from renderer.context.facts import Facts, every
from renderer.context.scope import Scope
from renderer.errors import Problems, problem
from renderer.frozen import frozen
from renderer.model.release_line import ReleaseLine
from renderer.versions import is_older, is_release, parse_version

MISSING_INPUT, LATE_INPUT = "MissingInput", "LateInput"
"""The input was not given; or nobody can give it yet, since the upgrade reads it automatically."""
_PLAN = "give the UpgradePlan, a file among the inputs or the name of one in the cluster"
_OF_NODES = ("nodes", "fullNodes", "singleNode")
_OF_THE_PLAN = ("plan", "isoImage")
_FUNCTIONS_OF_THE_PLAN = ("annotation", "name", "oneShotName")


@frozen
class CheckNames:
    """`given` may be looked at by texts that must not fail; `names` has what was not given as well, which raises
    `Problems` of the reason MissingInput. `nodes` are those of `cluster.nodes`."""

    names: Mapping[str, Any]
    given: Mapping[str, Any]
    nodes: tuple[Mapping[str, Any], ...]


class PartialScope(Scope):
    """A scope of which a part was not given: a key that it does not have raises what `missing` raises."""

    __slots__ = ("_missing",)

    def __init__(self, name: str, values: Mapping[str, Any], missing: Callable[[str], NoReturn]) -> None:
        super().__init__(name, values)
        self._missing = missing

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            self._missing(key)
        return super().__getitem__(key)


def check_names(facts: Facts, lines: Sequence[ReleaseLine], *, release_comes: bool = False) -> CheckNames:
    """`facts.plan` is empty where none was given; `lines` are what is known about releases. `release_comes`: the
    upgrade reads the release's metadata from the ISO when it has it."""
    context = context_of(facts)
    given: dict[str, Any] = {**context.names, "atLeast": at_least, "isRelease": is_release}
    given["release"] = _release(facts, context.names, lines)
    missing: dict[str, Any] = {"cluster": _cluster(facts, given["cluster"])}
    given["cluster"] = Scope("cluster", {**given["cluster"], "currentVersion": given["cluster"]["previousVersion"]})
    if not facts.plan:
        missing |= {name: PartialScope(name, {}, _not_known("the plan is", _PLAN)) for name in _OF_THE_PLAN}
        missing |= {name: _not_known("the plan is", _PLAN) for name in _FUNCTIONS_OF_THE_PLAN}
        missing["annotation"] = _usual
    if "releaseMetadata" not in context.given:
        comes = _comes_later if release_comes else _not_known("the release is", INPUTS["releaseMetadata"])
        missing["release"] = PartialScope("release", given["release"], comes)
    if "version" not in context.given:
        missing["version"] = PartialScope("version", {}, _not_known("the Version is", INPUTS["version"]))
    absent = () if facts.plan else (*_OF_THE_PLAN, *_FUNCTIONS_OF_THE_PLAN)
    return CheckNames(
        names={**given, **missing},
        given={name: value for name, value in given.items() if name not in absent},
        nodes=context.nodes,
    )


def at_least(version: str, least: str) -> bool:
    """True if a version is this one or newer. A development build is newer than every release."""
    return not is_release(version) or not is_older(parse_version(version), parse_version(least))


def _release(facts: Facts, names: Mapping[str, Any], lines: Sequence[ReleaseLine]) -> Scope:
    """The release, of which the plan's own version, and what may be upgraded to it, is known before its file is
    given."""
    found: Scope = names["release"]
    version = (facts.plan.get("spec") or {}).get("version")
    if found or not version or not is_release(version):
        return found
    return Scope("release", {"harvester": version, "minUpgradableVersion": minimum_of(lines, version)})


def _cluster(facts: Facts, cluster: Mapping[str, Any]) -> Scope:
    """`currentVersion` is the version that runs now."""
    current = cluster["previousVersion"]
    there: dict[str, Any] = {}
    if any(True for _ in every(facts, "v1", "Node")):
        there |= {name: cluster[name] for name in _OF_NODES}
    if current:
        there |= {"currentVersion": current, "previousVersion": current}
    return PartialScope("cluster", there, _of_the_cluster)


def _of_the_cluster(key: str) -> NoReturn:
    if key in _OF_NODES:
        raise missing_input("the nodes are not known", INPUTS["nodes"])
    if key in ("currentVersion", "previousVersion"):
        raise missing_input("the version that runs now is not known", INPUTS["previousVersion"])
    raise KeyError(key)


def _not_known(what: str, remedy: str) -> Callable[..., NoReturn]:
    """Raises whatever it is called with."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise missing_input(f"{what} not known", remedy)

    return refuse


def _usual(key: str, default: str | None = None) -> str:
    """Returns the value of a plan that does not say it; without one, the plan has to be given."""
    if default is None:
        _not_known("the plan is", _PLAN)(key)
    return default


def _comes_later(*_: Any) -> NoReturn:
    raise problem(
        LATE_INPUT, "the release's metadata is not read yet", remedy="the upgrade reads it from the ISO automatically"
    )


def missing_input(message: str, remedy: str) -> Problems:
    return problem(MISSING_INPUT, message, remedy=remedy)
