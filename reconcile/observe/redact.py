"""Marks what is secret in objects that leave the cluster: by the name of its field, and by its form. Pure.

Both are asked, since neither is enough: people call a password what they like, and a password looks like any word. In
doubt a text is marked. What only names a Secret stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

REDACTED = "REDACTED"

_NAMES = re.compile(
    r"pass-?(word|wd|phrase|code)|pwd|token|secret|credential|cookie|signature|kubeconfig|docker-?config|bearer"
    r"|(access|api|auth|client|encryption|host|master|private|server|session|sign(ing)?|ssh|ssl|tls)-?keys?"
    r"($|-(data|pem|base64))|(^|-)(auths?|authorization|creds?|jwt|pass|psk)$"
)
"""Of names in the form that `_plain` gives them."""

_JUST_NAMED = re.compile(r"(name|ref|namespace)s?$")
_WHOLE = {
    "agentEnvVars",
    "networkData",
    "networkDataBase64",
    "patch",  # what Fleet found changed in an object, which may be a Secret
    "userData",
    "userDataBase64",
    "valuesContent",
}
"""Fields in which anything may stand."""

_USER = re.compile(r"(\bhttps?://)[^\s/?#]+@|(\b[a-z][a-z0-9+.-]*://)[^\s/?#:@]*:[^\s/?#]+@", re.IGNORECASE)
_MODIFIED = re.compile(r"(\bmodified )\{.*", re.DOTALL)
_FORMS = (
    re.compile(r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY"),
    re.compile(r"LS0tLS1CRUdJTi"),  # -----BEGIN, in base64
    re.compile(r"^\s*H4sI"),  # gzip in base64: nobody can see what is in it
    re.compile(r"\bbearer\s+[\w+/=.~-]{8,}", re.IGNORECASE),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\."),  # a JSON web token
    re.compile(r"\bK10[0-9a-f]{64}::"),  # joins a node to RKE2
    re.compile(r"\b(token|kubeconfig)-[\w-]+:[a-z0-9]{20,}"),  # Rancher
    re.compile(r"\b(gh[opsru]_|github_pat_|glpat-|AKIA)\w{16,}"),
)
_ASSIGNED = re.compile(r"""(?<![\w.-])([A-Za-z][\w.-]{0,99})[\\"']*\s*[:=]\s*[\\"']*[^\s\\"',}\]]""")
_FLAG = re.compile(r"""(?<![\w-])--?([A-Za-z][\w-]{0,99})[\s\\"',]+[^\s\\"',-]""")


def hidden(value: Any, name: str = "") -> Any:
    """The value without secrets; `name` is the field that it stands in. Its form stays, but for a number under a secret
    name: it becomes a text."""
    if name in _WHOLE or _is_secret(name) or (name == "values" and isinstance(value, Mapping)):  # a chart's values
        return REDACTED if isinstance(value, (int, float)) and not isinstance(value, bool) else marked(value)
    if isinstance(value, Mapping):
        return _pair({key: hidden(item, str(key)) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [hidden(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def marked(value: Any) -> Any:
    """Every text in it is marked; its form stays."""
    if isinstance(value, Mapping):
        return {key: marked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [marked(item) for item in value]
    return REDACTED if isinstance(value, str) and value else value


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    plain = _plain(name)
    return _NAMES.search(plain) is not None and not _JUST_NAMED.search(plain)


def _plain(name: str) -> str:
    """`sshKey`, `SSH_KEY` and `ssh.key` alike: `ssh-key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "-", name).lower()


def _pair(value: dict[Any, Any]) -> dict[Any, Any]:
    """An entry of a list of names and values, such as environment variables."""
    named = value.get("name", value.get("key"))
    if isinstance(named, str) and "value" in value and _is_secret(named):
        return {**value, "value": hidden(value["value"], named)}
    return value


def _text(text: str) -> str:
    """Of an address just the user is hidden, of a message just what it repeats; other texts as a whole."""
    text = _USER.sub(lambda found: f"{found[1] or found[2]}{REDACTED}@", text)
    text = _MODIFIED.sub(rf"\1{REDACTED}", text)
    if any(form.search(text) for form in _FORMS) or any(map(_is_secret, _told(text))):
        return REDACTED
    return text


def _told(text: str) -> Iterator[str]:
    """The names for which a text gives values: `password: x`, `"token":"x"`, `--api-key x`."""
    for form in (_ASSIGNED, _FLAG):
        yield from (found[1] for found in form.finditer(text))
