"""The HTTP interface of a node, under ``/v1``, and the page that shows its board.

No endpoint answers a question about one leaf, one tag or one client: whoever needs a part of the board
fetches whole blocks, or all leaves and records (``api_outline``), and computes it. Answers carry fixed
headers only; nothing about who asks is kept.
"""

from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anofel.errors import AnofelError
from anofel.node import api_blobs, api_blocks, api_operator, api_outline
from anofel.node.api_problems import on_bug, on_error, on_http_exception
from anofel.node.board_service import BoardService
from anofel.node.lanes import Lanes
from anofel.node.own_page import OwnPage
from anofel.page.routes import ROUTES as PAGE_ROUTES

READ_BY_PAGES: Final = ("/v1/status", "/v1/genesis", "/v1/keys/", "/v1/blocks", "/v1/blobs/")
"""What the verifier page reads, wherever it was opened: plain GETs of what everybody may have."""


class ReadableByPages:
    """Lets pages of other origins read what a check of the board needs (docs/verifier.md)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; only who says an origin gets the header."""
        asked = (
            scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(READ_BY_PAGES)
        )
        if not asked or "origin" not in Headers(scope=scope):
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Access-Control-Allow-Origin"] = "*"
            await send(message)

        await self._app(scope, receive, sending)


def make_app(service: BoardService) -> Starlette:
    """Return the application for a running node."""
    app = Starlette(
        routes=[
            *api_blocks.ROUTES,
            *api_outline.ROUTES,
            *api_blobs.ROUTES,
            *api_operator.ROUTES,
            *PAGE_ROUTES,
        ],
        middleware=[Middleware(ReadableByPages)],
        exception_handlers={AnofelError: on_error, HTTPException: on_http_exception, Exception: on_bug},
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.page = service, OwnPage(service)
    app.state.lanes, app.state.posting_lanes = Lanes(), Lanes()
    app.state.subscribers = set()
    return app
