"""A directory of proof keys: one proving and one verification key for each statement.

``keys.json`` names the files and pins their ids (SHA-256). A proving key is loaded only if the
file has the pinned id; whoever trusts the manifest trusts the keys, so a deployment pins the ids
in its genesis as well, and a directory whose ids a genesis pins needs no manifest.

Beside each proving key lie the tables that were made of it (``….tables``). They are a cache: the key
holds their id, so a damaged or foreign file is noticed and made anew.

How a key was made stands in the key file itself, so the id covers it; the manifest has no say. That a key
comes from a ceremony is a claim there; only who verified the ceremony's transcript and derived the same ids
from it (``anofel.proofs.ceremony``) calls it verified.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeVar, get_args

from msgspec import Meta

from anofel._core import keys as _keys
from anofel.disk.files import DiskFailed, Secret, replace_file, write_new_directory
from anofel.disk.sections import InvalidDocument, parse_json
from anofel.errors import AnofelError, InvalidInput, InvalidKeyFile
from anofel.proofs.ceremony.verified import require_verified
from anofel.proofs.statements import (
    OwnershipProver,
    OwnershipVerifier,
    RegistrationProver,
    RegistrationVerifier,
    SubmissionProver,
    SubmissionVerifier,
)

StatementName = Literal["ownership", "registration", "submission"]
STATEMENTS: tuple[StatementName, ...] = get_args(StatementName)
"""The statements, in the order in which a client meets them."""

KeyRole = Literal["proving", "verification"]
ROLES: tuple[KeyRole, ...] = get_args(KeyRole)

MANIFEST = "keys.json"
MANIFEST_FORMAT: Final = 2
INSECURE_ORIGIN = "insecure development setup"
CLAIMED_ORIGIN = "ceremony (claimed)"
VERIFIED_ORIGIN = "ceremony (verified here)"
CEREMONY = "ceremony"
"""Where a directory of keys holds the files of its ceremony."""


_AnyProver = OwnershipProver | RegistrationProver | SubmissionProver
_P = TypeVar("_P", OwnershipProver, RegistrationProver, SubmissionProver)
_PROVERS: Final[dict[StatementName, Any]] = {
    "ownership": OwnershipProver,
    "registration": RegistrationProver,
    "submission": SubmissionProver,
}


def key_file_name(name: StatementName, role: KeyRole) -> str:
    """Return how the file of a key is called."""
    return f"{name}.{role}.key"


def served_name(name: StatementName, role: KeyRole) -> str:
    """Return what a board calls a key that it hands out."""
    return name if role == "verification" else f"{name}.proving"


def pin_name(name: StatementName, role: KeyRole) -> str:
    """Return the field of genesis that pins a key."""
    return f"{name}_key" if role == "verification" else f"{name}_proving_key"


@dataclass(frozen=True)
class ProofKeyFile:
    """A key file and its pinned id."""

    path: Path
    key_id: bytes

    def read(self) -> bytes:
        """Read the file and refuse it if its id is not the pinned one."""
        data = read_key_file(self.path)
        found = hashlib.sha256(data).digest()
        if found != self.key_id:
            raise InvalidKeyFile(
                f"{self.path} is not the pinned key: its id is {found.hex()}, pinned is {self.key_id.hex()}."
            )
        return data


def read_key_file(path: Path) -> bytes:
    """Read a file; a missing or unreadable one is an ``InvalidKeyFile``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidKeyFile(f"{path} cannot be read: {error.strerror or error}.") from error


@dataclass(frozen=True)
class _Entry:
    file: str
    id: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]


@dataclass(frozen=True)
class _Pair:
    proving: _Entry
    verification: _Entry


@dataclass(frozen=True)
class _Keys:
    ownership: _Pair
    registration: _Pair
    submission: _Pair


@dataclass(frozen=True)
class _Manifest:
    format: Literal[2]
    keys: _Keys


Tell = Callable[[str], None]
"""Told in one sentence what takes long or goes wrong and is mended."""


@dataclass(frozen=True)
class KeyDirectory:
    """The keys of one set-up."""

    path: Path
    origin: str
    """How the keys were made: development, ceremony (claimed) or ceremony (verified here)."""
    transcript: bytes
    """The digest of the ceremony's transcript; zeros for a development set-up."""
    proving: dict[StatementName, ProofKeyFile]
    verification: dict[StatementName, ProofKeyFile]
    say: Tell = lambda _sentence: None

    @property
    def is_insecure(self) -> bool:
        """Whether one party made the keys and could prove anything with what it knew."""
        return self.origin == INSECURE_ORIGIN

    @property
    def is_verified(self) -> bool:
        """Whether this machine verified the ceremony that the keys come from."""
        return self.origin == VERIFIED_ORIGIN

    @classmethod
    def open(cls, path: Path, say: Tell = lambda _sentence: None) -> Self:
        """Read the manifest and the verification keys of a directory that ``anofel setup`` made.

        Raises ``InvalidKeyFile``, also for keys that were not all made in the same way.
        """
        manifest = path / MANIFEST
        try:
            content = parse_json(
                read_key_file(manifest),
                _Manifest,
                f"{manifest} is not a key manifest that this program reads",
            )
        except InvalidDocument as error:
            raise InvalidKeyFile(str(error)) from error
        files = {
            (name, role): ProofKeyFile(path / entry.file, bytes.fromhex(entry.id))
            for name in STATEMENTS
            for role in ROLES
            for entry in (getattr(getattr(content.keys, name), role),)
        }
        return cls._of(path, files, say)

    @classmethod
    def pinned(cls, path: Path, pins: Mapping[str, bytes], say: Tell = lambda _sentence: None) -> Self:
        """Open a directory by ids that are pinned elsewhere, as ``pins`` names them.

        Raises ``InvalidKeyFile``.
        """
        files = {
            (name, role): ProofKeyFile(path / key_file_name(name, role), pins[pin_name(name, role)])
            for name in STATEMENTS
            for role in ROLES
        }
        return cls._of(path, files, say)

    @classmethod
    def _of(cls, path: Path, files: dict[tuple[StatementName, KeyRole], ProofKeyFile], say: Tell) -> Self:
        proving, verification = ({name: files[name, role] for name in STATEMENTS} for role in ROLES)
        described = [_keys.describe(file.read()) for file in verification.values()]
        origins = {(found.origin, found.transcript) for found in described}
        if len(origins) != 1:
            raise InvalidKeyFile(f"The keys in {path} were not all made in the same way.")
        origin, transcript = origins.pop()
        made = cls(path, origin, transcript, proving, verification, say)
        return replace(made, origin=VERIFIED_ORIGIN) if made._was_verified() else made

    def _was_verified(self) -> bool:
        try:
            self.require_verified()
        except AnofelError:
            return False
        return not self.is_insecure

    def require_verified(self) -> None:
        """Refuse keys of a ceremony that was not verified here. Development keys have none to verify.

        Raises ``UnverifiedCeremony``, ``InvalidCeremony``.
        """
        if not self.is_insecure:
            require_verified(self.transcript, self.ids(), f"The keys in {self.path}")

    def file(self, name: StatementName, role: KeyRole) -> ProofKeyFile:
        """Return one of the files."""
        return (self.proving if role == "proving" else self.verification)[name]

    def pins(self) -> dict[str, bytes]:
        """Return the ids and the transcript as genesis pins them, by the names of its fields."""
        return self.ids() | {"transcript": self.transcript}

    def ids(self) -> dict[str, bytes]:
        """Return the ids by the names of genesis's fields."""
        return {pin_name(name, role): self.file(name, role).key_id for name in STATEMENTS for role in ROLES}

    def ownership_prover(self, *, threads: int | None = None) -> OwnershipProver:
        """Load the client's prover for its certifier."""
        return self._prover("ownership", OwnershipProver, threads)

    def registration_prover(self, *, threads: int | None = None) -> RegistrationProver:
        """Load the client's prover for its registration."""
        return self._prover("registration", RegistrationProver, threads)

    def submission_prover(self, *, threads: int | None = None) -> SubmissionProver:
        """Load the client's prover for its submissions."""
        return self._prover("submission", SubmissionProver, threads)

    def check_pairs(self) -> None:
        """Load every proving key; each belongs to its verification key. Raises ``InvalidKeyFile``."""
        for name in STATEMENTS:
            self._prover(name, _PROVERS[name], 1)

    def check_proving_keys(self) -> None:
        """Check every point of every proving key and make its tables, whatever lies beside it.

        Raises ``InvalidKeyFile``: also for a key that names tables which are not its own. Only who
        made tables knows that those of a pinned key are good; whoever gets keys from others does so once.
        """
        for name in STATEMENTS:
            prover = _PROVERS[name]
            self._keep_tables(name, self._expanded(name, prover, None))

    def _prover(self, name: StatementName, prover: type[_P], threads: int | None) -> _P:
        """Load a proving key with the tables beside it; tables that are not there or not its own are made."""
        key, path = self.proving[name], self._tables(name)
        data, why = read_key_file(key.path), "were not made yet"
        if path.exists():
            try:
                tables = read_key_file(path)
                loaded: _P = prover.from_bytes(data, key.key_id, tables=tables, threads=threads)
                return self._with_its_verification_key(name, loaded)
            except InvalidKeyFile:
                why = "are damaged or another key's"
        made = self._expanded(name, prover, threads)
        self.say(f"The tables {path} {why}; they were made from the {name} key.")
        self._keep_tables(name, made)
        return made

    def _expanded(self, name: StatementName, prover: type[_P], threads: int | None) -> _P:
        key = self.proving[name]
        made: _P = prover.from_bytes(read_key_file(key.path), key.key_id, threads=threads)
        return self._with_its_verification_key(name, made)

    def _with_its_verification_key(self, name: StatementName, prover: _P) -> _P:
        """Refuse a proving key whose proofs the pinned verification key does not check."""
        if prover.verification_key_id != self.verification[name].key_id:
            raise InvalidKeyFile(f"{self.proving[name].path} belongs to another verification key.")
        return prover

    def _keep_tables(self, name: StatementName, prover: _AnyProver) -> None:
        """Keep tables for the next start. Several processes may do it at once: all write the same bytes."""
        path, tables = self._tables(name), prover.to_tables()
        try:
            if not path.exists() or read_key_file(path) != tables:
                replace_file(path, tables)
        except (InvalidInput, DiskFailed) as error:
            self.say(f"{str(error).rstrip('.')}, so they are made anew at every start.")

    def _tables(self, name: StatementName) -> Path:
        return self.proving[name].path.with_suffix(".tables")

    def ownership_verifier(self, *, threads: int | None = None) -> OwnershipVerifier:
        """Load the certifier's verifier."""
        return OwnershipVerifier.from_bytes(self.verification["ownership"].read(), threads=threads)

    def registration_verifier(self, *, threads: int | None = None) -> RegistrationVerifier:
        """Load the board's verifier of registrations."""
        return RegistrationVerifier.from_bytes(self.verification["registration"].read(), threads=threads)

    def submission_verifier(self, *, threads: int | None = None) -> SubmissionVerifier:
        """Load the board's verifier of submissions."""
        return SubmissionVerifier.from_bytes(self.verification["submission"].read(), threads=threads)


def make_insecure_development_keys(
    path: Path, *, on_progress: Callable[[StatementName], None] = lambda _name: None
) -> KeyDirectory:
    """Make keys for development; whoever ran this could prove anything.

    The directory appears whole or not at all. Raises ``InvalidKeyFile`` if it exists already.
    """
    refuse_existing(path)
    made, tables = {}, {}
    for name in STATEMENTS:
        on_progress(name)
        files = _keys.insecure_development_key(name)
        tables[f"{name}.proving.tables"] = files.tables
        made[name] = MadeKey(files.proving, files.verification)
    return write_keys(path, made, tables)


def refuse_existing(path: Path) -> None:
    """Refuse to make keys over something. Raises ``InvalidKeyFile``."""
    if path.exists():
        raise InvalidKeyFile(f"{path} exists already; give the name of a new directory.")


class MadeKey(NamedTuple):
    """The two files of a statement's key; whoever proves needs the first, whoever checks the second."""

    proving: bytes
    verification: bytes


def write_keys(
    path: Path, made: Mapping[StatementName, MadeKey], more: Mapping[str, bytes] | None = None
) -> KeyDirectory:
    """Write proving and verification keys, and files that belong to them, into a new directory."""
    refuse_existing(path)
    manifest: dict[str, Any] = {"format": MANIFEST_FORMAT, "keys": {}}
    files: dict[str, bytes | Secret] = dict(more or {})
    for name, key in made.items():
        manifest["keys"][name] = {}
        for role, data in zip(ROLES, key, strict=True):
            file = key_file_name(name, role)
            files[file] = data
            manifest["keys"][name][role] = {"file": file, "id": hashlib.sha256(data).hexdigest()}
    files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    try:
        write_new_directory(path, files)
    except InvalidInput as error:
        raise InvalidKeyFile(str(error)) from error
    return KeyDirectory.open(path)
