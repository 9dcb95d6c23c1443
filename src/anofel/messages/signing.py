"""What is hashed and signed begins with what it is for and with the board it is for."""

from anofel.errors import InvalidInput
from anofel.ids import GenesisHash


def on_board(prefix: bytes, genesis: GenesisHash, *parts: bytes) -> bytes:
    """The prefix, the genesis hash and the parts, one after the other.

    Of several parts all but the last have a fixed length, so no two inputs give the same bytes.
    """
    return b"".join((prefix, digest("the genesis hash", genesis), *parts))


def digest(what: str, value: bytes) -> bytes:
    """The value, if it has the 32 bytes of a digest."""
    if len(value) != 32:
        raise InvalidInput(f"{what} has {len(value)} bytes instead of 32")
    return value
