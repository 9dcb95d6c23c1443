"""The drop of a ceremony over HTTP.

``GET /v1/ceremony``: what there is. ``GET /v1/files/{name}``: a file of the newest state.
``POST /v1/turns``: a ticket for the queue, signed where the drop has roots.
``GET /v1/turns/{ticket}``: one's place; ask while you wait.
``PUT /v1/turns/{ticket}/{name}``: hand a file in. ``POST /v1/turns/{ticket}``: that was all; take it.
"""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.network.transport import OCTETS
from anofel.node.api_problems import BadRequest
from anofel.roles.ceremony.drop import MAX_RECEIPT, Drop, DropRefused
from anofel.roles.private_service import document, private_app, serve_app, whole_body
from anofel.serving.listening import Tls

MAX_CONNECTIONS: Final = 64


def make_app(drop: Drop) -> Starlette:
    """Return the application of a drop."""
    app = private_app(
        [
            Route("/v1/ceremony", _describe, methods=["GET"]),
            Route("/v1/files/{name}", _file, methods=["GET"]),
            Route("/v1/turns", _join, methods=["POST"]),
            Route("/v1/turns/{ticket}", _place, methods=["GET"]),
            Route("/v1/turns/{ticket}", _take, methods=["POST"]),
            Route("/v1/turns/{ticket}/{name}", _hand_in, methods=["PUT"]),
        ],
        DropRefused,
    )
    app.state.drop = drop
    return app


def _drop(request: Request) -> Drop:
    drop: Drop = request.app.state.drop
    return drop


async def _describe(request: Request) -> Response:
    return document(_drop(request).describe())


async def _file(request: Request) -> Response:
    data = _drop(request).state.files.get(request.path_params["name"])
    if data is None:
        raise BadRequest(404, "not-found", "The ceremony has no such file.")
    return Response(data, headers={"Cache-Control": "no-store"}, media_type=OCTETS)


async def _join(request: Request) -> Response:
    signed = await whole_body(request, MAX_RECEIPT)
    return document(json.dumps({"ticket": _drop(request).join(signed)}).encode())


async def _place(request: Request) -> Response:
    before, left = _drop(request).place(request.path_params["ticket"])
    return document(json.dumps({"before": before, "seconds": int(left)}).encode())


async def _hand_in(request: Request) -> Response:
    drop, ticket, name = _drop(request), request.path_params["ticket"], request.path_params["name"]
    data = await whole_body(request, drop.room_for(ticket, name))
    drop.hand_in(ticket, name, data)
    return document(b"{}")


async def _take(request: Request) -> Response:
    await whole_body(request, 0)
    one_at_a_time: asyncio.Lock = request.app.state.one_at_a_time
    async with one_at_a_time:
        number = await asyncio.to_thread(_drop(request).take, request.path_params["ticket"])
    return document(json.dumps({"number": number}).encode())


def serve(drop: Drop, taken: socket.socket, tls: Tls | None = None, *, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    serve_app(make_app(drop), taken, tls, max_connections=MAX_CONNECTIONS, on_ready=on_ready)
