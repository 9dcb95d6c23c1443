"""A small certificate authority for demos and tests. It checks nobody's identity.

Every certificate it makes says so: the organisation of the root and the unit of whoever it certifies is
``anofel TEST CA``. A real deployment puts the roots of its institutions into genesis instead.
"""

import time as clock
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from anofel.disk.files import Secret, write_new_directory
from anofel.errors import InvalidInput
from anofel.pki.certificates import MALFORMED, Purpose, RoleKey, purposes_of

ORGANISATION: Final = "anofel TEST CA"
ROOT_FILE: Final = "root.pem"
ROOT_KEY_FILE: Final = "root.key"
CERTIFICATE_FILE: Final = "certificate.pem"
KEY_FILE: Final = "key.pem"
REQUEST_FILE: Final = "request.pem"
MAX_NAME_CHARACTERS: Final = 64
"""What X.520 allows in a common name, and in an organisation's."""
ROOT_DAYS: Final = 3650
DEFAULT_DAYS: Final = 365
DAY_SECONDS: Final = 86_400


class TestAuthority:
    """A root key that certifies whatever it is asked to."""

    __test__: ClassVar[bool] = False  # for pytest, which collects classes by name
    __slots__ = ("_role",)

    def __init__(self, role: RoleKey) -> None:
        root = x509.load_der_x509_certificate(role.chain[0])
        found = root.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if [a.value for a in found] != [ORGANISATION] or root.subject != root.issuer:
            raise InvalidInput("This is not the key of a test authority; it is not used as one.")
        self._role = role

    @classmethod
    def create(cls, *, not_before: int | None = None, not_after: int | None = None) -> Self:
        """Make a new root. Times are seconds since 1970; by default it is valid from now for ten years."""
        key = generate_private_key(SECP256R1())
        subject = x509.Name([_organisation(ORGANISATION), _common_name("Root")])
        period = _period(not_before, not_after, ROOT_DAYS)
        certificate = (
            _builder(subject, subject, key.public_key(), key.public_key(), period)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(key_cert_sign=True), critical=True)
            .sign(key, SHA256())
        )
        return cls(RoleKey(key, [certificate.public_bytes(Encoding.DER)]))

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Read an authority that :meth:`save` wrote."""
        return cls(RoleKey.from_files(directory / ROOT_FILE, directory / ROOT_KEY_FILE))

    def save(self, directory: Path) -> None:
        """Write the authority into a new directory; its key is for the owner's eyes only."""
        write_new_directory(
            directory, {ROOT_FILE: self._role.chain_pem(), ROOT_KEY_FILE: Secret(self._role.key_pem())}
        )

    @property
    def root(self) -> bytes:
        """The root certificate in DER, as genesis lists it."""
        return self._role.chain[0]

    def issue(
        self,
        purpose: Purpose,
        name: str,
        not_before: int | None = None,
        not_after: int | None = None,
        *,
        organisation: str = "",
    ) -> RoleKey:
        """Make a key and its certificate in one step. By default it is valid from now for a year.

        Whoever names no organisation is one of its own, by its name.
        """
        key = generate_private_key(SECP256R1())
        request = SigningRequest(purpose, name, organisation or name, key.public_key())
        return RoleKey(key, self.sign_request(request, not_before, not_after))

    def sign_request(
        self, request: "SigningRequest", not_before: int | None = None, not_after: int | None = None
    ) -> tuple[bytes, ...]:
        """Return the chain for a key that never left its owner."""
        root = x509.load_der_x509_certificate(self.root)
        issuer_key = self._role.secret_key
        certificate = (
            _builder(
                _test_name(request),
                root.subject,
                request.public_key,
                issuer_key.public_key(),
                _period(not_before, not_after, DEFAULT_DAYS),
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([request.purpose.oid]), critical=False)
            .sign(issuer_key, SHA256())
        )
        return (certificate.public_bytes(Encoding.DER),)

    def __repr__(self) -> str:
        return "TestAuthority(<redacted>)"


@dataclass(frozen=True)
class SigningRequest:
    """What somebody asks an authority to certify (PKCS #10), read and checked."""

    purpose: Purpose
    name: str
    organisation: str
    public_key: EllipticCurvePublicKey

    @classmethod
    def from_pem(cls, data: bytes) -> Self:
        """Read a request: one purpose, one common name, one organisation, a P-256 key and its signature."""
        try:
            request = x509.load_pem_x509_csr(data)
            key, purposes = request.public_key(), purposes_of(request)
            names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            organisations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        except MALFORMED as error:
            raise InvalidInput("This is not a certificate request in PEM.") from error
        if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
            raise InvalidInput("The request is for a key that is not a P-256 key.")
        if not request.is_signature_valid:
            raise InvalidInput("The request is not signed by the key that it is for.")
        if len(purposes) != 1:
            raise InvalidInput("The request does not name exactly one role as its extended key usage.")
        if len(names) != 1:
            raise InvalidInput("The request does not have exactly one common name.")
        if len(organisations) != 1:
            raise InvalidInput("The request does not name exactly one organisation.")
        return cls(purposes[0], str(names[0].value), str(organisations[0].value), key)


@dataclass(frozen=True)
class RequestedKey:
    """A key and the request for its certificate, both in PEM: the one is kept, the other is sent."""

    secret: bytes = field(repr=False)
    request: bytes


def make_request(purpose: Purpose, name: str, organisation: str = "") -> RequestedKey:
    """Make a key (PKCS#8) and a request for its certificate.

    Whoever names no organisation is one of its own, by its name.
    """
    key = generate_private_key(SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([_organisation(organisation or name), _common_name(name)]))
        .add_extension(x509.ExtendedKeyUsage([purpose.oid]), critical=False)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return RequestedKey(secret, request.public_bytes(Encoding.PEM))


def write_role(directory: Path, role: RoleKey) -> None:
    """Write a role's chain and key into a new directory, for :meth:`RoleKey.from_files`."""
    write_new_directory(directory, {CERTIFICATE_FILE: role.chain_pem(), KEY_FILE: Secret(role.key_pem())})


def _test_name(request: SigningRequest) -> x509.Name:
    unit = x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, ORGANISATION)
    return x509.Name([_organisation(request.organisation), unit, _common_name(request.name)])


def _common_name(text: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.COMMON_NAME, _checked(text))


def _organisation(text: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.ORGANIZATION_NAME, _checked(text))


def _checked(text: str) -> str:
    if not 1 <= len(text) <= MAX_NAME_CHARACTERS or not text.isprintable():
        raise InvalidInput(f"A name has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    return text


def _period(not_before: int | None, not_after: int | None, days: int) -> tuple[datetime, datetime]:
    start = int(clock.time()) if not_before is None else not_before
    end = start + days * DAY_SECONDS if not_after is None else not_after
    if end < start:
        raise InvalidInput("The certificate would end before it begins.")
    try:
        epoch = datetime.fromtimestamp(0, UTC)
        return epoch + timedelta(seconds=start), epoch + timedelta(seconds=end)
    except OverflowError as error:
        raise InvalidInput("The certificate's days lie beyond the calendar.") from error


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePublicKey,
    issuer_key: EllipticCurvePublicKey,
    period: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(period[0])
        .not_valid_after(period[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
