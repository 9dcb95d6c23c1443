"""Vectors of big integers in fixed width, little-endian: one encoding per value."""

from collections.abc import Iterable

from anofel import framing
from anofel.framing import Malformed

__all__ = ["IntegerReader", "Malformed", "decode", "encode", "width"]


def width(bits: int) -> int:
    """Return the bytes that ``bits`` bits take."""
    return (bits + 7) // 8


def encode(values: Iterable[int], size: int) -> bytes:
    """Concatenate non-negative integers, ``size`` bytes each."""
    return b"".join(int(value).to_bytes(size, "little") for value in values)


def decode(data: bytes, size: int, count: int, below: int) -> list[int]:
    """Read exactly ``count`` integers in [0, below). Raises ``Malformed``."""
    if len(data) != size * count:
        raise Malformed(f"{count} integers of {size} bytes take {size * count} bytes, not {len(data)}.")
    values = [int.from_bytes(data[i : i + size], "little") for i in range(0, size * count, size)]
    for index, value in enumerate(values):
        if value >= below:
            raise Malformed(f"Integer {index} is not reduced.")
    return values


class IntegerReader(framing.Reader):
    """A reader that also takes vectors of big integers; every failure is ``Malformed``."""

    def raw(self, length: int) -> bytes:
        """Take ``length`` bytes."""
        try:
            return super().raw(length)
        except ValueError as error:
            raise Malformed(f"The message is too short: {error}.") from None

    def integers(self, size: int, count: int, below: int) -> list[int]:
        """Take ``count`` integers in [0, below)."""
        return decode(self.raw(size * count), size, count, below)

    def end(self) -> None:
        """Refuse bytes that are left over."""
        try:
            super().end()
        except ValueError as error:
            raise Malformed(f"The message is too long: {error}.") from None
