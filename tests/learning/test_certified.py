import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pytest

from anofel.learning.build import trainer_of
from anofel.learning.certified import CertifiedDataset, NotTheCertifiedDataset, dataset_digest
from anofel.learning.trainer import LocalUpdate, Trainer
from anofel.models.rules import rule_of
from anofel.phase2_training.step4_local_training import contribute
from anofel.privacy.ledger import AlreadyCharged, BudgetExceeded, FloorNotMet, Floors, Ledger, Occasion
from anofel.privacy.plan import Plan
from anofel.privacy.protect import draw_noise
from anofel.studies.dataset import Dataset, canonical_chunks
from anofel.tasks.task import Task
from tests.patients import make_dataset, make_task

DOMAIN = bytes([16]) + b"anofel/1/dataset"


def test_digest_covers_exactly_the_canonical_bytes():
    data = make_dataset(30)
    assert dataset_digest(data) == dataset_digest(make_dataset(30))
    assert dataset_digest(data) != dataset_digest(make_dataset(30, seed=1))
    order = 21888242871839275222246405745257275088548364400416034343698204186575808495617
    hashed = hashlib.sha512(DOMAIN + b"".join(canonical_chunks(data))).digest()
    expected = int.from_bytes(hashed, "little") % order
    assert int.from_bytes(dataset_digest(data).to_bytes(), "little") == expected


@pytest.mark.parametrize("part", ["features", "labels"])
def test_other_rows_are_refused(part):
    data = make_dataset(30)
    digest = dataset_digest(data)
    CertifiedDataset(data, digest)
    features, labels = data.features.copy(), data.labels.copy()
    if part == "features":
        features[7, 1] += 1
    else:
        labels[7] = 1 - labels[7]
    with pytest.raises(NotTheCertifiedDataset, match="differs from what was certified"):
        CertifiedDataset(Dataset(features, labels, data.schema), digest)


@dataclass(frozen=True)
class Step:
    """A client's step 4: charge, train, add noise."""

    task: Task
    trainer: Trainer
    ledger: Ledger
    floors: Floors

    def update(self, certified, model, *, turn, occasion, anonymity_set):
        plan = Plan.of(self.task)
        self.ledger.charge(turn, occasion, plan=plan, floors=self.floors, anonymity_set=anonymity_set)
        return contribute(self.trainer, model, certified.dataset, plan).with_noise(plan)


@pytest.fixture
def step(tmp_path):
    task = make_task(privacy={"noise_multiplier": "20"})
    return Step(
        task=task,
        trainer=trainer_of(task),
        ledger=Ledger(tmp_path / "l.sqlite"),
        floors=Floors(max_epsilon=0.5, max_colluders=0),
    )


def turn(iteration):
    occasion = Occasion(board=b"board", task=b"task", bundle=0, iteration=iteration)
    return {"turn": f"turn {iteration}", "occasion": occasion}


def first_model(step):
    return rule_of(step.task).initial(step.trainer.initial(), step.task.model.scale_bits)


def certified(rows=30):
    data = make_dataset(rows)
    return CertifiedDataset(data, dataset_digest(data))


def test_step_measures_the_posted_model_where_the_task_asks(step):
    task = make_task(privacy={"noise_multiplier": "20"}, metrics={"names": ["accuracy"]})
    measuring = replace(step, task=task, trainer=trainer_of(task))
    update = measuring.update(certified(), first_model(measuring), **turn(1), anonymity_set=100)
    assert update.shape == (task.model.parameters + 1,)


def test_step_trains_protects_and_charges(step):
    rows = certified()
    update = step.update(rows, first_model(step), **turn(1), anonymity_set=100)
    assert update.dtype == np.int64
    assert update.shape == (Plan.of(step.task).dimension,)
    assert [(made.occasion, made.released) for made in step.ledger.charges()] == [(turn(1)["occasion"], True)]
    with pytest.raises(AlreadyCharged):
        step.update(rows, first_model(step), **turn(1), anonymity_set=100)


def test_rows_cannot_be_changed_after_certification():
    rows = certified()
    with pytest.raises(ValueError, match="read-only"):
        rows.dataset.labels[0] = 1 - rows.dataset.labels[0]
    with pytest.raises(ValueError, match="read-only"):
        rows.dataset.features[0] = 0


def test_refusal_comes_before_training(step):
    class Never:
        def initial(self):
            return step.trainer.initial()

        def train(self, *_):
            raise AssertionError("trained after a refusal")

    strict = Step(
        task=step.task,
        trainer=Never(),
        ledger=step.ledger,
        floors=Floors(max_epsilon=0.5, min_anonymity_set=50, max_colluders=0),
    )
    with pytest.raises(FloorNotMet, match="demands 50"):
        strict.update(certified(), first_model(step), **turn(1), anonymity_set=49)


def test_step_stops_when_the_budget_is_spent(step):
    rows, model = certified(), first_model(step)
    allowed = 0
    while Plan.of(step.task).epsilon(allowed + 1, "zero-out") <= 0.5:
        step.update(rows, model, **turn(allowed), anonymity_set=100)
        allowed += 1
    assert allowed > 2
    with pytest.raises(BudgetExceeded):
        step.update(rows, model, **turn(allowed), anonymity_set=100)


@pytest.mark.parametrize("fault", ["raises", "not finite", "memory", "shape"])
def test_whatever_fails_in_training_is_the_zero_update_with_noise(step, fault, monkeypatch):
    """An error that kept the client from posting would tell the owner something about its rows."""

    class Failing:
        def initial(self):
            return step.trainer.initial()

        def train(self, parameters, dataset):
            if fault == "raises":
                raise KeyError("a row of this client")
            if fault == "memory":
                raise MemoryError
            value = np.nan if fault == "not finite" else 0.0
            names = list(parameters)[1:] if fault == "shape" else parameters
            return LocalUpdate({name: np.full_like(parameters[name], value) for name in names}, len(dataset))

    drawn = []
    monkeypatch.setattr(
        "anofel.privacy.protect.draw_noise", lambda *of: drawn.append(draw_noise(*of)) or drawn[0]
    )
    failing = replace(step, trainer=Failing())
    update = failing.update(certified(), first_model(step), **turn(1), anonymity_set=100)
    assert np.array_equal(update, drawn[0])
    assert update.any()
    assert len(step.ledger.charges()) == 1
