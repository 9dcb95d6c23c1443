"""Step 4 — a client trains (AnoFel §4.3.2): from the posted model to the integers that get encrypted.

In this order:

1. The rows are the certified ones (``anofel.learning.certified``).
2. The client's floors and its ledger allow one more release; it is charged now (``anofel.privacy.ledger``).
3. Train as the unit of protection demands; clip, round, check the norm. What fails here is the zero update.
4. Add the client's share of the noise.

What is refused is refused before the charge, by things that are public or the client's own settings; after
it nothing is, so that nobody can read from a post's absence what the data were (D-20).
"""

from dataclasses import replace
from decimal import Decimal
from typing import Final

import numpy as np

from anofel.errors import AnofelError
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.trainer import Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Integers, Layout
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate, draw_noise, encode, train_unit
from anofel.stopping import interruptible
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

_FEW_ROWS: Final = 16


def make_update(trainer: Trainer, model: IntegerModel, dataset: Dataset, plan: Plan) -> Integers:
    """Train, clip, round and check the norm (3). Raises whatever goes wrong in it."""
    return encode(train_unit(trainer, model.parameters(), dataset, plan), model.layout, plan)


def contribute(trainer: Trainer, model: IntegerModel, dataset: Dataset, plan: Plan) -> ProtectedUpdate:
    """Make the update (3); whatever goes wrong in it ends in the zero update (D-20).

    Whether a client posts must not depend on its data, so no error of training leaves this function. Its
    noise (4) is added when it is sealed: ``ProtectedUpdate.with_noise``.
    """
    try:
        return ProtectedUpdate(make_update(trainer, model, dataset, plan))
    except TrainerFailed as error:
        return _failed(plan, error.__cause__ or error)
    except AnofelError as error:
        return ProtectedUpdate.zero(plan, str(error))
    except Exception as error:
        return _failed(plan, error)


def _failed(plan: Plan, error: BaseException) -> ProtectedUpdate:
    """Say the kind of an error alone: its text may quote rows, and this goes into a log."""
    return ProtectedUpdate.zero(
        plan, f"Training failed ({type(error).__name__}); anofel client doctor may say more."
    )


def rehearse(task: Task, trainer: Trainer, dataset: Dataset) -> None:
    """Train the first model on one row of each class and throw the update away; nothing is charged.

    Raises what an iteration would raise after its charge. Of many classes the last ones are taken: a module
    with too few outputs fails at those.
    """
    plan = Plan.of(task)
    plan = replace(plan, spec=replace(plan.spec, sampling_rate=Decimal(1)))  # or no row might be drawn
    rows = dataset.take(np.unique(dataset.labels, return_index=True)[1][-_FEW_ROWS:])
    first = trainer.initial()
    with interruptible():
        encode(train_unit(trainer, first, rows, plan), Layout.of(first), plan)
    draw_noise(plan, 1 if plan.spec.adaptive else None)
