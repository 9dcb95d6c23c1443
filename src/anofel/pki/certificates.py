"""X.509 identities of role-holders, whom an institution's authority vouches for.

    identity = verify_chain(chain, roots, Purpose.OWNER, time)
    identity.verify(message, signature)

The path is validated by ``cryptography``'s validator (its client profile) with our extension
policies. The rules are numbered in ``docs/certificates.md`` and carry the same numbers here. Only
:func:`verify_chain` yields an :class:`Identity`. Clients never present a certificate.
"""

import hashlib
import os
import uuid
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn, Self, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature as _BadSignature
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
)
from cryptography.x509.verification import VerificationError as _PathRefused

from anofel.disk.portable import is_owners_alone
from anofel.errors import InvalidInput, InvalidKeyFile, InvalidSignature, VerificationError
from anofel.ids import CertificateId, Subject

MAX_CHAIN: Final = 4
"""Certificates a role-holder presents, leaf first, without the root."""
MAX_CERTIFICATE_BYTES: Final = 4096
SIGNATURE_BYTES: Final = 64

GROUP_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256 (FIPS 186, SP 800-186)."""

PURPOSE_ARC: Final = uuid.UUID("0c413b73-1f0e-40b5-8447-85741a9e7065")
"""Our object identifiers are 2.25.<this number>.<purpose>; ITU-T X.667 asks for no registration."""


class Purpose(Enum):
    """What a certificate entitles its holder to; an extended key usage each."""

    OPERATOR = "operator"
    CERTIFIER = "certifier"
    AGGREGATOR = "aggregator"
    OWNER = "owner"
    STORAGE = "storage"
    VALIDATOR = "validator"

    @property
    def oid(self) -> x509.ObjectIdentifier:
        """The extended key usage that says so."""
        return x509.ObjectIdentifier(f"2.25.{PURPOSE_ARC.int}.{_NUMBERS[self]}")


_E = TypeVar("_E", bound=x509.ExtensionType)
_NUMBERS: Final = {purpose: number for number, purpose in enumerate(Purpose, start=1)}
_PURPOSES: Final = {purpose.oid: purpose for purpose in Purpose}

MALFORMED: Final = (
    ValueError,
    TypeError,  # a name of another ASN.1 type
    KeyError,  # the same of an unknown one, before cryptography 50
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    UnsupportedAlgorithm,
)
"""What the library raises for bytes it cannot read; it has no common class."""


class CertificateRefused(VerificationError):
    """A chain of certificates does not give its holder the role it claims."""

    code = "certificate-refused"


class Identity:
    """Who holds a role, as a verified chain says. Made by :func:`verify_chain` alone.

    ``subject`` is the SHA-256 of the leaf's SubjectPublicKeyInfo. It stays the same when a certificate is
    renewed for the same key, under whichever root; a name would too, but then every root of genesis could
    issue a second certificate for somebody's name and act for them. ``certificate_id`` is the SHA-256
    of the leaf and changes with every renewal.
    """

    __slots__ = ("certificate_id", "issuer", "name", "organisation", "public_key", "purpose", "subject")

    certificate_id: CertificateId
    subject: Subject
    name: str
    """The leaf's distinguished name (RFC 4514), for people and for what a client demands of a committee."""
    issuer: str
    """The distinguished name of who issued the leaf."""
    organisation: str
    """The organisation (O) that the leaf names, as ``organisation_of`` has it; empty if it names none."""
    purpose: Purpose
    public_key: EllipticCurvePublicKey

    def __init__(self) -> None:
        raise TypeError("an Identity comes from verify_chain")

    def verify(self, message: bytes, signature: bytes) -> None:
        """Check a signature of this role-holder. Raises InvalidSignature.

        1. It is r ‖ s, 32 bytes big-endian each.
        2. r is between 1 and the group order less 1, s between 1 and half the group order.
        3. It is an ECDSA signature with SHA-256 over the message.
        """
        _verify_signature(self.public_key, self.name, message, signature)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and (self.certificate_id, self.purpose) == (
            other.certificate_id,
            other.purpose,
        )

    def __hash__(self) -> int:
        return hash((self.certificate_id, self.purpose))

    def __repr__(self) -> str:
        return f"Identity({self.name!r}, {self.purpose.value}, subject={self.subject.hex()[:16]}…)"


def _verify_signature(key: EllipticCurvePublicKey, name: str, message: bytes, signature: bytes) -> None:
    if len(signature) != SIGNATURE_BYTES:  # (1)
        raise InvalidSignature(f"The signature of {name} has {len(signature)} bytes instead of 64.")
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    if not (0 < r < GROUP_ORDER and 0 < s <= GROUP_ORDER // 2):  # (2)
        raise InvalidSignature(f"The signature of {name} is not in its one canonical form.")
    try:  # (3)
        key.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
    except _BadSignature:
        raise InvalidSignature(f"The signature of {name} does not fit the message.") from None


def verify_leaf_signature(leaf: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature with the key of a certificate that nobody vouched for yet.

    Raises InvalidSignature, CertificateRefused. THE CALLER STILL OWES :func:`verify_chain`.
    """
    parsed = _parse(leaf, 0)
    _verify_signature(_leaf_key(parsed), _readable(parsed.subject), message, signature)


def purpose_of_leaf(leaf: bytes) -> Purpose:
    """Return the one purpose that a certificate names. Raises CertificateRefused."""
    found = purposes_of(_parse(leaf, 0))
    if len(found) != 1:
        raise CertificateRefused("The leaf names no role, or several.")
    return found[0]


def verify_chain(chain: Sequence[bytes], roots: Sequence[bytes], purpose: Purpose, time: int) -> Identity:
    """Verify a role-holder's chain, leaf first and without the root, at a time in seconds since 1970.

    Raises CertificateRefused with the first rule that fails, InvalidInput if a root or the time
    cannot be used. THE CALLER STILL OWES a signature check: a chain is public and proves nothing by
    itself.
    """
    if not 1 <= len(chain) <= MAX_CHAIN:  # (1)
        raise CertificateRefused(f"A chain has 1 to {MAX_CHAIN} certificates, not {len(chain)}.")
    leaf, *intermediates = [_parse(der, place) for place, der in enumerate(chain)]  # (2)
    key = _leaf_key(leaf)  # (3)
    _validate(leaf, intermediates, parse_roots(roots), purpose, _moment(time))  # (4) to (9)
    identity = Identity.__new__(Identity)
    identity.certificate_id = CertificateId(hashlib.sha256(chain[0]).digest())
    identity.subject = subject_of_key(key)
    identity.name, identity.issuer = _readable(leaf.subject), _readable(leaf.issuer)
    identity.organisation = organisation_of(leaf.subject)
    identity.purpose = purpose
    identity.public_key = key
    return identity


def last_second(certificate: bytes) -> int:
    """Return the last second in which a certificate (DER) is valid. Raises ``CertificateRefused``."""
    return int(_parse(certificate, None).not_valid_after_utc.timestamp())


def subject_of_key(key: EllipticCurvePublicKey) -> Subject:
    """Return the stable name of a key: the SHA-256 of its SubjectPublicKeyInfo."""
    return Subject(hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest())


def subject_and_name(leaf: bytes) -> tuple[Subject, str]:
    """Return subject and name of a certificate whose chain was verified before."""
    parsed = _parse(leaf, 0)
    return subject_of_key(_leaf_key(parsed)), _readable(parsed.subject)


def _readable(name: x509.Name) -> str:
    text = name.rfc4514_string()
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def organisation_of(subject: x509.Name) -> str:
    """Return the one organisation (O) of a name, empty if there is none or are several.

    Letters of ASCII are lower-cased and white space is collapsed, so that spellings do not differ by these;
    nothing depends on tables of Unicode, which change.
    """
    found = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if len(found) != 1 or not isinstance(found[0].value, str):
        return ""
    words = "".join(c if c not in "\t\n\v\f\r\u00a0" else " " for c in found[0].value).split(" ")
    text = " ".join(word for word in words if word)
    return "".join(c.lower() if c.isascii() else c for c in text)


def subject_of_certificates(pem: bytes) -> Subject:
    """Return the subject of a chain in PEM, leaf first; nothing about it is verified. Raises InvalidInput."""
    try:
        return subject_of_key(_leaf_key(_parse(_load_chain(pem, "The file")[0], 0)))
    except CertificateRefused as error:
        raise InvalidInput(f"The certificate cannot be used: {error}") from error


def chain_to_pem(chain: Sequence[bytes]) -> bytes:
    """Return certificates in PEM, in their order."""
    return b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)


def parse_roots(roots: Sequence[bytes]) -> list[x509.Certificate]:
    """Read the trusted roots. Raises InvalidInput if there are none or one is malformed."""
    if not roots:
        raise InvalidInput("There are no certificate roots to trust.")
    try:
        return [_parse(der, None) for der in roots]
    except CertificateRefused as error:
        raise InvalidInput(f"A certificate root cannot be used: {error}") from error


def _parse(der: bytes, place: int | None) -> x509.Certificate:
    """(2) Read one certificate that has exactly one encoding."""
    which = "The root" if place is None else "The leaf" if place == 0 else f"Certificate {place} of the chain"
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise CertificateRefused(f"{which} has {len(der)} bytes; {MAX_CERTIFICATE_BYTES} are allowed.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stranger's odd name is no reason to write to our log
            certificate = x509.load_der_x509_certificate(der)
            encoded = certificate.public_bytes(Encoding.DER)
            _ = certificate.extensions, certificate.subject, certificate.issuer  # parsed lazily
    except MALFORMED as error:
        raise CertificateRefused(f"{which} is malformed, or bytes follow it.") from error
    if encoded != der or der[-len(certificate.signature) - 1] != 0:  # the signature is whole bytes
        raise CertificateRefused(f"{which} is not in canonical DER.")
    return certificate


def _leaf_key(leaf: x509.Certificate) -> EllipticCurvePublicKey:
    """(3) Return the P-256 key of a leaf."""
    try:
        key = leaf.public_key()
    except MALFORMED as error:
        raise CertificateRefused("The leaf's key cannot be read.") from error
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise CertificateRefused("The leaf's key is not a P-256 key.")
    return key


def _moment(time: int) -> datetime:
    try:
        return datetime.fromtimestamp(time, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidInput(f"{time} is no time in seconds since 1970.") from error


def _validate(
    leaf: x509.Certificate,
    intermediates: list[x509.Certificate],
    roots: list[x509.Certificate],
    purpose: Purpose,
    moment: datetime,
) -> None:
    """(4) to (9): the library's path validation, then that the chain is the path and nothing more."""
    verifier = (
        PolicyBuilder()
        .store(Store(roots))
        .time(moment.replace(tzinfo=None))
        .max_chain_depth(MAX_CHAIN - 1)
        .extension_policies(ca_policy=_ca_policy(purpose), ee_policy=_leaf_policy(purpose))
        .build_client_verifier()
    )
    try:
        path = verifier.verify(leaf, intermediates).chain
    except _PathRefused as error:
        raise CertificateRefused(_reason(leaf, intermediates, roots, purpose, moment, error)) from error
    if path[:-1] != [leaf, *intermediates] or path[-1] not in roots:  # (9)
        raise CertificateRefused("The chain is not leaf first, each issued by the next, without the root.")


def _leaf_policy(purpose: Purpose) -> ExtensionPolicy:
    def check_purpose(_policy: Policy, leaf: x509.Certificate, _usage: x509.ExtendedKeyUsage) -> None:
        if purposes_of(leaf) != [purpose]:
            raise ValueError("purpose")

    def check_usage(_policy: Policy, leaf: x509.Certificate, _usage: x509.KeyUsage | None) -> None:
        if not _may_sign(leaf):
            raise ValueError("digitalSignature")

    return (
        ExtensionPolicy.webpki_defaults_ee()
        .require_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, check_purpose)
        .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, check_usage)
        .may_be_present(x509.SubjectAlternativeName, Criticality.AGNOSTIC, None)
    )


def _ca_policy(purpose: Purpose) -> ExtensionPolicy:
    def check(_policy: Policy, issuer: x509.Certificate, _usage: x509.ExtendedKeyUsage | None) -> None:
        if _restricts(issuer, purpose):
            raise ValueError("purpose")

    return ExtensionPolicy.webpki_defaults_ca().may_be_present(
        x509.ExtendedKeyUsage, Criticality.AGNOSTIC, check
    )


def purposes_of(leaf: x509.Certificate | x509.CertificateSigningRequest) -> list[Purpose]:
    """Return the purposes a certificate or a request names; it may name none or several."""
    usage = _extension(leaf, x509.ExtendedKeyUsage)
    return [_PURPOSES[oid] for oid in usage or () if oid in _PURPOSES]


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _may_sign(leaf: x509.Certificate) -> bool:
    usage = _extension(leaf, x509.KeyUsage)
    return usage is None or usage.digital_signature


def _restricts(issuer: x509.Certificate, purpose: Purpose) -> bool:
    """Whether an authority names extended key usages and this purpose is not among them."""
    usage = _extension(issuer, x509.ExtendedKeyUsage)
    allowed = {purpose.oid, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    return usage is not None and allowed.isdisjoint(usage)


def _extension(holder: x509.Certificate | x509.CertificateSigningRequest, kind: type[_E]) -> _E | None:
    try:
        return holder.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _reason(
    leaf: x509.Certificate,
    intermediates: list[x509.Certificate],
    roots: list[x509.Certificate],
    purpose: Purpose,
    moment: datetime,
    error: _PathRefused,
) -> str:
    """Find the words for a chain that the validator refused; nothing is decided here."""
    top = [root for root in roots if root.subject == (intermediates or [leaf])[-1].issuer]
    for place, certificate in enumerate([leaf, *intermediates, *top]):  # (4)
        which = "The leaf" if place == 0 else f"Certificate {place} of the chain"
        which = "The root of the chain" if certificate in top else which
        if moment < certificate.not_valid_before_utc:
            return f"{which} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC."
        if moment > certificate.not_valid_after_utc:
            return f"{which} expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC."
    if _is_authority(leaf):  # (5)
        return "The leaf is the certificate of an authority, not of a role-holder."
    if (named := purposes_of(leaf)) != [purpose]:  # (6)
        given = " and ".join(p.value for p in named) or "no role"
        return f"The leaf is for {given}, not for {purpose.value} alone."
    if not _may_sign(leaf):  # (8)
        return "The leaf's key may not sign messages (key usage)."
    if any(_restricts(issuer, purpose) for issuer in [*intermediates, *top]):  # (6)
        return f"An authority of the chain may not certify for {purpose.value} (extended key usage)."
    if {root.subject for root in roots}.isdisjoint(c.issuer for c in [leaf, *intermediates]):  # (7)
        return "The chain leads to no root of this board."
    words = str(error).removeprefix("validation failed: ").split(" (encountered", 1)[0]
    return f"The chain is not valid: {words}."  # (8)


class RoleKey:
    """The secret of a role-holder: its P-256 key and the chain that goes with it."""

    __slots__ = ("_key", "chain")

    def __init__(self, key: EllipticCurvePrivateKey, chain: Sequence[bytes]) -> None:
        if not 1 <= len(chain) <= MAX_CHAIN:
            raise InvalidKeyFile(f"A role's chain has 1 to {MAX_CHAIN} certificates, not {len(chain)}.")
        try:
            certified = _leaf_key(_parse(chain[0], 0))
        except CertificateRefused as error:
            raise InvalidKeyFile(f"The role's certificate cannot be used: {error}") from error
        if certified != key.public_key():
            raise InvalidKeyFile("The role's private key does not belong to its certificate.")
        self._key = key
        self.chain: tuple[bytes, ...] = tuple(chain)
        """The certificates to present, leaf first."""

    @classmethod
    def from_files(cls, certificate: Path, key: Path) -> Self:
        """Read a PEM chain, leaf first, and a PEM private key that only its owner may read."""
        return cls(_load_key(read_owner_only(key), str(key)), _load_chain(_read(certificate), certificate))

    @classmethod
    def from_secret_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_secret_bytes` wrote."""
        return cls(_load_key(data, "The role's key"), _load_chain(data, "The role's key"))

    def to_secret_bytes(self) -> bytes:
        """Return the key (PKCS#8) and the chain in PEM. SECRET: for the key store alone."""
        return self.key_pem() + self.chain_pem()

    def key_pem(self) -> bytes:
        """Return the private key in PEM (PKCS#8). SECRET: for an owner-only file."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def chain_pem(self) -> bytes:
        """Return the chain in PEM, leaf first."""
        return chain_to_pem(self.chain)

    @property
    def secret_key(self) -> EllipticCurvePrivateKey:
        """The private key itself. SECRET: for an authority that signs certificates with it."""
        return self._key

    @property
    def subject(self) -> Subject:
        """The ``subject`` that a verified :class:`Identity` of this key has."""
        return subject_of_key(self._key.public_key())

    def sign(self, message: bytes) -> bytes:
        """Sign with ECDSA and SHA-256: r ‖ s, s in the lower half.

        The nonce is derived from key and message (RFC 6979), so a posting signed again after a crash
        has the same bytes.
        """
        r, s = decode_dss_signature(self._key.sign(message, ECDSA(SHA256(), deterministic_signing=True)))
        return r.to_bytes(32) + min(s, GROUP_ORDER - s).to_bytes(32)

    def __repr__(self) -> str:
        return f"RoleKey(<redacted>, subject={self.subject.hex()[:16]}…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a role key is not pickled; save it in a Keystore")


def _load_key(data: bytes, where: str) -> EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(data, None)
    except TypeError as error:
        raise InvalidKeyFile(
            f"{where} is locked with a passphrase; store it unlocked or in a key store."
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidKeyFile(f"{where} holds no private key in PEM.") from error
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise InvalidKeyFile(f"{where} is not a P-256 key.")
    return key


def _load_chain(data: bytes, where: Path | str) -> list[bytes]:
    try:
        return [c.public_bytes(Encoding.DER) for c in x509.load_pem_x509_certificates(data)]
    except ValueError as error:
        raise InvalidKeyFile(f"{where} holds no certificates in PEM.") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidKeyFile(f"{path} cannot be read: {error.strerror or error}.") from error


def read_owner_only(path: Path) -> bytes:
    """Read a file that only its owner may access; the check is on the opened file, not on the path."""
    try:
        with path.open("rb") as file:
            if not is_owners_alone(os.fstat(file.fileno())):
                raise InvalidKeyFile(f"{path} must belong to you alone (chmod 600).")
            return file.read()
    except OSError as error:
        raise InvalidKeyFile(f"{path} cannot be read: {error.strerror or error}.") from error
