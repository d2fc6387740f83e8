"""The kinds that an input has read completely: a missing object of such a kind does not exist."""

from __future__ import annotations

from renderer.frozen import frozen


@frozen
class CollectedKind:
    """All objects of a kind, of one namespace if it is not empty; or the one object of a name."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]
