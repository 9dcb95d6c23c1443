"""What clients in header mode fetch: the same for all of them, whatever their task and their place.

Nobody can ask for the path of one leaf, for one task or for one record. A posting can be asked for by its
place in a block, since such clients check some that they draw.
"""

from typing import Final

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from anofel.node.api_blocks import MAX_ANSWER_BYTES, MAX_BLOCKS, MAX_HEIGHT
from anofel.node.api_problems import BadRequest
from anofel.node.api_requests import OCTETS, VOLATILE, height_in_path, immutable, number, service_of
from anofel.serving.numbers import decimal

MAX_LEAVES: Final = 1 << 17
"""4 MiB of them."""
MAX_NUMBER: Final = (1 << 31) - 1


async def get_outline(request: Request) -> Response:
    """Return the outline of one of the last blocks."""
    height, service = number(request, "height", None, 1, MAX_HEIGHT), service_of(request)
    known = number(request, "known", 0, 0, MAX_HEIGHT)
    header = await run_in_threadpool(service.reader.header, known) if known else None
    content = await run_in_threadpool(service.node.outlines.outline, height, header)
    return Response(content, headers={"Cache-Control": VOLATILE}, media_type=OCTETS)


async def get_leaves(request: Request) -> Response:
    """Return leaves of the client tree of an epoch, from a place on."""
    epoch = number(request, "epoch", None, 0, MAX_NUMBER)
    first = number(request, "from", None, 0, MAX_NUMBER)
    limit = number(request, "limit", MAX_LEAVES, 1, MAX_LEAVES)
    content = await run_in_threadpool(service_of(request).node.outlines.leaves, epoch, first, limit)
    return Response(content, headers={"Cache-Control": VOLATILE}, media_type=OCTETS)


async def get_names(request: Request) -> Response:
    """Return framed blocks that have the names of their postings in place of the postings."""
    first = number(request, "from", None, 1, MAX_HEIGHT)
    limit = number(request, "limit", 100, 1, MAX_BLOCKS)
    service = service_of(request)
    limit = min(limit, service.tip.height + 1 - first)
    pieces = service.reader.framed(first, limit, MAX_ANSWER_BYTES, read=service.reader.named)
    return StreamingResponse(
        iterate_in_threadpool(pieces), headers={"Cache-Control": VOLATILE}, media_type=OCTETS
    )


async def get_posting(request: Request) -> Response:
    """Return the bytes of the posting at a place of a block."""
    height, service = height_in_path(request), service_of(request)
    place = decimal(request.path_params["place"])
    found = None
    if place is not None and height <= service.tip.height:
        found = await run_in_threadpool(service.reader.posting, height, place)
    if found is None:
        raise BadRequest(404, "posting-unknown", "No block has a posting at this place.")
    return immutable(request, f"{height}-{place}", found)


ROUTES: Final = [
    Route("/v1/outline", get_outline, methods=["GET"]),
    Route("/v1/leaves", get_leaves, methods=["GET"]),
    Route("/v1/names", get_names, methods=["GET"]),
    Route("/v1/blocks/{height}/postings/{place}", get_posting, methods=["GET"]),
]
