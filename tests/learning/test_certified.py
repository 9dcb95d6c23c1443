import hashlib
from dataclasses import replace

import numpy as np
import pytest

from anofel.learning.build import rule_of, trainer_of
from anofel.learning.certified import CertifiedDataset, NotTheCertifiedDataset, dataset_digest
from anofel.phase2_training.local_training import LocalTraining
from anofel.privacy.ledger import AlreadyCharged, BudgetExceeded, FloorNotMet, Floors, Ledger
from anofel.privacy.plan import Plan
from anofel.studies.dataset import Dataset, canonical_chunks
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


@pytest.fixture
def step(tmp_path):
    task = make_task(privacy={"noise_multiplier": "20"})
    return LocalTraining(
        task=task,
        trainer=trainer_of(task),
        ledger=Ledger(tmp_path / "l.sqlite"),
        floors=Floors(max_epsilon=0.5),
    )


def first_model(step):
    return rule_of(step.task).initial(step.trainer.initial(), step.task.model.scale_bits)


def certified(rows=30):
    data = make_dataset(rows)
    return CertifiedDataset(data, dataset_digest(data))


def test_step_measures_the_posted_model_where_the_task_asks(step):
    task = make_task(privacy={"noise_multiplier": "20"}, metrics={"names": ["accuracy"]})
    measuring = replace(step, task=task, trainer=trainer_of(task))
    update = measuring.update(certified(), first_model(measuring), iteration=1, anonymity_set=100)
    assert update.shape == (task.model.parameters + 1,)


def test_step_trains_protects_and_charges(step):
    rows = certified()
    update = step.update(rows, first_model(step), iteration=1, anonymity_set=100)
    assert update.dtype == np.int64
    assert update.shape == (Plan.of(step.task).dimension,)
    assert step.ledger.charges(rows.digest.to_bytes().hex()) == [(step.task.digest().hex(), 1, True)]
    with pytest.raises(AlreadyCharged):
        step.update(rows, first_model(step), iteration=1, anonymity_set=100)


def test_rows_changed_after_certification_are_not_trained_on(step):
    rows = certified()
    rows.dataset.labels[0] = 1 - rows.dataset.labels[0]
    with pytest.raises(NotTheCertifiedDataset):
        step.update(rows, first_model(step), iteration=1, anonymity_set=100)
    assert step.ledger.charges(rows.digest.to_bytes().hex()) == []


def test_refusal_comes_before_training(step):
    class Never:
        def initial(self):
            return step.trainer.initial()

        def train(self, *_):
            raise AssertionError("trained after a refusal")

    strict = LocalTraining(
        task=step.task,
        trainer=Never(),
        ledger=step.ledger,
        floors=Floors(max_epsilon=0.5, min_anonymity_set=50),
    )
    with pytest.raises(FloorNotMet, match="demands 50"):
        strict.update(certified(), first_model(step), iteration=1, anonymity_set=49)


def test_step_stops_when_the_budget_is_spent(step):
    rows, model = certified(), first_model(step)
    allowed = 0
    while Plan.of(step.task).epsilon(allowed + 1, "zero-out") <= 0.5:
        step.update(rows, model, iteration=allowed, anonymity_set=100)
        allowed += 1
    assert allowed > 2
    with pytest.raises(BudgetExceeded):
        step.update(rows, model, iteration=allowed, anonymity_set=100)
