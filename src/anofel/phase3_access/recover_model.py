"""Step 8′ — the owner combines the shares and makes the next model (AnoFel §4.3.3).

Everybody can: the shares are public (D-16), and the rule is part of the task.
"""

from anofel.board.shares import ShareDesk
from anofel.board.state import Bundle, Position, State
from anofel.errors import InvalidInput
from anofel.learning.integer_model import IntegerMean, IntegerModel


def next_model(
    state: State, bundle: Bundle, position: Position, desk: ShareDesk, model: IntegerModel, rule: IntegerMean
) -> IntegerModel:
    """Return what the rule makes of an opened sum; the same bits for everyone."""
    vector = desk.opened_vector(state, bundle, position)
    if vector is None or position.count is None or bundle.current is None:
        raise InvalidInput("The sum cannot be decoded, so the model stays.")
    return rule.apply(model, vector, position.count, bundle.current.number)
