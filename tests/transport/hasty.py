"""``anofel`` that tries again at once: ``python -m tests.transport.hasty words …``.

The pauses between attempts are the only thing that is changed, so that a test can give many wrong answers.
"""

import sys

from anofel.cli import main
from anofel.network import transport

if __name__ == "__main__":
    transport._pause = lambda _attempt, _asked: 0.01
    sys.argv = ["anofel", *sys.argv[1:]]
    main()
