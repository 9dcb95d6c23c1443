"""A certifier over HTTP, for clients that it invited (``docs/certifier.md``).

``POST /v1/nonces``: an invitation; the answer is a nonce document.
``POST /v1/certificates``: a request and the data that it is about; the answer is a certificate document.

The body of the second is that of ``certificate_files.frame``. The file is deleted when it was judged.
Subjects never travel: the token says who asks.
"""

import asyncio
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.board.node.api_problems import BadRequest, on_bug, on_http_exception, problem
from anofel.board.node.api_requests import body_chunks, declared_length
from anofel.board.node.serve import Tls, quiet
from anofel.errors import AnofelError
from anofel.roles.certificate_files import (
    MAX_BYTES,
    MAX_DATA_BYTES,
    InvitationDocument,
    RequestDocument,
    take_apart,
)
from anofel.roles.certifier import Certifier
from anofel.roles.certifier_log import CertificationRefused
from anofel.transport import JSON

MAX_CONNECTIONS: Final = 32


def make_app(certifier: Certifier) -> Starlette:
    """Return the application of a certifier."""
    app = Starlette(
        routes=[
            Route("/v1/nonces", _nonce, methods=["POST"]),
            Route("/v1/certificates", _certificate, methods=["POST"]),
        ],
        exception_handlers={AnofelError: _on_error, HTTPException: on_http_exception, Exception: on_bug},
    )
    app.router.redirect_slashes = False
    app.state.certifier = certifier
    app.state.one_at_a_time = asyncio.Lock()
    return app


async def _nonce(request: Request) -> Response:
    body = b"".join([chunk async for chunk in body_chunks(request, declared_length(request, MAX_BYTES))])
    certifier: Certifier = request.app.state.certifier
    invitation = InvitationDocument.from_bytes(body)
    nonce = await asyncio.to_thread(certifier.desk.answer_invitation, invitation)
    return _answer(nonce.to_bytes())


async def _certificate(request: Request) -> Response:
    certifier: Certifier = request.app.state.certifier
    one_at_a_time: asyncio.Lock = request.app.state.one_at_a_time
    async with _received(request, certifier.directory.path) as (document, data), one_at_a_time:
        certificate = await asyncio.to_thread(certifier.certify, document, data)
    return _answer(certificate.to_bytes())


@asynccontextmanager
async def _received(request: Request, directory: Path) -> AsyncIterator[tuple[RequestDocument, Path]]:
    """Take the body apart: the request into memory, the data into a file that only we can read."""
    length = declared_length(request, MAX_DATA_BYTES + 2 * MAX_BYTES)
    with tempfile.TemporaryDirectory(prefix=".shown-", dir=directory) as place:
        whole = Path(place) / "body"
        with whole.open("wb") as file:
            async for chunk in body_chunks(request, length):
                file.write(chunk)
        yield await asyncio.to_thread(take_apart, whole)


def _answer(content: bytes) -> Response:
    return Response(content, headers={"Cache-Control": "no-store"}, media_type=JSON)


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, AnofelError)
    if isinstance(error, BadRequest):
        return problem(error.status, error.code, str(error))
    return problem(403 if isinstance(error, CertificationRefused) else 422, error.code, str(error))


def serve(
    certifier: Certifier, taken: socket.socket, tls: Tls | None = None, *, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the server handles both and then raises them again here
    on_ready()
    config = quiet(make_app(certifier), tls, max_connections=MAX_CONNECTIONS)
    asyncio.run(uvicorn.Server(config).serve([taken]))
