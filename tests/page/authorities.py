"""Chains of certificates under authorities of every kind that a board admits, and of some others."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from anofel.pki.certificates import Purpose
from tests.board.world import TIME

START = datetime.fromtimestamp(TIME, UTC) - timedelta(days=1)
HASHES = (SHA256(), SHA384(), SHA512())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _issued(
    subject: str,
    key: Any,
    issuer: str,
    signer: Any,
    algorithm: HashAlgorithm,
    *,
    pss: int | None = None,
    authority: bool = True,
) -> bytes:
    """``pss``: the length of the salt, for RSA with that padding."""
    made = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(START)
        .not_valid_after(START + timedelta(days=100))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if authority:
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        usage = dict.fromkeys(
            (
                *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
                *("key_agreement", "encipher_only", "decipher_only"),
            ),
            False,
        )
        made = made.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
    else:
        made = made.add_extension(x509.ExtendedKeyUsage([Purpose.OWNER.oid]), critical=False)
    kind = None if pss is None else padding.PSS(padding.MGF1(algorithm), pss)
    return made.sign(signer, algorithm, rsa_padding=kind).public_bytes(Encoding.DER)


def chains() -> Iterator[tuple[list[bytes], bytes]]:
    """Yield a chain, leaf first, and the root that it leads to."""
    leaf = ec.generate_private_key(ec.SECP256R1())
    curves = [ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1())]
    large, odd = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(3, 2049)
    for key in [*curves, large, odd]:
        root = _issued("Root", key, "Root", key, SHA256())
        for algorithm in HASHES:
            yield [_issued("Leaf", leaf, "Root", key, algorithm, authority=False)], root
    root = _issued("Root", large, "Root", large, SHA256())
    for algorithm in HASHES:
        for salt in (algorithm.digest_size, 20):
            signed = _issued("Leaf", leaf, "Root", large, algorithm, pss=salt, authority=False)
            yield [signed], root
    root = _issued("Root", odd, "Root", odd, SHA256())
    yield [_issued("Leaf", leaf, "Root", odd, SHA256(), pss=32, authority=False)], root
    small = rsa.generate_private_key(65537, 1024)
    strange = ec.generate_private_key(ec.SECP256K1())
    for key in (small, strange):
        root = _issued("Root", key, "Root", key, SHA256())
        yield [_issued("Leaf", leaf, "Root", key, SHA256(), authority=False)], root
    # Across two authorities, and with a signature of a third under the same name.
    for upper, lower in ((large, curves[1]), (curves[2], odd)):
        root = _issued("Root", upper, "Root", upper, SHA512())
        middle = _issued("Middle", lower, "Root", upper, SHA384())
        yield [_issued("Leaf", leaf, "Middle", lower, SHA256(), authority=False), middle], root
        yield [_issued("Leaf", leaf, "Middle", upper, SHA256(), authority=False), middle], root
        yield [_issued("Leaf", leaf, "Root", lower, SHA256(), authority=False)], root
