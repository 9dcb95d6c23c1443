"""Small line charts as SVG, drawn here so that they show without JavaScript and without a library of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 460
HEIGHT: Final = 190
LEFT: Final = 46
RIGHT: Final = 12
TOP: Final = 10
BOTTOM: Final = 26


@dataclass(frozen=True)
class Mark:
    """A grid line or a tick with its words."""

    at: float
    words: str


@dataclass(frozen=True)
class Chart:
    """A chart, ready to be drawn: everything in the coordinates of its box."""

    title: str
    points: tuple[tuple[float, float, str], ...]
    """x, y and what to say of the point."""
    path: str
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def line_chart(
    title: str, points: Sequence[tuple[int, float]], *, steps: bool = False, whole: bool = False
) -> Chart | None:
    """Lay out values over iterations; None if there are none.

    ``steps``: a value holds until the next one, and all are above zero, where the chart begins.
    ``whole``: the values count something, from zero on.
    """
    if not points:
        return None
    first, last = points[0][0], points[-1][0]
    values = [value for _, value in points]
    low, high, step = _scale(0.0 if steps or whole else min(values), max(values), 1.0 if whole else 0.0)
    span = max(1, last - first)

    def x(iteration: float) -> float:
        if last == first:
            return (LEFT + WIDTH - RIGHT) / 2
        return LEFT + (WIDTH - RIGHT - LEFT) * (iteration - first) / span

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)

    places = [(round(x(at), 1), round(y(value), 1), f"iteration {at}: {value:.4g}") for at, value in points]
    path = f"M{places[0][0]} {places[0][1]}"
    for place in places[1:]:
        path += f" H{place[0]} V{place[1]}" if steps else f" L{place[0]} {place[1]}"
    number = round((high - low) / step)
    rows = [Mark(round(y(low + step * k), 1), f"{low + step * k:.4g}") for k in range(number + 1)]
    every = max(1, math.ceil(span / 8))
    columns = [Mark(round(x(at), 1), str(at)) for at in range(first, last + 1, every)]
    return Chart(title, tuple(places), path, tuple(rows), tuple(columns))


def _scale(low: float, high: float, least: float) -> tuple[float, float, float]:
    """Return round numbers around the values, and the step between grid lines, which is at least so large."""
    if low == high == 0:
        high = 1.0
    if high <= low:
        low, high = low - max(abs(low), 1.0) * 0.1, high + max(abs(high), 1.0) * 0.1
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if rough <= power * factor * 1.0001)
    step = max(step, least)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step
