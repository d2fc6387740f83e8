"""Who may do what on the embedded cluster. Without an authorizer of its own a client may do everything."""

from __future__ import annotations

from typing import Protocol

from reconcile.cluster.protocol import AccessReview, Permission

_YES = AccessReview(allowed=True)


class Authorizer(Protocol):
    """An authorizer."""

    def verdict(self, permission: Permission) -> AccessReview: ...


class Everything:
    """Allows all, as a cluster administrator is allowed."""

    def verdict(self, permission: Permission) -> AccessReview:
        return _YES
