"""Fixed-width big-endian integers: one encoding per value."""

from collections.abc import Iterable

from anofel.errors import InvalidInput


class Malformed(InvalidInput):
    """Bytes that are not the canonical encoding of what they should be."""

    code = "malformed"


def width(bits: int) -> int:
    """Return the bytes that ``bits`` bits take."""
    return (bits + 7) // 8


def encode(values: Iterable[int], size: int) -> bytes:
    """Concatenate non-negative integers, ``size`` bytes each."""
    return b"".join(int(value).to_bytes(size, "big") for value in values)


def decode(data: bytes | memoryview, size: int, count: int, below: int) -> list[int]:
    """Read exactly ``count`` integers in [0, below)."""
    if len(data) != size * count:
        raise Malformed(f"{count} integers of {size} bytes take {size * count} bytes, not {len(data)}.")
    values = [int.from_bytes(data[i : i + size], "big") for i in range(0, size * count, size)]
    for index, value in enumerate(values):
        if value >= below:
            raise Malformed(f"Integer {index} is not reduced.")
    return values


class Reader:
    """Reads a message field by field; what is left over is an error."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, length: int) -> bytes:
        """Return the next ``length`` bytes."""
        if length < 0 or self._at + length > len(self._data):
            raise Malformed("The message is too short.")
        chunk = self._data[self._at : self._at + length]
        self._at += length
        return bytes(chunk)

    def integer(self, size: int) -> int:
        """Return the next unsigned integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "big")

    def block(self) -> bytes:
        """Return the next byte string, which carries its length in four bytes."""
        return self.take(self.integer(4))

    def integers(self, size: int, count: int, below: int) -> list[int]:
        """Return ``count`` integers in [0, below)."""
        return decode(self.take(size * count), size, count, below)

    def end(self) -> None:
        """Refuse trailing bytes."""
        if self._at != len(self._data):
            raise Malformed("The message has trailing bytes.")


def block(data: bytes) -> bytes:
    """Prefix a byte string with its length in four bytes."""
    return len(data).to_bytes(4, "big") + data
