"""Blobs over HTTP: uploads of a declared hash and length, downloads by range."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from anofel.ids import BlobHash
from anofel.messages import Blob
from anofel.node.api_problems import BadRequest, problem
from anofel.node.api_requests import (
    IMMUTABLE,
    OCTETS,
    VOLATILE,
    body_chunks,
    declared_length,
    has_it,
    service_of,
)
from anofel.node.lanes import Lanes
from anofel.serving.connections import group_of
from anofel.storage.blobs.streams import BlobReader

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_RANGE: Final = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")


async def put_blob(request: Request) -> Response:
    """Take a blob and answer with it as postings name it, receipts included, in its canonical bytes.

    With ``?keep=here`` other holders are not asked: so one holder forwards to another. A ``?ticket=`` that
    is good gets the blob a reserved place (``anofel.board.tickets``).
    """
    service, name = service_of(request), _name(request)
    node = service.node
    length = declared_length(request, node.max_blob_bytes)
    expires = service.tip.height + 1 + node.config.receipt_blocks
    lanes: Lanes = request.app.state.lanes
    with lanes.place(length, group_of(request.client)) as pace:
        ticket = request.query_params.get("ticket", "")
        ticketed = await service.honours(ticket, name, length)
        upload = await run_in_threadpool(node.blobs.begin, name, length, expires=expires, ticketed=ticketed)
        was_there = upload.present
        try:
            async for chunk in body_chunks(request, length, pace):
                await run_in_threadpool(upload.write, chunk)
            await run_in_threadpool(upload.finish)
        finally:
            await run_in_threadpool(upload.abort)
    found = Blob(sha256=name, length=length, receipts=())
    alone = request.query_params.get("keep") == "here"
    if alone:
        found = await service.own_receipt(found, expires)
    else:
        found = await service.receipts(found, expires, ticket)
    return Response(found.to_bytes(), 200 if was_there else 201, {"Cache-Control": VOLATILE}, OCTETS)


async def get_blob(request: Request) -> Response:
    """Return a blob or a range of it. The name says what the bytes are: who fetches checks."""
    name, blobs = _name(request), service_of(request).node.blobs
    length = await run_in_threadpool(blobs.length, name)
    headers = {"ETag": f'"{name.hex()}"', "Cache-Control": IMMUTABLE, "Accept-Ranges": "bytes"}
    if has_it(request, name.hex()):
        return Response(status_code=304, headers=headers)
    part = _asked_range(request, name, length)
    if part is not None and not part:
        return problem(
            416,
            "blob-range",
            "The range lies outside the blob.",
            headers={"Content-Range": f"bytes */{length}"},
        )
    span = range(length) if part is None else part
    headers["Content-Length"] = str(len(span))
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{length}"
    status = 200 if part is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=OCTETS)
    reader = await run_in_threadpool(blobs.open_range, name, span.start, span.stop)
    return StreamingResponse(_stream(reader), status, headers, OCTETS)


async def _stream(reader: BlobReader) -> AsyncIterator[bytes]:
    with reader:
        pieces: Iterator[bytes] = iter(reader)
        async for piece in iterate_in_threadpool(pieces):
            yield piece


def _asked_range(request: Request, name: bytes, length: int) -> range | None:
    """Return the one range asked for, empty if there is no such bytes; None for the whole blob."""
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    condition = request.headers.get("if-range")
    if match is None or match[1] == match[2] == "" or condition not in (None, f'"{name.hex()}"'):
        return None
    if match[1] == "":
        return range(max(0, length - int(match[2])), length)
    start, stop = int(match[1]), min(int(match[2]) + 1, length) if match[2] else length
    if match[2] and int(match[2]) < start:
        return None  # not a range at all, so it is ignored (RFC 9110 §14.1.1)
    return range(start, stop) if start < stop else range(0)


def _name(request: Request) -> BlobHash:
    name = request.path_params["sha256"]
    if not _NAME.fullmatch(name):
        raise BadRequest(400, "bad-parameter", "A blob is named by 64 lower-case hexadecimal digits.")
    return BlobHash(bytes.fromhex(name))


async def blob(request: Request) -> Response:
    """Take or give a blob; one route, so that other methods are refused with the right Allow."""
    return await (put_blob(request) if request.method == "PUT" else get_blob(request))


ROUTES: Final = [Route("/v1/blobs/{sha256}", blob, methods=["GET", "HEAD", "PUT"])]
