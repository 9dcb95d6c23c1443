"""A directory of proof keys: one proving and one verification key for each statement.

``keys.json`` names the files and pins their ids (SHA-256). A proving key is loaded only if the
file has the pinned id; whoever trusts the manifest trusts the keys, so a deployment pins the ids
of the verification keys in its genesis as well.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from anofel._core import keys as _keys
from anofel.errors import InvalidInput, InvalidKeyFile
from anofel.files import Secret, write_new_directory
from anofel.proofs import (
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

MANIFEST = "keys.json"
MANIFEST_FORMAT = 1
INSECURE_ORIGIN = "insecure development setup"


@dataclass(frozen=True)
class KeyFile:
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
class KeyDirectory:
    """The keys of one set-up."""

    path: Path
    origin: str
    proving: dict[StatementName, KeyFile]
    verification: dict[StatementName, KeyFile]

    @property
    def is_insecure(self) -> bool:
        """Whether one party made the keys and could prove anything with what it knew."""
        return self.origin == INSECURE_ORIGIN

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the manifest of a directory that ``anofel setup`` made."""
        manifest = path / MANIFEST
        try:
            content: Any = json.loads(read_key_file(manifest))
            if content["format"] != MANIFEST_FORMAT:
                raise InvalidKeyFile(
                    f"{manifest} has format {content['format']}; this program reads format {MANIFEST_FORMAT}."
                )
            origin = str(content["origin"])
            keys = {
                role: {
                    name: KeyFile(
                        path / content["keys"][name][role]["file"],
                        bytes.fromhex(content["keys"][name][role]["id"]),
                    )
                    for name in STATEMENTS
                }
                for role in ("proving", "verification")
            }
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidKeyFile):
                raise
            raise InvalidKeyFile(f"{manifest} is not a key manifest.") from error
        return cls(path=path, origin=origin, proving=keys["proving"], verification=keys["verification"])

    def ownership_prover(self, *, threads: int | None = None) -> OwnershipProver:
        """Load the client's prover for its certifier."""
        key = self.proving["ownership"]
        return OwnershipProver.from_bytes(read_key_file(key.path), key.key_id, threads=threads)

    def registration_prover(self, *, threads: int | None = None) -> RegistrationProver:
        """Load the client's prover for its registration."""
        key = self.proving["registration"]
        return RegistrationProver.from_bytes(read_key_file(key.path), key.key_id, threads=threads)

    def submission_prover(self, *, threads: int | None = None) -> SubmissionProver:
        """Load the client's prover for its submissions."""
        key = self.proving["submission"]
        return SubmissionProver.from_bytes(read_key_file(key.path), key.key_id, threads=threads)

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
    if path.exists():
        raise InvalidKeyFile(f"{path} exists already; give the name of a new directory.")
    manifest: dict[str, Any] = {"format": MANIFEST_FORMAT, "origin": INSECURE_ORIGIN, "keys": {}}
    files: dict[str, bytes | Secret] = {}
    for name in STATEMENTS:
        on_progress(name)
        proving, verification = _keys.insecure_development_key(name)
        manifest["keys"][name] = {}
        for role, data in (("proving", proving), ("verification", verification)):
            file = f"{name}.{role}.key"
            files[file] = data
            manifest["keys"][name][role] = {"file": file, "id": hashlib.sha256(data).hexdigest()}
    files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    try:
        write_new_directory(path, files)
    except InvalidInput as error:
        raise InvalidKeyFile(str(error)) from error
    return KeyDirectory.open(path)
