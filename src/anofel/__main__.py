"""Run the command line: as ``anofel``, or as ``python -m anofel``."""

import sys


def run() -> None:
    """Import the command line and run it; a Ctrl-C before any command has begun is no mistake."""
    try:
        from anofel.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
