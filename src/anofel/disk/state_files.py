"""Files that a program writes for itself: read by the types that wrote them, or refused as damaged.

What people write, and what others sign, is read by ``anofel.disk.sections``, which names every problem.
"""

from typing import Any, TypeVar

import msgspec

from anofel.errors import InvalidInput

T = TypeVar("T")


class DamagedState(InvalidInput):
    """A file of a program's own does not hold what the program writes."""

    code = "damaged-state"


def decode_state(data: bytes | str, kind: type[T], name: str) -> T:
    """Read JSON of a known shape. Raises ``DamagedState``."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedState(f"{name} is damaged: {error}.") from None


def encode_state(value: Any) -> bytes:
    """Write what ``decode_state`` reads."""
    return msgspec.json.encode(value)
