"""Processes of the demo: each with a log, one thread for arithmetic, and an end no later than ours."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from anofel.errors import AnofelError

ONE_THREAD: Final = {
    f"{library}_NUM_THREADS": "1" for library in ("RAYON", "OMP", "OPENBLAS", "MKL", "NUMEXPR")
}
STOP_SECONDS: Final = 15.0
"""How long a process may take to stop in good order."""
TAIL_LINES: Final = 8
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""``PR_SET_PDEATHSIG`` of Linux."""


class RoleDied(AnofelError):
    """A process ended that should not have; names it and shows the end of its log."""

    code = "role-died"


class Interrupt:
    """SIGINT and SIGTERM as ``KeyboardInterrupt``, but not while a process is being started.

    Python drops an exception that a signal raises in the middle of a fork, and a process that is started
    but not yet in our list would not be stopped.
    """

    def __init__(self) -> None:
        self._is_held = self._came = False

    def catch(self) -> None:
        """Take the two signals from now on; in the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep what comes meanwhile until the end."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if self._came:
                raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        self._came = True
        if not self._is_held:
            raise KeyboardInterrupt


class Process:
    """One command as a process; what it prints and what it says go to files of their own."""

    def __init__(self, name: str, command: list[str], logs: Path) -> None:
        self.name, self.command = name, command
        self.output, self.log = logs / f"{name}.out", logs / f"{name}.log"
        self.may_end = False
        """Whether its end is no surprise."""
        self.was_killed = False
        with self.output.open("wb") as output, self.log.open("ab") as log:
            self._process = _start(command, output, log)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def document(self) -> dict[str, Any] | None:
        """Return the JSON document it printed; None while there is no whole one."""
        try:
            return dict(json.loads(self.output.read_bytes()))
        except ValueError:
            return None

    def check(self) -> None:
        """Raise ``RoleDied`` if it ended with an error, or although it should not end."""
        code = self.code
        if code is not None and not self.was_killed and (code or not self.may_end):
            raise RoleDied(f"{self.name} ended with exit code {code}. {_tail(self.log)}")

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a power cut would (SIGKILL)."""
        self.was_killed = True
        self.signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, deadline: float) -> bool:
        """Wait for the end; False if it still runs at the deadline."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


class Processes:
    """Everything that the demo started. ``stop`` leaves nothing behind."""

    def __init__(self, logs: Path) -> None:
        self._logs, self.interrupt = logs, Interrupt()
        self._all: dict[str, Process] = {}

    def start(self, name: str, *command: str, ends: bool = False) -> Process:
        """Start ``anofel …``; with ``ends`` it is a command that ends by itself."""
        return self.start_module(name, "anofel", *command, ends=ends)

    def start_module(self, name: str, module: str, *command: str, ends: bool = False) -> Process:
        """Start a module of Python. Security: no secret may stand in the command."""
        with self.interrupt.held():
            process = Process(name, [sys.executable, "-m", module, *command], self._logs)
            process.may_end = ends
            self._all[name] = process
        return process

    def find(self, name: str) -> Process:
        """Return the last process of this name."""
        return self._all[name]

    @property
    def names(self) -> list[str]:
        """Everything that was ever started, by name."""
        return list(self._all)

    @property
    def running(self) -> int:
        """How many run now."""
        return sum(process.code is None for process in self._all.values())

    def check(self) -> None:
        """Raise ``RoleDied`` for the first that ended and should not have."""
        for process in self._all.values():
            process.check()

    def stop(self, names: Iterable[str] | None = None) -> None:
        """Ask them to stop, and after a while make them; everything unless names are given."""
        wanted = [self._all[name] for name in (self._all if names is None else names) if name in self._all]
        for process in wanted:
            process.may_end = True
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for process in wanted:
            if not process.wait(deadline):
                process.kill()


def _start(command: list[str], output: IO[bytes], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a process in a group of its own, so that Ctrl-C reaches the demo alone."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=log,
        env=_environment(),
        process_group=0,
        preexec_fn=_die_with(os.getpid()),
    )


def _environment() -> dict[str, str]:
    """Ours, but with one thread each, and compiled modules are kept: fifty processes need them."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return ours | ONE_THREAD


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return what ties a child to our life: the kernel stops it when we are gone, even by ``kill -9``."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)

    def tie() -> None:
        library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # we died before the call
            os._exit(1)

    return tie


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    text = "\n  ".join(line for line in lines if line.strip())
    return f"The end of {log}:\n  {text}" if text else f"{log} is empty."
