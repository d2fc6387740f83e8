"""Object names and label values that the API server takes, and that are the same in every run.

The rule is wrangler's `SafeConcatName`, so that our names equal the existing manager's (behaviour spec 2.10).
"""

from __future__ import annotations

import hashlib
import re

NAME_LIMIT = 63
_ALNUM = re.compile(r"[a-z0-9]")


def safe_concat(*parts: str) -> str:
    """Parts joined by `-`, at most 63 characters: longer names keep a head and end in a piece of their SHA-256."""
    name = "-".join(part for part in parts if part)
    if len(name) <= NAME_LIMIT:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    if _ALNUM.match(name[56]):
        return f"{name[:57]}-{digest[:5]}"
    return f"{name[:56]}-{digest[:6]}"


def label_value(text: str) -> str:
    """`text` where it is a valid label value by length, else its shortened form."""
    return text if len(text) <= NAME_LIMIT else safe_concat(text)
