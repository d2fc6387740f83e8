"""A node that was cordoned before the upgrade: Rancher uncordons every node that it has upgraded, and the loop cordons
that one again, once."""

from __future__ import annotations

from typing import Any

import pytest
from support.small_cluster import POST, PRE, Small, being_prepared, node, rebooting, upgrading, waiting_for_rancher

pytestmark = pytest.mark.slow


def cordon(found: Small, name: str, *, is_cordoned: bool = True) -> None:
    found.patch(found.get("v1", "Node", name), {"spec": {"unschedulable": is_cordoned or None}})


def is_cordoned(found: Small, name: str) -> bool:
    return bool(found.get("v1", "Node", name).get("spec", {}).get("unschedulable"))


def beforehand(name: str = "n1") -> Any:
    return {**node(name), "spec": {"unschedulable": True}}


def upgraded(found: Small) -> Small:
    """Node n1 is back, and Rancher has been answered; it has cordoned the node meanwhile, and uncordons it last."""
    cordon(found, "n1")
    rebooting(found)
    found.reboot("n1")
    found.rounds()
    return found


def uncordoned_by_rancher(found: Small) -> Small:
    cordon(found, "n1", is_cordoned=False)
    found.rounds()
    found.ask("n1", PRE, None)
    found.ask("n1", POST, None)
    found.rounds()
    return found


def told(found: Small) -> list[str]:
    return [message for reason, message in found.events() if reason == "NodeCordonedAgain"]


def test_it_is_cordoned_again_only_after_rancher_has_uncordoned_it() -> None:
    found = upgraded(waiting_for_rancher(more=[beforehand()]))
    cordon(found, "n1", is_cordoned=False)
    found.rounds()
    assert not is_cordoned(found, "n1")
    uncordoned_by_rancher(found)
    assert is_cordoned(found, "n1")
    assert told(found) == [
        "Node n1 was cordoned before the upgrade and is cordoned again; to use it: kubectl uncordon n1"
    ]


def test_another_process_does_it_too() -> None:
    found = upgraded(waiting_for_rancher(more=[beforehand()]))
    found.restart()
    uncordoned_by_rancher(found)
    found.restart()
    found.rounds()
    assert is_cordoned(found, "n1")
    assert len(told(found)) == 1


def test_it_is_done_once() -> None:
    found = uncordoned_by_rancher(upgraded(waiting_for_rancher(more=[beforehand()])))
    cordon(found, "n1", is_cordoned=False)
    found.rounds()
    found.restart()
    found.rounds()
    assert not is_cordoned(found, "n1")


def test_a_node_that_somebody_uncordons_while_it_is_upgraded_stays_so() -> None:
    found = waiting_for_rancher(more=[beforehand()])
    cordon(found, "n1")
    rebooting(found)
    found.reboot("n1")
    cordon(found, "n1", is_cordoned=False)
    uncordoned_by_rancher(found)
    assert not is_cordoned(found, "n1")
    assert told(found) == []


def test_a_node_that_somebody_uncordons_before_its_turn_stays_so() -> None:
    """Rancher cordons it for its drain afterwards, which is nobody's wish."""
    found = waiting_for_rancher(more=[beforehand()])
    cordon(found, "n1", is_cordoned=False)
    found.rounds()
    cordon(found, "n1")
    found.restart()
    rebooting(found)
    found.reboot("n1")
    found.rounds()
    uncordoned_by_rancher(found)
    assert not is_cordoned(found, "n1")
    assert told(found) == []


def test_what_is_done_to_its_cordon_while_its_pre_drain_job_runs_changes_nothing() -> None:
    """Rancher asks anew then, and whether it is in use is looked at when it has come back."""
    found = waiting_for_rancher(more=[beforehand()])
    being_prepared(found)
    cordon(found, "n1", is_cordoned=False)
    found.rounds()
    assert found.status["steps"]["NodeUpgrade"]["records"]["NoteCordon/n1"]["captured"] == {"cordoned": True}


def test_no_other_node_is_cordoned() -> None:
    found = uncordoned_by_rancher(upgraded(waiting_for_rancher()))
    assert not is_cordoned(found, "n1")
    assert not is_cordoned(found, "n2")
    assert told(found) == []


def test_what_rancher_has_cordoned_before_a_take_over_is_none_of_it() -> None:
    found = upgrading("n1", "n2", states={"n1": "PreDraining", "n2": "ImagePreloaded"}, more=[beforehand()])
    found.ask("n1", PRE, "first")
    found.rounds()
    assert found.status["steps"]["NodeUpgrade"]["records"]["NoteCordon/n1"]["captured"] == {"cordoned": False}


def test_a_step_that_nothing_decides_waits_and_says_so() -> None:
    """Somebody has taken the value out of the status."""
    found = upgraded(waiting_for_rancher(more=[beforehand()]))
    found.set_status(steps={"NodeUpgrade": {"records": {"NoteCordon/n1": {"captured": None}}}})
    found.restart()
    uncordoned_by_rancher(found)
    assert not is_cordoned(found, "n1")
    decision = found.round().decision
    words = [wait.words for wait in decision.waits] if decision else []
    assert "it is not known whether the node was not cordoned before: no step has recorded it" in words
