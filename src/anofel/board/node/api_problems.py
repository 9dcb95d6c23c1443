"""Errors as answers: ``application/problem+json`` (RFC 9457) with the rule's code."""

import json
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from anofel.board.blobs.errors import (
    BlobError,
    BlobHashMismatch,
    BlobLengthMismatch,
    BlobPruned,
    BlobStoreFull,
    BlobStoreUnwritable,
    BlobTooLarge,
    BlobUnknown,
    InvalidRange,
)
from anofel.board.node.embedded import Unverifiable
from anofel.board.node.service import Busy, NodeFailed
from anofel.board.rule import Rejected
from anofel.errors import AnofelError

PROBLEM: Final = "application/problem+json"
RETRY: Final = {"Retry-After": "2"}

_RULES: Final = {"malformed-posting": 400, "posting-too-long": 413, "block-full": 503}
"""Rules with a status of their own; a posting that breaks another one is 422."""
_ERRORS: Final[dict[type[AnofelError], int]] = {
    BlobHashMismatch: 422,
    BlobLengthMismatch: 422,
    BlobPruned: 410,
    BlobUnknown: 404,
    BlobTooLarge: 413,
    BlobStoreFull: 503,
    BlobStoreUnwritable: 503,
    InvalidRange: 416,
    Busy: 503,
    NodeFailed: 503,
    Unverifiable: 503,
}
_CODES: Final = {404: "not-found", 405: "method-not-allowed"}


class BadRequest(AnofelError):
    """A request is not one that the interface describes."""

    code = "bad-request"

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


def problem(
    status: int, code: str, detail: str, *, culprit: str = "", headers: dict[str, str] | None = None
) -> Response:
    """Return an error as an answer."""
    content = {
        "type": f"urn:anofel:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if culprit:
        content["culprit"] = culprit
    extra = RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Response(
        json.dumps(content), status, {"Cache-Control": "no-store", **extra, **(headers or {})}, PROBLEM
    )


async def on_error(_request: Request, error: Exception) -> Response:
    """Answer a deliberate error."""
    assert isinstance(error, AnofelError)
    if isinstance(error, BadRequest):
        return problem(error.status, error.code, str(error))
    if isinstance(error, Rejected):
        status = _RULES.get(error.code, HTTPStatus.UNPROCESSABLE_ENTITY)
        return problem(status, error.code, str(error), culprit=error.culprit)
    status = next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), 400)
    if status == HTTPStatus.SERVICE_UNAVAILABLE and isinstance(error, BlobError):
        # The sentence may name a directory of the operator, which is nobody else's business.
        return problem(status, error.code, "The node cannot store more blobs now.")
    return problem(status, error.code, str(error))


async def on_http_exception(_request: Request, error: Exception) -> Response:
    """Answer what the router refuses."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, f"http-{error.status_code}")
    headers = dict(error.headers or {})
    return problem(error.status_code, code, f"{error.detail}.", headers=headers)


async def on_bug(_request: Request, _error: Exception) -> Response:
    """Answer an error that nobody foresaw; the log has the details, the answer has none."""
    return problem(500, "internal-error", "The node met an error that it does not know.")
