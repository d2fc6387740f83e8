"""Turns a kubeconfig user into a credential: a token, a client certificate, or the output of an exec plugin.

Reads token files, runs plugins and tries certificates; it sends nothing to an API server. The official client's loader
logs a failing plugin and continues without credentials, reads a token file once, and puts its line break into the
header; TLS errors about a broken certificate name neither file nor field. Hence this module.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reconcile.cluster.errors import Unauthorized
from reconcile.cluster.kubeconfig import ClusterAccess
from reconcile.cluster.wire import token_fault
from renderer.errors import Problems
from renderer.files.filesystem import require_file
from renderer.model.ref import Body

_TOKEN_FILE_AGE = timedelta(minutes=1)  # the kubelet renews a pod's token in place
_STATUS = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
_PLUGIN_SECONDS = 300  # a person may have to log in with a browser


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """`user` is a kubeconfig user with neither plugin nor token file. `expires` None: does not expire."""

    user: Body = field(repr=False)
    expires: datetime | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires is not None and now >= self.expires


def credential_of(access: ClusterAccess, environ: Mapping[str, str], now: datetime) -> Credential:
    """Raises Unauthorized when the file or the plugin gives nothing."""
    user = access.user
    if path := user.get("tokenFile"):
        return Credential(user={**_rest(user), "token": _token_in(Path(path))}, expires=now + _TOKEN_FILE_AGE)
    if user.get("exec") and not user.get("token"):
        return _from_plugin(access, environ)
    return Credential(user=user)


def renewable(access: ClusterAccess) -> bool:
    """True if asking again may give another credential."""
    user = access.user
    return bool(user.get("tokenFile") or (user.get("exec") and not user.get("token")))


def _rest(user: Body) -> dict[str, Any]:
    return {key: value for key, value in user.items() if key not in ("tokenFile", "exec")}


def _token_in(path: Path) -> str:
    try:
        require_file(path)
        token = path.read_text(encoding="utf-8").strip()
    except Problems as error:
        raise Unauthorized(f"the token file {path} {error.problems[0].message}") from error
    except OSError as error:
        raise Unauthorized(f"the token file cannot be read: {error}") from error
    except UnicodeDecodeError:
        raise Unauthorized(f"the token file {path} is not UTF-8 text") from None  # the cause would show the token
    if not token:
        raise Unauthorized(f"the token file {path} is empty")
    if fault := token_fault(token):
        raise Unauthorized(f"the token in {path} {fault}")
    return token


def _from_plugin(access: ClusterAccess, environ: Mapping[str, str]) -> Credential:
    plugin = access.user["exec"]
    status = _plugin_status(plugin, _run(access, plugin, environ))
    user = _rest(access.user)
    if token := status.get("token"):
        if fault := token_fault(token):
            raise Unauthorized(f"the token that {plugin['command']} returned {fault}")
        user["token"] = token
    if certificate := status.get("clientCertificateData"):
        user["client-certificate-data"] = _base64(certificate)
        user["client-key-data"] = _base64(status.get("clientKeyData") or "")
    if not token and not certificate:
        raise Unauthorized(f"{plugin['command']} returned neither a token nor a client certificate")
    return Credential(user=user, expires=_time(plugin, status.get("expirationTimestamp")))


def _run(access: ClusterAccess, plugin: Body, environ: Mapping[str, str]) -> str:
    """The output of the command; bytes that are no UTF-8 are replaced, as Go's JSON reader does."""
    command = plugin["command"]
    interactive = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.get("interactiveMode") == "Always" and not interactive:
        raise Unauthorized(f"{command} needs a terminal to log in, and there is none")
    own = {pair["name"]: pair.get("value") or "" for pair in plugin.get("env") or ()}
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig's owner chose the command, as with kubectl
            [command, *(plugin.get("args") or ())],
            env={**environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(_exec_info(access, plugin, interactive))},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            timeout=_PLUGIN_SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:  # ValueError: words that no program can be given
        raise Unauthorized(f"{command}: {error}. {plugin.get('installHint') or ''}".rstrip(". ")) from error
    if done.returncode:
        said = (done.stderr or "").strip() or "no output"
        raise Unauthorized(f"{command} exited with {done.returncode}: {said}")
    return done.stdout


def _exec_info(access: ClusterAccess, plugin: Body, interactive: bool) -> Body:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {key: value for key, value in access.cluster.items() if key != "extensions"}
        for extension in access.cluster.get("extensions") or ():
            if extension.get("name") == "client.authentication.k8s.io/exec":
                spec["cluster"]["config"] = extension.get("extension")
    return {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": spec}


def _plugin_status(plugin: Body, output: str) -> Body:
    try:
        answer = json.loads(output)
    except ValueError as error:
        raise Unauthorized(f"{plugin['command']} did not print JSON: {error}") from error
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise Unauthorized(f"{plugin['command']} did not print an ExecCredential")
    found, expected = answer.get("apiVersion"), plugin.get("apiVersion")
    if found != expected:
        raise Unauthorized(f"{plugin['command']} returned {found}; the kubeconfig expects {expected}")
    status = answer.get("status") or {}
    if not isinstance(status, dict) or not all(isinstance(status.get(name) or "", str) for name in _STATUS):
        raise Unauthorized(f"{plugin['command']} printed an ExecCredential whose status is not a mapping of strings")
    return status


def _time(plugin: Body, text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise Unauthorized(
            f"{plugin['command']} returned an expirationTimestamp that is not an RFC 3339 time: {text!r}"
        ) from error


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def certificate_fault(authority: str | None, certificate: str | None, key: str | None) -> tuple[str, str] | None:
    """The kubeconfig field whose file holds nothing usable, and why; None where all are good. Takes paths; None: none
    was given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority and not _loads(context, authority):
        return "certificate-authority", "contains no PEM certificate"
    if not certificate:
        return ("client-certificate", "is missing; there is a client-key") if key else None
    if not _loads(context, certificate):
        return "client-certificate", "contains no PEM certificate"
    if not key:
        return "client-key", "is missing; there is a client-certificate"
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError):
        return "client-key", "contains no unencrypted PEM key that matches the client certificate"
    return None


def _loads(context: ssl.SSLContext, file: str) -> bool:
    try:
        context.load_verify_locations(file)
    except OSError:
        return False
    return True


def _no_password() -> str:
    """Instead of a question on the terminal."""
    raise ValueError("the key is encrypted")
