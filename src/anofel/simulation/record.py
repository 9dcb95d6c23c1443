"""What a simulation leaves in a directory, written as it goes: an interrupted run loses nothing.

=========================  =============================================================
``result.json``            what ``--json`` prints, so far
``models/NAME-N.model``    the model that iteration N made, as on the board
``models/NAME-best.model`` the best one by the owner's rows
``models/NAME-N.card.md``  the card of a model: what it is and what its numbers promise
``board/``                 the board, for ``anofel audit``; not there without cryptography
``board-2/`` …             the board of each run that went on with an earlier one
=========================  =============================================================
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from anofel.disk.files import read_small_file, replace_file
from anofel.disk.state_files import DamagedState, decode_state
from anofel.errors import InvalidInput
from anofel.models.files import card_of_file, model_name
from anofel.models.integer_model import IntegerModel
from anofel.simulation.parts import Begun, IterationResult
from anofel.simulation.selection import BestModel
from anofel.tasks.task import Task

RESULT: Final = "result.json"
MODELS: Final = "models"
_MAX_RESULT: Final = 1 << 28


@dataclass(frozen=True)
class _Result:
    """The least that a run needs to go on."""

    tasks: dict[str, str]
    iterations: list[dict[str, Any]]


@dataclass
class RunRecord:
    """The directory of a run, and everything that earlier runs left in it."""

    directory: Path
    document: dict[str, Any] = field(default_factory=dict)
    """What ``result.json`` holds."""

    @classmethod
    def new(cls, directory: Path) -> "RunRecord":
        """Make a new directory. Raises ``InvalidInput`` if there is something in it."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise InvalidInput(
                    f"{directory} is not empty; give the name of a new directory, or --resume to go on in it."
                )
            (directory / MODELS).mkdir()
        except OSError as error:
            raise InvalidInput(f"{directory} cannot be made: {error.strerror or error}.") from None
        return cls(directory)

    @classmethod
    def resume(cls, directory: Path) -> "RunRecord":
        """Open the directory of an earlier run. Raises ``InvalidInput``."""
        path = directory / RESULT
        if not path.is_file():
            raise InvalidInput(f"There is no run to resume in {directory}: it has no {RESULT}.")
        try:
            data = read_small_file(path, _MAX_RESULT)
            decode_state(data, _Result, str(path))
        except DamagedState:
            raise InvalidInput(f"{path} is not the result of a simulation.") from None
        return cls(directory, decode_state(data, dict[str, Any], str(path)))

    @property
    def iterations(self) -> list[dict[str, Any]]:
        """The results so far, as documents."""
        return list(self.document.get("iterations", []))

    def begun(self, task: Task) -> Begun | None:
        """Say where a task stands; None if it has not begun. Raises ``InvalidInput`` for another task."""
        known = self.document.get("tasks", {}).get(task.name)
        if known is None and self.document:
            raise InvalidInput(f"The run in {self.directory} has no task '{task.name}'.")
        if known not in (None, task.digest().hex()):
            raise InvalidInput(
                f"The task '{task.name}' has changed since the run in {self.directory}; begin a new one."
            )
        done = [entry for entry in self.iterations if entry["task"] == task.name]
        summed = [entry["iteration"] for entry in done if entry["outcome"] == "summed"]
        if not done or not summed:
            return None
        model = IntegerModel.load(self.directory / MODELS / model_name(task.name, summed[-1]))
        return Begun(model=model, iterations=done[-1]["iteration"], releases=len(summed))

    def best(self, task: str) -> BestModel | None:
        """Say which model was the best so far."""
        found = self.document.get("best", {}).get(task)
        return None if found is None else BestModel(found["loss"], found["iteration"])

    def board(self) -> Path:
        """Name a directory for the board of this run."""
        number = 1
        while (path := self.directory / ("board" if number == 1 else f"board-{number}")).exists():
            number += 1
        return path

    def keep(self, result: IterationResult, card: str, *, is_best: bool) -> None:
        """Write the model of an iteration and its card, if it made one."""
        if result.total is None:
            return
        names: list[int | str] = [result.iteration, "best"] if is_best else [result.iteration]
        for which in names:
            path = self.directory / MODELS / model_name(result.task, which)
            replace_file(path, result.model.to_bytes())
            replace_file(card_of_file(path), card.encode())

    def write(self, document: Mapping[str, Any]) -> None:
        """Write the results so far."""
        replace_file(self.directory / RESULT, (json.dumps(document, indent=2) + "\n").encode())
