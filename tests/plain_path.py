"""The plain integer path: the same clipping, rounding, noise and update rule as a deployment, no encryption.

For tests and benchmarks. What the encrypted path, and a simulation of either kind, must equal, sum for sum.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.trainer import Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.means import mean_of
from anofel.models.parameters import Integers
from anofel.models.rules import rule_of
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode, protect, train_unit
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task


def iterate(
    task: Task,
    clients: Sequence[Dataset],
    iterations: int,
    *,
    trainer: Trainer | None = None,
    after: tuple[IntegerModel, int] | None = None,
    insecure_no_noise: bool = False,
) -> Iterator[tuple[IntegerModel, Integers]]:
    """Run iterations of a task; yields each new model and the sum it came from.

    `after` is a model and the iteration that made it: the run goes on behind it.
    With `insecure_no_noise` the update is clipped and rounded but not protected, for comparison.
    """
    if len(clients) < task.privacy.min_clients:
        raise InvalidInput(f"The task needs {task.privacy.min_clients} clients, there are {len(clients)}.")
    plan, rule = Plan.of(task), rule_of(task)
    trainer = trainer_of(task) if trainer is None else trainer
    model, done = after or (rule.initial(trainer.initial(), task.model.scale_bits), 0)
    for iteration in range(done + 1, iterations + 1):
        parameters = model.parameters()
        total = np.zeros(plan.dimension, dtype=np.int64)
        for position, dataset in enumerate(clients, start=1):
            local = train_unit(trainer, parameters, dataset, plan)
            if insecure_no_noise:
                total += encode(local, model.layout, plan)
            else:
                total += protect(local, model.layout, plan, position if task.privacy.adaptive else None)
        model = rule.apply(model, *mean_of(task, [(total, len(clients))]), iteration)
        yield model, total
