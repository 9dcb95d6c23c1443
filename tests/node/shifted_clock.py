"""``anofel`` on a machine whose clock is wrong: ``python -m tests.node.shifted_clock SECONDS words …``."""

import sys
import time

if __name__ == "__main__":
    real, shift = time.time, float(sys.argv[1])
    time.time = lambda: real() + shift

    from anofel.cli import main

    sys.argv = ["anofel", *sys.argv[2:]]
    main()
