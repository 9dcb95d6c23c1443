"""A node as a process: socket, TLS, signals, and one sentence when something is in the way."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from typing import Final

from anofel.errors import AnofelError
from anofel.node.api import make_app
from anofel.node.board_service import BoardService, NodeFailed
from anofel.serving.listening import Tls
from anofel.serving.server import GuardedServer

MAX_CONNECTIONS: Final = 1024

log = logging.getLogger("anofel.node")


class _Server(GuardedServer):
    """Ends streams before it waits for open connections."""

    def __init__(self, service: BoardService, tls: Tls | None, on_ready: Callable[[], None]) -> None:
        super().__init__(make_app(service), tls, max_connections=MAX_CONNECTIONS, on_ready=on_ready)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._service.close_streams()
        await super().shutdown(sockets)


def run(
    make_service: Callable[[], BoardService],
    taken: socket.socket,
    tls: Tls | None = None,
    *,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then stop in good order. Raises ``NodeFailed``."""
    try:
        asyncio.run(_run(make_service, taken, tls, on_ready))
    except AnofelError:
        raise
    except Exception as error:
        log.exception("The node met an error that it does not know.")
        raise NodeFailed(f"The node stopped: {error!r}") from None


async def _run(
    make_service: Callable[[], BoardService],
    taken: socket.socket,
    tls: Tls | None,
    on_ready: Callable[[], None],
) -> None:
    service = make_service()
    server = _Server(service, tls, on_ready)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.stop)  # while it serves, the server catches both; then they come here
    service.start()
    watch = asyncio.create_task(_stop_with(service, server))
    try:
        await server.serve([taken])
    finally:
        watch.cancel()
        await service.stop()
    if service.failed is not None:
        raise service.failed


async def _stop_with(service: BoardService, server: _Server) -> None:
    """Stop the server when the node stops by itself."""
    await service.closing.wait()
    server.stop()
