"""Turns what the Rust core refuses into this package's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from anofel._core import committee as core
from anofel.committee.errors import KeyGenerationFailed, ShareRefused, Undecodable
from anofel.errors import AnofelError


@contextmanager
def refusing(error: type[AnofelError]) -> Iterator[None]:
    """Raise a refusal inside the block as the given error, with its culprit where it has one."""
    try:
        yield
    except core.Refusal as refusal:
        kind, sentence, culprit = refusal.args
        message = f"{sentence[0].upper()}{sentence[1:]}."
        if kind == "undecodable":
            raise Undecodable(message) from None
        if issubclass(error, ShareRefused | KeyGenerationFailed):
            raise error(message, () if culprit is None else (culprit,)) from None
        raise error(message) from None
