"""Turns what the Rust core refuses into this package's errors.

All of it crosses as one type. It is raised; of a batch it is given for each that is bad, since the others are
accepted and a posting is refused for its own reason. Which error it is, the step that asked knows and says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from anofel._core import committee as core
from anofel.committee.errors import (
    BallotRefused,
    EnvelopeRefused,
    KeyGenerationFailed,
    ShareRefused,
    Undecodable,
)
from anofel.errors import AnofelError


@contextmanager
def refusing(error: type[AnofelError]) -> Iterator[None]:
    """Raise a refusal inside the block as the given error, with its culprit where it has one."""
    try:
        yield
    except core.Refusal as refusal:
        kind, _sentence, culprit = refusal.args
        message = reason_of(refusal)
        if kind == "undecodable":
            raise Undecodable(message) from None
        if issubclass(error, ShareRefused | KeyGenerationFailed):
            raise error(message, () if culprit is None else (culprit,)) from None
        raise error(message) from None


def refuse_batch(
    error: type[EnvelopeRefused | BallotRefused], count: int, reasons: Mapping[int, str]
) -> None:
    """Raise the error if any of a batch was refused, with the reason for each."""
    if reasons:
        first = min(reasons)
        raise error(f"{len(reasons)} of {count} are refused; number {first}: {reasons[first]}", reasons)


def reasons_of(refused: Mapping[int, core.Refusal]) -> dict[int, str]:
    """Return the reason for each refusal of a batch."""
    return {place: reason_of(refusal) for place, refusal in refused.items()}


def reason_of(refusal: core.Refusal) -> str:
    """Make a whole sentence of what the core says."""
    _kind, sentence, _culprit = refusal.args
    return f"{sentence[0].upper()}{sentence[1:].removesuffix('.')}."
