"""Step 3 — a client reads the posted models (AnoFel §4.3.2; D-06)."""

from anofel.board.interface import BoardView
from anofel.board.seat import Sitting
from anofel.ids import TaskId


def fetch_models(board: BoardView, sitting: Sitting) -> dict[TaskId, bytes]:
    """Read every model of the bundle, so that nobody sees which one is needed."""
    models = ((name, board.state.tasks[name].model) for name in sitting.bundle.tasks)
    return {name: board.attachments.read(model) for name, model in models if model is not None}
