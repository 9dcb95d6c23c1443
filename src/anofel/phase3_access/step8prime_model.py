"""Step 8′ — the owner combines the shares and makes the next model (AnoFel §4.3.3).

1. t shares open the sum.
2. The task's rule makes the next model of it, or the owner's own rule where the task leaves it to its owner.

Everybody can: the shares are public (D-16), and the rule is part of the task. ``Openings.open_sum`` does it
once for all who ask.
"""

from anofel.board.interface import BoardView
from anofel.board.openings import OpenedSum
from anofel.board.seat import Seat
from anofel.errors import InvalidInput
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import UpdateRule
from anofel.privacy.metric_slots import reported_metrics
from anofel.privacy.plan import Plan
from anofel.tasks.task import Task


def next_model(board: BoardView, seat: Seat, own_rule: UpdateRule | None = None) -> IntegerModel:
    """Return what the task's rule makes of an opened sum; ``own_rule`` if the task leaves it to its owner.

    Raises ``InvalidInput`` if there is nothing to make a model of.
    """
    opened = _opened(board, seat)  # (1)
    if opened.made is not None:  # (2)
        return opened.made
    if own_rule is None:
        raise InvalidInput("The task's owner makes each model by a rule of its own.")
    return own_rule.apply(opened.before, opened.before.own_part(opened.vector), opened.count, seat.number)


def metrics_of_sum(board: BoardView, seat: Seat) -> dict[str, float] | None:
    """Return what clients report about the model that opened the iteration; None without metric slots."""
    task = Task.from_bytes(seat.task.announcement.document)
    if task.metrics is None:
        return None
    opened = _opened(board, seat)
    return reported_metrics(Plan.of(task), opened.vector, opened.count)


def is_shortened(board: BoardView, seat: Seat) -> bool:
    """Whether the mean of an opened sum was longer than the task's rule allows."""
    return _opened(board, seat).shortened


def _opened(board: BoardView, seat: Seat) -> OpenedSum:
    opened = board.openings.open_sum(seat)
    if opened is None:
        raise InvalidInput("The sum cannot be decoded, so the model stays.")
    return opened
