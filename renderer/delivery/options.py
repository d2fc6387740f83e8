"""The options of a delivery as values; `index.yaml` keeps them for the next rendering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.delivery.agents import DeliveryShape
from renderer.errors import Problem
from renderer.frozen import frozen

UNKNOWN_URL = "https://git.example.invalid/change-me.git"
"""Stands for a repository whose address nobody gave: no agent can pull from there."""


@frozen
class Repository:
    """The repository that agents pull from. `path` is the tree's folder in the repository."""

    url: str = UNKNOWN_URL
    branch: str = "main"
    path: str = ""

    def below(self, folder: str) -> str:
        """A folder of the tree, as its place in the repository."""
        return f"{self.path}/{folder}" if self.path else folder


@frozen
class DeliveryOptions:
    """`also` are phases that are rendered on their own request only."""

    agents: tuple[str, ...]
    shape: DeliveryShape = DeliveryShape.PLAN
    through: str | None = None
    also: tuple[str, ...] = ()
    repository: Repository = Repository()

    def warnings(self) -> Iterator[Problem]:
        """Reports that no repository is given."""
        if self.shape is not DeliveryShape.REVIEW and self.repository.url == UNKNOWN_URL:
            message = f"the agents are configured to pull from {UNKNOWN_URL}, which does not exist"
            yield Problem(reason="UnknownRepository", message=message, remedy="give --repo URL")

    def document(self) -> dict[str, Any]:
        """As `index.yaml` has them."""
        repository = self.repository
        return {
            "shape": str(self.shape),
            "agents": list(self.agents),
            **({"through": self.through} if self.through else {}),
            **({"also": list(self.also)} if self.also else {}),
            "repository": {"url": repository.url, "branch": repository.branch, "path": repository.path},
        }


def options_from(document: Mapping[str, Any]) -> DeliveryOptions:
    """The options that an index has kept."""
    return DeliveryOptions(
        agents=tuple(document["agents"]),
        shape=DeliveryShape(document["shape"]),
        through=document.get("through"),
        also=tuple(document.get("also", ())),
        repository=Repository(**document["repository"]),
    )
