"""Run the command line as `python -m anofel`."""

from anofel.cli import main

main()
