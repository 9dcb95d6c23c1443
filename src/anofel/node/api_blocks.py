"""Postings, genesis, keys, headers and blocks over HTTP."""

from contextlib import nullcontext
from typing import Final

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from anofel.board.rules import MAX_POSTING_BYTES
from anofel.node.api_problems import BadRequest
from anofel.node.api_requests import (
    OCTETS,
    VOLATILE,
    body_chunks,
    declared_length,
    height_in_path,
    immutable,
    number,
    service_of,
)
from anofel.node.lanes import Lanes
from anofel.serving.connections import group_of

MAX_BLOCKS: Final = 1000
MAX_ANSWER_BYTES: Final = 4 << 20
"""A bulk answer ends before it is longer, but holds at least one block."""
SMALL_POSTING_BYTES: Final = 64 << 10
MAX_HEIGHT: Final = (1 << 53) - 1
"""Exact in every JSON reader."""


async def post_posting(request: Request) -> Response:
    """Offer a posting; the same bytes get the same answer again."""
    length = declared_length(request, MAX_POSTING_BYTES)
    lanes: Lanes = request.app.state.posting_lanes
    # Small ones are as many as connections; large ones would take too much memory.
    group = group_of(request.client)
    with nullcontext() if length <= SMALL_POSTING_BYTES else lanes.place(length, group) as pace:
        data = b"".join([chunk async for chunk in body_chunks(request, length, pace)])
    accepted = await service_of(request).post(data)
    content = {"id": accepted.posting_id.hex(), "height": accepted.height}
    return JSONResponse(content, 200 if accepted.again else 202, {"Cache-Control": VOLATILE})


async def get_genesis(request: Request) -> Response:
    """Return the canonical bytes of genesis."""
    genesis = service_of(request).node.genesis
    return immutable(request, genesis.hash.hex(), genesis.to_bytes())


async def get_key(request: Request) -> Response:
    """Return a verification key or a proving key whose id genesis pins."""
    files = service_of(request).node.files
    name = request.path_params["name"]
    if name not in files.keys:
        raise BadRequest(404, "not-found", f"The keys are {', '.join(files.keys)}.")
    return immutable(request, files.key_ids[name].hex(), files.keys[name])


async def get_headers(request: Request) -> Response:
    """Return framed blocks without their postings: headers, and the signatures under them."""
    return await _bulk(request, with_postings=False)


async def get_blocks(request: Request) -> Response:
    """Return framed blocks."""
    return await _bulk(request, with_postings=True)


async def _bulk(request: Request, *, with_postings: bool) -> Response:
    first = number(request, "from", None, 1, MAX_HEIGHT)
    limit = number(request, "limit", 100, 1, MAX_BLOCKS)
    service = service_of(request)
    limit = min(limit, service.tip.height + 1 - first)  # no block before the status knows it
    read = service.reader.block if with_postings else service.reader.signed_header
    pieces = service.reader.framed(first, limit, MAX_ANSWER_BYTES, read=read)
    return StreamingResponse(
        iterate_in_threadpool(pieces), headers={"Cache-Control": VOLATILE}, media_type=OCTETS
    )


async def get_block(request: Request) -> Response:
    """Return the canonical bytes of one block."""
    height, service = height_in_path(request), service_of(request)
    block = await run_in_threadpool(service.reader.block, height) if height <= service.tip.height else None
    if block is None:
        raise BadRequest(404, "block-unknown", "There is no such block yet.")
    return immutable(request, block.header.hash(service.node.genesis.hash).hex(), block.to_bytes())


ROUTES: Final = [
    Route("/v1/postings", post_posting, methods=["POST"]),
    Route("/v1/genesis", get_genesis, methods=["GET"]),
    Route("/v1/keys/{name}", get_key, methods=["GET"]),
    Route("/v1/headers", get_headers, methods=["GET"]),
    Route("/v1/blocks", get_blocks, methods=["GET"]),
    Route("/v1/blocks/{height}", get_block, methods=["GET"]),
]
