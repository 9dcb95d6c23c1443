"""For pages and operators: status, events, health, metrics, and the description of the interface."""

import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from anofel.ids import BlobHash
from anofel.node.api_blocks import MAX_HEIGHT
from anofel.node.api_openapi import document
from anofel.node.api_problems import BadRequest, problem
from anofel.node.api_requests import VOLATILE, service_of
from anofel.node.board_service import BoardService, Busy
from anofel.serving.numbers import decimal

MAX_SUBSCRIBERS: Final = 64
MAX_NAMED: Final = 8
"""Blobs in one sentence."""
HEARTBEAT_SECONDS: Final = 15.0
"""A comment is sent after so long a silence, so that lost subscribers are noticed."""


async def get_status(request: Request) -> Response:
    """Say where the board stands."""
    service = service_of(request)
    genesis, tip = service.node.genesis, service.tip
    era = service.node.state.validators.eras.at(tip.height + 1)
    content = {
        "name": genesis.name,
        "genesis": genesis.hash.hex(),
        "height": tip.height,
        "tip": tip.hash.hex(),
        "time": tip.time,
        "interval_ms": genesis.interval_ms,
        "rules": genesis.rules,
        "insecure": genesis.insecure,
        "validators": len(era.validators),
        "may_be_faulty": era.faulty,
    }
    return JSONResponse(content, headers={"Cache-Control": VOLATILE})


async def get_events(request: Request) -> Response:
    """Send one event per block, from the one after ``Last-Event-ID`` or else from now on."""
    service, subscribers = service_of(request), request.app.state.subscribers
    first = _next_event(request, service)
    if len(subscribers) >= MAX_SUBSCRIBERS:
        raise Busy("Too many subscribers listen; fetch blocks instead.")
    return _EventStream(_events(service, first), subscribers)


class _EventStream(StreamingResponse):
    """Counts as a subscriber from the moment at which it is promised, not from its first event."""

    def __init__(self, events: AsyncIterator[str], subscribers: set[object]) -> None:
        super().__init__(events, headers={"Cache-Control": VOLATILE}, media_type="text/event-stream")
        self._subscribers = subscribers
        subscribers.add(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscribers.discard(self)


def _next_event(request: Request, service: BoardService) -> int:
    last = request.headers.get("last-event-id", "")
    if not last:
        return service.tip.height + 1
    height = decimal(last)
    if height is None or height > MAX_HEIGHT:
        raise BadRequest(400, "bad-parameter", "Last-Event-ID is the height of a block.")
    return height + 1


async def _events(service: BoardService, first: int) -> AsyncIterator[str]:
    height = first
    yield ": one event per block\n\n"
    while not service.closing.is_set():
        if not await service.wait_for_block(height, HEARTBEAT_SECONDS):
            yield ":\n\n"
            continue
        block = await run_in_threadpool(service.reader.block, height)
        assert block is not None
        content = {
            "height": height,
            "time": block.header.time,
            "hash": block.header.hash(service.node.genesis.hash).hex(),
            "postings": len(block.postings),
        }
        yield f"id: {height}\nevent: block\ndata: {json.dumps(content)}\n\n"
        height += 1


async def get_health(request: Request) -> Response:
    """Fail if blocks no longer come, or if what verification needs cannot be read."""
    service = service_of(request)
    if not service.is_healthy:
        return problem(503, "no-progress", "No block was made for several intervals.")
    if service.unreadable_keys:
        names = _names(service.unreadable_keys)
        return problem(503, "committee-key-unreadable", f"Keys of committees cannot be read: {names}.")
    if service.unreadable:
        names = _names(service.unreadable)
        return problem(503, "kept-blob-unreadable", f"Blobs that are kept for ever cannot be read: {names}.")
    return JSONResponse({"status": "ok", "height": service.tip.height}, headers={"Cache-Control": VOLATILE})


def _names(blobs: set[BlobHash]) -> str:
    first = ", ".join(name.hex() for name in sorted(blobs)[:MAX_NAMED])
    return first if len(blobs) <= MAX_NAMED else f"{first} and {len(blobs) - MAX_NAMED} more"


async def get_metrics(request: Request) -> Response:
    """Return what the node counts, for Prometheus."""
    service = service_of(request)
    usage = await run_in_threadpool(service.node.blobs.usage)
    gauges = [
        ("anofel_height", "Height of the last block.", service.tip.height),
        ("anofel_block_time_seconds", "Time of the last block.", service.tip.time),
        ("anofel_blob_bytes", "Bytes of all blobs.", usage.kept),
        ("anofel_blob_unreferenced_bytes", "Bytes of blobs that no posting names.", usage.unreferenced),
        ("anofel_blob_uploading_bytes", "Bytes of uploads under way that have arrived.", usage.uploading),
    ]
    text = service.node.metrics.text(gauges)
    return Response(text, headers={"Cache-Control": VOLATILE}, media_type="text/plain; version=0.0.4")


async def get_openapi(_request: Request) -> Response:
    """Describe this interface (OpenAPI 3.1)."""
    return JSONResponse(document(), headers={"Cache-Control": VOLATILE})


ROUTES: Final = [
    Route("/v1/status", get_status, methods=["GET"]),
    Route("/v1/events", get_events, methods=["GET"]),
    Route("/v1/health", get_health, methods=["GET"]),
    Route("/metrics", get_metrics, methods=["GET"]),
    Route("/v1/openapi.json", get_openapi, methods=["GET"]),
]
