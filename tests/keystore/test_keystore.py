import hashlib
import json
import os
import pickle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.disk import keystore as ks
from anofel.disk.files import DiskFailed
from anofel.errors import InvalidInput

SECRET = b"\x00\xffmaster key of nobody\x01"


@pytest.fixture
def key_file(tmp_path: Path) -> ks.KeyFile:
    return ks.KeyFile.generate(tmp_path / "unlock.key")


@pytest.fixture
def store(tmp_path: Path, key_file: ks.KeyFile) -> ks.Keystore:
    store = ks.Keystore.create(tmp_path / "client.keys", key_file, role="client")
    store["msk"] = SECRET
    store.save()
    return store


def _with_checksum(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def test_secrets_come_back(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    again = ks.Keystore.open(store.path, key_file, role="client")
    assert again["msk"].reveal() == SECRET
    assert list(again) == ["msk"]


def test_passphrase_opens_and_a_wrong_one_is_named_so(tmp_path: Path) -> None:
    path = tmp_path / "member.keys"
    ks.Keystore.create(path, ks.Passphrase("correct horse"), role="aggregator")
    assert len(ks.Keystore.open(path, ks.Passphrase("correct horse"), role="aggregator")) == 0
    with pytest.raises(ks.WrongPassphrase):
        ks.Keystore.open(path, ks.Passphrase("correct mule"), role="aggregator")


def test_wrong_key_file_is_named_so(store: ks.Keystore, tmp_path: Path) -> None:
    other = ks.KeyFile.generate(tmp_path / "other.key")
    with pytest.raises(ks.WrongKeyFile):
        ks.Keystore.open(store.path, other, role="client")


def test_the_other_kind_of_key_is_refused(store: ks.Keystore) -> None:
    with pytest.raises(ks.WrongPassphrase, match="key file"):
        ks.Keystore.open(store.path, ks.Passphrase("correct horse"), role="client")


def test_every_changed_byte_is_corruption_never_a_wrong_key(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    data = store.path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        store.path.write_bytes(changed)
        with pytest.raises(ks.CorruptKeystore):
            ks.Keystore.open(store.path, key_file, role="client")


def test_what_could_not_be_opened_again_is_not_written(
    store: ks.Keystore, key_file: ks.KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store.path.read_bytes()
    monkeypatch.setattr(ks, "MAX_FILE_BYTES", len(before) + 100)
    store["a little"] = bytes(10)
    store.save()
    kept = store.path.read_bytes()
    store["too much"] = bytes(1000)
    with pytest.raises(ks.KeystoreError, match="would be larger"):
        store.save()
    assert store.path.read_bytes() == kept
    assert ks.Keystore.open(store.path, key_file, role="client")["msk"].reveal() == SECRET


@pytest.mark.parametrize("keep", [0, 7, 60, 120])
def test_a_cut_file_is_corrupt(store: ks.Keystore, key_file: ks.KeyFile, keep: int) -> None:
    store.path.write_bytes(store.path.read_bytes()[:keep])
    with pytest.raises(ks.CorruptKeystore):
        ks.Keystore.open(store.path, key_file, role="client")


def test_tampering_under_a_recomputed_checksum_fails_authentication(
    store: ks.Keystore, key_file: ks.KeyFile
) -> None:
    body = bytearray(store.path.read_bytes()[: -ks.CHECKSUM_BYTES])
    body[-1] ^= 1
    store.path.write_bytes(_with_checksum(bytes(body)))
    with pytest.raises(ks.CorruptKeystore, match="authentication"):
        ks.Keystore.open(store.path, key_file, role="client")


@pytest.mark.parametrize(("offset", "value"), [(8, 9), (9, 7), (10, 63)])
def test_header_that_asks_for_too_much_is_refused(
    store: ks.Keystore, key_file: ks.KeyFile, offset: int, value: int
) -> None:
    body = bytearray(store.path.read_bytes()[: -ks.CHECKSUM_BYTES])
    body[offset] = value
    store.path.write_bytes(_with_checksum(bytes(body)))
    with pytest.raises(ks.CorruptKeystore, match="header"):
        ks.Keystore.open(store.path, key_file, role="client")


def test_scrypt_cost_of_zero_is_refused(store: ks.Keystore) -> None:
    body = bytearray(store.path.read_bytes()[: -ks.CHECKSUM_BYTES])
    body[9] = ks.KDF_SCRYPT
    store.path.write_bytes(_with_checksum(bytes(body)))
    with pytest.raises(ks.CorruptKeystore, match="header"):
        ks.Keystore.open(store.path, ks.Passphrase("correct horse"), role="client")


def test_another_roles_store_is_refused(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    with pytest.raises(ks.WrongRole, match="client"):
        ks.Keystore.open(store.path, key_file, role="owner")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_files_open_to_others_are_refused(store: ks.Keystore, key_file: ks.KeyFile, mode: int) -> None:
    store.path.chmod(mode)
    with pytest.raises(ks.UnsafePermissions):
        ks.Keystore.open(store.path, key_file, role="client")


def test_a_key_file_open_to_others_is_refused(key_file: ks.KeyFile) -> None:
    key_file.path.chmod(0o644)
    with pytest.raises(ks.UnsafePermissions):
        ks.KeyFile(key_file.path)


def test_files_are_owner_only_and_nothing_is_left_beside_them(
    store: ks.Keystore, key_file: ks.KeyFile
) -> None:
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert key_file.path.stat().st_mode & 0o777 == 0o600
    assert {p.name for p in store.path.parent.iterdir()} == {"unlock.key", "client.keys"}


def test_a_crash_before_the_rename_keeps_the_old_file(
    store: ks.Keystore, key_file: ks.KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise OSError(5, "Input/output error")

    store["new"] = b"x"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", crash)
        with pytest.raises(DiskFailed, match="cannot be written"):
            store.save()
    assert list(ks.Keystore.open(store.path, key_file, role="client")) == ["msk"]
    assert len(list(store.path.parent.iterdir())) == 2


def test_existing_files_are_not_overwritten(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    with pytest.raises(ks.KeystoreExists):
        ks.Keystore.create(store.path, key_file, role="client")
    with pytest.raises(ks.KeystoreExists):
        ks.KeyFile.generate(key_file.path)


def test_missing_files_and_names_are_named(store: ks.Keystore, key_file: ks.KeyFile, tmp_path: Path) -> None:
    with pytest.raises(ks.KeystoreNotFound):
        ks.Keystore.open(tmp_path / "nothing", key_file, role="client")
    with pytest.raises(ks.MissingSecret, match="no secret named 'other'"):
        store["other"]
    with pytest.raises(ks.MissingSecret):
        del store["other"]
    del store["msk"]
    assert len(store) == 0


def test_a_key_file_of_the_wrong_length_is_corrupt(key_file: ks.KeyFile) -> None:
    key_file.path.write_bytes(b"short")
    with pytest.raises(ks.CorruptKeystore):
        ks.KeyFile(key_file.path)


def test_nothing_secret_is_printed_or_pickled(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    phrase = ks.Passphrase("correct horse")
    shown = repr(store) + repr(store["msk"]) + repr(phrase) + repr(key_file)
    assert "nobody" not in shown
    assert "horse" not in shown
    assert shown.count("<redacted>") == 4
    for secret in (store, store["msk"]):
        with pytest.raises(TypeError):
            pickle.dumps(secret)


def test_the_file_does_not_contain_the_secret(store: ks.Keystore) -> None:
    assert SECRET not in store.path.read_bytes()


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(InvalidInput):
        ks.Passphrase("short")


def test_a_passphrase_is_read_from_an_owner_only_file(tmp_path: Path) -> None:
    path = tmp_path / "phrase"
    path.write_text("correct horse\nsecond line\n")
    path.chmod(0o600)
    assert ks.Passphrase.read(path)._text == ks.Passphrase("correct horse")._text
    path.chmod(0o644)
    with pytest.raises(ks.UnsafePermissions):
        ks.Passphrase.read(path)


def test_asking_twice_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["correct horse", "correct mule"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(answers))
    with pytest.raises(InvalidInput, match="differ"):
        ks.Passphrase.ask(confirm=True)


def test_format_is_what_the_documentation_says(store: ks.Keystore, key_file: ks.KeyFile) -> None:
    """Reads the file with nothing but the description in docs/keystore.md."""
    data = store.path.read_bytes()
    header, sealed, checksum = data[:55], data[55:-32], data[-32:]
    assert header[:11] == b"ANOFELKS\x01\x02\x00"
    assert hashlib.sha256(data[:-32]).digest() == checksum
    key = HKDF(SHA256(), 64, header[11:27], b"anofel/1/keystore/key-file").derive(key_file.path.read_bytes())
    plain = ChaCha20Poly1305(key[:32]).decrypt(header[43:55], sealed, header)
    assert json.loads(plain)["role"] == "client"


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(max_size=20), st.binary(max_size=200), max_size=6))
def test_any_names_and_bytes_survive(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, bytes]
) -> None:
    directory = tmp_path_factory.mktemp("store")
    key = ks.KeyFile.generate(directory / "k")
    store = ks.Keystore.create(directory / "s", key, role="owner")
    for name, value in entries.items():
        store[name] = value
    store.save()
    opened = ks.Keystore.open(directory / "s", key, role="owner")
    assert {name: value.reveal() for name, value in opened.items()} == entries
