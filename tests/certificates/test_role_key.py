"""Keys of role-holders: one signature has one encoding, and secrets stay secret."""

import pickle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from anofel.disk.keystore import KeyFile, Keystore
from anofel.errors import InvalidKeyFile, InvalidSignature
from anofel.pki.certificates import GROUP_ORDER, Identity, Purpose, RoleKey, verify_chain
from tests.certificates.chains import LEAF, NOW, chain, roots

MESSAGE = b"a posting"


@pytest.fixture
def role() -> RoleKey:
    return RoleKey(LEAF.key, chain())


@pytest.fixture
def identity(role: RoleKey) -> Identity:
    return verify_chain(role.chain, roots(), Purpose.OWNER, NOW)


def joined(r: int, s: int) -> bytes:
    return r.to_bytes(32) + s.to_bytes(32)


def parts(signature: bytes) -> tuple[int, int]:
    return int.from_bytes(signature[:32]), int.from_bytes(signature[32:])


# RFC 6979, A.2.5: P-256 with SHA-256. The first s lies in the upper half; we write its negative.
RFC_6979_SECRET = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
RFC_6979 = {
    b"sample": (
        0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716,
        GROUP_ORDER - 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8,
    ),
    b"test": (
        0xF1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367,
        0x019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083,
    ),
}


@pytest.mark.parametrize("message", list(RFC_6979))
def test_signatures_are_those_of_rfc_6979_with_a_low_s(message):
    leaf = LEAF.but(key=ec.derive_private_key(RFC_6979_SECRET, ec.SECP256R1()))
    role = RoleKey(leaf.key, chain(leaf))
    assert role.sign(message) == joined(*RFC_6979[message])
    verify_chain(role.chain, roots(), Purpose.OWNER, NOW).verify(message, role.sign(message))


@given(message=st.binary(max_size=200))
def test_a_signature_verifies_and_has_a_low_s(message):
    role = RoleKey(LEAF.key, chain())
    signature = role.sign(message)
    assert len(signature) == 64
    assert parts(signature)[1] <= GROUP_ORDER // 2
    verify_chain(role.chain, roots(), Purpose.OWNER, NOW).verify(message, signature)


def test_a_signature_over_another_message_is_refused(role, identity):
    with pytest.raises(InvalidSignature, match="does not fit"):
        identity.verify(b"another posting", role.sign(MESSAGE))


def test_a_signature_by_another_key_is_refused(identity):
    other = LEAF.but(key=ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(InvalidSignature, match="does not fit"):
        identity.verify(MESSAGE, RoleKey(other.key, chain(other)).sign(MESSAGE))


def test_the_second_form_of_a_valid_signature_is_refused(role, identity):
    r, s = parts(role.sign(MESSAGE))
    with pytest.raises(InvalidSignature, match="canonical form"):
        identity.verify(MESSAGE, joined(r, GROUP_ORDER - s))


def test_values_out_of_range_are_refused(role, identity):
    r, s = parts(role.sign(MESSAGE))
    top = 2**256 - 1
    for bad in ((0, s), (r, 0), (GROUP_ORDER, s), (r, GROUP_ORDER), (top, s), (r, top), (0, 0)):
        with pytest.raises(InvalidSignature, match="canonical form"):
            identity.verify(MESSAGE, joined(*bad))


def test_a_signature_of_another_length_is_refused(role, identity):
    signature = role.sign(MESSAGE)
    der = LEAF.key.sign(MESSAGE, ec.ECDSA(SHA256()))
    assert decode_dss_signature(der)
    for bad in (b"", signature[:-1], signature + b"\0", der):
        with pytest.raises(InvalidSignature, match="instead of 64"):
            identity.verify(MESSAGE, bad)


def test_every_flipped_bit_of_a_signature_is_noticed(role, identity):
    signature = role.sign(MESSAGE)
    for bit in range(0, 512, 7):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidSignature):
            identity.verify(MESSAGE, bytes(changed))


def test_a_role_key_is_not_printed_or_pickled(role):
    assert "redacted" in repr(role)
    assert str(LEAF.key.private_numbers().private_value) not in repr(role)
    with pytest.raises(TypeError, match="Keystore"):
        pickle.dumps(role)


def test_a_role_key_lives_in_a_key_store(role, identity, tmp_path: Path):
    unlock = KeyFile.generate(tmp_path / "unlock")
    store = Keystore.create(tmp_path / "owner.keys", unlock, role="owner")
    store["role"] = role.to_secret_bytes()
    store.save()
    again = RoleKey.from_secret_bytes(
        Keystore.open(tmp_path / "owner.keys", unlock, role="owner")["role"].reveal()
    )
    assert again.chain == role.chain
    assert again.subject == identity.subject
    identity.verify(MESSAGE, again.sign(MESSAGE))


def write(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_a_role_key_is_read_from_files(role, identity, tmp_path: Path):
    certificate = write(tmp_path / "certificate.pem", role.chain_pem(), 0o644)
    key = write(tmp_path / "key.pem", role.key_pem())
    identity.verify(MESSAGE, RoleKey.from_files(certificate, key).sign(MESSAGE))


def pem(key, encryption=None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


@pytest.mark.parametrize(
    ("data", "mode", "sentence"),
    [
        (lambda: pem(LEAF.key), 0o640, "belong to you alone"),
        (lambda: b"no key", 0o600, "no private key"),
        (lambda: pem(LEAF.key, BestAvailableEncryption(b"secret")), 0o600, "passphrase"),
        (lambda: pem(ed25519.Ed25519PrivateKey.generate()), 0o600, "not a P-256 key"),
        (lambda: pem(ec.generate_private_key(ec.SECP384R1())), 0o600, "not a P-256 key"),
        (lambda: pem(ec.generate_private_key(ec.SECP256R1())), 0o600, "does not belong"),
    ],
    ids=["readable by others", "no key", "locked", "Ed25519", "P-384", "another key"],
)
def test_key_files_that_cannot_be_used_are_refused(role, tmp_path: Path, data, mode, sentence):
    certificate = write(tmp_path / "certificate.pem", role.chain_pem(), 0o644)
    with pytest.raises(InvalidKeyFile, match=sentence):
        RoleKey.from_files(certificate, write(tmp_path / "key.pem", data(), mode))


def test_certificate_files_that_cannot_be_used_are_refused(role, tmp_path: Path):
    key = write(tmp_path / "key.pem", role.key_pem())
    with pytest.raises(InvalidKeyFile, match="cannot be read"):
        RoleKey.from_files(tmp_path / "missing.pem", key)
    with pytest.raises(InvalidKeyFile, match="no certificates"):
        RoleKey.from_files(write(tmp_path / "certificate.pem", b"nothing"), key)
    with pytest.raises(InvalidKeyFile, match="1 to 4"):
        RoleKey(LEAF.key, [])
    with pytest.raises(InvalidKeyFile, match="malformed"):
        RoleKey(LEAF.key, [b"leaf"])
    with pytest.raises(InvalidKeyFile, match="cannot be read"):
        RoleKey.from_files(tmp_path / "certificate.pem", tmp_path / "missing.key")
