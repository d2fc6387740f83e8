"""Tries the certificates of an access before anything is sent: what TLS says of a broken one names neither file nor
field. It contacts nobody."""

from __future__ import annotations

import ssl


def certificate_fault(authority: str | None, certificate: str | None, key: str | None) -> tuple[str, str] | None:
    """The kubeconfig field whose file holds nothing usable, and why; None where all are good. Takes paths; None: none
    was given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority and not _loads(context, authority):
        return "certificate-authority", "holds no certificate in PEM form"
    if not certificate:
        return ("client-certificate", "is missing; there is a client-key") if key else None
    if not _loads(context, certificate):
        return "client-certificate", "holds no certificate in PEM form"
    if not key:
        return "client-key", "is missing; there is a client-certificate"
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError):
        return "client-key", "holds no unencrypted key in PEM form that fits the client certificate"
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
