"""Digests of what was rendered: the same content gives the same digest, however it was written down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(value: Any) -> str:
    """`sha256:` and the hash of the value's canonical JSON (sorted keys, no blanks)."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_mapping)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _mapping(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no digest")
