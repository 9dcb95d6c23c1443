"""The time of blocks: the wall clock, as long as it runs like a clock.

A block's time can never go back, so one wrong second would outlive every certificate.

1. While a node runs, wall clock and monotonic clock advance together; when they differ by more than 30
   seconds, the node stops before it makes another block.
2. A node starts only if its clock lies within a day of its last block, or ten intervals if that is longer;
   else its operator confirms the date.
"""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

from anofel.errors import AnofelError

MAX_JUMP_SECONDS: Final = 30
MAX_GAP_SECONDS: Final = 86_400
GAP_INTERVALS: Final = 10


class ClockJumped(AnofelError):
    """The wall clock was set while the node ran, so it is not known which time is right."""

    code = "clock-jumped"


class TimeGap(AnofelError):
    """The clock is far from the last block; the operator has to say which of them is right."""

    code = "time-gap"


class WallClock:
    """Wall time that was never set since this object was made."""

    def __init__(self) -> None:
        self._wall, self._running = time.time(), _running()

    def now(self) -> int:
        """Return the time in whole seconds. Raises ``ClockJumped`` (rule 1)."""
        wall = time.time()
        jump = (wall - self._wall) - (_running() - self._running)
        if abs(jump) > MAX_JUMP_SECONDS:
            way = "ahead" if jump > 0 else "back"
            raise ClockJumped(
                f"The clock of this machine was set {way} by {round(abs(jump))} seconds, to {_text(wall)}. "
                "Set it right and start the node again."
            )
        return int(wall)

    def check_gap(self, last: int, interval_ms: int, today: date | None) -> None:
        """Refuse to go on from a block that is far away in time. Raises ``TimeGap`` (rule 2).

        ``today`` is the date as the operator knows it; midnight may lie between saying and starting.
        """
        now = self.now()
        bound = max(MAX_GAP_SECONDS, GAP_INTERVALS * interval_ms // 1000)
        if abs(now - last) <= bound:
            return
        if today is not None and abs(datetime.fromtimestamp(now, UTC).date() - today) <= timedelta(days=1):
            return
        raise TimeGap(
            f"The last block is of {_text(last)} and the clock of this machine says {_text(now)}. "
            "If the clock is wrong, set it; if it is right, say so once: --today with the date."
        )


def _running() -> float:
    """Return seconds of a clock that nobody sets; it goes on while the machine sleeps, where there is one."""
    name = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if name is None else time.clock_gettime(name)


def _text(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"second {round(moment)}"
