"""What all endpoints share: reading bounded bodies and numbers, and answers that never change."""

import time
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from anofel.node.api_problems import BadRequest
from anofel.node.board_service import BoardService
from anofel.serving.connections import Pace
from anofel.serving.numbers import asked_number, decimal

OCTETS: Final = "application/octet-stream"
IMMUTABLE: Final = "public, max-age=31536000, immutable"
VOLATILE: Final = "no-store"


def service_of(request: Request) -> BoardService:
    """Return the running node."""
    service: BoardService = request.app.state.service
    return service


def declared_length(request: Request, most: int) -> int:
    """Return the declared length of a body, before any of it is read. Raises ``BadRequest``."""
    if request.headers.get("content-type", "") != OCTETS:
        raise BadRequest(415, "wrong-content-type", f"The body is of type {OCTETS}.")
    length = decimal(request.headers.get("content-length", ""))
    if length is None:
        raise BadRequest(411, "length-required", "The request states the exact Content-Length of its body.")
    if length > most:
        raise BadRequest(413, "body-too-large", f"The body has {length} bytes of at most {most}.")
    return length


async def body_chunks(request: Request, length: int, pace: Pace | None = None) -> AsyncIterator[bytes]:
    """Yield the body as it comes; its length is checked, and nobody is waited for too long (``Pace``)."""
    stream, pace = request.stream(), pace or Pace(time.monotonic())
    while True:
        try:
            async with pace.waiting():
                chunk = await anext(stream, None)
        except TimeoutError:
            raise BadRequest(408, "too-slow", "The body did not arrive in time.") from None
        except ClientDisconnect:
            raise BadRequest(400, "body-incomplete", "The body ended early.") from None
        if chunk is None:
            break
        pace.took(len(chunk), time.monotonic())
        if pace.received > length:
            raise BadRequest(400, "body-too-long", "The body is longer than its Content-Length.")
        if chunk:
            yield chunk
    if pace.received != length:
        raise BadRequest(400, "body-incomplete", "The body is shorter than its Content-Length.")


def number(request: Request, name: str, default: int | None, least: int, most: int) -> int:
    """Return a number of the query. Raises ``BadRequest``."""
    value = asked_number(request, name, default)
    if value is None or not least <= value <= most:
        raise BadRequest(400, "bad-parameter", f"{name} is one number from {least} to {most}.")
    return value


def height_in_path(request: Request) -> int:
    """Return a height of the path. Raises ``BadRequest``."""
    height = decimal(request.path_params["height"])
    if height is None:
        raise BadRequest(400, "bad-parameter", "A height is a decimal number.")
    return height


def immutable(request: Request, name: str, content: bytes, media_type: str = OCTETS) -> Response:
    """Answer with bytes that never change, or with 304 to who has them."""
    headers = {"ETag": f'"{name}"', "Cache-Control": IMMUTABLE}
    if has_it(request, name):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


def has_it(request: Request, name: str) -> bool:
    """Whether the client says that it has the bytes with this name (If-None-Match)."""
    asked = request.headers.get("if-none-match", "")
    return asked.strip() == "*" or any(
        tag.strip().removeprefix("W/") == f'"{name}"' for tag in asked.split(",")
    )
