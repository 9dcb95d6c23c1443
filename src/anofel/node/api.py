"""The HTTP interface of a node, under ``/v1``, and the page that shows its board.

No endpoint answers a question about one leaf, one tag or one client: whoever needs a part of the board
fetches whole blocks and computes it. Answers carry fixed headers only; nothing about who asks is kept.
"""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from anofel.errors import AnofelError
from anofel.node import api_blobs, api_blocks, api_operator
from anofel.node.api_problems import on_bug, on_error, on_http_exception
from anofel.node.board_service import BoardService
from anofel.node.lanes import Lanes
from anofel.node.own_page import OwnPage
from anofel.page.routes import ROUTES as PAGE_ROUTES


def make_app(service: BoardService) -> Starlette:
    """Return the application for a running node."""
    app = Starlette(
        routes=[*api_blocks.ROUTES, *api_blobs.ROUTES, *api_operator.ROUTES, *PAGE_ROUTES],
        exception_handlers={AnofelError: on_error, HTTPException: on_http_exception, Exception: on_bug},
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.page = service, OwnPage(service)
    app.state.lanes, app.state.posting_lanes = Lanes(), Lanes()
    app.state.subscribers = set()
    return app
