"""Ends the work of a role on SIGINT or SIGTERM, and only where nothing is left half-done.

A handler that raises wherever the signal comes can cut a transaction short, and Python itself drops or
renames what it raises in a finalizer, a fork or an import. So a signal is remembered, and ``Stopped`` is
raised in sections that were declared ``interruptible``: those that wait, talk or compute, and write nothing.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class Stopped(BaseException):
    """Somebody sent SIGTERM or SIGINT. What was interrupted is done again at the next start."""


@dataclass
class _Signals:
    """What the main thread knows; only it handles signals."""

    came: bool = False
    is_interruptible: bool = False

    def handle(self, *_: object) -> None:
        self.came = True
        if self.is_interruptible:
            self.stop()

    def stop(self) -> None:
        """Raise once: what is closed on the way out is not interrupted again."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self.came = False
        raise Stopped


_signals = _Signals()


@contextmanager
def stoppable() -> Iterator[None]:
    """Take both signals, in the main thread, until the end of the block; it may raise ``Stopped``."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, _signals.handle) for number in numbers}
    try:
        yield
    finally:
        _signals.came = False
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Declare a section that may end anywhere. Raises ``Stopped``, also for a signal that came before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _signals.is_interruptible = _signals.is_interruptible, True
    try:
        if _signals.came:
            _signals.stop()
        yield
    finally:
        _signals.is_interruptible = before


def check() -> None:
    """Stop here if a signal came; for places between two pieces of work."""
    with interruptible():
        pass


def pause(seconds: float) -> None:
    """Sleep, and wake up for a signal."""
    with interruptible():
        time.sleep(seconds)
