"""How many blobs may be on their way in at a time, so that large or slow ones keep nobody else waiting.

1. Uploads of at most 1 MiB, of at most 16 MiB and larger ones each have a number of places of their own.
2. When all places of a size are taken, a new upload takes that of the slowest one that is slower than the
   least rate; if there is none, that of the slowest of the network address that has most of them, if those
   are at least two more than the newcomer's address has. Else it is told to come back.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from anofel.node.board_service import Busy
from anofel.serving.connections import FEWER, YOUNG_SECONDS, Pace

LANES: Final = ((1 << 20, 128), (16 << 20, 64), (1 << 63, 32))
"""The longest upload of each kind, and how many there may be."""


class Lanes:
    """The uploads under way, on the event loop."""

    def __init__(self) -> None:
        self._under_way: dict[int, dict[Pace, str]] = {longest: {} for longest, _ in LANES}

    @contextmanager
    def place(self, length: int, group: str) -> Iterator[Pace]:
        """Give an upload from a network address a place as long as it lasts. Raises ``Busy``."""
        longest, most = next((longest, most) for longest, most in LANES if length <= longest)
        under_way, pace = self._under_way[longest], Pace(time.monotonic())
        if len(under_way) >= most:
            candidates = [other for other in under_way if other.is_slow(pace.begun)]
            candidates = candidates or _greedy(under_way, group)
            if not candidates:
                raise Busy("Too many uploads are under way.")
            slowest = min(
                candidates,
                key=lambda other: other.received / max(pace.begun - other.begun, YOUNG_SECONDS),
            )
            del under_way[slowest]
            slowest.give_up()
        under_way[pace] = group
        try:
            yield pace
        finally:
            under_way.pop(pace, None)


def _greedy(under_way: dict[Pace, str], group: str) -> list[Pace]:
    """Return the uploads of the address that has most of them, if it has too many beside a newcomer."""
    held = Counter(under_way.values())
    ((largest, number),) = held.most_common(1)
    if number < held[group] + FEWER:
        return []
    return [pace for pace, holder in under_way.items() if holder == largest]
