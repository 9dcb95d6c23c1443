"""For pages and operators: status, events, health, metrics, and the description of the interface."""

import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from anofel.board.node.api_blocks import MAX_HEIGHT
from anofel.board.node.api_openapi import document
from anofel.board.node.api_problems import BadRequest, problem
from anofel.board.node.api_requests import VOLATILE, service_of
from anofel.board.node.service import Busy, NodeService

MAX_SUBSCRIBERS: Final = 64
HEARTBEAT_SECONDS: Final = 15.0
"""A comment is sent after so long a silence, so that lost subscribers are noticed."""


async def get_status(request: Request) -> Response:
    """Say where the board stands."""
    service = service_of(request)
    genesis, tip = service.node.genesis, service.tip
    content = {
        "name": genesis.name,
        "genesis": genesis.hash.hex(),
        "height": tip.height,
        "tip": tip.hash.hex(),
        "time": tip.time,
        "interval_ms": genesis.interval_ms,
        "rules": genesis.rules,
        "insecure": genesis.insecure,
    }
    return JSONResponse(content, headers={"Cache-Control": VOLATILE})


async def get_events(request: Request) -> Response:
    """Send one event per block, from the one after ``Last-Event-ID`` or else from now on."""
    service, state = service_of(request), request.app.state
    first = _next_event(request, service)
    if state.subscribers >= MAX_SUBSCRIBERS:
        raise Busy("Too many subscribers listen; fetch blocks instead.")

    async def stream() -> AsyncIterator[str]:
        state.subscribers += 1
        try:
            async for event in _events(service, first):
                yield event
        finally:
            state.subscribers -= 1

    return StreamingResponse(stream(), headers={"Cache-Control": VOLATILE}, media_type="text/event-stream")


def _next_event(request: Request, service: NodeService) -> int:
    last = request.headers.get("last-event-id", "")
    if not last:
        return service.tip.height + 1
    if not last.isascii() or not last.isdigit() or len(last) > 18 or int(last) > MAX_HEIGHT:
        raise BadRequest(400, "bad-parameter", "Last-Event-ID is the height of a block.")
    return int(last) + 1


async def _events(service: NodeService, first: int) -> AsyncIterator[str]:
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
    """Fail if blocks no longer come."""
    service = service_of(request)
    if not service.is_healthy:
        return problem(503, "no-progress", "No block was made for several intervals.")
    return JSONResponse({"status": "ok", "height": service.tip.height}, headers={"Cache-Control": VOLATILE})


async def get_metrics(request: Request) -> Response:
    """Return what the node counts, for Prometheus."""
    service = service_of(request)
    usage = await run_in_threadpool(service.node.blobs.usage)
    gauges = [
        ("anofel_height", "Height of the last block.", service.tip.height),
        ("anofel_block_time_seconds", "Time of the last block.", service.tip.time),
        ("anofel_blob_bytes", "Bytes of all blobs.", usage.kept),
        ("anofel_blob_unreferenced_bytes", "Bytes of blobs that no posting names.", usage.unreferenced),
        ("anofel_blob_uploading_bytes", "Declared bytes of uploads under way.", usage.uploading),
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
