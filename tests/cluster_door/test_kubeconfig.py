"""Which cluster and which user: what kubectl would choose, and a clear word where it would choose nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import Access, find_access
from reconcile.cluster.proxy import Proxy, proxy_of
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
    access = find_access(environ, service_account=tmp_path)
    assert access == Access(
        context="in-cluster",
        server=server,
        namespace="harvester-system",
        cluster={"server": server, "certificate-authority": str(tmp_path / "ca.crt")},
        user={"tokenFile": str(tmp_path / "token")},
        inside=True,
    )


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
    assert caught.value.problems[0].remedy == "contexts that are there: x"


def test_unreadable_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Problems, match="cannot be read"):
        find_access({}, kubeconfig=str(tmp_path))


def test_nothing_at_all_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Problems, match=r"no kubeconfig was found at .*/\.kube/config"):
        find_access({"HOME": str(tmp_path)})
    with pytest.raises(Problems, match="no kubeconfig was found"):
        find_access({"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, context="x")


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"certificate-authority": "/nowhere/ca.crt"}, "File does not exist: /nowhere/ca.crt"),
        ({"certificate-authority-data": "not base64"}, "context 'x'"),
    ],
)
def test_certificate_that_cannot_be_read_is_a_clear_error(cluster: Mapping[str, str], words: str) -> None:
    access = Access(context="x", server="https://x", cluster={"server": "https://x", **cluster}, user={})
    with pytest.raises(Problems, match=words) as caught:
        connect(access, environ={}, now=lambda: datetime(2026, 11, 28, tzinfo=UTC))
    assert caught.value.problems[0].reason == "InvalidKubeconfig"


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
        ("https://c.example", {}, Proxy()),
    ],
)
def test_proxy_follows_the_rules_of_go(server: str, environ: Mapping[str, str], proxy: Proxy) -> None:
    assert proxy_of(Access(context="x", server=server, cluster={"server": server}, user={}), environ) == proxy
