"""Readers of a real server: slow ones who may stay, with and without TLS."""

import asyncio
import contextlib
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.serving import connections as rules
from anofel.serving.listening import Tls, listen
from anofel.serving.server import GuardedServer
from anofel.serving.wire import Wire, bound_send_buffer
from tests.node.certificate import write_tls_files

GET = b"GET / HTTP/1.1\r\nHost: board\r\n\r\n"


@contextmanager
def serving(app: Starlette, tls: Tls | None = None) -> Iterator[int]:
    """Serve on a thread of its own; give the port."""
    ready, taken = threading.Event(), listen("127.0.0.1", 0)
    server = GuardedServer(app, tls, max_connections=256, on_ready=ready.set)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    port = taken.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([taken])))
    thread.start()
    try:
        assert ready.wait(600)
        yield port
    finally:
        server.stop()
        thread.join()


def connected(port: int, tls: Tls | None = None, receive_bytes: int = 32 << 10) -> socket.socket:
    raw = socket.socket()
    raw.settimeout(600)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.connect(("127.0.0.1", port))
    if tls is None:
        return raw
    context = ssl.create_default_context(cafile=str(tls.certificate))
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


@pytest.mark.parametrize("with_tls", [False, True])
def test_a_slow_reader_above_the_least_rate_gets_its_whole_answer(
    with_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times are shorter than the real ones, the rate is far above the least."""
    monkeypatch.setattr(rules, "HEAD_SECONDS", 2.0)
    monkeypatch.setattr(rules, "GRACE_SECONDS", 2.0)
    size, seconds = 12 << 20, 6.0
    tls = Tls(*write_tls_files(tmp_path)) if with_tls else None

    async def large(_request: Request) -> Response:
        return Response(bytes(size))

    with serving(Starlette(routes=[Route("/", large)]), tls) as port, connected(port, tls) as reader:
        reader.sendall(GET)
        received, begun = 0, time.monotonic()
        while received < size:
            piece = reader.recv(64 << 10)
            assert piece, f"cut after {received} bytes"
            received += len(piece)
            time.sleep(max(0.0, begun + received / size * seconds - time.monotonic()))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Only Linux says what its queue holds.")
def test_what_lies_in_the_kernel_is_not_read() -> None:
    async def play() -> list[int]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            peer = connected(server.getsockname()[1], receive_bytes=4096)
            accepted, _ = server.accept()
            bound_send_buffer(accepted)
            accepted.setblocking(False)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                asyncio.Protocol, accepted
            )
            wire = Wire(transport)
            wire.write(bytes(60 << 10))
            found = [transport.get_write_buffer_size(), wire.unread()]
            with peer:
                left = 60 << 10
                while left:
                    left -= len(await asyncio.to_thread(peer.recv, left))
                end = time.monotonic() + 600
                while wire.unread() and time.monotonic() < end:
                    await asyncio.sleep(0.01)
            found += [wire.unread(), wire.acknowledged()]
            transport.abort()
            return found

    buffered, unread, left, acknowledged = asyncio.run(play())
    assert buffered == 0, "asyncio alone would say that all is read"
    assert unread > 30 << 10
    assert (left, acknowledged) == (0, 60 << 10)


@pytest.mark.parametrize("with_tls", [False, True])
def test_a_request_waits_until_the_answer_before_it_is_read(with_tls: bool, tmp_path: Path) -> None:
    """Somebody asks for much, over and over, and reads nothing: one answer is made."""
    tls = Tls(*write_tls_files(tmp_path)) if with_tls else None
    size, asked = 8 << 20, [0]

    async def large(_request: Request) -> Response:
        asked[0] += 1
        return Response(bytes(size))

    with serving(Starlette(routes=[Route("/", large)]), tls) as port, connected(port, tls) as reader:
        reader.sendall(4 * GET)
        assert reader.recv(1)
        time.sleep(2)
        assert asked[0] == 1
        received = 0
        while received < 4 * size:
            piece = reader.recv(1 << 20)
            assert piece, f"cut after {received} bytes"
            received += len(piece)
        assert asked[0] == 4


def test_a_tls_connection_that_is_gone_has_nothing_unread() -> None:
    """asyncio's transport forgets its protocol then; the answer that ends next must not fail on it."""

    class Gone:
        _ssl_protocol = None

        def set_write_buffer_limits(self, _high: int) -> None: ...

        def get_extra_info(self, _name: str) -> None: ...

        def get_write_buffer_size(self) -> int:
            raise AttributeError("'NoneType' object has no attribute '_get_write_buffer_size'")

    assert Wire(Gone()).unread() == 0  # type: ignore[arg-type]
