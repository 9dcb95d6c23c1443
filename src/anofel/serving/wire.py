"""What of our answers a peer has yet to acknowledge, be it in TLS, in asyncio or in the kernel."""

import array
import asyncio
import fcntl
import socket
import sys
import termios
from typing import Any, Final

SEND_BUFFER_BYTES: Final = 128 << 10
"""What the kernel keeps of an answer. It says that there is room in pieces of about a third of that."""
WRITE_BUFFER_BYTES: Final = 64 << 10
"""Above that an answer waits for its reader."""


def bound_send_buffer(accepted: socket.socket) -> None:
    """Let the kernel take little of an answer: it would take megabytes, and move them in large lumps."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


class Wire:
    """A transport that counts; otherwise it is the one that it stands for."""

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self._transport, self._written = transport, 0
        # asyncio's TLS hands all that it has to the transport below and counts only what it kept.
        below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
        self._below = below if isinstance(below, asyncio.WriteTransport) else None
        self._socket = transport.get_extra_info("socket")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._written += len(data)
        self._transport.write(data)

    def unread(self) -> int:
        """Return how many bytes the peer has not acknowledged."""
        # A TLS transport whose connection is gone forgets its protocol, and cannot be asked any more.
        if getattr(self._transport, "_ssl_protocol", self) is None:
            return 0
        below = 0 if self._below is None else self._below.get_write_buffer_size()
        return self._transport.get_write_buffer_size() + below + _in_kernel(self._socket)

    def acknowledged(self) -> int:
        """Return how many bytes it has acknowledged, but for what TLS adds."""
        return self._written - self.unread()


def _in_kernel(connected: Any) -> int:
    if not sys.platform.startswith("linux"):
        return 0
    number = array.array("i", [0])
    try:
        fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, number)
    except (AttributeError, OSError, ValueError):  # closed, or no socket at all
        return 0
    return number[0]
