"""Serves the page of a board to this machine alone."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.errors import PeerUnreachable
from anofel.ids import BlobHash
from anofel.page.routes import ROUTES
from anofel.page.source import PageSource
from anofel.serving.problems import PROBLEM, problem_content
from anofel.serving.server import GuardedServer

MAX_CONNECTIONS: Final = 64


class LookedAt(PageSource, Protocol):
    """A board to look at."""

    def blob(self, sha256: BlobHash) -> bytes:
        """Return a blob."""
        ...

    def start(self) -> None:
        """Begin to follow it, if it goes on."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


async def get_blob(request: Request) -> Response:
    """Return a blob, such as a model."""
    source: LookedAt = request.app.state.page
    name = request.path_params["sha256"]
    try:
        data = await run_in_threadpool(source.blob, BlobHash(bytes.fromhex(name)))
    except (ValueError, AttachmentMissing, DamagedBlob, PeerUnreachable):
        content = problem_content(404, "blob-unknown", "This blob is not here, or cannot be fetched now.")
        return Response(content, 404, media_type=PROBLEM)
    return Response(data, media_type="application/octet-stream")


def make_app(source: LookedAt) -> Starlette:
    """Return the application."""
    app = Starlette(routes=[*ROUTES, Route("/v1/blobs/{sha256}", get_blob, methods=["GET"])])
    app.state.page = source
    return app


def serve(source: LookedAt, taken: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    server = GuardedServer(make_app(source), max_connections=MAX_CONNECTIONS, on_ready=on_ready)

    async def run() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, server.stop)
        await server.serve([taken])

    source.start()
    try:
        asyncio.run(run())
    finally:
        source.close()
