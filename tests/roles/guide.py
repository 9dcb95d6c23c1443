"""``docs/deployment.md`` as a script: what it says is done, machine by machine, as processes.

A machine is a directory. ``/etc/anofel`` becomes a directory in it, a script starts what its unit's
``ExecStart`` says (``tests.roles.start_unit``), and a line with an arrow copies a file.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.node.support import SECONDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deployment.md").read_text()

Change = Callable[[str, str], str]
"""What a test changes in a command of a machine: addresses, and numbers that would take days."""


@dataclass(frozen=True)
class Typed:
    """A command on some machines at once."""

    machines: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Carried:
    """A file that people carry over."""

    source: tuple[str, str]
    targets: tuple[tuple[str, str], ...]


def sections() -> Iterator[list[Typed | Carried]]:
    """The numbered sections of the page, in order."""
    for section in re.findall(r"^## \d\. .+?(?=^## |\Z)", PAGE, re.M | re.S):
        yield [
            step
            for kind, text in re.findall(r"^```(console|text)\n(.+?)^```", section, re.M | re.S)
            for line in text.replace("\\\n", " ").strip().splitlines()
            for step in [_typed(line) if kind == "console" else _carried(line)]
        ]


def _typed(line: str) -> Typed:
    machines, _, command = line.partition("$ ")
    return Typed(tuple(machines.split(", ")), " ".join(command.split()))


def _carried(line: str) -> Carried:
    source, _, target = line.partition(" -> ")
    machines, _, path = target.partition(":")
    machine, _, name = source.partition(":")
    return Carried((machine, name), tuple((entry, path) for entry in machines.split(", ")))


WAITS = 75
"""The exit code of a script that waits for files."""


@dataclass
class Guide:
    """The machines under one path; a name of the page may stand for several of them."""

    path: Path
    change: Change = lambda _machine, command: command
    inside: Callable[[str], list[str]] = lambda _machine: []
    """The words before a command that run it on a machine."""
    crowd: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    """Instead of 443."""
    programs: Path = Path(sys.executable).parent
    """Where ``anofel`` is."""
    services: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """Commands that go on: those of clients."""
    commands: int = 0
    files: int = 0
    """How many commands were typed and files carried."""
    role_commands: int = 0
    """How many commands are those of role-holders, without clients and what they ask of their certifier."""

    @property
    def role_files(self) -> int:
        """How many files were carried to machines that are in the plan."""
        return self.files - sum(len(wards) for wards in self.crowd.values())

    def machine(self, name: str) -> Path:
        made = self.path / name
        (made / "etc").mkdir(parents=True, exist_ok=True)
        return made

    def members(self, name: str) -> tuple[str, ...]:
        return self.crowd.get(name, (name,))

    def do(self, step: Typed | Carried) -> list[str]:
        """Carry out a step; returns what the commands printed."""
        if isinstance(step, Carried):
            for source in self.members(step.source[0]):
                for name, path in step.targets:
                    self.files += path != "."
                    # Every ward has an invitation of its own; everything else is the same for all.
                    targets = (source,) if name == step.source[0] else self.members(name)
                    for target in targets:
                        self._copy(self.machine(source) / step.source[1], self.machine(target) / path)
            return []
        machines = [member for name in step.machines for member in self.members(name)]
        self.commands += len(machines)
        if step.command.endswith(" --run"):
            for machine in machines:
                self.services[machine] = self._popen(machine, step.command, self.log(machine))
            return []
        running = [self._popen(machine, step.command) for machine in machines]
        return [self._finish(step.command, process) for process in running]

    def _copy(self, source: Path, target: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)

    def _popen(self, machine: str, command: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        directory = self.machine(machine)
        text = self.change(machine, command).replace("/etc/anofel", str(directory / "etc"))
        path = f"{self.programs}:{os.environ['PATH']}"
        output = log.open("ab") if log else subprocess.PIPE
        try:
            return subprocess.Popen(
                [*self.inside(machine), "sh", "-c", f"exec {text}" if log else text],
                cwd=directory,
                env={
                    **os.environ,
                    "PATH": path,
                    "PYTHONPATH": str(ROOT),
                    "OMP_NUM_THREADS": "1",
                    "ANOFEL_ETC": str(directory / "etc"),
                    "ANOFEL_START": f"{sys.executable} -m tests.roles.start_unit",
                    "UNIT_PORT": str(self.ports.get(machine, 443)),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        finally:
            if log:
                output.close()  # type: ignore[union-attr]

    def _finish(self, command: str, process: subprocess.Popen[bytes]) -> str:
        out, _ = process.communicate(timeout=SECONDS)
        allowed = (0, WAITS) if command == "sh go.sh" else (0,)
        assert process.returncode in allowed, f"{command}\n{out.decode()}"
        return out.decode()

    def again(self, machine: str) -> int:
        """Run a machine's script once more; return its exit code."""
        process = self._popen(machine, "sh go.sh")
        process.communicate(timeout=SECONDS)
        return process.returncode

    # Services

    def log(self, machine: str) -> Path:
        return self.machine(machine) / "service.log"

    def pids(self) -> dict[str, int]:
        """The processes of units, by machine."""
        return {path.parent.name: int(path.read_text()) for path in self.path.glob("*/unit.pid")}

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        while not condition():
            logs = "\n".join(path.read_text()[-600:] for path in self.path.glob("*/*.log"))
            assert time.monotonic() < end, f"Waited for {what} in vain.\n{logs}"
            time.sleep(0.1)

    def close(self) -> None:
        for process in self.services.values():
            if process.poll() is None:
                process.kill()
            process.wait(timeout=SECONDS)
        for pid in self.pids().values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
