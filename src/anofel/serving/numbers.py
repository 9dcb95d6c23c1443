"""Numbers that strangers write in paths, queries and headers."""

from typing import Final

from starlette.requests import Request

_MOST_DIGITS: Final = 18
"""What a signed 64-bit number holds, whatever the digits are."""


def decimal(text: str) -> int | None:
    """Read a decimal number without sign or spaces; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def asked_number(request: Request, name: str, default: int | None = None) -> int | None:
    """Read a number of the query; the default if it is not there, None if it is no number, or several."""
    values = request.query_params.getlist(name)
    if not values:
        return default
    return decimal(values[0]) if len(values) == 1 else None
