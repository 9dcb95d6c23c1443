"""Who may contribute at a drop of institutions: holders of role certificates under agreed roots."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

from anofel.disk.sections import InvalidDocument, canonical_json, parse_json
from anofel.errors import AnofelError, InvalidInput
from anofel.pki.certificates import (
    Identity,
    RoleKey,
    last_second,
    purpose_of_leaf,
    verify_chain,
    verify_leaf_signature,
)
from anofel.proofs.ceremony.receipts import ContributionReceipt, Hexadecimal

CONTEXT: Final = b"anofel/1/ceremony-turn"


@dataclass(frozen=True, kw_only=True)
class PlaceRequest:
    """An institution asks for a place in the queue: its certificates, and a signature over the challenge."""

    anofel: Literal["ceremony-turn"] = "ceremony-turn"
    version: Literal[1] = 1
    challenge: Hexadecimal
    chain: tuple[Hexadecimal, ...]
    """The certificates, leaf first."""
    signature: Hexadecimal = ""

    @classmethod
    def make(cls, challenge: str, role: RoleKey) -> Self:
        """Sign the drop's challenge."""
        made = cls(challenge=challenge, chain=tuple(der.hex() for der in role.chain))
        return replace(made, signature=role.sign(made._signed_bytes()).hex())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read JSON. Raises ``InvalidInput``."""
        try:
            return parse_json(data, cls, "This is not a signed request for a place")
        except InvalidDocument as error:
            raise InvalidInput(str(error)) from error

    def to_bytes(self) -> bytes:
        """Write JSON."""
        return canonical_json(self._values() | {"signature": self.signature})

    def verify(self, roots: Sequence[bytes]) -> Identity:
        """Return who asks, under one of these roots today. Raises ``AnofelError``."""
        chain = [bytes.fromhex(der) for der in self.chain]
        if not chain:
            raise InvalidInput("The request for a place names no certificate.")
        identity = verify_chain(chain, roots, purpose_of_leaf(chain[0]), int(time.time()))
        verify_leaf_signature(chain[0], self._signed_bytes(), bytes.fromhex(self.signature))
        return identity

    def _values(self) -> dict[str, object]:
        return {
            "anofel": self.anofel,
            "version": self.version,
            "challenge": self.challenge,
            "chain": list(self.chain),
        }

    def _signed_bytes(self) -> bytes:
        return CONTEXT + canonical_json(self._values())


def institution(identity: Identity) -> str:
    """Return what counts as one institution: an organisation, or a key whose certificate names none."""
    return identity.organisation or identity.subject.hex()


def signers(receipts: Sequence[ContributionReceipt], roots: Sequence[bytes]) -> set[str]:
    """Return the institutions that signed receipts, where somebody vouched for them at the time.

    A receipt was signed before its certificates expired, so an institution that contributed is known for as
    long as the ceremony lasts.
    """
    found = set()
    for receipt in receipts:
        with suppress(AnofelError):
            found.add(institution(receipt.verify_signer(roots, at=_at_most(receipt))))
    return found


def _at_most(receipt: ContributionReceipt) -> int:
    """Return now, or the last second in which all certificates of a receipt were valid."""
    return min([int(time.time()), *map(last_second, map(bytes.fromhex, receipt.chain))])
