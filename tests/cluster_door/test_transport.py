"""What the transport makes of silence, cuts, redirects, proxies and impersonation."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from cluster_door.kinds import (
    CONFIG_MAP,
    ref,
)
from cluster_door.loopback import NOW, access_to, client_of, client_to
from cluster_door.server import Drop, Hang, Reply, Step, Stream, serving
from reconcile.cluster import errors
from reconcile.cluster.client import connect
from reconcile.cluster.exchange import Request
from reconcile.cluster.kubeconfig import ClusterAccess
from reconcile.cluster.transport import KubernetesTransport

A = ref(CONFIG_MAP, "a", "default")


@pytest.mark.parametrize("step", [Drop(), Stream(end="cut")])
def test_connection_that_ends_early_is_away(step: Step) -> None:
    with client_of(step) as (client, server), pytest.raises(errors.Away):
        client.get(CONFIG_MAP, A)
    assert len(server.seen) == 1


def test_server_that_hangs_is_away_after_the_timeout() -> None:
    with serving(Hang()) as server:
        transport = KubernetesTransport(access_to(server.url), environ={}, now=lambda: NOW)
        with pytest.raises(errors.Away, match="timed out"):
            transport.open(Request(method="GET", path="/version", timeout=0.05))
        assert len(server.seen) == 1


def test_answer_that_hangs_half_way_is_away_after_the_idle_timeout() -> None:
    with serving(Stream(lines=["half"], end="hang")) as server:
        transport = KubernetesTransport(access_to(server.url), environ={}, now=lambda: NOW)
        exchange = transport.open(Request(method="GET", path="/version", idle=0.05))
        with pytest.raises(errors.Away, match="timed out"):
            exchange.read()


def test_refused_connection_is_away() -> None:
    with serving() as server:
        url = server.url
    client = client_to(url)
    with pytest.raises(errors.Away, match="refused"):
        client.get(CONFIG_MAP, A)


def test_tls_that_is_cut_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_greet_and_cut, args=(listener,), daemon=True)
        thread.start()
        client = client_to(f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(errors.Away):
            client.get(CONFIG_MAP, A)
        thread.join()


def _greet_and_cut(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.recv(1)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(4096):
        """Take the rest of the greeting, so that the end is no reset."""
    connection.close()


def test_server_without_tls_is_not_waited_for() -> None:
    with serving() as server, pytest.raises(errors.Untrusted, match="WRONG_VERSION_NUMBER"):
        client_to(server.url.replace("http:", "https:")).get(CONFIG_MAP, A)


def test_redirect_is_not_followed() -> None:
    with client_of(Reply(status=302, headers=[("Location", "/elsewhere")]), Reply()) as (client, server):
        with pytest.raises(errors.ServerFailed, match="HTTP 302"):
            client.get(CONFIG_MAP, A)
        assert len(server.seen) == 1


def test_page_of_something_in_between_is_no_answer() -> None:
    with (
        client_of(Reply(body="<html>log in</html>")) as (client, _),
        pytest.raises(errors.ServerFailed, match="not JSON"),
    ):
        client.get(CONFIG_MAP, A)


def test_impersonation_headers_are_sent() -> None:
    user = {"token": "t", "as": "joe", "as-uid": "7", "as-groups": ["g1", "g2"], "as-user-extra": {"k": ["v", "w"]}}
    with serving(Reply()) as server:
        connect(access_to(server.url, user), environ={}, now=lambda: NOW).get(CONFIG_MAP, A)
    [seen] = server.seen
    assert seen.header("Impersonate-User") == ["joe"]
    assert seen.header("Impersonate-Uid") == ["7"]
    assert seen.header("Impersonate-Group") == ["g1", "g2"]
    assert seen.header("Impersonate-Extra-k") == ["v", "w"]


def test_impersonation_is_sent_as_gos_client_sends_it() -> None:
    """UTF-8, and no character in a name that a name cannot have."""
    user = {"token": "t", "as": "密", "as-user-extra": {"a/b%é": ["v"], "none": None}}
    with serving(Reply()) as server:
        connect(access_to(server.url, user), environ={}, now=lambda: NOW).get(CONFIG_MAP, A)
    [seen] = server.seen
    assert seen.header("Impersonate-User") == ["密".encode().decode("latin-1")]
    assert seen.header("Impersonate-Extra-a%2Fb%25%C3%A9") == ["v"]


def test_proxy_of_the_kubeconfig_is_used_even_where_the_environment_excepts_the_server() -> None:
    with serving(Reply()) as proxy:
        url = "http://cluster.example:6443"
        access = ClusterAccess(
            context="x", server=url, cluster={"server": url, "proxy-url": proxy.url}, user={"token": "t"}
        )
        connect(access, environ={"NO_PROXY": "*"}, now=lambda: NOW).get(CONFIG_MAP, A)
        assert len(proxy.seen) == 1


def test_socks_proxy_carries_the_request_and_looks_the_name_up() -> None:
    closing = Reply(headers=[("Connection", "close")])
    with serving(closing) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        asked: list[bytes] = []
        thread = threading.Thread(target=_socks, args=(listener, server.server_port, asked), daemon=True)
        thread.start()
        url, proxy = "http://cluster.example:6443", f"socks5://127.0.0.1:{listener.getsockname()[1]}"
        access = ClusterAccess(
            context="x", server=url, cluster={"server": url, "proxy-url": proxy}, user={"token": "t"}
        )
        connect(access, environ={}, now=lambda: NOW).get(CONFIG_MAP, A)
        assert len(server.seen) == 1
    assert asked == [b"cluster.example"]
    thread.join()


def _socks(listener: socket.socket, port: int, asked: list[bytes]) -> None:
    """One connection through a SOCKS5 proxy, which always goes to `port` (RFC 1928)."""
    client, _ = listener.accept()
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        client.recv(64)
        client.sendall(b"\x05\x00")
        asked.append(client.recv(512)[5:-2])  # version, command, zero, kind, length, then the name and the port
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(65536):
        target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
