"""A worker in a process of its own on this machine; it talks over pipes and ends with its simulation."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

from anofel.framing import receive_message, send_message
from anofel.simulation.workers.links import WorkerLost

_CHILD: Final = "anofel.simulation.workers.child"
_ONE_THREAD: Final = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""There are as many workers as there is room for; more threads in each would only contend."""


class ProcessLink:
    """The parent's end."""

    is_here: Final = True

    def __init__(self, number: int) -> None:
        """Start the process. Raises ``WorkerLost`` if the system does not."""
        # -P: without it Python would import from the working directory first, whoever writes there
        command = [sys.executable, "-P", "-m", _CHILD]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # Ctrl-C is for the simulation, which ends its workers
            )
        except OSError as error:
            raise WorkerLost(f"Worker {number} cannot be started: {error.strerror or error}.") from None
        self.name = f"Worker {number} (process {self._process.pid})"
        self._buried = threading.Lock()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def converse(self, order: bytes, seconds: float) -> bytes:
        """Send an order and wait for its answer. Raises ``WorkerLost``."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        late = threading.Event()
        timer = threading.Timer(seconds, self._end_late, [late])
        timer.daemon = True
        timer.start()
        try:
            send_message(stdin, order)
            return receive_message(stdout)
        except (OSError, ValueError):  # it is gone
            self.close()
            if late.is_set():
                raise WorkerLost(f"{self.name} did not answer within {seconds:g} seconds.") from None
            raise WorkerLost(f"{self.name} ended with the code {self._process.returncode}.") from None
        finally:
            timer.cancel()

    def _end_late(self, late: threading.Event) -> None:
        late.set()
        self._kill()

    def _kill(self) -> None:
        with self._buried:  # as long as nobody waited for it, its number is its own
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and all that it started."""
        self._kill()
        with self._buried:
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what could not be written stays unwritten
                stream.close()
