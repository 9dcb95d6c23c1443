"""A worker in a process of its own on this machine; it talks over pipes and ends with its simulation."""

import os
import sys
from typing import Final

from anofel.children import Child
from anofel.framing import receive_message, send_message
from anofel.simulation.workers.links import WorkerLost

_PROGRAM: Final = "anofel.simulation.workers.worker"
_ONE_THREAD: Final = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""There are as many workers as there is room for; more threads in each would only contend."""


class ProcessLink:
    """The parent's end."""

    is_here: Final = True

    def __init__(self, number: int) -> None:
        """Start the process. Raises ``WorkerLost`` if the system does not."""
        # -P: without it Python would import from the working directory first, whoever writes there
        command = [sys.executable, "-P", "-m", _PROGRAM]
        try:
            self._child = Child(command, environment={**os.environ, **_ONE_THREAD})
        except OSError as error:
            raise WorkerLost(f"Worker {number} cannot be started: {error.strerror or error}.") from None
        self.name = f"Worker {number} (process {self._child.pid})"

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._child.pid

    def converse(self, order: bytes, seconds: float) -> bytes:
        """Send an order and wait for its answer. Raises ``WorkerLost``."""
        child = self._child
        with child.within(seconds) as late:
            try:
                send_message(child.orders, order)
                return receive_message(child.answers)
            except (OSError, ValueError):  # it is gone
                child.close()
                if late.is_set():
                    raise WorkerLost(f"{self.name} did not answer within {seconds:g} seconds.") from None
                raise WorkerLost(f"{self.name} ended with the code {child.returncode}.") from None

    def close(self) -> None:
        """End the process and all that it started."""
        self._child.close()
