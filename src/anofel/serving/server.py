"""A server for strangers: uvicorn behind the rules for connections."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anofel.serving.connections import Acceptor, Connection, Connections
from anofel.serving.listening import Tls
from anofel.serving.problems import PROBLEM, problem_content
from anofel.serving.protocol import GuardedProtocol
from anofel.serving.wire import WRITE_BUFFER_BYTES

STOP_SECONDS: Final = 5
"""How long requests may take to end when the server stops."""


class GuardedServer(uvicorn.Server):
    """Serves an application; nothing about who asks is logged, and nothing about us is said in headers."""

    def __init__(
        self,
        app: ASGIApp,
        tls: Tls | None = None,
        *,
        max_connections: int,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            one_length_only(in_pieces(app)),
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            http="h11",
            access_log=False,
            log_level="error",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        super().__init__(config)
        self._connections = Connections(max_connections)
        self._on_ready = on_ready
        self._acceptors: list[Acceptor] = []

    def stop(self, *_signal: object) -> None:
        """Begin to stop."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept by our own rules instead of uvicorn's, then say that we are ready."""
        asyncio.get_running_loop().set_exception_handler(self._on_trouble)
        self.servers = []

        def make(connection: Connection) -> GuardedProtocol:
            return GuardedProtocol(
                self.config, self.server_state, self.lifespan.state, self._connections, connection
            )

        self._acceptors = [
            Acceptor(taken, self._connections, make, self.config.ssl) for taken in sockets or []
        ]
        self.started = True
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nobody any more, let requests end, and close whoever takes too long."""
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        end = time.monotonic() + STOP_SECONDS
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.05)
        self._connections.close_all()
        await super().shutdown(sockets)

    def _on_trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say what no request waits for; a connection that breaks is no news."""
        error = context.get("exception")
        if not isinstance(error, OSError):
            self._connections.trouble(f"{context['message']} {error!r}")


def in_pieces(app: ASGIApp) -> ASGIApp:
    """Hand a long answer on in pieces, each when its reader has room: none lies whole in our buffers."""

    async def sliced(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body = memoryview(message.get("body", b""))
            while len(body) > WRITE_BUFFER_BYTES:
                piece, body = bytes(body[:WRITE_BUFFER_BYTES]), body[WRITE_BUFFER_BYTES:]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({**message, "body": bytes(body)} if "body" in message else message)

        await app(scope, receive, send_pieces)

    return sliced


def one_length_only(app: ASGIApp) -> ASGIApp:
    """Refuse a request whose body has two lengths: what stands before us may believe the other one."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        names = [name for name, _ in scope.get("headers", ())]
        if names.count(b"content-length") + names.count(b"transfer-encoding") <= 1:
            await app(scope, receive, send)
            return
        content = problem_content(
            400,
            "bad-request",
            "A request states the length of its body once: by Content-Length or in chunks.",
        )
        headers = [(b"content-type", PROBLEM.encode()), (b"content-length", b"%d" % len(content))]
        headers += [(b"cache-control", b"no-store"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return guarded
