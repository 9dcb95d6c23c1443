"""``anofel`` where SIGUSR1 sets the clock: ``python -m tests.node.jumping_clock SECONDS words …``."""

import signal
import sys
import time

if __name__ == "__main__":
    real, jump, shift = time.time, float(sys.argv[1]), 0.0

    def set_clock(*_signal: object) -> None:
        global shift
        shift = jump

    signal.signal(signal.SIGUSR1, set_clock)
    time.time = lambda: real() + shift

    from anofel.cli import main

    sys.argv = ["anofel", *sys.argv[2:]]
    main()
