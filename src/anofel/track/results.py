"""What a tracker shows: the numbers of each iteration and the card of its model.

Of a board these are what anybody sees of it, verified from genesis; of a simulation what ``--out`` wrote.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anofel.disk.files import read_small_file
from anofel.disk.state_files import DamagedState, decode_state
from anofel.errors import InvalidInput
from anofel.look.sources import BoardOnDisk
from anofel.models.files import card_of_file, model_name
from anofel.page.facts import BoardFacts, StudyFacts, card_of
from anofel.simulation.record import MODELS, RESULT

MAX_RESULT_BYTES = 1 << 28


@dataclass(frozen=True, kw_only=True)
class TrackedIteration:
    """How one iteration of one task ended, in numbers."""

    task: str
    source: str
    """What tells this run of the task from others: a task's id on its board, or a digest."""
    iteration: int
    outcome: str
    values: Mapping[str, float]
    """``posts``, ``count``, ``epsilon``, ``metrics/…`` on the owner's rows, ``reported/…`` of slots."""
    card: str = field(default="", repr=False)
    """The card of the model that stands after it, where that is known; Markdown."""


def read_results(where: Path | str) -> list[TrackedIteration]:
    """Read the iterations of a simulation's directory, or of a board's. Raises ``InvalidInput``."""
    directory = Path(where)
    if (directory / RESULT).is_file():
        return list(of_run(directory))
    if not directory.is_dir():
        raise InvalidInput(f"There is no directory '{directory}' of a board or a simulation.")
    with closing(BoardOnDisk(directory, lambda _done, _all: None)) as board:
        return list(of_board(board.now))


def of_run(directory: Path) -> Iterator[TrackedIteration]:
    """Give the iterations that a simulation has done so far. Raises ``InvalidInput``."""
    path = directory / RESULT
    try:
        found = decode_state(read_small_file(path, MAX_RESULT_BYTES), dict[str, Any], str(path))
        for entry in found["iterations"]:
            yield TrackedIteration(
                task=entry["task"],
                source=found["tasks"][entry["task"]],
                iteration=entry["iteration"],
                outcome=entry["outcome"],
                values=_numbers(
                    {"posts": entry["posts"], "count": entry["count"], "epsilon": entry["epsilon"]},
                    {"metrics": entry["metrics"], "reported": entry["reported"]},
                ),
                card=_card_beside(directory / MODELS / model_name(entry["task"], entry["iteration"])),
            )
    except (DamagedState, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path} is not the result of a simulation.") from None


def of_board(board: BoardFacts) -> Iterator[TrackedIteration]:
    """Give the iterations of every task of a board; the last of each has the card of its model."""
    for study in board.studies:
        for number, outcome in enumerate(study.outcomes, start=1):
            yield TrackedIteration(
                task=_unique_name(board, study),
                source=study.task,
                iteration=outcome.iteration,
                outcome=outcome.outcome,
                values=_numbers(
                    {
                        "posts": outcome.posts,
                        "count": outcome.count,
                        "epsilon": outcome.epsilon,
                        "registered": outcome.num_clients,
                    },
                    {"reported": outcome.reported},
                ),
                card=card_of(board, study) if number == len(study.outcomes) else "",
            )


def _unique_name(board: BoardFacts, study: StudyFacts) -> str:
    """Call a task by its name, and by its id too if another has the same."""
    same = [one for one in board.studies if one.name == study.name]
    return study.name if len(same) == 1 else f"{study.name}-{study.task[:16]}"


def _numbers(
    plain: Mapping[str, float | None], groups: Mapping[str, Mapping[str, float] | None]
) -> dict[str, float]:
    found = {name: float(value) for name, value in plain.items() if value is not None}
    for group, values in groups.items():
        found |= {f"{group}/{name}": float(value) for name, value in (values or {}).items()}
    return found


def _card_beside(model: Path) -> str:
    path = card_of_file(model)
    return read_small_file(path).decode(errors="replace") if path.is_file() else ""
