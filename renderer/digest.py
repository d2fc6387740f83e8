"""Digests of what was rendered: the same content gives the same digest, however it was written down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SHORT = 12


def digest_of(value: Any) -> str:
    """`sha256:` and the hash of the value's canonical JSON."""
    return f"sha256:{hashlib.sha256(canonical(value).encode()).hexdigest()}"


def canonical(value: Any) -> str:
    """The value as JSON: sorted keys, no blanks."""
    return _CANONICAL.encode(value)


def short_digest(digest: str) -> str:
    """`sha256:` left out, the first twelve digits kept."""
    return digest.rpartition(":")[2][:_SHORT]


def _mapping(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no digest")


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_mapping)
