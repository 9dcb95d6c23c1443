"""A Flower app in a simulation: its clients are the partitions, its strategy is the task's rule."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from anofel.drafts.flower_text import fitting_scale_bits
from anofel.learning.build import TrainerRefused, check_size
from anofel.learning.flower.settings import AppValue, FlowerApp, app_refused
from anofel.learning.flower.strategies import lost_of, rule_of_strategy
from anofel.learning.flower.trainer import FlowerTrainer
from anofel.learning.trainer import Trainer
from anofel.models.parameters import Layout
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.studies import RowSource
from anofel.studies.dataset import Dataset
from anofel.studies.encoding import encode_table
from anofel.studies.table import Table
from anofel.tasks.schema import TableSchema
from anofel.tasks.task import Task, read_task

DEFAULT_CLIENTS = 10
"""As many as Flower simulates unless told otherwise."""


class Partitions:
    """Names each client by its place: Flower's simulation does so too."""

    def __init__(self) -> None:
        self._places: dict[Dataset, tuple[int, int]] = {}

    def number(self, clients: Sequence[Dataset]) -> None:
        """Number the clients by their rows."""
        for place, rows in enumerate(clients):
            self.put(rows, place, len(clients))

    def put(self, rows: Dataset, place: int, of: int) -> None:
        """Give one client its place among so many."""
        self._places[rows] = place, of

    def __call__(self, dataset: Dataset) -> tuple[str, Mapping[str, AppValue]]:
        """Return a client's name and its ``node_config``."""
        place, of = self._places[dataset]
        return str(place), {"partition-id": place, "num-partitions": of}


def flower_trainer(app: FlowerApp, partitions: Partitions) -> Trainer:
    """Start an app that trains the clients of some partitions. Raises ``FlowerRefused``, ``FlowerFailed``."""
    return FlowerTrainer(app, partitions)


def of_flower_app(
    app: FlowerApp,
    *,
    clients: int,
    iterations: int | None,
    dropout: float,
    clipping_norm: Decimal,
    target_epsilon: float,
    noise: Decimal | None,
    say: Callable[[str], None],
) -> SimulatedTask:
    """Make a task for an app: its model, its strategy's rule, unit ``client``. Raises ``FlowerRefused``.

    The app loads its own rows, so what is certified here are the numbers of the partitions. Without
    ``iterations`` there are as many as the app has rounds; ``say`` hears what is lost, and what fails.
    """
    partitions = Partitions()
    trainer = FlowerTrainer(app, partitions)
    iterations = trainer.about["rounds"] if iterations is None else iterations
    rule = rule_of_strategy(trainer.about["strategy"], trainer.about["settings"], iterations)
    say(f"{trainer.about['strategy']} of Flower {trainer.about['flwr']} becomes the rule {rule.kind}.")
    for lost in lost_of(trainer.about):
        say(f"Not kept: {lost}")
    document: dict[str, Any] = {
        "task": {"name": app.name},
        "model": {"kind": "custom", "parameters": Layout.of(trainer.initial()).size},
        "training": {"algorithm": "custom"},
        "rule": rule.document(),
        "privacy": {
            "clipping_norm": clipping_norm,
            "noise_multiplier": 1 if noise is None else noise,
            "max_releases": iterations,
            "min_clients": max(2, int(clients * (1 - 2 * dropout))),
            "max_colluders": 0,
            "expected_clients": clients,
        },
        "schema": _partition_schema(clients, app.digest),
    }
    task = read_task(document)
    if noise is None:
        noise = noise_multiplier(Plan.of(task), target_epsilon, task.privacy.relation)
        document["privacy"]["noise_multiplier"] = noise
    document["model"]["scale_bits"] = fitting_scale_bits(float(noise * clipping_norm), clients)
    task = read_task(document)
    assert isinstance(task.schema, TableSchema)
    rows = [
        encode_table(Table({"partition": [str(place)], "there": ["yes"]}, range(1, 2)), task.schema)
        for place in range(clients)
    ]
    partitions.number(rows)
    return SimulatedTask(task, rows, own_trainer=trainer, trainer_name=app, on_failure=say)


def of_task_and_app(
    task: Task, app: FlowerApp, source: RowSource, clients: int | None, on_failure: Callable[[str], None]
) -> SimulatedTask:
    """Let an app train a custom task of a file; the app gets each client's rows. Raises ``InvalidInput``."""
    if refused := app_refused(task.schema.app, app):
        raise TrainerRefused(f"Task '{task.name}': {refused}")
    usual = len(source.files) if len(source.files) > 1 else task.privacy.expected_clients
    parts, _ = source.deal(task.study, task.schema, usual if clients is None else clients)
    partitions = Partitions()
    partitions.number(parts)
    trainer = FlowerTrainer(app, partitions)
    check_size(task, trainer, app.name)
    return SimulatedTask(task, parts, own_trainer=trainer, trainer_name=app, on_failure=on_failure)


def _partition_schema(clients: int, digest: str) -> dict[str, object]:
    column = {"kind": "number", "name": "partition", "unit": "place", "low": 0, "high": max(clients - 1, 1)}
    return {"column": [column], "label": "there", "label_values": ["no", "yes"], "app": digest}
