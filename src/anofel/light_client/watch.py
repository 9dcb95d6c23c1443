"""What is odd about the last block, told to people; nothing is decided by it.

1. A board that stands still is named, with what is waited for and for how long.
2. A block whose time and this machine's clock differ is named, with both.

Odd is more than a minute and more than ten block intervals. It is told when it begins, and again each time
it has doubled.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from anofel.board.waits import duration

LEAST_SECONDS: Final = 60.0
INTERVALS: Final = 10
_LAST_MOMENT: Final = 253_402_300_799
"""The end of the year 9999, where a calendar ends."""


@dataclass(frozen=True)
class Trouble:
    """Something odd."""

    kind: str
    seconds: float
    sentence: str


class Watch:
    """Looks at the last block after every sync."""

    def __init__(self, interval_ms: int, tell: Callable[[str], None]) -> None:
        self._interval = interval_ms / 1000
        self._allowed = max(LEAST_SECONDS, INTERVALS * self._interval)
        self._tell = tell
        self._last_new = time.monotonic()
        self._told: Trouble | None = None
        self.trouble: Trouble | None = None
        """What is odd now."""

    def note_block(self) -> None:
        """Note that a new block came."""
        self._last_new = time.monotonic()

    def waited(self) -> float:
        """Return for how many seconds no new block came."""
        return time.monotonic() - self._last_new

    def look(self, height: int, block_time: int) -> None:
        """Look at the last block that the node handed out, and tell what is odd."""
        found = self._standstill(height) or self._clocks(height, block_time)
        self.trouble, told = found, self._told
        if found is None:
            self._told = None
        elif told is None or told.kind != found.kind or found.seconds >= 2 * told.seconds:
            self._told = found
            self._tell(found.sentence)

    def _standstill(self, height: int) -> Trouble | None:
        waited = self.waited()
        if waited <= self._allowed:
            return None
        sentence = (
            f"Waiting for block {height + 1} for {duration(waited)}, and one is due every "
            f"{self._interval:g} seconds: the board stands still, or its node withholds blocks."
        )
        return Trouble("standstill", waited, sentence)

    def _clocks(self, height: int, block_time: int) -> Trouble | None:
        now = time.time()
        apart = abs(now - block_time)
        if apart <= self._allowed:
            return None
        reason = "" if block_time > now else "the board stands still, its node withholds blocks, or "
        sentence = (
            f"Block {height} is of {_moment(block_time)} and the clock here says {_moment(now)}, "
            f"{duration(apart)} apart: {reason}one of the clocks is wrong. "
            "The board judges certificates by the time of its blocks."
        )
        return Trouble("clocks", apart, sentence)


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(min(max(0, int(seconds)), _LAST_MOMENT), UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")
