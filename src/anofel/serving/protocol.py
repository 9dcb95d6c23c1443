"""HTTP/1.1 of uvicorn and h11, with what the rules for connections need to know."""

import asyncio
from typing import Any, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from anofel.serving.connections import Connection, Connections, Doing
from anofel.serving.problems import PROBLEM, problem_content
from anofel.serving.wire import Wire


class GuardedProtocol(H11Protocol):
    """Says what its connection is doing, and answers a broken request without a traceback."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        connections: Connections,
        connection: Connection,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._connections, self._connection = connections, connection
        self._held = False
        """Whether requests wait until the last answer is read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the transport; from here on closing means to drop it at once."""
        self._connection.abort = transport.abort
        self._connection.answers = wire = Wire(transport)
        super().connection_made(cast(asyncio.Transport, wire))

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._connections.remove(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._note()
        pace = self._connection.pace
        if pace is not None:
            pace.took(len(data), self.loop.time())

    def handle_events(self) -> None:
        """Begin no request while the reader of the last answer is behind; what it sends waits as well."""
        is_over = self.cycle is None or self.cycle.response_complete
        self._held = self.flow.write_paused and is_over
        if self._held:
            self.flow.pause_reading()
        else:
            super().handle_events()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        """Wait until the peer has read."""
        super().pause_writing()
        self._note()

    def resume_writing(self) -> None:
        """Go on: the peer has read."""
        super().resume_writing()
        if self._held and not self.transport.is_closing():
            self.flow.resume_reading()
            self.handle_events()
        self._note()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that asks no more, but not before it has read what it asked for."""
        if self._connection.has_unread():
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """End after the answer that is under way; what was broken by then is closed."""
        try:
            super().shutdown()
        except h11.LocalProtocolError:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. An answer that is under way is cut: it cannot be taken back."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = problem_content(400, "bad-request", msg)
            headers = [
                ("Content-Type", PROBLEM),
                ("Content-Length", str(len(content))),
                ("Connection", "close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=content),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _note(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            doing = Doing.WAITING
        elif self.cycle.more_body:
            doing = Doing.SENDING
        else:
            doing = Doing.WORKING
        self._connections.now_doing(self._connection, doing)
