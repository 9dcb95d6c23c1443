"""One encrypted file for the secrets of a role.

    with_passphrase = Passphrase.ask()
    store = Keystore.create(path, with_passphrase, role="client")
    store["master-key"] = secret_bytes
    store.save()
    Keystore.open(path, with_passphrase, role="client")["master-key"].reveal()

The format and what it protects against are in ``docs/keystore.md``. A secret never travels through
command-line arguments: a passphrase is asked for or read from a file, a key file is named by its path.
"""

import base64
import binascii
import getpass
import hashlib
import hmac
import os
import secrets
import stat
import struct
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from anofel.disk.files import Secret, replace_file
from anofel.disk.portable import is_owners_alone
from anofel.disk.state_files import DamagedState, decode_state, encode_state
from anofel.errors import AnofelError, InvalidInput

MAGIC: Final = b"ANOFELKS"
VERSION: Final = 1
KDF_SCRYPT: Final = 1
KDF_KEY_FILE: Final = 2
KEY_FILE_BYTES: Final = 32
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
KEY_CHECK_BYTES: Final = 16
CHECKSUM_BYTES: Final = 32
MIN_PASSPHRASE_CHARACTERS: Final = 8
MAX_FILE_BYTES: Final = 1 << 28
"""Neither written nor read beyond this."""

SCRYPT_LOG2_N: Final = 17
"""2^17 blocks of 8 · 128 bytes: 128 MiB and about half a second per guess."""
SCRYPT_R: Final = 8
SCRYPT_P: Final = 1
MAX_SCRYPT_LOG2_N: Final = 20
"""What an opened file may ask for (1 GiB); more is refused before any memory is taken."""

_HEADER = struct.Struct(f">8sBBB{SALT_BYTES}s{KEY_CHECK_BYTES}s{NONCE_BYTES}s")


class KeystoreError(AnofelError):
    """The key store cannot be used."""

    code = "keystore"


class KeystoreNotFound(KeystoreError):
    """There is no key store (or key file) at the path."""

    code = "keystore-not-found"


class KeystoreExists(KeystoreError):
    """A file is already there, and secrets are never overwritten by a new store."""

    code = "keystore-exists"


class WrongPassphrase(KeystoreError):
    """The file is intact, but this passphrase does not open it."""

    code = "keystore-wrong-passphrase"


class WrongKeyFile(KeystoreError):
    """The file is intact, but this key file does not open it."""

    code = "keystore-wrong-key-file"


class CorruptKeystore(KeystoreError):
    """The bytes of the file were changed or cut since they were written."""

    code = "keystore-corrupt"


class UnsafePermissions(KeystoreError):
    """Somebody other than the owner may read or change the file."""

    code = "keystore-permissions"


class WrongRole(KeystoreError):
    """The store was made for another role."""

    code = "keystore-wrong-role"


class MissingSecret(KeystoreError, KeyError):
    """The store does not hold a secret of this name."""

    code = "keystore-missing-secret"

    def __str__(self) -> str:
        """Return the sentence itself; ``KeyError`` would quote it."""
        return str(self.args[0])


class SecretBytes:
    """Bytes that are not printed, pickled or compared in variable time."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = bytes(value)

    def reveal(self) -> bytes:
        """Return the bytes. The caller must not log or keep them longer than needed."""
        return self._value

    def __repr__(self) -> str:
        return "SecretBytes(<redacted>)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretBytes) and hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled; save it in a Keystore")


class Passphrase:
    """What a person remembers; stretched by scrypt."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if len(text) < MIN_PASSPHRASE_CHARACTERS:
            raise InvalidInput(f"a passphrase needs at least {MIN_PASSPHRASE_CHARACTERS} characters")
        self._text = SecretBytes(text.encode())

    @classmethod
    def ask(cls, prompt: str = "Passphrase: ", *, confirm: bool = False) -> Self:
        """Ask on the terminal without echo; with ``confirm``, twice."""
        text = getpass.getpass(prompt)
        if confirm and not hmac.compare_digest(text.encode(), getpass.getpass("Again: ").encode()):
            raise InvalidInput("the two passphrases differ")
        return cls(text)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the first line of an owner-only file."""
        return cls(_read_private(path).decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r"))

    def __repr__(self) -> str:
        return "Passphrase(<redacted>)"

    kdf: Final = KDF_SCRYPT
    wrong: Final = WrongPassphrase
    noun: Final = "passphrase"

    def derive(self, salt: bytes, log2_n: int) -> bytes:
        """Return the 64 bytes the file's keys are cut from."""
        return Scrypt(salt=salt, length=64, n=1 << log2_n, r=SCRYPT_R, p=SCRYPT_P).derive(self._text.reveal())


class KeyFile:
    """Thirty-two random bytes in an owner-only file, for machines that start unattended."""

    __slots__ = ("_key", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        data = _read_private(path)
        if len(data) != KEY_FILE_BYTES:
            raise CorruptKeystore(f"the key file {path} has {len(data)} bytes instead of {KEY_FILE_BYTES}")
        self._key = SecretBytes(data)

    @classmethod
    def generate(cls, path: Path) -> Self:
        """Make a new key file; refuses to overwrite one."""
        _refuse_existing(path)
        _write_atomically(path, secrets.token_bytes(KEY_FILE_BYTES))
        return cls(path)

    def __repr__(self) -> str:
        return f"KeyFile({str(self.path)!r}, <redacted>)"

    kdf: Final = KDF_KEY_FILE
    wrong: Final = WrongKeyFile
    noun: Final = "key file"

    def derive(self, salt: bytes, log2_n: int) -> bytes:  # noqa: ARG002 - a random key needs no stretching
        """Return the 64 bytes the file's keys are cut from."""
        return HKDF(SHA256(), 64, salt, b"anofel/1/keystore/key-file").derive(self._key.reveal())


Unlock = Passphrase | KeyFile


@dataclass(frozen=True, repr=False)
class _LockedContent:
    """What is encrypted."""

    role: str
    secrets: dict[str, str]
    """In base64, by name."""


class Keystore(MutableMapping[str, SecretBytes]):
    """A role's named secrets. Changes are written by :meth:`save`, all or none of them."""

    def __init__(self, path: Path, role: str, salt: bytes, unlock: Unlock, log2_n: int, key: bytes) -> None:
        self.path = path
        self.role = role
        self._salt, self._unlock_kdf, self._log2_n = salt, unlock.kdf, log2_n
        self._key_material = SecretBytes(key)
        self._entries: dict[str, SecretBytes] = {}

    @classmethod
    def create(cls, path: Path, unlock: Unlock, *, role: str) -> Self:
        """Make an empty store and write it; refuses to overwrite a file."""
        _refuse_existing(path)
        salt = secrets.token_bytes(SALT_BYTES)
        log2_n = SCRYPT_LOG2_N if unlock.kdf == KDF_SCRYPT else 0
        store = cls(path, role, salt, unlock, log2_n, unlock.derive(salt, log2_n))
        store.save()
        return store

    @classmethod
    def open(cls, path: Path, unlock: Unlock, *, role: str) -> Self:
        """Read a store.

        The checks, in order:

        1. the file exists and only its owner may read or write it;
        2. length, magic, version and checksum are right, else it is corrupt;
        3. it was locked with the kind of key that is offered;
        4. the key check value matches, else the passphrase or key file is wrong;
        5. the authenticated decryption succeeds, else it is corrupt;
        6. it belongs to the role.
        """
        data = _read_private(path)  # (1)
        log2_n, kdf, salt, key_check, nonce = _parse_header(path, data)  # (2)
        if kdf != unlock.kdf:  # (3)
            expected = "a passphrase" if kdf == KDF_SCRYPT else "a key file"
            raise unlock.wrong(f"{path} is locked with {expected}, not with a {unlock.noun}")
        key = unlock.derive(salt, log2_n)
        if not hmac.compare_digest(_key_check(key), key_check):  # (4)
            raise unlock.wrong(f"the {unlock.noun} does not open {path}")
        sealed = data[_HEADER.size : -CHECKSUM_BYTES]
        try:  # (5)
            plain = ChaCha20Poly1305(key[:32]).decrypt(nonce, sealed, data[: _HEADER.size])
            content = decode_state(plain, _LockedContent, str(path))
            entries = {
                name: SecretBytes(base64.b64decode(v, validate=True)) for name, v in content.secrets.items()
            }
        except (InvalidTag, DamagedState, binascii.Error) as error:
            raise CorruptKeystore(f"{path} is damaged: its contents fail authentication") from error
        if content.role != role:  # (6)
            raise WrongRole(f"{path} belongs to the role {content.role!r}, not {role!r}")
        store = cls(path, role, salt, unlock, log2_n, key)
        store._entries = entries
        return store

    def save(self) -> None:
        """Write the store: a new owner-only file replaces the old one in one step.

        Raises ``KeystoreError`` if it would be too large to be opened again; the file stays as it was.
        """
        key = self._key_material.reveal()
        nonce = secrets.token_bytes(NONCE_BYTES)
        header = _HEADER.pack(
            MAGIC, VERSION, self._unlock_kdf, self._log2_n, self._salt, _key_check(key), nonce
        )
        secret = {name: base64.b64encode(s.reveal()).decode() for name, s in sorted(self._entries.items())}
        plain = encode_state(_LockedContent(self.role, secret))
        data = header + ChaCha20Poly1305(key[:32]).encrypt(nonce, plain, header)
        if len(data) + CHECKSUM_BYTES > MAX_FILE_BYTES:
            raise KeystoreError(
                f"{self.path} would be larger than {MAX_FILE_BYTES >> 20} MiB; it stays as it was"
            )
        _write_atomically(self.path, data + hashlib.sha256(data).digest())

    def __getitem__(self, name: str) -> SecretBytes:
        try:
            return self._entries[name]
        except KeyError:
            raise MissingSecret(f"{self.path} holds no secret named {name!r}") from None

    def __setitem__(self, name: str, value: SecretBytes | bytes) -> None:
        self._entries[name] = value if isinstance(value, SecretBytes) else SecretBytes(value)

    def __delitem__(self, name: str) -> None:
        self[name]
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Keystore({str(self.path)!r}, role={self.role!r}, {len(self)} secrets <redacted>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key store is not pickled; open its file instead")


def _key_check(key: bytes) -> bytes:
    return hmac.digest(key[32:], b"anofel/1/keystore/key-check", "sha256")[:KEY_CHECK_BYTES]


def _parse_header(path: Path, data: bytes) -> tuple[int, int, bytes, bytes, bytes]:
    if len(data) < _HEADER.size + CHECKSUM_BYTES or not data.startswith(MAGIC):
        raise CorruptKeystore(f"{path} is not a complete anofel key store")
    if not hmac.compare_digest(hashlib.sha256(data[:-CHECKSUM_BYTES]).digest(), data[-CHECKSUM_BYTES:]):
        raise CorruptKeystore(f"{path} is damaged: its checksum does not match")
    _, version, kdf, log2_n, salt, key_check, nonce = _HEADER.unpack_from(data)
    if version != VERSION or kdf not in (KDF_SCRYPT, KDF_KEY_FILE) or log2_n > MAX_SCRYPT_LOG2_N:
        raise CorruptKeystore(f"{path} has a header that this version cannot read")
    if kdf == KDF_SCRYPT and log2_n < 1:
        raise CorruptKeystore(f"{path} has a header that this version cannot read")
    return log2_n, kdf, salt, key_check, nonce


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise KeystoreExists(f"{path} exists already; secrets are not overwritten")


def _read_private(path: Path) -> bytes:
    """Read a file that only its owner may access; the check is on the opened file, not on the path."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise KeystoreNotFound(f"there is no file {path}") from None
    except OSError as error:
        raise KeystoreError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePermissions(f"{path} is not a regular file")
        if not is_owners_alone(status):
            raise UnsafePermissions(f"{path} must belong to you alone (chmod 600)")
        if status.st_size > MAX_FILE_BYTES:
            raise CorruptKeystore(f"{path} is larger than any key store")
        return file.read()


def _write_atomically(path: Path, data: bytes) -> None:
    try:
        replace_file(path, Secret(data))
    except InvalidInput as error:
        raise KeystoreError(str(error)) from error
