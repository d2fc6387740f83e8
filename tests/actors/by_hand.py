"""A whole upgrade by hand, in the order of the phases, and what happened meanwhile as text."""

from __future__ import annotations

from collections.abc import Sequence

from actors.playing import AFTER, BEFORE, START, Play
from reconcile.simulator.actors.simulation_log import SimulationEvent


def upgrade(play: Play) -> None:
    """To the end, with every step that the rendering has."""
    for step in ("ISODownload/Image", "RepoCreate/Deployment", "RepoCreate/Service", "ImagePreload/Preload"):
        finish(play, step)
    for step in ("ClusterUpgrade/KeepWorkloadUpdates", "ClusterUpgrade/StopWorkloadUpdates"):
        play.apply(step)
    for step in ("ClusterUpgrade/Manifests", "NodeUpgrade/StopDescheduler", "NodeUpgrade/SkipManifests"):
        finish(play, step)
    upgrade_nodes(play)
    finish(play, "NodeUpgrade/UnskipManifests")
    finish(play, "ImageCleanup/Purge")
    play.wait(hours=1)


def upgrade_nodes(play: Play) -> None:
    single = [step for step in play.steps if "/SingleNode/" in step and play.rendered.manifests(step)]
    if single:
        node = single[0].rpartition("/")[2]
        boot = play.boot_id(node)
        play.finish(single[0])
        assert play.run(until=lambda: play.boot_id(node) != boot)
        finish(play, f"NodeUpgrade/RestoreVM/{node}")
        return
    play.provision()
    for _ in [step for step in play.steps if "/PreDrain/" in step]:
        assert play.run(until=lambda: play.asking(BEFORE))
        upgrade_node(play, play.asking(BEFORE)[0])


def upgrade_node(play: Play, node: str) -> None:
    """From Rancher's first question to our last answer."""
    play.finish(f"NodeUpgrade/PreDrain/{node}")
    play.answer(BEFORE, node)
    assert play.run(until=lambda: play.asking(AFTER))
    boot = play.boot_id(node)
    play.finish(f"NodeUpgrade/PostDrain/{node}")
    assert play.run(until=lambda: play.boot_id(node) != boot)
    play.answer(AFTER, node)
    play.settle()
    finish(play, f"NodeUpgrade/RestoreVM/{node}")


def finish(play: Play, step: str) -> None:
    """A step that this rendering has."""
    if step in play.steps:
        play.finish(step)


def journey(facts: Sequence[SimulationEvent]) -> str:
    """A line a fact; the value with which Rancher asks and the uids of Jobs are left out."""
    return "".join(f"{_line(fact)}\n" for fact in facts)


def _line(fact: SimulationEvent) -> str:
    detail = "" if not fact.detail or fact.detail.startswith(("{", "Job ")) else f": {fact.detail}"
    place = f" on {fact.node}" if fact.node not in ("", fact.subject) else ""
    to = f" to {fact.to}" if fact.to else ""
    return f"{fact.time - START!s:>8} {fact.what} {fact.subject}{place}{to}{detail}"
