"""Tokens, token files, client certificates and exec plugins, as kubectl uses them, and renewed as it renews them."""

from __future__ import annotations

import base64
import json
import re
import stat
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster_door.kinds import CONFIG_MAP, ref
from cluster_door.server import Reply, serving
from reconcile.cluster.client import connect
from reconcile.cluster.credential import credential_of, renewable
from reconcile.cluster.errors import Unauthorized
from reconcile.cluster.kubeconfig import ClusterAccess

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
A = ref(CONFIG_MAP, "a", "default")
SECRET = "hunter2-correct-horse"
V1 = "client.authentication.k8s.io/v1"


def access_with(user: Mapping[str, Any], server: str = "https://c.example", **cluster: Any) -> ClusterAccess:
    return ClusterAccess(context="x", server=server, cluster={"server": server, **cluster}, user=user)


def plugin(folder: Path, code: str, **settings: Any) -> dict[str, Any]:
    """A user with a plugin that is this Python code; it counts its runs in `runs`."""
    script = folder / "login"
    count = f"open({str(folder / 'runs')!r}, 'a').write('.')"
    script.write_text(f"#!{sys.executable}\nimport json, os, sys\n{count}\n{code}\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": V1, "command": str(script), "interactiveMode": "Never", **settings}}


def answer(**status: Any) -> str:
    return f"print(json.dumps({ {'apiVersion': V1, 'kind': 'ExecCredential', 'status': status} }))"


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text(encoding="utf-8"))


def test_user_without_plugin_is_taken_as_it_is() -> None:
    user = {"username": "u", "password": "p"}
    access = access_with(user)
    assert credential_of(access, {}, NOW).user == user
    assert not credential_of(access, {}, NOW).expired(NOW + timedelta(days=365))
    assert not renewable(access)


def test_token_file_is_stripped_and_read_again_after_a_minute(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    credential = credential_of(access_with({"tokenFile": str(tmp_path / "token")}), {}, NOW)
    assert credential.user == {"token": "secret"}
    assert not credential.expired(NOW + timedelta(seconds=59))
    assert credential.expired(NOW + timedelta(seconds=60))


@pytest.mark.parametrize("content", [None, " \n"], ids=["absent", "empty"])
def test_token_file_without_a_token_is_unauthorized(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content, encoding="utf-8")
    with pytest.raises(Unauthorized, match="token file"):
        credential_of(access_with({"tokenFile": str(tmp_path / "token")}), {}, NOW)


def test_plugin_gives_a_token_and_says_until_when(tmp_path: Path) -> None:
    code = answer(token="secret", expirationTimestamp="2026-11-28T13:00:00Z")
    credential = credential_of(access_with(plugin(tmp_path, code)), {}, NOW)
    assert credential.user == {"token": "secret"}
    assert (credential.expired(NOW), credential.expired(NOW + timedelta(hours=1))) == (False, True)


def test_plugin_gives_a_client_certificate(tmp_path: Path) -> None:
    code = answer(clientCertificateData="CERT", clientKeyData="KEY")
    user = credential_of(access_with(plugin(tmp_path, code)), {}, NOW).user
    assert {key: base64.b64decode(value) for key, value in user.items()} == {
        "client-certificate-data": b"CERT",
        "client-key-data": b"KEY",
    }


def test_certificate_of_a_plugin_that_is_none_is_unauthorized(tmp_path: Path) -> None:
    code = answer(clientCertificateData="CERT", clientKeyData="KEY")
    with pytest.raises(Unauthorized, match="what the plugin gave as client-certificate contains no PEM certificate"):
        connect(access_with(plugin(tmp_path, code)), environ={}, now=lambda: NOW)


def test_plugin_is_told_what_kubectl_tells_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    keys = "KUBERNETES_EXEC_INFO OWN KEPT"
    code = f"open({str(told)!r}, 'w').write(json.dumps([sys.argv[1:], [os.environ.get(k) for k in {keys.split()}]]))\n"
    user = plugin(
        tmp_path,
        code + answer(token="t"),
        args=["--for", "x"],
        env=[{"name": "OWN", "value": "1"}],
        provideClusterInfo=True,
    )
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"realm": "r"}}
    access = access_with(user, extensions=[extension, {"name": "other", "extension": {}}])
    credential_of(access, {"KEPT": "2"}, NOW)
    arguments, [exec_info, own, kept] = json.loads(told.read_text(encoding="utf-8"))
    assert (arguments, own, kept) == (["--for", "x"], "1", "2")
    assert json.loads(exec_info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://c.example", "config": {"realm": "r"}}},
    }


class Stdin:
    """Standard input as a terminal or as none."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Always", True, True)],
)
def test_plugin_may_ask_a_person_only_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, terminal: bool, interactive: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(terminal))
    told = "json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']"
    status = f"{{'token': str({told})}}"
    code = f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {status}}}))"
    credential = credential_of(access_with(plugin(tmp_path, code, interactiveMode=mode)), {}, NOW)
    assert credential.user["token"] == str(interactive)


FAILURES: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "ends with an error": ("sys.exit('no ticket')", {}, "exited with 1: no ticket"),
    "prints no JSON": ("print('hello')", {}, "did not print JSON"),
    "prints another kind": ("print('{}')", {}, "did not print an ExecCredential"),
    "answers in another version": (answer(token="t"), {"apiVersion": "other/v1"}, "the kubeconfig expects other/v1"),
    "gives nothing": (answer(), {}, "neither a token nor a client certificate"),
    "gives no time": (answer(token="t", expirationTimestamp="soon"), {}, "not an RFC 3339 time: 'soon'"),
    "gives a number as the time": (answer(token="t", expirationTimestamp=12), {}, "status is not a mapping of strings"),
    "gives a number as the token": (answer(token=12), {}, "status is not a mapping of strings"),
    "gives no mapping": (
        f"print(json.dumps({ {'apiVersion': V1, 'kind': 'ExecCredential', 'status': 'x'} }))",
        {},
        "status is not a mapping of strings",
    ),
    "prints bytes that are no text": ("sys.stdout.buffer.write(b'\\xff\\xfe')", {}, "did not print JSON"),
    "fails in bytes that are no text": (
        "sys.stderr.buffer.write(b'no \\xff ticket'); sys.exit(1)",
        {},
        "exited with 1: no \ufffd ticket",
    ),
    "cannot be given its words": ("", {"env": [{"name": "A=B"}]}, "illegal environment variable name"),
    "needs a terminal": (answer(token="t"), {"interactiveMode": "Always"}, "needs a terminal"),
    "is not installed": (
        "",
        {"command": "/nowhere/login", "installHint": "Install it."},
        "/nowhere/login: .*No such file.*Install it$",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_plugin_that_fails_is_unauthorized_with_its_words(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, settings, words = FAILURES[name]
    monkeypatch.setattr(sys, "stdin", Stdin(terminal=False))
    with pytest.raises(Unauthorized) as caught:
        credential_of(access_with(plugin(tmp_path, code, **settings)), {}, NOW)
    assert re.search(words, caught.value.message)


def test_plugins_variable_without_a_value_is_empty(tmp_path: Path) -> None:
    """As for kubectl 1.35."""
    status = "{'token': repr(os.environ['X'])}"
    code = f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {status}}}))"
    assert credential_of(access_with(plugin(tmp_path, code, env=[{"name": "X"}])), {}, NOW).user["token"] == "''"


BROKEN_TOKENS = {
    "line end": (f"{SECRET}\nmore", "contains a line break or another control character"),
    "control character": (f"{SECRET}\x1b", "contains a line break or another control character"),
    "no ASCII": (f"{SECRET}é", "contains characters that are not ASCII"),
}


@pytest.mark.parametrize("name", BROKEN_TOKENS)
@pytest.mark.parametrize("source", ["file", "plugin"])
def test_token_that_no_header_can_hold_is_refused_unseen(tmp_path: Path, name: str, source: str) -> None:
    token, words = BROKEN_TOKENS[name]
    (tmp_path / "token").write_text(token, encoding="utf-8")
    user = {"tokenFile": str(tmp_path / "token")} if source == "file" else plugin(tmp_path, answer(token=token))
    with pytest.raises(Unauthorized, match=words) as caught:
        credential_of(access_with(user), {}, NOW)
    assert SECRET not in str(caught.value)


def test_token_file_that_is_no_text_is_refused_unseen(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(SECRET.encode() + b"\xff")
    with pytest.raises(Unauthorized, match="is not UTF-8 text") as caught:
        credential_of(access_with({"tokenFile": str(tmp_path / "token")}), {}, NOW)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_token_beside_a_plugin_wins(tmp_path: Path) -> None:
    access = access_with({**plugin(tmp_path, "sys.exit(1)"), "token": "given"})
    assert credential_of(access, {}, NOW).user["token"] == "given"
    assert not renewable(access)


def test_expired_token_is_renewed_before_the_request(tmp_path: Path) -> None:
    clock = [NOW]
    token = tmp_path / "token"
    token.write_text("one", encoding="utf-8")
    with serving(Reply(), Reply(), Reply()) as server:
        client = connect(access_with({"tokenFile": str(token)}, server.url), environ={}, now=lambda: clock[0])
        client.get(CONFIG_MAP, A)
        token.write_text("two", encoding="utf-8")
        client.get(CONFIG_MAP, A)
        clock[0] += timedelta(minutes=1)
        client.get(CONFIG_MAP, A)
    assert [seen.header("Authorization") for seen in server.seen] == [["Bearer one"], ["Bearer one"], ["Bearer two"]]


def test_refused_token_is_renewed_once(tmp_path: Path) -> None:
    refused = Reply(status=401, body={"kind": "Status", "code": 401, "message": "Unauthorized"})
    count = f"n = len(open({str(tmp_path / 'runs')!r}).read())\n"
    status = "{'token': f'token-{n}'}"
    code = f"{count}print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {status}}}))"
    with serving(refused, Reply(), refused, refused) as server:
        client = connect(access_with(plugin(tmp_path, code), server.url), environ={}, now=lambda: NOW)
        client.get(CONFIG_MAP, A)
        with pytest.raises(Unauthorized):
            client.get(CONFIG_MAP, A)
    assert [seen.header("Authorization")[0] for seen in server.seen] == [
        "Bearer token-1",
        "Bearer token-2",
        "Bearer token-2",
        "Bearer token-3",
    ]
    assert runs(tmp_path) == 3


def test_refused_token_of_a_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one", encoding="utf-8")
    refused = Reply(status=401, body={"kind": "Status", "code": 401, "message": "Unauthorized"})
    with serving(refused, Reply()) as server:
        client = connect(access_with({"tokenFile": str(token)}, server.url), environ={}, now=lambda: NOW)
        token.write_text("two", encoding="utf-8")
        client.get(CONFIG_MAP, A)
    assert [seen.header("Authorization") for seen in server.seen] == [["Bearer one"], ["Bearer two"]]


def test_refused_plain_token_is_not_tried_again() -> None:
    refused = Reply(status=401, body={"kind": "Status", "code": 401, "message": "Unauthorized"})
    with serving(refused, Reply()) as server:
        client = connect(access_with({"token": "t"}, server.url), environ={}, now=lambda: NOW)
        with pytest.raises(Unauthorized):
            client.get(CONFIG_MAP, A)
        assert len(server.seen) == 1


@pytest.mark.parametrize("password", ["p", "pässword", "密"])
def test_basic_credentials_are_sent(password: str) -> None:
    with serving(Reply()) as server:
        client = connect(access_with({"username": "u", "password": password}, server.url), environ={}, now=lambda: NOW)
        client.get(CONFIG_MAP, A)
    [seen] = server.seen
    assert seen.header("Authorization") == ["Basic " + base64.b64encode(f"u:{password}".encode()).decode()]
