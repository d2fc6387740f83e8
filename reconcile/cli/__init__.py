"""Commands that touch a cluster, or rehearse on one. Each is a row of `COMMANDS` and a module imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.cli.commands import Row

COMMANDS: Mapping[str, Row] = {
    "rehearse": Row(target="reconcile.cli.rehearse:rehearse", help="Play the whole upgrade without a cluster."),
    "diff": Row(target="reconcile.cli.diff:diff", help="Say what each phase would change on the live cluster."),
    "apply": Row(target="reconcile.cli.apply:apply", help="Carry a plan, or one phase of it, through from here."),
    "status": Row(target="reconcile.cli.status:status", help="Say how far a plan has come and what it waits for."),
    "explain": Row(target="reconcile.cli.explain:explain", help="Say why a plan waits, and what to do."),
    "facts": Row(target="reconcile.cli.facts:facts", help="Collect what rendering needs from a live cluster."),
    "pause": Row(target="reconcile.cli.control:pause", help="Hold a node before its upgrade."),
    "resume": Row(target="reconcile.cli.control:resume", help="Let a held node go on."),
    "approve": Row(target="reconcile.cli.control:approve", help="Seal what was reviewed."),
    "abort": Row(target="reconcile.cli.control:abort", help="Take a plan back."),
    "run": Row(target="reconcile.cli.run:run", help="Run the loop: what the in-cluster Deployment does."),
}
