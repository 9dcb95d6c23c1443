"""Step 4 — a client trains (AnoFel §4.3.2): from the posted model to the integers that get encrypted.

In this order, and stopping at the first refusal:

1. The rows are the certified ones.
2. The client's floors and its ledger allow one more release; it is charged now.
3. Train as the unit of protection demands.
4. Clip, round, check the norm, add the client's share of the noise.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

import numpy as np

from anofel.learning.certified import CertifiedDataset
from anofel.learning.integer_model import IntegerModel
from anofel.learning.parameters import Layout
from anofel.learning.trainer import Trainer
from anofel.privacy.ledger import Floors, Ledger
from anofel.privacy.plan import Plan
from anofel.privacy.protect import Integers, encode, protect, train_unit
from anofel.stopping import interruptible
from anofel.studies.dataset import Dataset
from anofel.task import Task

_FEW_ROWS: Final = 16


@dataclass(frozen=True, kw_only=True)
class LocalTraining:
    """What a client keeps between iterations of one task."""

    task: Task
    trainer: Trainer
    ledger: Ledger
    floors: Floors

    def update(
        self,
        certified: CertifiedDataset,
        model: IntegerModel,
        *,
        iteration: int,
        anonymity_set: int,
        position: int | None = None,
    ) -> Integers:
        """Make the protected update of one iteration.

        `position` is needed by adaptive noise only: one more than the posts already on the board.
        A second update of the same iteration is refused (AlreadyCharged): a retry resends the stored bytes.
        """
        plan = Plan.of(self.task)
        certified.verify()  # (1)
        self.ledger.charge(  # (2)
            dataset=certified.digest.to_bytes().hex(),
            task=self.task.digest().hex(),
            iteration=iteration,
            plan=plan,
            floors=self.floors,
            anonymity_set=anonymity_set,
        )
        with interruptible():
            local = train_unit(self.trainer, model.parameters(), certified.dataset, plan)  # (3)
        return protect(local, model.layout, plan, position)  # (4)


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
