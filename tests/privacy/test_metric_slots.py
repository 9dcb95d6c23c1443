"""Metric slots: what clients say about a model inside the protected sum, and what it costs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.board.announcement import limits_of
from anofel.cli.privacy_report import render
from anofel.errors import InvalidInput
from anofel.learning.build import network_of, trainer_of
from anofel.learning.metrics import accuracy, record_metrics
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Layout
from anofel.models.rules import first_model
from anofel.privacy.clipping import NormCheckFailed, UpdateNotFinite
from anofel.privacy.explain import explain
from anofel.privacy.metric_slots import reported_metrics
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode, protect, train_unit
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task
from tests.patients import make_dataset, make_task
from tests.plain_path import iterate

BOTH = {"names": ["accuracy", "loss"], "share": "0.6", "loss_bound": "3"}


def client_task(**metrics: Any) -> Task:
    return make_task(metrics=BOTH | metrics)


def record_task(**privacy: Any) -> Task:
    changes = {"unit": "record", "records_per_client": 50, **privacy}
    return make_task(metrics=BOTH, privacy=changes)


# The task file


def test_without_the_table_nothing_changes() -> None:
    task = make_task()
    assert (task.metrics, task.metric_slots, task.length) == (None, (), task.model.parameters)
    assert b"metrics" not in task.to_bytes()


@pytest.mark.parametrize(
    ("task", "slots"),
    [(client_task(), ("accuracy", "loss")), (record_task(), ("accuracy", "loss", "examples"))],
)
def test_a_task_with_metrics_has_one_encoding_and_longer_vectors(task: Task, slots: tuple[str, ...]) -> None:
    assert Task.from_bytes(task.to_bytes()) == task
    assert task.metric_slots == slots
    assert Plan.of(task).dimension == task.length == task.model.parameters + len(slots)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": []}, "some of accuracy, loss"),
        ({"names": ["loss", "accuracy"]}, "in this order"),
        ({"names": ["auc"]}, "some of accuracy, loss"),
        ({"share": "1"}, "share"),
        ({"share": "0"}, "share"),
        ({"loss_bound": "0"}, "loss_bound"),
        ({"shore": "0.5"}, "unknown key 'shore'"),
    ],
)
def test_a_wrong_table_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        client_task(**change)


@pytest.mark.parametrize("privacy", [{"unit": "paper"}, {"unit": "record", "sampling_rate": "0.5"}])
def test_metrics_need_a_proven_unit_without_sampling(privacy: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"\[metrics\] metric slots need"):
        make_task(metrics=BOTH, privacy=privacy)


def test_a_table_without_proven_ranges_is_written_as_before() -> None:
    assert b"proven_ranges" not in client_task().to_bytes()
    proven = client_task(proven_ranges=True)
    assert Task.from_bytes(proven.to_bytes()) == proven != client_task()


# What a client sends


def test_update_and_metrics_share_the_clipping_norm() -> None:
    plan = Plan.of(client_task())
    assert plan.update_norm == pytest.approx(0.8 * plan.clipping_norm)
    assert plan.metric_weight * math.sqrt(2) == pytest.approx(0.6 * plan.clipping_norm)
    records = Plan.of(record_task())
    assert records.update_norm**2 + 3 * records.metric_weight**2 == pytest.approx(records.clipping_norm**2)


@given(
    update=st.lists(st.floats(-1e6, 1e6), min_size=7, max_size=7),
    metrics=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_the_norm_of_the_whole_vector_is_what_the_accounting_uses(
    update: list[float], metrics: tuple[float, float]
) -> None:
    task = client_task()
    plan, layout = Plan.of(task), Layout(("w",), ((task.model.parameters,),))
    vector = np.resize(np.array(update), task.model.parameters)
    encoded = encode(LocalUpdate({"w": vector}, 5, metrics), layout, plan)
    assert encoded.size == plan.dimension
    assert int(np.dot(encoded, encoded)) <= plan.norm_squared
    slots = encoded[-2:] / (plan.metric_weight * plan.scale)
    assert slots == pytest.approx(metrics, abs=2 / (plan.metric_weight * plan.scale))


def test_one_record_moves_the_vector_by_the_clipping_norm_at_most() -> None:
    task = record_task()
    plan, trainer = Plan.of(task), trainer_of(task)
    model = first_model(task, trainer.initial())
    for seed in range(5):
        local = train_unit(trainer, model.parameters(), make_dataset(1, seed), plan)
        encoded = encode(local, model.layout, plan).astype(np.float64)
        assert np.linalg.norm(encoded) <= plan.sensitivity("zero-out").l2
        assert encoded[-1] == pytest.approx(plan.metric_weight * plan.scale, abs=1)


@pytest.mark.parametrize("metrics", [(0.5, 1.1), (-0.1, 0.5), (math.nan, 0.5)])
def test_a_metric_out_of_its_bounds_is_not_sent(metrics: tuple[float, float]) -> None:
    task = client_task()
    layout, size = Layout(("w",), ((task.model.parameters,),)), task.model.parameters
    with pytest.raises((NormCheckFailed, UpdateNotFinite)):
        encode(LocalUpdate({"w": np.zeros(size)}, 5, metrics), layout, Plan.of(task))


def test_missing_metrics_and_trainers_that_cannot_measure_are_refused() -> None:
    task = client_task()
    layout, size = Layout(("w",), ((task.model.parameters,),)), task.model.parameters
    with pytest.raises(InvalidInput, match="2 metric slots, the update 0"):
        encode(LocalUpdate({"w": np.zeros(size)}, 5), layout, Plan.of(task))
    with pytest.raises(InvalidInput, match="1 parameters"):
        small = Layout(("w",), ((1,),))
        encode(LocalUpdate({"w": np.zeros(2)}, 5, (0, 0)), Layout(("w",), ((2,),)), Plan.of(make_one(small)))

    class Blind:
        def initial(self) -> dict[str, Any]:
            return {}

        def train(self, parameters: object, dataset: Dataset) -> LocalUpdate:
            return LocalUpdate({}, len(dataset))

    with pytest.raises(InvalidInput, match="give probabilities"):
        train_unit(Blind(), {}, make_dataset(3), Plan.of(task))


def make_one(layout: Layout) -> Task:
    """A task with as many parameters as a layout."""
    model = {"kind": "custom", "parameters": layout.size}
    return make_task(metrics=BOTH, model=model, training={"algorithm": "custom"})


def test_a_hopeless_record_counts_as_the_bound() -> None:
    spec = client_task().metrics
    assert spec is not None
    probabilities = np.array([[1.0, 0.0], [0.25, 0.75]])
    measured = record_metrics(probabilities, np.array([1, 1]), spec)
    assert measured.tolist() == [[0.0, 1.0], [1.0, -math.log(0.75) / 3]]


# What the sum says


@pytest.mark.parametrize("task", [client_task(), record_task()])
def test_without_noise_the_report_is_the_mean_and_the_model_is_unharmed(task: Task) -> None:
    sizes = (10, 20, 30, 40, 50, 15, 25, 35)
    clients = [make_dataset(rows, seed) for seed, rows in enumerate(sizes)]
    plan, network = Plan.of(task), network_of(task)
    before = first_model(task, trainer_of(task).initial())
    for model, total in iterate(task, clients, 2, insecure_no_noise=True):
        reported = reported_metrics(plan, total, len(clients))
        assert reported is not None
        parameters = before.parameters()
        each = [accuracy(network.probabilities(parameters, c.inputs()), c.labels) for c in clients]
        losses = [network.mean_loss(parameters, c.inputs(), c.labels) for c in clients]
        weights = sizes if task.privacy.unit == "record" else None
        assert reported["accuracy"] == pytest.approx(np.average(each, weights=weights), abs=1e-3)
        assert reported["loss"] == pytest.approx(np.average(losses, weights=weights), abs=1e-2)
        assert model.values.size == task.model.parameters
        before = model


def test_the_stated_noise_is_the_noise() -> None:
    task = client_task()
    plan = Plan.of(task)
    reports = []
    for _ in range(300):
        total = np.sum([plan.mechanism.sample(plan.local_sigma(), plan.dimension) for _ in range(8)], axis=0)
        reported = reported_metrics(plan, total, 8)
        assert reported is not None
        reports.append(reported["accuracy"] / reported["noise"])
    assert 0.8 < np.std(reports) < 1.2
    assert abs(np.mean(reports)) < 0.3


def test_nothing_is_reported_without_slots_or_without_records() -> None:
    assert reported_metrics(Plan.of(make_task()), np.zeros(7, np.int64), 3) is None
    plan = Plan.of(record_task())
    assert reported_metrics(plan, np.full(plan.dimension, -5, np.int64), 3) is None


def test_the_explanation_says_what_metrics_cost() -> None:
    report = explain(client_task())
    assert report["metrics"]["update_norm"] == pytest.approx(0.4)
    text = render(report)
    assert "Metric slots (accuracy, loss), part of the same sum and of the same ε" in text
    assert "Metric slots" not in render(explain(make_task()))
    assert report["epsilon"]["zero-out"]["total"] == pytest.approx(
        explain(make_task())["epsilon"]["zero-out"]["total"], rel=1e-3
    )


# Proven ranges


def test_the_range_of_a_slot_is_exact() -> None:
    """C = ½ is 128 steps; 0.6 of it over √2 is 54.3, and σ = 64 gives a noise of at most 65·√60 = 503.5."""
    privacy = {"clipping_norm": "0.5", "noise_multiplier": 1, "min_clients": 4, "max_colluders": 0}
    task = make_task(metrics=BOTH | {"proven_ranges": True}, privacy=privacy, model={"scale_bits": 8})
    assert Plan.of(task).metric_range == (-504, 55 + 1 + 504)
    assert Plan.of(make_task(metrics=BOTH, privacy=privacy)).metric_range is None
    unproven = {"name": "test", "insecure_unproven_contributions": True}
    assert Plan.of(make_task(metrics=BOTH | {"proven_ranges": True}, task=unproven)).metric_range is None


@pytest.mark.parametrize("unit", ["client", "record"])
def test_honest_slots_are_within_their_range(unit: str) -> None:
    metrics = BOTH | {"proven_ranges": True}
    record = {"unit": "record", "records_per_client": 50}
    task = make_task(metrics=metrics, privacy=record if unit == "record" else {})
    plan, trainer = Plan.of(task), trainer_of(task)
    model = first_model(task, trainer.initial())
    assert plan.metric_range is not None
    low, high = plan.metric_range
    limits = limits_of(task, 16)
    assert [one.coordinate for one in limits.ranges] == [*range(task.model.parameters, task.length)]
    for seed in range(20):
        dataset = make_dataset(50, seed)
        local = train_unit(trainer, model.parameters(), dataset, plan)
        slots = protect(local, model.layout, plan)[-len(plan.metric_slots) :]
        assert all(low <= slot <= high for slot in slots.tolist())
        for slot, one in zip(slots.tolist(), limits.ranges, strict=True):
            assert one.low <= slot <= one.high


def test_the_explanation_says_what_a_liar_can_do_to_a_metric() -> None:
    bound = explain(client_task(proven_ranges=True))["liars"]["metric"]
    norm = explain(client_task())["liars"]["metric"]
    assert (bound["proven_range"], norm["proven_range"]) == (True, False)
    assert bound["one"] < norm["one"]
    assert "by its proven range" in render(explain(client_task(proven_ranges=True)))
