"""Marks in a drafted task file: what was guessed from rows, and nobody has confirmed yet."""

from pathlib import Path
from typing import Final

from anofel.disk.files import read_small_file
from anofel.errors import InvalidInput

CONFIRM: Final = "confirm: public constant"
"""Stands in the comment of every value that was guessed from a file of rows."""


class Unconfirmed(InvalidInput):
    """A task holds values that were taken from rows, and would be published."""

    code = "unconfirmed-values"


def check_confirmed(path: Path) -> None:
    """Refuse to publish a task with values that nobody confirmed. Raises ``Unconfirmed``."""
    marks = unconfirmed(path)
    if marks:
        raise Unconfirmed(
            f"{marks} values of {path} are marked '{CONFIRM}': they were taken from rows, and a published "
            "task shows them outside of ε. Replace each by public knowledge and delete its mark, the comment "
            "behind the value; then announce it."
        )


def unconfirmed_warning(path: Path) -> str:
    """Say what is not yet fit to be published; nothing if no mark is left."""
    marks = unconfirmed(path)
    if not marks:
        return ""
    return (
        f"{marks} values of {path} are marked '{CONFIRM}': they were taken from rows, and a published task "
        "shows them outside of ε. Replace each by public knowledge before you announce it."
    )


def unconfirmed(path: Path) -> int:
    """Count the lines of a task file that still carry the mark."""
    text = read_small_file(path).decode(errors="replace")
    return sum(CONFIRM in line.partition("#")[2] and not line.startswith("#") for line in text.splitlines())
