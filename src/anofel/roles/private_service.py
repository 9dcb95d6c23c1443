"""What a role serves by HTTP to people whom it knows: certificates, and the turns of a key ceremony."""

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.errors import AnofelError
from anofel.network.transport import JSON
from anofel.node.api_problems import BadRequest, on_bug, on_http_exception, problem
from anofel.node.api_requests import body_chunks, declared_length
from anofel.serving.listening import Tls
from anofel.serving.server import GuardedServer


def private_app(routes: Sequence[Route], refusal: type[AnofelError]) -> Starlette:
    """Return an application that answers 403 to what the role refuses, and 422 to what it cannot read."""

    async def on_error(_request: Request, error: Exception) -> Response:
        if isinstance(error, BadRequest):
            return problem(error.status, error.code, str(error))
        code = error.code if isinstance(error, AnofelError) else refusal.code
        return problem(403 if isinstance(error, refusal) else 422, code, str(error))

    handlers = {AnofelError: on_error, HTTPException: on_http_exception, Exception: on_bug}
    app = Starlette(routes=list(routes), exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.one_at_a_time = asyncio.Lock()
    return app


async def whole_body(request: Request, max_bytes: int) -> bytes:
    """Read a body that is not longer than it may be. Raises ``BadRequest``."""
    length = declared_length(request, max_bytes)
    return b"".join([chunk async for chunk in body_chunks(request, length)])


def document(content: bytes) -> Response:
    """Answer with a JSON document that nobody keeps."""
    return Response(content, headers={"Cache-Control": "no-store"}, media_type=JSON)


def serve_app(
    app: Starlette,
    taken: socket.socket,
    tls: Tls | None,
    *,
    max_connections: int,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the server handles both and then raises them again here
    server = GuardedServer(app, tls, max_connections=max_connections, on_ready=on_ready)
    asyncio.run(server.serve([taken]))
