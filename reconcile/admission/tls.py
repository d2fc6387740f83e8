"""The TLS side of the webhook's server: a context whose certificate can be exchanged while it serves.

OpenSSL reads certificate and key from files; these are in memory where the system can do that, so that no key is ever
on a disk and a read-only root filesystem is enough.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def server_context() -> ssl.SSLContext:
    """Without a certificate: no client can connect yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def use_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Serves connections that are opened from now on with this certificate, in PEM; those that are open go on.

    Call it in the thread that performs the handshake. Raises OSError if it is not a pair.
    """
    with _as_file(certificate) as chain, _as_file(key) as private:
        context.load_cert_chain(chain, private)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    with os.fdopen(os.memfd_create("upgradeplan"), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
