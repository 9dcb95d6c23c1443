"""How long a wait on a board can last, in blocks and in time: every role says it in these words."""

from typing import Final

POSTED: Final = 3
"""Blocks until an accepted posting is on the board: the one under way, its own, and one to spare."""


def duration(seconds: float) -> str:
    """Write a duration as people do."""
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    whole = max(0, round(seconds))
    return "1 second" if whole == 1 else f"{whole} seconds"


def lasting(blocks: int, interval_ms: int) -> str:
    """Say how long a wait can be, in blocks and in time."""
    return f"at most {blocks} blocks, {duration(max(0, blocks) * interval_ms / 1000)}"
