"""Processes of the demo: each with a log, one thread for arithmetic, and an end no later than ours.

They are forked from one process that has imported everything (the ``forkserver`` of Python): half a hundred
processes that import it themselves would take longer than the training. The fork happens before anything
is drawn or opened, and all randomness comes from the operating system.
"""

import contextlib
import ctypes
import json
import multiprocessing
import os
import runpy
import shlex
import signal
import sys
import time
from collections.abc import Iterable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

from anofel.errors import AnofelError

PRELOAD: Final = (
    "anofel.demo.root",
    "anofel.cli",
    "anofel.audit",
    "anofel.node.serve",
    "anofel.roles.aggregator.role",
    "anofel.roles.certifier.service",
    "anofel.roles.client.role",
    "anofel.roles.client.request",
    "anofel.roles.aggregator.key_run",
    "anofel.roles.owner",
    "dp_accounting.pld",
)
"""What is imported once, the first before the others."""
STOP_SECONDS: Final = 15.0
"""How long a process may take to stop in good order."""
TAIL_LINES: Final = 8
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""``PR_SET_PDEATHSIG`` of Linux; elsewhere a demo that is killed leaves its processes."""
_SET_NAME: Final = 15
"""``PR_SET_NAME`` of Linux."""


class RoleDied(AnofelError):
    """A process ended that should not have; names it and shows the end of its log."""

    code = "role-died"


class Process:
    """One command as a process; what it prints and what it says go to files of their own."""

    def __init__(self, name: str, module: str, words: tuple[str, ...], logs: Path) -> None:
        self.name = name
        self.output, self.log = logs / f"{name}.out", logs / f"{name}.log"
        self.may_end = False
        """Whether its end is no surprise."""
        self.was_killed = False
        self.output.write_bytes(b"")  # here, so that nobody reads what the process before it printed
        context = multiprocessing.get_context("forkserver")
        arguments = (name, module, words, self.output, self.log)
        self._process = context.Process(target=_run, args=arguments, name=name, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.exitcode

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
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, as a power cut would (SIGKILL)."""
        self.was_killed = True
        self.signal(signal.SIGKILL)
        self._process.join()

    def wait(self, deadline: float) -> bool:
        """Wait for the end; False if it still runs at the deadline."""
        self._process.join(max(0.0, deadline - time.monotonic()))
        return self.code is not None


class Processes:
    """Everything that the demo started. ``stop`` leaves nothing behind."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._all: dict[str, Process] = {}
        multiprocessing.set_forkserver_preload(list(PRELOAD))
        forkserver.ensure_running()

    def start(self, name: str, *command: str, ends: bool = False) -> Process:
        """Start ``anofel …``; with ``ends`` it is a command that ends by itself."""
        return self.start_module(name, "anofel", *command, ends=ends)

    def start_module(self, name: str, module: str, *command: str, ends: bool = False) -> Process:
        """Start a module of Python. Security: no secret may stand in the command."""
        process = Process(name, module, command, self._logs)
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


def die_with_parent(name: str) -> None:
    """Let the kernel kill this process when its parent is gone, and show its name in ``top``."""
    if sys.platform.startswith("linux"):
        library = ctypes.CDLL(None)
        library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        library.prctl(_SET_NAME, name.encode())


def _run(name: str, module: str, words: tuple[str, ...], output: Path, log: Path) -> None:
    """Become ``python -m MODULE WORDS …``, in a group of its own: Ctrl-C reaches the demo alone."""
    os.setpgid(0, 0)
    die_with_parent(name)
    for path, number in ((output, 1), (log, 2)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.stderr.write(f"$ {shlex.join((module, *words))}\n")
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    text = "\n  ".join(line for line in lines if line.strip())
    return f"The end of {log}:\n  {text}" if text else f"{log} is empty."
