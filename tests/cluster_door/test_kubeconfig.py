"""Which cluster and which user: what kubectl would choose, and a clear word where it would choose nothing."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from reconcile.cluster.client import connect
from reconcile.cluster.credential import credential_of
from reconcile.cluster.kubeconfig import ClusterAccess, find_access
from reconcile.cluster.wire import Proxy, proxy_of
from renderer.cli.program import run
from renderer.errors import ExitCode, Problems


def kubeconfig(name: str, *, current: str | None = None, user: Any = None, cluster: Any = None) -> dict[str, Any]:
    """One context, cluster and user, all of one name."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster or {"server": f"https://{name}.example:6443/"}}],
        "users": [{"name": name, "user": user or {"token": f"token-of-{name}"}}],
    }
    return config if current is None else {**config, "current-context": current}


def write(path: Path, config: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def test_named_file_wins_over_the_environment(tmp_path: Path) -> None:
    one = write(tmp_path / "one", kubeconfig("one", current="one"))
    two = write(tmp_path / "two", kubeconfig("two", current="two"))
    access = find_access({"KUBECONFIG": str(one)}, kubeconfig=str(two))
    assert (access.context, access.server, access.user["token"]) == (
        "two",
        "https://two.example:6443",
        "token-of-two",
    )


def test_first_current_context_of_several_files_wins(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "none", kubeconfig("none", current="")),
        write(tmp_path / "first", kubeconfig("first", current="first")),
        write(tmp_path / "last", kubeconfig("last", current="last")),
    ]
    listed = os.pathsep.join([str(tmp_path / "absent"), *map(str, files)])
    assert find_access({"KUBECONFIG": listed}).context == "first"
    assert find_access({"KUBECONFIG": listed}, context="last").server == "https://last.example:6443"


def test_first_definition_of_a_name_wins(tmp_path: Path) -> None:
    write(tmp_path / "a", kubeconfig("it", current="it", user={"token": "first"}))
    write(tmp_path / "b", kubeconfig("it", user={"token": "second"}))
    listed = os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b")))
    assert find_access({"KUBECONFIG": listed}).user == {"token": "first"}


def test_home_is_looked_at_last(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", kubeconfig("home", current="home"))
    pod = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.53.0.1"}
    assert find_access(pod).context == "home"


@pytest.mark.parametrize(
    ("host", "port", "server"),
    [
        ("10.53.0.1", "6443", "https://10.53.0.1:6443"),
        ("10.53.0.1", "", "https://10.53.0.1:443"),
        ("fd00::1", "443", "https://[fd00::1]:443"),
    ],
)
def test_pod_uses_its_service_account(tmp_path: Path, host: str, port: str, server: str) -> None:
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    (tmp_path / "namespace").write_text("harvester-system", encoding="utf-8")
    (tmp_path / "ca.crt").touch()
    access = find_access(environ, service_account=tmp_path)
    assert access == ClusterAccess(
        context="in-cluster",
        server=server,
        namespace="harvester-system",
        cluster={"server": server, "certificate-authority": str(tmp_path / "ca.crt")},
        user={"tokenFile": str(tmp_path / "token")},
        inside=True,
    )


def test_pod_without_its_service_account_is_told(tmp_path: Path) -> None:
    with pytest.raises(Problems, match=r"ca\.crt cannot be read") as caught:
        find_access({"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.53.0.1"}, service_account=tmp_path)
    assert "automountServiceAccountToken" in str(caught.value)


def test_namespace_is_the_contexts(tmp_path: Path) -> None:
    config = kubeconfig("x", current="x")
    assert find_access({}, kubeconfig=str(write(tmp_path / "one", config))).namespace == "default"
    config["contexts"][0]["context"]["namespace"] = "mine"
    assert find_access({}, kubeconfig=str(write(tmp_path / "two", config))).namespace == "mine"


def test_relative_paths_count_from_their_file(tmp_path: Path) -> None:
    user = {
        "client-certificate": "c.crt",
        "client-key": "c.key",
        "tokenFile": "/abs/t",
        "exec": {"command": "./bin/login"},
    }
    cluster = {"server": "https://x", "certificate-authority": "ca.crt"}
    (tmp_path / "dir").mkdir()
    for name in ("c.crt", "c.key", "ca.crt"):
        (tmp_path / "dir" / name).touch()
    file = write(tmp_path / "dir" / "config", kubeconfig("x", current="x", user=user, cluster=cluster))
    access = find_access({}, kubeconfig=str(file))
    assert access.cluster["certificate-authority"] == str(tmp_path / "dir" / "ca.crt")
    assert access.user["client-certificate"] == str(tmp_path / "dir" / "c.crt")
    assert access.user["client-key"] == str(tmp_path / "dir" / "c.key")
    assert access.user["tokenFile"] == "/abs/t"
    assert access.user["exec"]["command"] == str(tmp_path / "dir" / "bin" / "login")


def test_plugin_without_a_slash_is_looked_up_in_path(tmp_path: Path) -> None:
    file = write(tmp_path / "config", kubeconfig("x", current="x", user={"exec": {"command": "login"}}))
    assert find_access({}, kubeconfig=str(file)).user["exec"]["command"] == "login"


def test_secrets_do_not_show_when_printed(tmp_path: Path) -> None:
    file = write(tmp_path / "config", kubeconfig("x", current="x"))
    assert "token-of-x" not in repr(find_access({}, kubeconfig=str(file)))


BAD: dict[str, tuple[Any, str, str, str]] = {
    "no current context": (kubeconfig("x"), "", "NoContext", "has no current-context"),
    "unknown context": (kubeconfig("x"), "y", "NoSuchContext", "no context 'y'"),
    "context without its cluster": (
        {**kubeconfig("x", current="x"), "clusters": []},
        "",
        "NoSuchCluster",
        "no cluster 'x' that context 'x' names",
    ),
    "context without its user": (
        {**kubeconfig("x", current="x"), "users": None},
        "",
        "NoSuchUser",
        "no user 'x' that context 'x' names",
    ),
    "cluster without a server": (
        kubeconfig("x", current="x", cluster={"certificate-authority-data": "eA=="}),
        "",
        "InvalidKubeconfig",
        "cluster 'x' has no server",
    ),
    "no mapping": ([1], "", "InvalidKubeconfig", "is not a mapping"),
    "entries that are no mappings": (
        {**kubeconfig("x", current="x"), "contexts": ["x"]},
        "",
        "InvalidKubeconfig",
        "contexts is not a list of named entries",
    ),
    "entry that is no mapping": (
        {**kubeconfig("x", current="x"), "users": [{"name": "x", "user": "joe"}]},
        "",
        "InvalidKubeconfig",
        "users is not a list of named entries",
    ),
    "entries that are no list": (
        {**kubeconfig("x", current="x"), "contexts": {"x": {}}},
        "",
        "InvalidKubeconfig",
        "contexts is not a list of named entries",
    ),
}


SECRET = "hunter2-correct-horse"
SERVER = {"server": "https://x.example"}
LOGIN = {"command": "login"}

FAULTS: dict[str, tuple[Any, Any, str, str]] = {
    "server that is a number": ({"server": 5}, {}, "cluster.server", "the value is not a string"),
    "server that is not a URL": ({"server": "not a url"}, {}, "cluster.server", "contains a space"),
    "server without a scheme": ({"server": "x.example:6443"}, {}, "cluster.server", "starts with https:// or http://"),
    "server of another scheme": ({"server": "ftp://x"}, {}, "cluster.server", "starts with https:// or http://"),
    "server without a host": ({"server": "https://:6443"}, {}, "cluster.server", "invalid host name"),
    "server with a wrong host": ({"server": "https://a..b"}, {}, "cluster.server", "invalid host name"),
    "server with a port too high": (
        {"server": "https://x:99999"},
        {},
        "cluster.server",
        "invalid port or IPv6 address",
    ),
    "server with no port": ({"server": f"https://x:{SECRET}"}, {}, "cluster.server", "invalid port or IPv6"),
    "server with a wrong address": ({"server": "https://[::x]"}, {}, "cluster.server", "is not a URL"),
    "proxy that is not a URL": ({**SERVER, "proxy-url": "::not a url"}, {}, "cluster.proxy-url", "contains a space"),
    "proxy of another scheme": (
        {**SERVER, "proxy-url": f"ftp://me:{SECRET}@x"},
        {},
        "cluster.proxy-url",
        "starts with http:// or https:// or socks5:// or socks5h://",
    ),
    "switch that is text": (
        {**SERVER, "insecure-skip-tls-verify": "false"},
        {},
        "cluster.insecure-skip-tls-verify",
        "the value is not true or false",
    ),
    "authority that is no base64": (
        {**SERVER, "certificate-authority-data": "not base64!"},
        {},
        "cluster.certificate-authority-data",
        "is not base64",
    ),
    "authority that is not there": (
        {**SERVER, "certificate-authority": "/nowhere/ca.crt"},
        {},
        "cluster.certificate-authority",
        "/nowhere/ca.crt cannot be read: No such file or directory",
    ),
    "extensions that are no list": ({**SERVER, "extensions": {}}, {}, "cluster.extensions", "is not a list"),
    "extension that is text": ({**SERVER, "extensions": ["x"]}, {}, "cluster.extensions[0]", "is not a mapping"),
    "token that is a number": (SERVER, {"token": 12345}, "user.token", "the value is not a string"),
    "token with a line end": (SERVER, {"token": f"{SECRET}\n"}, "user.token", "contains a line break"),
    "token that is not ASCII": (SERVER, {"token": f"{SECRET}é"}, "user.token", "not ASCII"),
    "password that is a list": (SERVER, {"password": [SECRET]}, "user.password", "the value is not a string"),
    "certificate that is not there": (
        SERVER,
        {"client-certificate": "/nowhere/c.crt"},
        "user.client-certificate",
        "/nowhere/c.crt cannot be read",
    ),
    "token file that is a number": (SERVER, {"tokenFile": 5}, "user.tokenFile", "the value is not a string"),
    "user to act as with a line end": (SERVER, {"as": "a\nb"}, "user.as", "contains a line break"),
    "group that is a number": (SERVER, {"as-groups": ["a", 5]}, "user.as-groups[1]", "the value is not a string"),
    "more of the user that is no list": (
        SERVER,
        {"as-user-extra": {"k": "v"}},
        "user.as-user-extra.k",
        "the value is not a list",
    ),
    "plugin that is text": (SERVER, {"exec": "foo"}, "user.exec", "the value is not a mapping"),
    "plugin without a command": (SERVER, {"exec": {"apiVersion": "v1"}}, "user.exec.command", "is missing"),
    "plugin with a number": (
        SERVER,
        {"exec": {**LOGIN, "args": [5]}},
        "user.exec.args[0]",
        "the value is not a string",
    ),
    "plugin with nothing": (SERVER, {"exec": {**LOGIN, "args": [None]}}, "user.exec.args[0]", "has no value"),
    "plugin's variable without a name": (
        SERVER,
        {"exec": {**LOGIN, "env": [{"value": "x"}]}},
        "user.exec.env[0].name",
        "is missing",
    ),
    "plugin's variable that is true": (
        SERVER,
        {"exec": {**LOGIN, "env": [{"name": "x", "value": True}]}},
        "user.exec.env[0].value",
        "the value is not a string",
    ),
    "plugin of another mode": (
        SERVER,
        {"exec": {**LOGIN, "interactiveMode": "Often"}},
        "user.exec.interactiveMode",
        "is not one of: Never, IfAvailable, Always",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_field_that_kubectl_would_not_read_is_named_and_its_value_is_not(tmp_path: Path, name: str) -> None:
    cluster, user, field, words = FAULTS[name]
    file = write(tmp_path / "config", kubeconfig("x", current="x", cluster=cluster, user=user))
    with pytest.raises(Problems) as caught:
        find_access({}, kubeconfig=str(file))
    (found,) = caught.value.problems
    kind = field.split(".")[0]
    assert (found.reason, found.file, found.field) == ("InvalidKubeconfig", str(file), f"{kind}s[0].{field}")
    assert words in found.message
    assert found.line
    assert found.remedy
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert not {SECRET, "12345"} & set(re.split(r"[^\w-]", str(found)))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    cluster, user = {"server": 5, "proxy-url": 5}, {"token": 5, "as": 5}
    file = write(tmp_path / "config", kubeconfig("x", current="x", cluster=cluster, user=user))
    with pytest.raises(Problems) as caught:
        find_access({}, kubeconfig=str(file))
    assert [problem.field for problem in caught.value.problems] == [
        "clusters[0].cluster.proxy-url",
        "clusters[0].cluster.server",
        "users[0].user.as",
        "users[0].user.token",
    ]


def test_what_is_empty_counts_as_left_out(tmp_path: Path) -> None:
    empty = {"certificate-authority": None, "certificate-authority-data": "", "proxy-url": None}
    config = kubeconfig("x", current="x", cluster={**SERVER, **empty}, user={"exec": None, "tokenFile": ""})
    access = find_access({}, kubeconfig=str(write(tmp_path / "config", config)))
    assert (access.cluster, access.user) == (SERVER, {})


def test_a_file_is_not_looked_at_where_its_data_is_given(tmp_path: Path) -> None:
    cluster = {**SERVER, "certificate-authority": "/nowhere/ca.crt", "certificate-authority-data": "eA=="}
    file = write(tmp_path / "config", kubeconfig("x", current="x", cluster=cluster))
    assert find_access({}, kubeconfig=str(file)).server == "https://x.example"


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_a_clear_error(tmp_path: Path, name: str) -> None:
    config, context, reason, words = BAD[name]
    file = write(tmp_path / "config", config)
    with pytest.raises(Problems, match=words) as caught:
        find_access({}, kubeconfig=str(file), context=context)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert [problem.reason for problem in caught.value.problems] == [reason]
    assert str(file) in str(caught.value)


def test_remedy_lists_what_is_there(tmp_path: Path) -> None:
    file = write(tmp_path / "config", kubeconfig("x"))
    with pytest.raises(Problems) as caught:
        find_access({}, kubeconfig=str(file), context="y")
    assert caught.value.problems[0].remedy == "choose one of: x"


def test_the_words_about_a_file_are_not_taken_for_its_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`admin.kubeconfig: no context 'y'` reads like a name and its secret."""
    file = write(tmp_path / "admin.kubeconfig", kubeconfig("x"))
    assert run(["upgradeplan", "status", "--kubeconfig", str(file), "--context", "y"]) == ExitCode.BAD_INPUT
    assert f"{file}: no context 'y'" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["", "certificate-authority", "tokenFile"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, field: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = pipe
    if field:
        part = "cluster" if field == "certificate-authority" else "user"
        entry = {**SERVER, field: str(pipe)} if part == "cluster" else {field: str(pipe)}
        file = write(tmp_path / "config", kubeconfig("x", current="x", **{part: entry}))
    with pytest.raises(Problems, match="is a device, a pipe or a socket"):
        credential_of(find_access({}, kubeconfig=str(file)), {}, datetime.now(UTC))


def test_unreadable_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Problems, match="cannot be read"):
        find_access({}, kubeconfig=str(tmp_path))


def test_nothing_at_all_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Problems, match=r"no kubeconfig found at .*/\.kube/config"):
        find_access({"HOME": str(tmp_path)})
    with pytest.raises(Problems, match="no kubeconfig found"):
        find_access({"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, context="x")


def connected(cluster: Mapping[str, str], user: Mapping[str, str]) -> None:
    server = {"server": "https://x.example"}
    access = ClusterAccess(
        context="x", server=server["server"], cluster={**server, **cluster}, user=user, file="/home/me/.kube/config"
    )
    connect(access, environ={}, now=lambda: datetime(2026, 11, 28, tzinfo=UTC))


JUNK = base64.b64encode(b"junk").decode()


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({"certificate-authority-data": JUNK}, {}, "certificate-authority contains no PEM certificate"),
        (
            {},
            {"client-certificate-data": JUNK, "client-key-data": JUNK},
            "client-certificate contains no PEM certificate",
        ),
        ({}, {"client-certificate": certifi.where()}, "client-key is missing; there is a client-certificate"),
        ({}, {"client-key-data": JUNK}, "client-certificate is missing; there is a client-key"),
        (
            {},
            {"client-certificate": certifi.where(), "client-key-data": JUNK},
            "client-key contains no unencrypted PEM",
        ),
    ],
)
def test_certificate_that_is_none_is_a_clear_error(
    cluster: Mapping[str, str], user: Mapping[str, str], words: str
) -> None:
    with pytest.raises(Problems, match=words) as caught:
        connected(cluster, user)
    (found,) = caught.value.problems
    assert (found.reason, found.file) == ("InvalidKubeconfig", "/home/me/.kube/config")
    assert found.remedy
    assert caught.value.exit_code is ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://c.example", {"HTTPS_PROXY": "http://p:1"}, Proxy(url="http://p:1")),
        ("https://c.example", {"https_proxy": "p:1"}, Proxy(url="http://p:1")),
        ("http://c.example", {"HTTPS_PROXY": "http://p:1"}, Proxy()),
        ("http://c.example", {"http_proxy": "http://p:1"}, Proxy(url="http://p:1")),
        (
            "https://c.example",
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8,.example"},
            Proxy(url="http://p:1", exceptions="10.0.0.0/8,.example"),
        ),
        ("https://c.example", {"ALL_PROXY": "http://p:1"}, Proxy()),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:1"}, Proxy()),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, Proxy()),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:1"}, Proxy()),
        ("https://c.example", {"HTTPS_PROXY": "socks5://p:1"}, Proxy(url="socks5h://p:1")),
        ("https://c.example", {}, Proxy()),
    ],
)
def test_proxy_follows_the_rules_of_go(server: str, environ: Mapping[str, str], proxy: Proxy) -> None:
    assert proxy_of(server, "", environ) == proxy


@pytest.mark.parametrize("url", ["::not a url", "ftp://p:1", "http://p:99999", "p:x"])
def test_proxy_of_the_environment_that_is_no_url_is_a_clear_error(url: str) -> None:
    with pytest.raises(Problems, match=r"^\$https_proxy is not a URL") as caught:
        proxy_of("https://c.example", "", {"https_proxy": url})
    assert caught.value.problems[0].reason == "InvalidProxy"
