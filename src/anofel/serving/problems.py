"""Errors as content: ``application/problem+json`` (RFC 9457)."""

import json
from http import HTTPStatus
from typing import Final

PROBLEM: Final = "application/problem+json"


def problem_content(status: int, code: str, detail: str, *, culprit: str = "") -> bytes:
    """Return the body of an answer that refuses."""
    content = {
        "type": f"urn:anofel:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    return json.dumps(content | ({"culprit": culprit} if culprit else {})).encode()
