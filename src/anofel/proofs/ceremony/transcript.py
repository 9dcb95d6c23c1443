"""A ceremony as a directory of files, and everything that must be true of it.

``ceremony.json`` names what was agreed before anybody contributed; ``powers.ptau`` are the powers of tau;
``STATEMENT.first.zkey`` is a statement's key before and ``STATEMENT.zkey`` after the contributions so
far; ``NNNN.receipt.json`` are receipts. Nothing in ``ceremony.json`` is believed: it says what to check.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from anofel._core import ceremony as _core
from anofel.disk.files import write_new_directory
from anofel.disk.sections import InvalidDocument, canonical_json, parse_json
from anofel.errors import InvalidCeremony, InvalidInput
from anofel.proofs.ceremony.receipts import ContributionReceipt
from anofel.proofs.keys import STATEMENTS, StatementName

PUBLIC_POWERS: Final = bytes.fromhex(
    "58efc8bf2834d04768a3d7ffcd8e1e23d461561729beaac4e3e7a47829a1c906"
    "6d5320241e124a1a8e8aa6c75be0ba66f65bc8239a0542ed38e11276f6fdb4d9"
)
"""The BLAKE2b-512 of the final file of power 13 of the perpetual powers of tau, as snarkjs publishes it."""
PUBLIC_POWERS_PEOPLE: Final = 54
MIN_PEOPLE: Final = 2
AGREEMENT: Final = "ceremony.json"
POWERS: Final = "powers.ptau"
MAX_FILE: Final = 1 << 30
RECEIPT_NAME: Final = re.compile(r"[0-9]{4}\.receipt\.json")

OnCeremony = Callable[[int, int, str], None]


def no_progress(_done: int, _total: int, _what: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class CeremonyAgreement:
    """What was agreed before anybody contributed, and the beacon once there is one."""

    anofel: Literal["ceremony"] = "ceremony"
    version: Literal[1] = 1
    statements: tuple[StatementName, ...]
    powers: Annotated[str, Meta(pattern="^[0-9a-f]{128}$", description="128 hexadecimal digits")]
    beacon_source: Annotated[str, Meta(max_length=200)] = ""
    beacon: Annotated[str, Meta(pattern="^([0-9a-f]{2}){0,255}$", description="hexadecimal digits")] = ""

    def to_bytes(self) -> bytes:
        """Write canonical JSON."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return canonical_json(values | {"statements": list(self.statements)}) + b"\n"


@dataclass(frozen=True, kw_only=True)
class CeremonyTranscript:
    """A ceremony of which everything so far was verified. Made by :meth:`open` alone."""

    agreement: CeremonyAgreement
    files: dict[str, bytes]
    """Everything that stands in its directory."""
    firsts: tuple[_core.FirstKey, ...]
    keys: tuple[_core.CeremonyKey, ...]
    receipts: tuple[ContributionReceipt, ...]

    @classmethod
    def open(
        cls, path: Path, *, other_powers: bytes | None = None, on_progress: OnCeremony = no_progress
    ) -> Self:
        """Read a directory and verify it. Raises ``InvalidCeremony``, ``InvalidInput``."""
        return cls.of_files(read_directory(path), other_powers=other_powers, on_progress=on_progress)

    @classmethod
    def of_files(
        cls,
        files: dict[str, bytes],
        *,
        other_powers: bytes | None = None,
        on_progress: OnCeremony = no_progress,
    ) -> Self:
        """Verify a ceremony, whether it has ended or not.

        1. The powers of tau are the public ones, or those that the caller names.
        2. They are powers of one tau.
        3. Every first key follows from them and from its statement.
        4. Every key follows from its first key by the contributions in its log.
        5. The keys are not tied to each other.
        6. Every receipt belongs to a contribution, and its signature fits.
        7. There is no other file: the names come from strangers, and the files are written under them.
        """
        agreement = read_agreement(files)
        check_names(files)  # (7)
        data = _file(files, POWERS)
        total = 2 + 2 * len(agreement.statements)
        on_progress(0, total, "Reading the powers of tau")
        digest = check_powers(data, other_powers)  # (1)
        if digest.hex() != agreement.powers:
            raise InvalidCeremony(f"{POWERS} is not the file that {AGREEMENT} names.")
        powers = _core.Powers.from_bytes(data)  # (2)
        firsts, keys = [], []
        for place, name in enumerate(agreement.statements):
            on_progress(1 + 2 * place, total, f"Checking the first {name} key")
            with _about(name):
                firsts.append(
                    _core.FirstKey.from_bytes(name, powers, _file(files, f"{name}.first.zkey"))
                )  # (3)
                on_progress(2 + 2 * place, total, f"Checking the contributions to the {name} key")
                keys.append(firsts[-1].verify(_file(files, f"{name}.zkey")))  # (4)
        _core.verify_together(keys)  # (5)
        made = cls(
            agreement=agreement,
            files=files,
            firsts=tuple(firsts),
            keys=tuple(keys),
            receipts=_receipts(files),
        )
        for receipt in made.receipts:
            receipt.verify(made.hashes)  # (6)
        on_progress(total, total, "Done")
        return made

    @property
    def powers_digest(self) -> bytes:
        """The BLAKE2b-512 of the powers of tau."""
        return bytes.fromhex(self.agreement.powers)

    @property
    def hashes(self) -> list[dict[str, bytes]]:
        """For each contribution, its hash in every key."""
        logs = [(key.statement, key.contributions) for key in self.keys]
        return [{name: log[i].hash for name, log in logs} for i in range(len(logs[0][1]))]

    @property
    def names(self) -> list[str]:
        """What contributors call themselves; nothing vouches for it."""
        return [printable(made.name) or "(no name)" for made in self.keys[0].contributions]

    @property
    def has_ended(self) -> bool:
        """Whether the beacon is there."""
        return any(made.is_beacon for made in self.keys[0].contributions)

    @property
    def num_people(self) -> int:
        """How many people contributed."""
        return sum(not made.is_beacon for made in self.keys[0].contributions)

    @property
    def digest(self) -> bytes:
        """One digest for the whole ceremony, which genesis pins."""
        return _core.transcript_digest(self.powers_digest, self.keys)

    def check_end(self) -> None:
        """Refuse a ceremony that has not ended with two people and its announced beacon."""
        for key in self.keys:
            key.check_end(bytes.fromhex(self.agreement.beacon))

    def contribute(
        self, name: str, *, on_progress: OnCeremony = no_progress
    ) -> tuple["CeremonyTranscript", bool]:
        """Contribute to every key with secrets of its own, which are gone afterwards.

        Returns the next state, and whether the operating system kept the secrets out of the swap file.
        """
        changed, locked = {}, True
        for place, key in enumerate(self.keys):
            on_progress(place, len(self.keys), f"Contributing to the {key.statement} key")
            made = key.contribute(name)
            changed[f"{key.statement}.zkey"] = made.data
            locked = locked and made.was_locked
        on_progress(len(self.keys), len(self.keys), "Done")
        return self._with(changed), locked

    def with_receipt(self, receipt: ContributionReceipt) -> "CeremonyTranscript":
        """Add a receipt. Raises ``InvalidCeremony`` if it does not fit."""
        receipt.verify(self.hashes)
        name = f"{receipt.number:04}.receipt.json"
        return replace(
            self, files=self.files | {name: receipt.to_bytes()}, receipts=(*self.receipts, receipt)
        )

    def take(self, changed: dict[str, bytes]) -> "CeremonyTranscript":
        """Take one contribution that was made elsewhere, with whatever tool. Raises ``InvalidCeremony``.

        1. It goes on from this state.
        2. It adds one contribution, of a person, to every key.
        """
        after = self._with(
            {f"{name}.zkey": _file(changed, f"{name}.zkey") for name in self.agreement.statements}
        )
        if after.hashes[: len(self.hashes)] != self.hashes[: len(after.hashes)]:  # (1)
            raise InvalidCeremony("The contribution does not go on from the ceremony so far.")
        added = len(after.hashes) - len(self.hashes)
        if added != 1 or after.has_ended:  # (2)
            raise InvalidCeremony(f"What was handed in adds {added} contributions; one person's is needed.")
        return after

    def end(self, beacon: bytes) -> "CeremonyTranscript":
        """End the ceremony with the announced beacon. Raises ``InvalidCeremony``."""
        if self.num_people < MIN_PEOPLE:
            raise InvalidCeremony(
                f"{self.num_people} people contributed; {MIN_PEOPLE} are needed before a ceremony ends."
            )
        changed = {f"{key.statement}.zkey": key.add_beacon(beacon) for key in self.keys}
        agreement = replace(self.agreement, beacon=beacon.hex())
        ended = replace(self._with(changed), agreement=agreement)
        ended.files[AGREEMENT] = agreement.to_bytes()
        ended.check_end()
        return ended

    def _with(self, changed: dict[str, bytes]) -> "CeremonyTranscript":
        """Take the next state of the keys, whoever made it, through the same checks."""
        keys = []
        for name, first in zip(self.agreement.statements, self.firsts, strict=True):
            with _about(name):
                keys.append(first.verify(_file(changed, f"{name}.zkey")))
        _core.verify_together(keys)
        return replace(self, files=self.files | changed, keys=tuple(keys))

    def write(self, path: Path) -> None:
        """Write a new directory. Raises ``FileExists``."""
        write_new_directory(path, dict(self.files))


def new_ceremony(
    powers: Path,
    *,
    other_powers: bytes | None = None,
    statements: Sequence[StatementName] = STATEMENTS,
    beacon_source: str = "",
    on_progress: OnCeremony = no_progress,
) -> dict[str, bytes]:
    """Make the first keys from powers of tau: the files of a ceremony to which nobody contributed yet."""
    data = read_file(powers)
    digest = check_powers(data, other_powers)
    on_progress(0, len(statements), "Reading the powers of tau")
    found = _core.Powers.from_bytes(data)
    agreement = CeremonyAgreement(
        statements=tuple(statements), powers=digest.hex(), beacon_source=beacon_source
    )
    files = {AGREEMENT: agreement.to_bytes(), POWERS: data}
    for place, name in enumerate(statements):
        on_progress(place, len(statements), f"Making the first {name} key")
        with _about(name):
            first = _core.first_key(name, found, data)
        files |= {f"{name}.first.zkey": first, f"{name}.zkey": first}
    return files


def printable(name: str) -> str:
    """Return a stranger's name with nothing in it that could confuse a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def check_powers(data: bytes, other: bytes | None) -> bytes:
    """Return the digest of powers of tau. Raises ``InvalidInput`` if nobody said that they may be used."""
    digest = hashlib.blake2b(data).digest()
    if digest in (PUBLIC_POWERS, other):
        return digest
    raise InvalidInput(
        "The powers of tau are not the public file of power 13. If you trust how this file was made, say "
        f"--other-powers-of-tau {digest.hex()}"
    )


def read_agreement(files: dict[str, bytes]) -> CeremonyAgreement:
    """Read what was agreed. Raises ``InvalidInput``."""
    data = _file(files, AGREEMENT)
    try:
        made = parse_json(data, CeremonyAgreement, f"{AGREEMENT} is not the agreement of a ceremony")
    except InvalidDocument as error:
        raise InvalidInput(str(error)) from error
    if not made.statements or list(made.statements) != [n for n in STATEMENTS if n in made.statements]:
        raise InvalidInput(f"{AGREEMENT} must name statements in the order {', '.join(STATEMENTS)}.")
    return made


def check_names(names: Iterable[str]) -> None:
    """Refuse files that no ceremony has. Raises ``InvalidInput``."""
    known = {AGREEMENT, POWERS}
    for statement in STATEMENTS:
        known |= {f"{statement}.first.zkey", f"{statement}.zkey"}
    for name in names:
        if name not in known and not RECEIPT_NAME.fullmatch(name):
            raise InvalidInput(f"There is a file named {printable(name)!r}, which no ceremony has.")


def read_directory(path: Path) -> dict[str, bytes]:
    """Read the files of a ceremony's directory; others are left alone. Raises ``InvalidInput``."""
    files = {AGREEMENT: read_file(path / AGREEMENT), POWERS: read_file(path / POWERS)}
    for name in read_agreement(files).statements:
        for file in (f"{name}.first.zkey", f"{name}.zkey"):
            files[file] = read_file(path / file)
    return files | {
        found.name: read_file(found) for found in sorted(path.glob("[0-9][0-9][0-9][0-9].receipt.json"))
    }


def read_file(path: Path) -> bytes:
    """Read a file of a ceremony. Raises ``InvalidInput``."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise InvalidInput(f"{path} is larger than {MAX_FILE} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error


def _file(files: dict[str, bytes], name: str) -> bytes:
    if name not in files:
        raise InvalidInput(f"The ceremony has no {name}.")
    return files[name]


def _receipts(files: dict[str, bytes]) -> tuple[ContributionReceipt, ...]:
    return tuple(
        ContributionReceipt.from_bytes(data)
        for name, data in sorted(files.items())
        if RECEIPT_NAME.fullmatch(name)
    )


class _about:  # noqa: N801 - reads as a word
    """Name the statement in what is refused."""

    def __init__(self, statement: str) -> None:
        self._statement = statement

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, InvalidCeremony):
            raise InvalidCeremony(f"The {self._statement} key is refused: {error}.") from error
