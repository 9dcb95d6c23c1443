"""What a task promises in total: computed once for each task, in a process that ends.

ε needs SciPy, which would stay in a node's memory for good. ``python -m anofel.page.promise`` reads a task's
canonical encoding and prints the numbers.
"""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

SECONDS: Final = 60.0
MAX_KEPT: Final = 1024
_ONE_AT_A_TIME: Final = threading.Lock()


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


@lru_cache(maxsize=MAX_KEPT)
def promise_of(document: bytes) -> Promise | None:
    """Compute the promise of a task; None if that takes too long or fails. Any thread may ask."""
    command = [sys.executable, "-P", "-m", "anofel.page.promise"]
    with _ONE_AT_A_TIME:
        try:
            done = subprocess.run(command, input=document, capture_output=True, timeout=SECONDS, check=True)
            return msgspec.json.decode(done.stdout, type=Promise)
        except (subprocess.SubprocessError, OSError, msgspec.MsgspecError):
            return None


def main() -> None:
    """Read a task and print its promise."""
    from anofel.privacy.explain import explain
    from anofel.tasks.task import read_task

    report = explain(read_task(json.loads(sys.stdin.buffer.read())))
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
