"""Payloads outside the postings: named by hash and length, with the receipts of their keepers."""

from dataclasses import dataclass

from anofel.errors import InvalidInput
from anofel.ids import BlobHash, GenesisHash
from anofel.messages.signing import digest, on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(View):
    """A storage holder's word that it keeps a blob."""

    holder: int
    """The holder's place."""
    expires: int
    """The time until which it keeps the blob."""
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob(View):
    """A payload by hash and exact length, and who keeps it."""

    sha256: BlobHash
    length: int
    receipts: tuple[Receipt, ...]


def receipt_bytes(genesis: GenesisHash, sha256: BlobHash, length: int, expires: int) -> bytes:
    """What a storage holder signs when it gives a receipt."""
    numbers = _u64("length", length) + _u64("expiry", expires)
    return on_board(b"anofel/1/receipt", genesis, digest("the hash of the blob", sha256), numbers)


def _u64(what: str, number: int) -> bytes:
    if not 0 <= number < 2**64:
        raise InvalidInput(f"the {what} of a receipt must be from 0 to 2^64 - 1, not {number}")
    return number.to_bytes(8, "little")
