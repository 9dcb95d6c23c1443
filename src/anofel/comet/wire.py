"""The protobuf wire format, as far as ABCI 2.0 and CometBFT's hashes need it.

By hand, since nothing maintained speaks ABCI 2.0, and canonical votes need exact bytes: fields in order,
without those that are zero.
"""

import struct
from collections.abc import Iterator
from typing import Final

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK: Final = (1 << 64) - 1
_MAX_SHIFT: Final = 63


class MalformedWire(ValueError):
    """Bytes that are no protobuf message."""


def uvarint(value: int) -> bytes:
    """Write a number; a negative one as 64 bits."""
    value &= _MASK
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """Return a number and the place after it. Raises ``IndexError`` if the bytes end too early."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise MalformedWire("a number has more than 64 bits")


def number(field: int, value: int) -> bytes:
    """Write a number; zero is left out."""
    return uvarint(field << 3 | VARINT) + uvarint(value) if value else b""


def octets(field: int, value: bytes) -> bytes:
    """Write bytes; none are left out."""
    return message(field, value) if value else b""


def text(field: int, value: str) -> bytes:
    """Write a text; an empty one is left out."""
    return octets(field, value.encode())


def message(field: int, value: bytes) -> bytes:
    """Write a message, or one entry of a list of bytes: it stands there even if it is empty."""
    return uvarint(field << 3 | BYTES) + uvarint(len(value)) + value


def sfixed64(field: int, value: int) -> bytes:
    """Write a number in eight bytes; zero is left out."""
    return uvarint(field << 3 | FIXED64) + struct.pack("<q", value) if value else b""


def timestamp(seconds: int, nanos: int) -> bytes:
    """Write a moment."""
    return number(1, seconds) + number(2, nanos)


class Fields:
    """The fields of a message; of a repeated one that should stand once the last counts."""

    def __init__(self, data: bytes) -> None:
        """Read a message. Raises ``MalformedWire``."""
        self._found: dict[int, list[int | bytes]] = {}
        try:
            for field, value in _fields(memoryview(data)):
                self._found.setdefault(field, []).append(value)
        except (IndexError, struct.error):
            raise MalformedWire("a message ends too early") from None

    def number(self, field: int) -> int:
        """Return a number; 0 if it was left out."""
        value = self._last(field, 0)
        if not isinstance(value, int):
            raise MalformedWire(f"field {field} is no number")
        return value

    def signed(self, field: int) -> int:
        """Return a number that may be negative."""
        value = self.number(field)
        return value - (1 << 64) if value >> _MAX_SHIFT else value

    def octets(self, field: int) -> bytes:
        """Return bytes; none if they were left out."""
        value = self._last(field, b"")
        if not isinstance(value, bytes):
            raise MalformedWire(f"field {field} holds no bytes")
        return value

    def text(self, field: int) -> str:
        """Return a text."""
        try:
            return self.octets(field).decode()
        except UnicodeDecodeError:
            raise MalformedWire(f"field {field} is no text") from None

    def message(self, field: int) -> "Fields":
        """Return a message; an empty one if it was left out."""
        return Fields(self.octets(field))

    def every(self, field: int) -> list[bytes]:
        """Return all entries of a list of bytes or messages."""
        entries = [value for value in self._found.get(field, []) if isinstance(value, bytes)]
        if len(entries) != len(self._found.get(field, [])):
            raise MalformedWire(f"field {field} holds no bytes")
        return entries

    def timestamp(self, field: int) -> tuple[int, int]:
        """Return a moment: seconds and nanoseconds."""
        found = self.message(field)
        return found.signed(1), found.signed(2)

    def only(self) -> tuple[int, bytes]:
        """Return the one field of a message that has one, which is a message."""
        if len(self._found) != 1:
            raise MalformedWire("there is not exactly one field")
        ((field, values),) = self._found.items()
        if not isinstance(values[-1], bytes):
            raise MalformedWire(f"field {field} is no message")
        return field, values[-1]

    def _last(self, field: int, default: int | bytes) -> int | bytes:
        return self._found.get(field, [default])[-1]


def _fields(view: memoryview) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(view):
        key, at = read_uvarint(view, at)
        kind = key & 7
        value: int | bytes
        if kind == VARINT:
            value, at = read_uvarint(view, at)
        elif kind == BYTES:
            length, at = read_uvarint(view, at)
            if at + length > len(view):
                raise MalformedWire("a field ends too early")
            value, at = bytes(view[at : at + length]), at + length
        elif kind == FIXED64:
            ((value,), at) = struct.unpack_from("<Q", view, at), at + 8
        elif kind == FIXED32:
            ((value,), at) = struct.unpack_from("<I", view, at), at + 4
        else:
            raise MalformedWire(f"there is no wire type {kind}")
        yield key >> 3, value
