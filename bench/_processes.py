"""A run of ``anofel demo`` with 16 clients as real processes: CPU and peak memory of every role (Linux)."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from _table import Row

ROLES = ("node", "certifier", "aggregator", "owner", "client")
POLL_SECONDS = 0.2
CLOCK_TICKS = 100  # USER_HZ, the same on every Linux


def measure_demo(scratch: Path, notes: list[str]) -> Iterator[Row]:
    """Run the demo and watch its processes."""
    out, errors = scratch / "demo.json", scratch / "demo.log"
    command = [sys.executable, "-m", "anofel", "demo", "--clients", "8", "--iterations", "2"]
    command += ["--dir", str(scratch / "demo"), "--json"]
    start = time.monotonic()
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
        watcher = Watcher(process.pid)
        while process.poll() is None:
            watcher.look()
            time.sleep(POLL_SECONDS)
    if process.returncode:
        last = errors.read_text().strip().splitlines()[-1:]
        notes.append(f"The run with processes failed: {' '.join(last)}")
        return
    iterations = json.loads(out.read_text())["iterations"]
    notes.append(
        f"Processes: two studies, 16 clients, {len(iterations)} iterations in all; CPU and memory are "
        f"sampled every {POLL_SECONDS} s, so the last moments of a process are missing."
    )
    yield Row("processes: whole demo, 16 clients, two studies", time.monotonic() - start, "s")
    for role in ROLES:
        yield from watcher.rows(role)


class Watcher:
    """Remembers the CPU seconds and the peak memory of every descendant of a process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.seen: dict[int, tuple[str, float, float]] = {}
        """Process → role, CPU seconds, peak in MB."""

    def look(self) -> None:
        """Look at all descendants once."""
        parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
        family = {self._root}
        for _ in range(4):  # a demo starts one process, which is forked into roles, which start nothing
            family |= {pid for pid, parent in parents.items() if parent in family}
        for pid in family - {self._root}:
            found = _measure(pid)
            if found is not None:
                self.seen[pid] = found

    def rows(self, role: str) -> Iterator[Row]:
        """Give the mean CPU and the largest peak of the processes of a role."""
        found = [(cpu, peak) for name, cpu, peak in self.seen.values() if name == role]
        if found:
            mean = sum(cpu for cpu, _ in found) / len(found)
            yield Row(f"processes: {role}, CPU of each (mean of {len(found)})", mean, "s")
            yield Row(f"processes: {role}, largest peak memory", max(peak for _, peak in found), "MB")


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return None


def _measure(pid: int) -> tuple[str, float, float] | None:
    """Return role, CPU seconds and peak memory of a role that runs; None for anything else."""
    try:
        output = Path(f"/proc/{pid}/fd/1").readlink()
        commands = output.with_suffix(".log").read_text().splitlines()
        status = Path(f"/proc/{pid}/status").read_text()
        times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    words = next((line.split() for line in reversed(commands) if line.startswith("$ ")), [])
    role = next((word for word in words if word in ROLES), None)
    if role is None or "run" not in words:
        return None
    cpu = (int(times[11]) + int(times[12])) / CLOCK_TICKS
    peak = next(
        (int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0
    )
    return role, cpu, peak
