"""Makes and reads the webhook's keys and certificates: a small authority of its own, and what it signs.

The one door to `cryptography`. Nothing is decided here, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY = "upgradeplan-webhook-ca"
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)
_LONGEST_NAME = 64
"""Characters of a common name (RFC 5280)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The times between which a certificate is valid; both with a time zone."""

    not_before: datetime
    not_after: datetime

    def holds(self, now: datetime) -> bool:
        return self.not_before <= now < self.not_after


def new_authority(validity: Validity) -> Pair:
    """A certificate authority that signs nothing but serving certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY)])
    builder = (
        _builder(name, name, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(certificate=_pem(builder.sign(key, hashes.SHA256())), key=_private(key))


def new_serving_pair(authority: Pair, names: Sequence[str], validity: Validity) -> Pair:
    """A certificate for these DNS names and IP addresses, signed by the authority."""
    signer, signing_key = _certificate(authority.certificate), _key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_LONGEST_NAME])])
    builder = (
        _builder(subject, signer.subject, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    return Pair(certificate=_pem(builder.sign(signing_key, hashes.SHA256())), key=_private(key))


def certificates_in(bundle: bytes) -> tuple[bytes, ...]:
    """Each certificate of a PEM text; none where it cannot be read."""
    try:
        return tuple(_pem(found) for found in x509.load_pem_x509_certificates(bundle))
    except _UNREADABLE:
        return ()


def validity_of(certificate: bytes) -> Validity | None:
    """The times of the first certificate of a PEM text; None where it cannot be read."""
    found = _read(certificate)
    return Validity(not_before=found.not_valid_before_utc, not_after=found.not_valid_after_utc) if found else None


def is_pair(pair: Pair) -> bool:
    """True if both can be read, and belong together."""
    found = _read(pair.certificate)
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        return found is not None and found.public_key() == key.public_key()
    except _UNREADABLE:
        return False


def can_sign(authority: Pair) -> bool:
    """True if `new_serving_pair` takes it."""
    try:
        _key(authority.key)
    except _UNREADABLE:
        return False
    return is_pair(authority)


def is_for(certificate: bytes, names: Iterable[str]) -> bool:
    """True if it has all of these names."""
    found = _read(certificate)
    return found is not None and set(names) <= _names_in(found)


def signer_of(certificate: bytes, authorities: Iterable[bytes]) -> bytes | None:
    """The authority that has signed it, if it is one of these."""
    found = _read(certificate)
    return next((each for each in authorities if found is not None and _has_signed(each, found)), None)


def _has_signed(authority: bytes, found: x509.Certificate) -> bool:
    try:
        found.verify_directly_issued_by(_certificate(authority))
    except (*_UNREADABLE, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.not_before)
        .not_valid_after(validity.not_after)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_in(found: x509.Certificate) -> set[str]:
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}


def _read(certificate: bytes) -> x509.Certificate | None:
    try:
        return _certificate(certificate)
    except _UNREADABLE:
        return None


def _certificate(text: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text)


def _key(text: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises what is in `_UNREADABLE` for anything else."""
    found = serialization.load_pem_private_key(text, password=None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key on an elliptic curve")
    return found


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
