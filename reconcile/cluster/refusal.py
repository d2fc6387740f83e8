"""Reads an HTTP answer that is not a success into one of our errors. Pure; it sends and retries nothing.

Sources: the API conventions' Status kind; what kube-apiserver 1.35.4 answered when tried (the tests say which).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import (
    AlreadyExists,
    Away,
    BackendFailed,
    Claim,
    ClusterError,
    Conflict,
    Denied,
    DryRunUnsupported,
    Forbidden,
    Gone,
    Immutable,
    Invalid,
    NoSuchKind,
    NotFound,
    ServerFailed,
    StatusCause,
    Throttled,
    Unauthorized,
    Untrusted,
)
from reconcile.cluster.protocol import Permission, permission
from reconcile.cluster.webhook_failures import call_failure, remedy_for
from renderer.model.ref import Body, Kind, Ref

_RBAC = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request(?: without explanation)?:?\s*')
_NO_DRY_RUN = re.compile(r'admission webhook "([^"]+)" does not support dry run')
_CONVERTING = re.compile(r"(conversion webhook for \S+, Kind=\w+) (?:failed: |returned )(.*)", re.DOTALL)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request:?\s*")
_CALLING = re.compile(r'failed (?:calling|to call) webhook "([^"]+)": ?(.*)', re.DOTALL)
_STRICT = re.compile(r'((?:unknown|duplicate) field) "([^"]+)"')
_TYPED = "failed to create typed patch object"
_TYPED_FIELD = re.compile(r"(?:\): |\n\s+)\.((?:[^\s\[:]|\[[^\]]*\])+): ([^\n]+)")
_GOT = re.compile(r", got &value\..*")
_ECHO = re.compile(r'^.*is invalid: patch: Invalid value: ".*": ', re.DOTALL)
_ANONYMOUS = 'User "system:anonymous"'
_WANTS_TLS = "Client sent an HTTP request to an HTTPS server"  # Go's net/http, in plain text
_HELD_BY = re.compile(r'conflict with "([^"]*)"')
_FIXED = re.compile(r"immutable|not be changed|(may not|cannot) change|updates to \w+ spec for fields other than")
_PASSING = re.compile(r"etcdserver:|deadline exceeded|connection re(fused|set)|i/o timeout|leader changed|dial tcp|EOF")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A request in RBAC's words, so that a refusal can say it. `ref.name` is empty for a whole collection."""

    verb: str
    kind: Kind
    ref: Ref
    subresource: str = ""

    @property
    def proxies(self) -> bool:
        """True if something behind the API server answers, and its failures are not the API server's."""
        return self.verb == "get" and bool(self.subresource)


def refusal(call: ApiCall, status: int, content: bytes, retry_after: str = "") -> ClusterError:
    """The error that an answer means. `retry_after` is the header's text."""
    body = _status_of(content)
    message = _ECHO.sub("", str(body.get("message") or content.decode(errors="replace").strip()[:500] or "no text"))
    if status == 401 and (body or not call.proxies):
        return Unauthorized(message)
    if status == 403 and _ANONYMOUS in message:
        return Unauthorized("none were sent, or none that it knows")
    if status == 429:
        return Throttled(message, _seconds(retry_after, body))
    if status == 403 and (permission := _missing(call, message)):
        return Forbidden(permission, message)
    if call.proxies and not _object_absent(call, status, body):
        return BackendFailed(call.ref, call.subresource, status, message)
    if found := _CONVERTING.search(message):
        return Away(found[2], found[1])
    if 400 <= status < 500 and (denied := _admission(call, body, message)):
        return denied
    return _BY_STATUS.get(status, _failed)(call, status, body, message)


def refusal_of_event(call: ApiCall, body: Body) -> ClusterError:
    """The error of a watch's ERROR event, whose object is a Status."""
    return refusal(call, int(body.get("code") or 500), json.dumps(body).encode())


def _status_of(content: bytes) -> Body:
    """The answer as a Status; empty if it is other JSON or a proxy's HTML."""
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) and body.get("kind") == "Status" else {}


def _details(body: Body) -> Mapping[str, Any]:
    return body.get("details") or {}


def _causes(body: Body) -> tuple[Mapping[str, Any], ...]:
    return tuple(_details(body).get("causes") or ())


def _named(body: Body) -> bool:
    return bool(_details(body).get("name"))


def _object_absent(call: ApiCall, status: int, body: Body) -> bool:
    """True if the proxied object itself is not there. A Service without endpoints is `not found` too."""
    return status == 404 and _named(body) and call.kind.plural != "services"


def _seconds(retry_after: str, body: Body) -> float:
    return float(retry_after if retry_after.isdigit() else _details(body).get("retryAfterSeconds") or 1)


def _missing(call: ApiCall, message: str) -> Permission | None:
    """The permission that was missing, by RBAC's message, since an apply may need `create` as well."""
    found = _RBAC.search(message)
    if not found:
        return None
    verb, resource, group, namespace = found.groups()
    asked = permission(call.verb, call.kind, subresource=call.subresource, name=call.ref.name)
    name = asked.name if (resource, group) == (asked.resource, asked.group) else ""
    return Permission(verb=verb, group=group, resource=resource, namespace=namespace or "", name=name)


def _admission(call: ApiCall, body: Body, message: str) -> Denied | None:
    if found := _NO_DRY_RUN.search(message):
        return DryRunUnsupported(call.ref, f"admission webhook {found[1]}")
    for pattern, who in ((_WEBHOOK, "admission webhook"), (_POLICY, "ValidatingAdmissionPolicy")):
        if found := pattern.search(message):
            said = message[found.end() :] or "no reason given"
            causes = tuple(cause for cause in _field_causes(body, message) if cause.reason)  # a policy repeats its text
            return Denied(call.ref, said, by=f"{who} {found[1]}", causes=causes)
    return None


def _forbidden(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    return Denied(call.ref, message)


def _not_found(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    """An object's 404 names it in its details; a path that is not served has none, or is not a Status at all."""
    details = _details(body)
    if not _named(body):
        return NoSuchKind(call.kind, call.subresource)
    if details.get("kind") == "namespaces":
        return NotFound(Ref(api_version="v1", kind="Namespace", name=str(details["name"])))
    return NotFound(call.ref)


def _conflict(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    if body.get("reason") == "AlreadyExists":
        return AlreadyExists(call.ref)
    claims = tuple(
        Claim(manager=found[1], field=str(cause.get("field", "")))
        for cause in _causes(body)
        if cause.get("reason") == "FieldManagerConflict" and (found := _HELD_BY.search(str(cause.get("message"))))
    )
    return Conflict(call.ref, message, claims)


def _gone(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    return Gone(call.kind, message)


def _invalid(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    """An answer that is not a Status came from something in between, or from the wrong port."""
    if message.startswith(_WANTS_TLS):
        return Untrusted("the server's URL begins with http://, and the server speaks https:// only")
    if not body:
        return ServerFailed(message, status)
    causes = _field_causes(body, message)
    return invalid(call.ref, message, causes)


def invalid(ref: Ref, message: str, causes: tuple[StatusCause, ...]) -> Invalid:
    """Immutable if any of the server's reasons says that a field is fixed; each kind words it differently."""
    texts = [cause.message for cause in causes] or [message]
    return (Immutable if any(map(_FIXED.search, texts)) else Invalid)(ref, message, causes)


def _field_causes(body: Body, message: str) -> tuple[StatusCause, ...]:
    """The Status's causes; but strict decoding and apply put them into the message.

    A strict patch's own cause repeats the whole object, Secrets too, and is never passed on.
    """
    if strict := _STRICT.findall(message):
        return tuple(StatusCause(field=field, message=text) for text, field in strict)
    if message.startswith(_TYPED):
        return tuple(StatusCause(field=f, message=_GOT.sub("", text)) for f, text in _TYPED_FIELD.findall(message))
    return tuple(
        StatusCause(field=str(c.get("field") or ""), message=str(c.get("message")), reason=str(c.get("reason") or ""))
        for c in _causes(body)
        if c.get("field") not in ("patch", "<nil>")
    )


def _away(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    return Away(f"HTTP {status}: {message}")


def _internal(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    """A 500 may be a refusal (an apply with an undeclared field), a webhook's outage, or a fault that passes."""
    if message.startswith(_TYPED):
        return _invalid(call, status, body, message)
    if found := _CALLING.search(message):
        return _webhook_failed(found[1], found[2], status)
    if body.get("reason") == "ServerTimeout" or _PASSING.search(message):
        return _away(call, status, body, message)
    return ServerFailed(message, status)


def _webhook_failed(webhook: str, why: str, status: int) -> ClusterError:
    """The error of an admission webhook that could not be asked; a certificate does not get better by waiting."""
    failure, who = call_failure(why), f"admission webhook {webhook}"
    remedy = remedy_for(failure, webhook)
    if failure.passes:
        return Away(f"{failure.says}: {why}", who, remedy=remedy)
    return ServerFailed(f"{who}: {failure.says}: {why}", status, remedy=remedy)


def _failed(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    return ServerFailed(message, status)


def _unserved(call: ApiCall, status: int, body: Body, message: str) -> ClusterError:
    return NoSuchKind(call.kind, call.subresource)


_BY_STATUS = {
    400: _invalid,
    403: _forbidden,
    404: _not_found,
    405: _unserved,
    409: _conflict,
    410: _gone,
    413: _invalid,
    415: _invalid,
    422: _invalid,
    500: _internal,
    502: _away,
    503: _away,
    504: _away,
}
