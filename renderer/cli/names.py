"""The names by which the program is called."""

from __future__ import annotations

from pathlib import Path

PROGRAM = "upgradeplan"
KUBECTL_PROGRAM = "kubectl upgradeplan"
COMPLETE_VARIABLE = "_UPGRADEPLAN_COMPLETE"
"""The environment variable by which a shell asks for completions."""


def name_of(program: str) -> str:
    """The name by which the user calls the program: kubectl finds a plug-in by the name of its file."""
    return KUBECTL_PROGRAM if Path(program).name.startswith("kubectl-") else PROGRAM
