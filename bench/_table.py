"""What all benchmarks share: rows, bars, the machine, a table."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDTH = 200


@dataclass(frozen=True)
class Row:
    """One line: ours, and where there is one, a named peer's."""

    name: str
    ours: float
    unit: str
    peer_name: str | None = None
    peer: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours divided by the peer's."""
        return None if self.peer is None else self.ours / self.peer

    def document(self) -> dict[str, Any]:
        """Return the fields that every benchmark of this project has."""
        fields = ("name", "ours", "peer_name", "peer", "ratio", "unit")
        return {field: getattr(self, field) for field in fields}


def machine() -> str:
    """Name the machine and how busy it is, since other programs' work is in every figure."""
    model = next((line.split(":", 1)[1].strip() for line in _cpu_lines() if "model name" in line), "")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    name = model or platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load}"


def cpu_flags() -> list[str]:
    """Return what the processor can do, where the system tells."""
    return next((line.split(":", 1)[1].split() for line in _cpu_lines() if line.startswith("flags")), [])


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


@dataclass(frozen=True)
class Taken:
    """Seconds on the clock and of all cores together."""

    wall: float
    cpu: float


def taken(action: Callable[[], object]) -> Taken:
    """Measure one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


def best(runs: int, action: Callable[[], object]) -> float:
    """Return the shortest of some runs, in seconds on the clock."""
    return min(taken(action).wall for _ in range(runs))


def show(title: str, rows: Sequence[Row], bars: dict[str, float], notes: Sequence[str]) -> None:
    """Print the table, the bars, and what was reused or left out."""
    console = Console() if Console().is_terminal else Console(width=_WIDTH)
    console.print(machine(), highlight=False)
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("what", "ours", "unit", "bar", "peer", "peer's", "ratio"):
        right = column in ("ours", "peer's", "ratio")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        bar = bars.get(row.name)
        kept = "" if bar is None else f"{bar:g} {'kept' if row.ours <= bar else 'MISSED'}"
        peer = "" if row.peer is None else f"{row.peer:,.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        table.add_row(row.name, f"{row.ours:,.4g}", row.unit, kept, row.peer_name or "", peer, ratio)
    console.print(table)
    for name in bars.keys() - {row.name for row in rows}:
        console.print(f"– Not measured, so its bar of {bars[name]:g} is open: {name}", highlight=False)
    for text in notes:
        console.print(f"– {text}", highlight=False, soft_wrap=True)


def report(
    title: str, rows: Sequence[Row], bars: dict[str, float], notes: Sequence[str], *, as_json: bool
) -> None:
    """Print the list for programs, or the table for people."""
    if as_json:
        print(json.dumps([row.document() for row in rows], indent=1))
        print("\n".join([machine(), *notes]), file=sys.stderr)
    else:
        show(title, rows, bars, notes)
