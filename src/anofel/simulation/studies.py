"""Tasks for a simulation: from a task file, or made for a study and a number of clients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from anofel.learning.build import trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.splits import split_rows
from anofel.learning.trainer import Predictor
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.rows import made_up_rows
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.load import chosen_rows, encoded, hold_out
from anofel.studies.schema import Schema
from anofel.task import Task, read_task

DEFAULT_CLIENTS = 16
_LEARNING_RATE = 5
_CLIPPING_NORM = "2"
_SCALE_BITS = 12
"""Fine enough beside the noise, and coarse enough that the sums of many clients fit the schemes."""


@dataclass(frozen=True, kw_only=True)
class RowSource:
    """Where rows come from, and how they are split over clients."""

    split: str = "iid"
    seed: int = 0
    file: Path | None = None
    """A user's own file; otherwise the study that the task names."""
    made_up: int = 0
    """How many rows to make up instead; they describe nobody."""

    def load(self, study: str, schema: Schema) -> tuple[Dataset, Dataset]:
        """Load rows to train on, and rows to test on. Raises ``InvalidInput`` and ``StudyNotFetched``."""
        if self.made_up:
            return hold_out(made_up_rows(schema, self.made_up, self.seed), self.seed)
        train, test = chosen_rows(study, schema, self.file, self.seed)
        return encoded(train), encoded(test)


def of_task_file(
    path: Path, source: RowSource, clients: int | None = None, *, trainer: str = ""
) -> SimulatedTask:
    """Read a task file and give its clients rows; by default as many clients as it expects.

    A custom task needs a ``module:function`` that makes its trainer; models are measured if that can predict.
    Raises ``InvalidInput`` and ``TrainerRefused``.
    """
    task = Task.load(path)
    trains = trainer_of(task, trainer)
    train, test = source.load(task.study, task.schema)
    number = task.privacy.expected_clients if clients is None else clients
    return SimulatedTask(
        task,
        split_rows(train, number, source.split, source.seed),
        evaluate_on(task, test, trains) if isinstance(trains, Predictor) else None,
        own_trainer=trains,
    )


def of_study(
    name: str, source: RowSource, *, clients: int, iterations: int, dropout: float, target_epsilon: float
) -> SimulatedTask:
    """Make a task for a study: logistic regression, unit ``record``, noise for a target ε (zero-out).

    Sums open with all clients, or where some drop out, with twice as many missing as expected.
    """
    train, test = source.load(name, study_named(name).schema())
    parts = split_rows(train, clients, source.split, source.seed)
    least = max(2, int(clients * (1 - 2 * dropout)))
    task = _study_task(name, parts, least, iterations)
    noise = noise_multiplier(Plan.of(task), target_epsilon, task.privacy.relation)
    task = replace(task, privacy=replace(task.privacy, noise_multiplier=noise))
    return SimulatedTask(task, parts, evaluate_on(task, test))


def _study_task(name: str, parts: Sequence[Dataset], min_clients: int, iterations: int) -> Task:
    records = max(len(part) for part in parts)
    mean = max(1, sum(len(part) for part in parts) // len(parts))
    return read_task(
        {
            "task": {"name": name, "study": name},
            "model": {"kind": "logistic", "scale_bits": _SCALE_BITS},
            "training": {"algorithm": "fedsgd"},
            "rule": {"lr_num": _LEARNING_RATE, "lr_den": mean},
            "privacy": {
                "unit": "record",
                "clipping_norm": Decimal(_CLIPPING_NORM),
                "noise_multiplier": Decimal(1),
                "max_releases": iterations,
                "min_clients": min_clients,
                "max_colluders": 0,
                "expected_clients": len(parts),
                "records_per_client": records,
            },
        }
    )
