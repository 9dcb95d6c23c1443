"""The time of blocks: the wall clock, as long as it runs like a clock.

A block's time can never go back, so one wrong second would outlive every certificate.

1. While a node runs, wall clock and monotonic clock advance together; when they differ by more than 30
   seconds, the node stops before it makes another block.
2. A node starts only if its clock is at most 30 seconds behind its last block, and at most a day after it, or
   ten intervals if that is longer; else its operator confirms the date.
3. A node that starts again while the machine runs on holds the first rule from its first start on; else its
   operator confirms the date.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from anofel.disk.files import replace_file
from anofel.disk.state_files import DamagedState, decode_state, encode_state
from anofel.errors import AnofelError

MAX_JUMP_SECONDS: Final = 30
MAX_GAP_SECONDS: Final = 86_400
GAP_INTERVALS: Final = 10
CLOCKS: Final = "clocks.json"
"""How wall clock and monotonic clock stood at the first start on the machine as it runs now."""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


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

    def check_start(self, last: int, interval_ms: int, directory: Path, today: date | None) -> None:
        """Refuse to go on with a clock that may be wrong. Raises ``TimeGap`` (rules 2 and 3).

        ``today`` is the date as the operator knows it; midnight may lie between saying and starting.
        """
        now = self.now()
        bound = max(MAX_GAP_SECONDS, GAP_INTERVALS * interval_ms // 1000)
        path, boot = directory / CLOCKS, _boot()
        kept = _kept(path, boot)
        jump = 0.0 if kept is None else (self._wall - kept[0]) - (self._running - kept[1])
        is_confirmed = today is not None and abs(
            datetime.fromtimestamp(now, UTC).date() - today
        ) <= timedelta(days=1)
        if not is_confirmed:
            if not -MAX_JUMP_SECONDS <= now - last <= bound:
                raise TimeGap(
                    f"The last block is of {_text(last)} and the clock of this machine says {_text(now)}. "
                    f"{_ASKED}"
                )
            if abs(jump) > MAX_JUMP_SECONDS:
                way = "ahead" if jump > 0 else "back"
                raise TimeGap(
                    f"Since this node first started on this machine the clock was set {way} by "
                    f"{round(abs(jump))} seconds; it says {_text(now)}. {_ASKED}"
                )
        if boot and (kept is None or is_confirmed):  # else small jumps would add up from start to start
            replace_file(path, encode_state(_Clocks(boot, self._wall, self._running)))


_ASKED: Final = "If the clock is wrong, set it; if it is right, say so once: --today with the date."


def _boot() -> str:
    """Return the name of the time since the machine was switched on; empty where it has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class _Clocks:
    boot: str
    wall: float
    running: float


def _kept(path: Path, boot: str) -> tuple[float, float] | None:
    """Return both clocks as they stood then; None after a reboot, and where nothing readable is kept."""
    try:
        found = decode_state(path.read_bytes(), _Clocks, str(path))
    except (OSError, DamagedState):
        return None
    return (found.wall, found.running) if boot and found.boot == boot else None


def _running() -> float:
    """Return seconds of a clock that nobody sets; it goes on while the machine sleeps, where there is one."""
    name = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if name is None else time.clock_gettime(name)


def _text(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"second {round(moment)}"
