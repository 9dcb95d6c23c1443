"""Checks of a certifier's own, as its policy names them."""

import os
import signal

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset


def refuse(dataset: Dataset, subject: str) -> None:
    raise InvalidInput(f"{subject} shows {len(dataset)} rows that do not please us.")


def accept(dataset: Dataset, subject: str) -> None:
    assert len(dataset)
    assert subject


def stumble(dataset: Dataset, subject: str) -> None:
    raise KeyError(f"{subject} has {len(dataset)} rows and no column 'ward'")


def die(_dataset: Dataset, _subject: str) -> None:
    """The machine fails while the data is judged."""
    os.kill(os.getpid(), signal.SIGKILL)
