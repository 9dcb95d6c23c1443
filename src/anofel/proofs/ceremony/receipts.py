"""What a contributor keeps: the hashes of its contribution, signed with its role key if it has one.

A name in a key file is worth nothing, since nobody signs it. A receipt ties a contribution to a
certificate: ``anofel setup ceremony verify DIR --mine RECEIPT`` shows that it is still there.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Meta

from anofel.disk.files import read_small_file
from anofel.disk.sections import InvalidDocument, canonical_json, parse_json
from anofel.errors import InvalidCeremony, InvalidInput
from anofel.pki.certificates import (
    Identity,
    RoleKey,
    purpose_of_leaf,
    subject_and_name,
    verify_chain,
    verify_leaf_signature,
)

CONTEXT: Final = b"anofel/1/ceremony-receipt"
Hexadecimal = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$", description="hexadecimal digits")]


@dataclass(frozen=True, kw_only=True)
class ContributionReceipt:
    """A contribution's place and hashes, and who signed for it."""

    anofel: Literal["ceremony-receipt"] = "ceremony-receipt"
    version: Literal[1] = 1
    name: str
    number: Annotated[int, Meta(ge=1, le=1024)]
    """Which contribution it is, from 1."""
    powers: Hexadecimal
    beacon_source: str
    contributions: dict[str, str]
    """The hash of the contribution to each key."""
    chain: tuple[str, ...] = ()
    """The signer's certificates, leaf first; none if nobody signed."""
    signature: Hexadecimal = ""

    @classmethod
    def make(
        cls,
        *,
        name: str,
        number: int,
        powers: bytes,
        beacon_source: str,
        hashes: Mapping[str, bytes],
        role: RoleKey | None,
    ) -> Self:
        """Write a receipt and sign it if there is a key to sign with."""
        values: dict[str, Any] = {
            "name": name,
            "number": number,
            "powers": powers.hex(),
            "beacon_source": beacon_source,
            "contributions": {statement: made.hex() for statement, made in hashes.items()},
            "chain": tuple(der.hex() for der in role.chain) if role else (),
        }
        return cls(**values, signature=role.sign(cls(**values).signed_bytes()).hex() if role else "")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read canonical JSON. Raises ``InvalidInput``."""
        try:
            made = parse_json(data, cls, "This is not a receipt of a ceremony")
        except InvalidDocument as error:
            raise InvalidInput(str(error)) from error
        if made.to_bytes() != data:
            raise InvalidInput("The receipt is not in its canonical encoding.")
        return made

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file. Raises ``InvalidInput``."""
        return cls.from_bytes(read_small_file(path))

    def _values(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"chain": list(self.chain)}

    def to_bytes(self) -> bytes:
        """Write canonical JSON."""
        return canonical_json(self._values()) + b"\n"

    def signed_bytes(self) -> bytes:
        """Return what is signed: everything but the signature."""
        return CONTEXT + canonical_json({k: v for k, v in self._values().items() if k != "signature"})

    @property
    def is_signed(self) -> bool:
        """Whether somebody signed it."""
        return bool(self.chain)

    @property
    def signer(self) -> str:
        """The name in the signer's certificate; without roots nothing vouches for it."""
        return subject_and_name(bytes.fromhex(self.chain[0]))[1] if self.chain else ""

    def verify(self, hashes: Sequence[Mapping[str, bytes]]) -> None:
        """Check that the contribution is among these and that the signature fits.

        Raises ``InvalidCeremony``, ``InvalidSignature``.
        """
        found = hashes[self.number - 1] if self.number <= len(hashes) else {}
        if {name: made.hex() for name, made in found.items()} != self.contributions:
            raise InvalidCeremony(
                f"The receipt of {self.name!r} is for a contribution {self.number} that is not in here."
            )
        if self.chain:
            leaf = bytes.fromhex(self.chain[0])
            verify_leaf_signature(leaf, self.signed_bytes(), bytes.fromhex(self.signature))
        elif self.signature:
            raise InvalidCeremony(f"The receipt of {self.name!r} has a signature and no certificate.")

    def verify_signer(self, roots: Sequence[bytes], *, at: int | None = None) -> Identity:
        """Check that the signer's certificate leads to one of these roots, today unless a time is given.

        Raises ``AnofelError``.
        """
        if not self.chain:
            raise InvalidCeremony(f"Nobody signed the receipt of {self.name!r}.")
        chain = [bytes.fromhex(der) for der in self.chain]
        return verify_chain(chain, roots, purpose_of_leaf(chain[0]), int(time.time()) if at is None else at)

    def expect_signer(self, certificate: bytes) -> None:
        """Check that it was signed with the key of this certificate (DER). Raises ``InvalidCeremony``."""
        subject = subject_and_name(bytes.fromhex(self.chain[0]))[0] if self.chain else None
        if subject != subject_and_name(certificate)[0]:
            raise InvalidCeremony(f"The receipt of {self.name!r} was signed by another key than yours.")
