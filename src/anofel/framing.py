"""Binary parts that are not messages: little-endian numbers, bytes, and bytes behind a 4-byte length.

A reader that ends early or leaves bytes over raises ``Malformed``, which each caller turns into
its own error, so a value has exactly one encoding.

Processes that talk over pipes send whole messages, each behind its length in 8 bytes.
"""

from typing import IO, Final

_PIPE_LENGTH: Final = 8


class Malformed(ValueError):
    """Bytes that are not the canonical encoding of what they should be."""


class Writer:
    """Collects fields."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def number(self, value: int, length: int) -> "Writer":
        """Append a number of ``length`` bytes."""
        self._parts.append(value.to_bytes(length, "little"))
        return self

    def raw(self, value: bytes) -> "Writer":
        """Append bytes whose length the reader knows."""
        self._parts.append(value)
        return self

    def framed(self, value: bytes) -> "Writer":
        """Append bytes behind their length."""
        return self.number(len(value), 4).raw(value)

    def done(self) -> bytes:
        """Return everything appended."""
        return b"".join(self._parts)


class Reader:
    """Takes fields in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def number(self, length: int) -> int:
        """Take a number of ``length`` bytes."""
        return int.from_bytes(self.raw(length), "little")

    def raw(self, length: int) -> bytes:
        """Take ``length`` bytes."""
        end = self._at + length
        if end > len(self._data):
            raise Malformed("the bytes end too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def framed(self) -> bytes:
        """Take bytes behind their length."""
        return self.raw(self.number(4))

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != len(self._data):
            raise Malformed("there are bytes left over")


def send_message(stream: IO[bytes], message: bytes) -> None:
    """Write one message to a pipe."""
    stream.write(len(message).to_bytes(_PIPE_LENGTH, "little"))
    stream.write(message)
    stream.flush()


def receive_message(stream: IO[bytes], most: int | None = None) -> bytes:
    """Wait for one message. Raises ``Malformed`` at the end of the pipe, or if it is too long."""
    head = stream.read(_PIPE_LENGTH)
    length = int.from_bytes(head, "little")
    if len(head) != _PIPE_LENGTH or (most is not None and length > most):
        raise Malformed("no message")
    data = stream.read(length)
    if len(data) != length:
        raise Malformed("half a message")
    return data
