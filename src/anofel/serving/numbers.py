"""Numbers that strangers write in paths, queries and headers."""

from typing import Final

_MOST_DIGITS: Final = 18
"""What a signed 64-bit number holds, whatever the digits are."""


def decimal(text: str) -> int | None:
    """Read a decimal number without sign or spaces; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
