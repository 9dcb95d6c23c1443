"""What a task promises in total: computed once for each task, in a process that ends.

ε needs SciPy, which would stay in a node's memory for good. ``python -m anofel.page.promise`` reads a task's
canonical encoding and prints the numbers.
"""

import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import msgspec

SECONDS: Final = 60.0
PATIENCE: Final = 0.05
"""How long a reader waits for it; the page says that it is being computed, and shows it the next time."""
MAX_KEPT: Final = 1024


@dataclass(frozen=True)
class Promise:
    """What a task costs its clients at its end."""

    word: str
    """Strong, moderate, weak or none (``docs/privacy.md``)."""
    right_guesses: float | None
    """How often an adversary tells two possibilities apart that differ in one unit; by chance, half."""
    epsilon_zero_out: float | None
    """None where nothing is proven."""
    epsilon_replace: float | None


class Promises:
    """The promises of a board's tasks: each is computed once, one after the other, whoever asks."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="anofel-promise")
        self._found: dict[bytes, Future[Promise | None]] = {}

    def of(self, document: bytes) -> Promise | None:
        """Return the promise of a task; None while it is computed, or if it could not be.

        Any thread may ask.
        """
        with self._turn:
            found = self._found.get(document)
            if found is None or (found.done() and found.result() is None):
                while len(self._found) >= MAX_KEPT:
                    del self._found[next(iter(self._found))]
                found = self._found[document] = self._worker.submit(_compute, document)
        try:
            return found.result(PATIENCE)
        except TimeoutError:
            return None

    def wait(self, document: bytes) -> Promise | None:
        """Compute the promise of a task, however long it takes."""
        self.of(document)
        return self._found[document].result()


def _compute(document: bytes) -> Promise | None:
    """Compute a promise in a process of its own; None if that takes too long or fails."""
    command = [sys.executable, "-P", "-m", "anofel.page.promise"]
    try:
        done = subprocess.run(command, input=document, capture_output=True, timeout=SECONDS, check=True)
        return msgspec.json.decode(done.stdout, type=Promise)
    except (subprocess.SubprocessError, OSError, msgspec.MsgspecError):
        return None


PROMISES: Final = Promises()


def main() -> None:
    """Read a task and print its promise."""
    from anofel.disk.sections import json_values
    from anofel.privacy.explain import explain
    from anofel.tasks.task import read_task

    report = explain(read_task(json_values(sys.stdin.buffer.read(), "A task")))
    spent = report.get("epsilon")
    promise = Promise(
        report["verdict"]["word"],
        report["verdict"]["right_guesses"],
        spent and spent["zero-out"]["total"],
        spent and spent["replace"]["total"],
    )
    sys.stdout.buffer.write(msgspec.json.encode(promise))


if __name__ == "__main__":
    main()
