"""Step 8′ — the owner combines the shares and makes the next model (AnoFel §4.3.3).

Everybody can: the shares are public (D-16), and the rule is part of the task.
"""

from anofel.board.shares import ShareDesk
from anofel.board.state import Bundle, Position, State
from anofel.errors import InvalidInput
from anofel.learning.integer_model import IntegerModel
from anofel.learning.rules import UpdateRule
from anofel.privacy.metric_slots import reported_metrics
from anofel.privacy.plan import Plan
from anofel.task import Task


def next_model(
    state: State, bundle: Bundle, position: Position, desk: ShareDesk, model: IntegerModel, rule: UpdateRule
) -> IntegerModel:
    """Return what the rule makes of an opened sum; by a task's own rule the same bits for everyone."""
    vector = desk.opened_vector(state, bundle, position)
    if vector is None or position.count is None or bundle.current is None:
        raise InvalidInput("The sum cannot be decoded, so the model stays.")
    return rule.apply(model, model.own_part(vector), position.count, bundle.current.number)


def metrics_of_sum(
    state: State, bundle: Bundle, position: Position, desk: ShareDesk, task: Task
) -> dict[str, float] | None:
    """Return what clients report about the model that opened the iteration; None without metric slots."""
    if task.metrics is None or position.count is None:
        return None
    vector = desk.opened_vector(state, bundle, position)
    return None if vector is None else reported_metrics(Plan.of(task), vector, position.count)
