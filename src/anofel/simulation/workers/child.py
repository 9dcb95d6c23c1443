"""The program of a worker's process."""

import os
import signal
import threading
from contextlib import suppress
from queue import SimpleQueue

from anofel.framing import receive_message, send_message
from anofel.simulation.workers.worker import Worker


def main() -> None:
    """Answer the orders on standard input until it ends."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, a worker goes, not the board
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a trainer prints goes to the log
    orders: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    worker = Worker()
    while True:
        send_message(answers, worker.obey(orders.get()))


def _listen(orders: SimpleQueue[bytes]) -> None:
    """Pass the orders on; when the simulation is gone, so is this process, whatever it does."""
    stream = os.fdopen(0, "rb")
    try:
        while True:
            orders.put(receive_message(stream))
    except BaseException:
        os.killpg(0, signal.SIGKILL)  # and whatever a trainer started


if __name__ == "__main__":
    main()
