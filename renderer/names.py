"""Object names and label values that the API server takes, and that are the same in every run.

The rule is wrangler's `SafeConcatName`, so that our names equal the existing manager's.
"""

from __future__ import annotations

import hashlib
import re

NAME_LIMIT = 63
SUBDOMAIN_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
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


def shortened_name(limit: int, *parts: str) -> str:
    """Parts joined by `-`; a longer name keeps a head and ends in 8 digits of its SHA-256."""
    name = "-".join(part for part in parts if part)
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def detector_name(*parts: str) -> str:
    """As `safe_concat`, shortened as the toolkit's `vm-live-migrate-detector` names its list of stopped machines: the
    first 54 characters, and 8 digits of the SHA-256."""
    name = "-".join(part for part in parts if part)
    if len(name) <= NAME_LIMIT:
        return name
    return f"{name[:54]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def label_value(text: str) -> str:
    """`text` where it is a valid label value by length, else its shortened form."""
    return text if len(text) <= NAME_LIMIT else safe_concat(text)


def is_subdomain(text: str) -> bool:
    """True if an object of most kinds may have this name (RFC 1123)."""
    return len(text) <= SUBDOMAIN_LIMIT and bool(_SUBDOMAIN.fullmatch(text))


def is_dns_label(text: str, limit: int = 40) -> bool:
    """True if this is a DNS label that leaves room for what is put before and after it."""
    return len(text) <= limit and "." not in text and bool(_SUBDOMAIN.fullmatch(text))


def is_key(text: str) -> bool:
    """True if this may be the key of a label or a finalizer: `name` or `prefix/name`."""
    prefix, slash, name = text.rpartition("/")
    return bool(name) and is_label_value(name) and (not slash or is_subdomain(prefix))


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= NAME_LIMIT and bool(_WORD.fullmatch(text)))
