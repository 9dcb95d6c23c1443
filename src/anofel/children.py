"""Child processes that take orders on standard input and answer on standard output.

The parent's end starts a child, talks to it within a time, and buries it. The child's end answers one order
after the other and ends with its parent, in the middle of whatever it does.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final, NoReturn, cast

from anofel.disk.portable import kill_group, kill_own_group
from anofel.framing import receive_message, send_message

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")


class Child:
    """The parent's end."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        own_group: bool = True,
        quiet: bool = False,
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process. Raises ``OSError``.

        With a group of its own it is killed with all that it started, and Ctrl-C does not reach it; without
        one it ends with the group of this process. ``quiet``: what it writes to standard error is dropped.
        """
        self._own_group = own_group
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            cwd=directory,
            env=environment,
            start_new_session=own_group,
        )
        self.orders = cast("IO[bytes]", self._process.stdin)
        """Its standard input."""
        self.answers = cast("IO[bytes]", self._process.stdout)
        """Its standard output."""
        self.pid = self._process.pid
        """The number of the process."""
        self._buried = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        with self._buried:
            if self._process.returncode is None and self._process.poll() is not None and self._own_group:
                kill_group(self._process)  # what it started outlives it, and keeps the number of the group
            return self._process.returncode is None

    @property
    def returncode(self) -> int | None:
        """How it ended, once it was waited for."""
        return self._process.returncode

    @contextmanager
    def within(self, seconds: float) -> Iterator[threading.Event]:
        """Kill it if the block takes longer; the event says that it did."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill it, and all of its group if it has one; nobody waits for its end here."""
        with self._buried:  # as long as nobody waited for it, its number is its own
            if self._process.returncode is not None:
                return
            if self._own_group:
                kill_group(self._process)
            else:
                self._process.kill()

    def close(self) -> None:
        """Kill it, wait for its end and close the pipes."""
        self.kill()
        self.bury()

    def bury(self) -> None:
        """Wait for the end of one that was killed, and close the pipes."""
        with self._buried:
            self._process.wait()
        for stream in (self.orders, self.answers):
            with suppress(OSError):  # what could not be written stays unwritten
                stream.close()


def obey_orders(obey: Callable[[bytes], bytes | None]) -> NoReturn:
    """Answer orders in this process, which is a child, until its parent is gone; None is no answer.

    If memory runs out, this process goes, not its parent. What is printed goes to standard error.
    """
    with suppress(OSError), _OOM_SCORE.open("w") as file:
        file.write("1000")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    orders: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    while True:
        answer = obey(orders.get())
        if answer is not None:
            send_message(answers, answer)


def _listen(orders: SimpleQueue[bytes]) -> None:
    stream = os.fdopen(0, "rb")
    try:
        while True:
            orders.put(receive_message(stream))
    except BaseException:
        kill_own_group()  # and whatever it started
