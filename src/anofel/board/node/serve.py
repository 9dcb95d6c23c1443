"""A node as a process: socket, TLS, signals, and one sentence when something is in the way."""

import asyncio
import errno
import signal
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette

from anofel.board.node.api import make_app
from anofel.board.node.embedded import EmbeddedNode
from anofel.board.node.service import NodeService
from anofel.errors import AnofelError, InvalidInput

MAX_CONNECTIONS: Final = 512
GRACE_SECONDS: Final = 5
BACKLOG: Final = 256


class AddressUnavailable(AnofelError):
    """The node cannot listen where it should."""

    code = "address-unavailable"


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: the certificate chain and its key."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Refuse files that cannot be used, before anything listens. Raises ``InvalidInput``."""
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            raise InvalidInput(
                f"{self.certificate} and {self.key} are not a certificate and its key: {error.reason}."
            ) from None
        except OSError as error:
            name = self.key if self.certificate.is_file() else self.certificate
            raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None


def listen(host: str, port: int) -> socket.socket:
    """Take the address. Raises ``AddressUnavailable``."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressUnavailable(f"{host} is no address to listen on: {error.strerror or error}.") from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressUnavailable(f"Another program listens on {host}, port {port}.") from None
        reason = error.strerror or error
        raise AddressUnavailable(f"The node cannot listen on {host}, port {port}: {reason}.") from None
    taken.setblocking(False)
    return taken


def quiet(app: Starlette, tls: Tls | None, *, max_connections: int) -> uvicorn.Config:
    """Return how we serve: nothing about who asks is logged, and nothing about us is said in headers."""
    return uvicorn.Config(
        app,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=max_connections,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Says when it is ready, and ends streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, service: NodeService, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_ready = service, on_ready

    def stop(self, *_signal: object) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._service.close_streams()
        await super().shutdown(sockets)


def run(
    node: EmbeddedNode, taken: socket.socket, tls: Tls | None = None, *, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then stop in good order. Raises ``NodeFailed``."""
    asyncio.run(_run(node, taken, tls, on_ready))


async def _run(
    node: EmbeddedNode, taken: socket.socket, tls: Tls | None, on_ready: Callable[[], None]
) -> None:
    service = NodeService(node)
    config = quiet(make_app(service), tls, max_connections=MAX_CONNECTIONS)
    server = _Server(config, service, on_ready)
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


async def _stop_with(service: NodeService, server: _Server) -> None:
    """Stop the server when the node stops by itself."""
    await service.closing.wait()
    server.stop()
