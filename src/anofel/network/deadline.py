"""Network streams that end: every wait is cut at one moment, however slowly the other side drips.

The library's timeouts are per operation, so a peer that sends a byte now and then would hold a caller
for ever.
"""

import ssl
import time
from collections.abc import Iterable
from typing import Any, Final

import httpcore2

PIECE_BYTES: Final = 1 << 16
"""What is written between two looks at the clock."""
SLOWEST: Final = 1 << 14
"""A peer that is hurried has to move so many bytes a second."""


class DeadlineBackend(httpcore2.NetworkBackend):
    """Connections for one message. :meth:`close` closes them all, also those that a failed handshake left."""

    def __init__(self, deadline: float, silence: float, *, hurry: float | None = None) -> None:
        """``hurry``: seconds that the peer has beside those in which it moves ``SLOWEST`` bytes each."""
        self._deadline, self._silence = deadline, silence
        self._cut = None if hurry is None else time.monotonic() + hurry
        self._backend = httpcore2.SyncBackend()
        self._streams: list[httpcore2.NetworkStream] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect before the deadline."""
        patience = self.patience(httpcore2.ConnectTimeout, timeout)
        stream = self._backend.connect_tcp(host, port, patience, local_address, socket_options)
        return self._watch(stream)

    def close(self) -> None:
        """Close every connection."""
        for stream in self._streams:
            stream.close()

    def patience(self, late: type[Exception], timeout: float | None = None) -> float:
        """Return how long the next operation may take. Raises ``late`` when the time is over."""
        end = self._deadline if self._cut is None else min(self._deadline, self._cut)
        left = end - time.monotonic()
        if left <= 0:
            raise late("the time is over")
        return min(left, self._silence, self._silence if timeout is None else timeout)

    def moved(self, number: int) -> None:
        """Note that so many bytes came or went."""
        if self._cut is not None:
            self._cut += number / SLOWEST

    def _watch(self, stream: httpcore2.NetworkStream) -> "DeadlineStream":
        self._streams.append(stream)
        return DeadlineStream(stream, self)


class DeadlineStream(httpcore2.NetworkStream):
    """A stream whose operations all end by the backend's deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, backend: DeadlineBackend) -> None:
        self._stream, self._backend = stream, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes."""
        data = self._stream.read(max_bytes, self._backend.patience(httpcore2.ReadTimeout, timeout))
        self._backend.moved(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes."""
        for start in range(0, len(buffer), PIECE_BYTES):
            patience = self._backend.patience(httpcore2.WriteTimeout, timeout)
            piece = buffer[start : start + PIECE_BYTES]
            self._stream.write(piece, patience)
            self._backend.moved(len(piece))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Speak TLS from here on."""
        patience = self._backend.patience(httpcore2.ConnectTimeout, timeout)
        return self._backend._watch(self._stream.start_tls(ssl_context, server_hostname, patience))

    def get_extra_info(self, info: str) -> Any:
        """Pass the library's questions on."""
        return self._stream.get_extra_info(info)
