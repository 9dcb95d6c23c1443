"""Tasks for a simulation: from a task file, or made for a study and a number of clients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from anofel.disk.files import read_each
from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.splits import split_rows
from anofel.learning.trainer import Predictor
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.rows import made_up_rows
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset, joined
from anofel.studies.load import chosen_rows, hold_out, load_file
from anofel.tasks.schema import Schema
from anofel.tasks.task import Task, read_task

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
    files: tuple[Path, ...] = ()
    """A user's own files: one that is dealt out, or one for each client; otherwise the task's study."""
    made_up: int = 0
    """How many rows to make up instead; they describe nobody."""
    validation: Path | None = None
    """Rows of the owner's own to measure by; otherwise one row in five is kept back."""

    def deal(self, study: str, schema: Schema, clients: int) -> tuple[list[Dataset], Dataset]:
        """Give each client its rows, and the owner rows to measure by.

        Raises ``InvalidInput`` and ``StudyNotFetched``.
        """
        if len(self.files) > 1:
            return self._one_file_each(schema, clients)
        if self.made_up:
            train, test = hold_out(made_up_rows(schema, self.made_up, self.seed), self.seed)
        elif self.files and self.validation is not None:
            train, test = read_each((self.files[0], self.validation), lambda path: load_file(path, schema))
            return split_rows(train, clients, self.split, self.seed), test
        else:
            file = self.files[0] if self.files else None
            first, second = chosen_rows(study, schema, file, self.seed)
            train, test = first.dataset, second.dataset
        if self.validation is not None:
            test = load_file(self.validation, schema)
        return split_rows(train, clients, self.split, self.seed), test

    def _one_file_each(self, schema: Schema, clients: int) -> tuple[list[Dataset], Dataset]:
        if clients != len(self.files):
            raise InvalidInput(f"There are {len(self.files)} files of rows for {clients} clients.")
        own = () if self.validation is None else (self.validation,)
        loaded = read_each((*self.files, *own), lambda path: load_file(path, schema))
        if own:
            return loaded[:-1], loaded[-1]
        parts = [hold_out(rows, self.seed) for rows in loaded]
        return [train for train, _ in parts], joined([test for _, test in parts])


def of_task_file(
    path: Path, source: RowSource, clients: int | None = None, *, trainer: str = ""
) -> SimulatedTask:
    """Read a task file and give its clients rows; by default as many clients as it expects.

    A custom task needs a ``module:function`` that makes its trainer; models are measured if that can predict.
    Raises ``InvalidInput`` and ``TrainerRefused``.
    """
    task = Task.load(path)
    trains = trainer_of(task, trainer)
    usual = len(source.files) if len(source.files) > 1 else task.privacy.expected_clients
    parts, test = source.deal(task.study, task.schema, usual if clients is None else clients)
    return SimulatedTask(
        task,
        parts,
        evaluate_on(task, test, trains) if isinstance(trains, Predictor) else None,
        own_trainer=trains,
        trainer_name=trainer,
    )


def of_study(
    name: str, source: RowSource, *, clients: int, iterations: int, dropout: float, target_epsilon: float
) -> SimulatedTask:
    """Make a task for a study: logistic regression, unit ``record``, noise for a target ε (zero-out).

    Sums open with all clients, or where some drop out, with twice as many missing as expected.
    """
    parts, test = source.deal(name, study_named(name).schema(), clients)
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
