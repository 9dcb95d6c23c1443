"""Chains with one thing wrong, built with the library itself rather than with our test authority."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from anofel.pki.certificates import Purpose

NOW = 1_800_000_000
DAY = 86_400
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)


def usage(*names: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in names for name in _USAGES})


@dataclass(frozen=True)
class Draft:
    """A certificate before it is signed; every part can be changed."""

    name: str
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    not_before: int = NOW - DAY
    not_after: int = NOW + DAY
    ca: bool = False
    path_length: int | None = None
    purposes: Sequence[Purpose | x509.ObjectIdentifier] | None = (Purpose.OWNER,)
    usages: Sequence[str] = ("digital_signature",)
    extra: Sequence[tuple[x509.ExtensionType, bool]] = ()

    def but(self, **changes: Any) -> "Draft":
        return replace(self, **changes)

    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def signed_by(self, issuer: "Draft", key: Any = None) -> bytes:
        signer = key or issuer.key
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject())
            .issuer_name(issuer.subject())
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment(self.not_before))
            .not_valid_after(moment(self.not_after))
            .add_extension(
                x509.BasicConstraints(self.ca, self.path_length if self.ca else None), critical=True
            )
            .add_extension(usage(*self.usages), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
            )
        )
        if self.purposes is not None:
            oids = [p.oid if isinstance(p, Purpose) else p for p in self.purposes]
            builder = builder.add_extension(x509.ExtendedKeyUsage(oids), critical=False)
        for extension, critical in self.extra:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(signer, SHA256()).public_bytes(Encoding.DER)


def authority(name: str, **changes: Any) -> Draft:
    return Draft(name, ca=True, purposes=None, usages=("key_cert_sign",)).but(**changes)


ROOT = authority("Root")
MIDDLE = authority("Middle")
LEAF = Draft("Hospital A")


def roots(root: Draft = ROOT) -> list[bytes]:
    return [root.signed_by(root)]


def chain(leaf: Draft = LEAF, middle: Draft = MIDDLE, root: Draft = ROOT) -> list[bytes]:
    """Leaf and one intermediate."""
    return [leaf.signed_by(middle), middle.signed_by(root)]
