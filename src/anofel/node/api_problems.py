"""Errors as answers: ``application/problem+json`` (RFC 9457) with the rule's code."""

from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from anofel.board.rule import Rejected
from anofel.errors import AnofelError
from anofel.node.board_service import Busy, NodeFailed
from anofel.node.embedded import Unverifiable
from anofel.node.outlines import OutlineUnknown
from anofel.serving.problems import PROBLEM, problem_content
from anofel.storage.blobs.errors import (
    BlobError,
    BlobHashMismatch,
    BlobLengthMismatch,
    BlobStoreFull,
    BlobStoreUnwritable,
    BlobTooLarge,
    BlobUnknown,
    InvalidRange,
)
from anofel.storage.blocks import StoreError

RETRY: Final = {"Retry-After": "2"}

_RULES: Final = {"malformed-posting": 400, "posting-too-long": 413, "block-full": 503}
"""Rules with a status of their own; a posting that breaks another one is 422."""
_ERRORS: Final[dict[type[AnofelError], int]] = {
    BlobHashMismatch: 422,
    BlobLengthMismatch: 422,
    BlobUnknown: 404,
    BlobTooLarge: 413,
    BlobStoreFull: 503,
    BlobStoreUnwritable: 503,
    InvalidRange: 416,
    Busy: 503,
    NodeFailed: 503,
    OutlineUnknown: 404,
    StoreError: 503,
    Unverifiable: 503,
}
_PRIVATE: Final[dict[type[AnofelError], str]] = {
    BlobError: "The node cannot store more blobs now.",
    NodeFailed: "The node stopped; its operator knows why.",
    StoreError: "The node cannot read its board now.",
}
"""Their own sentences may name a directory of the operator, which is nobody else's business."""
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
    content = problem_content(status, code, detail, culprit=culprit)
    extra = RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Response(content, status, {"Cache-Control": "no-store", **extra, **(headers or {})}, PROBLEM)


async def on_error(_request: Request, error: Exception) -> Response:
    """Answer a deliberate error."""
    assert isinstance(error, AnofelError)
    if isinstance(error, BadRequest):
        return problem(error.status, error.code, str(error))
    if isinstance(error, Rejected):
        status = _RULES.get(error.code, HTTPStatus.UNPROCESSABLE_ENTITY)
        return problem(status, error.code, str(error), culprit=error.culprit)
    status = next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), 400)
    for kind, sentence in _PRIVATE.items():
        if status == HTTPStatus.SERVICE_UNAVAILABLE and isinstance(error, kind):
            return problem(status, error.code, sentence)
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
