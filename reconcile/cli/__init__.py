"""Commands that touch a cluster, or rehearse on one. Each is a row of `COMMANDS` and a module imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.cli.commands import Row

COMMANDS: Mapping[str, Row] = {
    "rehearse": Row(target="reconcile.cli.rehearse:rehearse", help="Play the whole upgrade without a cluster."),
    "run": Row(target="reconcile.cli.run:run", help="Run the loop: what the in-cluster Deployment does."),
}
