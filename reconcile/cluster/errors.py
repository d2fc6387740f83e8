"""The errors of a cluster, as exceptions with fields. No HTTP here: `refusal.py` reads answers into these.

Each one is a `Problems` that holds one problem, so a command that does not catch it prints it and exits 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconcile.cluster.protocol import Permission
from renderer.errors import ExitCode, Problem, Problems
from renderer.model.ref import Kind, Ref

API_SERVER = "the API server"
_DUMP = re.compile(r"Invalid value: (?P<value>.{80,}): (?=[a-z])", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A field that another field manager holds. `field` is the server's path, such as `.spec.replicas`."""

    manager: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCause:
    """One reason of an invalid object. `field` is a dotted path without a leading dot; empty for the object."""

    field: str
    message: str
    reason: str = ""


class ClusterError(Problems):
    """Any answer of the cluster, or its silence, that is not the result that was asked for."""

    def __init__(self, message: str, *, remedy: str | None = None, field: str | None = None) -> None:
        self.message = message
        reason = type(self).__name__
        super().__init__([Problem(reason=reason, message=message, remedy=remedy, field=field)], ExitCode.CLUSTER)

    @property
    def problem(self) -> Problem:
        return self.problems[0]


def text_of(problem: Problem) -> str:
    """The message with the field that was refused, for where there is no place of its own for a field."""
    has_field = problem.field is None or problem.field in problem.message
    return problem.message if has_field else f"{problem.message} ({problem.field})"


class Conflict(ClusterError):
    """409. With `claims`, an apply met fields of other managers; without, the resourceVersion or uid was stale."""

    def __init__(self, ref: Ref, message: str, claims: tuple[Claim, ...] = ()) -> None:
        self.ref = ref
        self.claims = claims
        fields = ", ".join(f"{claim.field} (held by {claim.manager!r})" for claim in claims)
        super().__init__(
            f"{ref} is held by another field manager: {fields}" if claims else f"{ref} has changed: {message}",
            remedy="remove the fields from the other manager's object or from the manifest"
            if claims
            else "retry with the latest version of the object",
        )


class Invalid(ClusterError):
    """400 or 422, or an apply with an undeclared field (which a server answers with 500): it will never be taken."""

    def __init__(self, ref: Ref, message: str, causes: tuple[StatusCause, ...] = ()) -> None:
        self.ref = ref
        self.causes = causes
        field = causes[0].field or None if len(causes) == 1 else None
        found = causes[0].message if field else "; ".join(f"{c.field}: {c.message}".lstrip(": ") for c in causes)
        super().__init__(
            f"{_what(ref)} is invalid: {without_dumps(found or message)}", field=field, remedy=self._remedy()
        )

    def _remedy(self) -> str:
        return "correct the fields in the manifest or its template"


def without_dumps(message: str) -> str:
    """The message of an API server without a long wrong value, which it repeats with all that is in it."""
    return _DUMP.sub("", message)


class Immutable(Invalid):
    """422 because a field may not change after creation."""

    def _remedy(self) -> str:
        return "keep the fields as they are, or render the object under another name"


class Denied(ClusterError):
    """Admission (a webhook, a policy, a quota) refused a request that RBAC allows. `by` names it, if known; `causes`
    are its reasons where it gives them one by one."""

    causes: tuple[StatusCause, ...] = ()

    def __init__(self, ref: Ref, message: str, by: str = "", causes: tuple[StatusCause, ...] = ()) -> None:
        self.ref = ref
        self.by = by
        self.causes = causes
        super().__init__(
            f"{_what(ref)} was refused by {by or 'admission'}: {message}",
            remedy=f"correct what {by or 'the admission rule'} rejects, or change the rule",
        )


class DryRunUnsupported(Denied):
    """400: a webhook has side effects and does not support dry runs, so it is unknown whether it would accept the
    object."""

    def __init__(self, ref: Ref, by: str) -> None:
        self.ref = ref
        self.by = by
        ClusterError.__init__(
            self,
            f"{_what(ref)} could not be tried: {by} does not support dry run",
            remedy="the upgrade sends no dry run and continues; the webhook's owner can declare sideEffects: None",
        )


class Forbidden(ClusterError):
    """403 from RBAC. `permission.rule()` is the rule that is missing."""

    def __init__(self, permission: Permission, message: str = "") -> None:
        self.permission = permission
        role = f"a Role in namespace {permission.namespace}" if permission.namespace else "a ClusterRole"
        super().__init__(
            message or f"not allowed: {permission}",
            remedy=f"add to {role}: {permission.rule_text()}",
        )


class Unauthorized(ClusterError):
    """401: the credentials are missing, wrong or expired."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the cluster rejected the credentials: {message}",
            remedy="log in again; `kubectl auth whoami` shows who you are",
        )


class NotFound(ClusterError):
    """404: the kind is served, the object is not there. On create, `ref` may be the missing namespace."""

    def __init__(self, ref: Ref) -> None:
        self.ref = ref
        super().__init__(f"{ref} not found", remedy=f"check the name: `{_kubectl_get(ref)}`")


class NoSuchKind(ClusterError):
    """404: the API server does not serve this kind, or not this subresource of it."""

    def __init__(self, kind: Kind, subresource: str = "") -> None:
        self.kind = kind
        self.subresource = subresource
        what = f"subresource {subresource} of {kind}" if subresource else f"kind {kind}"
        super().__init__(
            f"the cluster does not serve {what}",
            remedy=f"install the component that provides it; `kubectl api-resources --api-group={kind.group!r}` "
            "shows what is served",
        )


class AlreadyExists(ClusterError):
    """409 on create."""

    def __init__(self, ref: Ref) -> None:
        self.ref = ref
        super().__init__(f"{ref} already exists", remedy=f"see `{_kubectl_get(ref)}`")


class Gone(ClusterError):
    """410: the resourceVersion or the continue token is too old. List again."""

    def __init__(self, kind: Kind, message: str = "") -> None:
        self.kind = kind
        super().__init__(
            f"the resourceVersion of {kind} is too old: {message or 'resourceVersion too old'}", remedy="list again"
        )


class Away(ClusterError):
    """No answer, or one that says to come back: transport errors, 502, 503, 504, and those 500 that pass.

    `who` is what is away: mostly the API server, else an admission webhook or an extension API behind it.
    """

    def __init__(self, message: str, who: str = API_SERVER, *, remedy: str | None = None) -> None:
        self.who = who
        usual = (
            "wait and retry; `kubectl get --raw /readyz` shows when the API server is back"
            if who == API_SERVER
            else "wait and retry; if it persists, check the pods that serve it"
        )
        super().__init__(f"{who} is unavailable: {message}", remedy=remedy or usual)


class Untrusted(ClusterError):
    """TLS fails for a reason that waiting does not fix: a certificate of another server or authority, or expired."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"TLS verification failed: {message}",
            remedy="check the server and certificates in the kubeconfig, and the expiry of both sides' certificates",
        )


class Throttled(ClusterError):
    """429. `retry_after` is in seconds, 1.0 where the server did not say."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(f"the API server asks to slow down: {message}", remedy=f"try again in {retry_after:g} s")


class ServerFailed(ClusterError):
    """An answer that is neither a refusal nor known to pass, such as most 500. `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 500, *, remedy: str | None = None) -> None:
        self.status = status
        super().__init__(
            f"the API server failed with HTTP {status}: {message}",
            remedy=remedy or "see the log of the API server; `kubectl get --raw '/readyz?verbose'` shows its checks",
        )


class BackendFailed(ClusterError):
    """The backend of a proxy subresource or a Service (a kubelet, pods) did not give what was asked for. Status 0:
    it did not answer at all."""

    def __init__(self, ref: Ref, path: str, status: int, message: str = "") -> None:
        self.ref = ref
        self.path = path
        self.status = status
        did = f"answered {path} with HTTP {status}" if status else f"did not answer {path}"
        super().__init__(
            f"{ref} {did}: {message or 'no message'}",
            remedy=f"see `{_kubectl_get(ref, verb='describe')}`",
        )


def _what(ref: Ref) -> str:
    return str(ref) if ref.name else f"the list of {ref.kind}"


def _kubectl_get(ref: Ref, verb: str = "get") -> str:
    group = ref.api_version.rpartition("/")[0]
    resource = f"{ref.kind.lower()}.{group}" if group else ref.kind.lower()
    name = _without_port(ref.name) if ref.kind == "Service" else ref.name
    return f"kubectl {verb} {resource} {name}" + (f" -n {ref.namespace}" if ref.namespace else "")


def _without_port(name: str) -> str:
    """The Service of `[scheme:]name[:port]`."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]
