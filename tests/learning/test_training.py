import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.build import network_of, trainer_of
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedAvg, FedSGD
from anofel.learning.metrics import accuracy, auc, record_metrics
from anofel.learning.sampling import at_most
from anofel.learning.trainer import LocalUpdate, RecordTrainer, Trainer
from anofel.models.parameters import Layout
from anofel.models.rules import rule_of
from tests.patients import make_dataset, make_task

NETWORKS = [
    DenseNetwork(features=5),
    DenseNetwork(features=5, hidden=(4,)),
    DenseNetwork(features=5, classes=3),
    DenseNetwork(features=5, classes=4, hidden=(6, 3)),
]


def example(network, rows=12):
    rng = np.random.default_rng(7)
    parameters = {name: rng.normal(size=array.shape) for name, array in network.initial().items()}
    return parameters, rng.normal(size=(rows, 5)), rng.integers(0, network.classes, rows)


@pytest.mark.parametrize("network", NETWORKS)
def test_gradient_agrees_with_finite_differences(network):
    parameters, inputs, labels = example(network)
    gradient = network.gradient(parameters, inputs, labels)
    for name, array in parameters.items():
        for index in np.ndindex(array.shape):
            step = 1e-6
            moved = {key: value.copy() for key, value in parameters.items()}
            moved[name][index] += step
            above = network.mean_loss(moved, inputs, labels)
            moved[name][index] -= 2 * step
            slope = (above - network.mean_loss(moved, inputs, labels)) / (2 * step)
            assert gradient[name][index] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("network", NETWORKS)
def test_clipped_sum_equals_the_loop_over_records(network):
    parameters, inputs, labels = example(network)
    layout = Layout.of(parameters)
    expected = np.zeros(layout.size)
    for row in range(len(labels)):
        one = layout.flatten(network.gradient(parameters, inputs[[row]], labels[[row]]))
        expected += one * min(1, 0.3 / np.linalg.norm(one))
    total = layout.flatten(network.clipped_gradient_sum(parameters, inputs, labels, 0.3))
    np.testing.assert_allclose(total, expected, atol=1e-12)


def test_probabilities_sum_to_one_even_for_huge_logits():
    for network in NETWORKS:
        parameters, inputs, _ = example(network)
        np.testing.assert_allclose(network.probabilities(parameters, 1e6 * inputs).sum(axis=1), 1)


def test_trainers_follow_the_protocol():
    network = DenseNetwork(features=5)
    assert isinstance(FedSGD(network), RecordTrainer)
    assert isinstance(FedAvg(network, 0.1), Trainer)
    assert not isinstance(FedAvg(network, 0.1), RecordTrainer)


def test_fedavg_with_one_full_batch_is_a_gradient_step():
    task, data = make_task(), make_dataset(50)
    network = network_of(task)
    start = network.initial()
    step = FedAvg(network, 0.5, epochs=1, batch_size=50).train(start, data).update
    gradient = FedSGD(network).train(start, data).update
    for name in step:
        np.testing.assert_allclose(step[name], 0.5 * gradient[name], atol=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "settings"), [("fedsgd", {}), ("fedavg", {"learning_rate": "0.2", "epochs": 2})]
)
def test_training_learns(algorithm, settings):
    task = make_task(
        training={"algorithm": algorithm, **settings},
        model={"kind": "mlp", "hidden": [4]},
    )
    data, test = make_dataset(600), make_dataset(400, seed=1)
    trainer, network = trainer_of(task), network_of(task)
    parameters = trainer.initial()
    for _ in range(150 if algorithm == "fedsgd" else 5):
        update = trainer.train(parameters, data).update
        parameters = {name: parameters[name] + update[name] for name in parameters}
    probabilities = network.probabilities(parameters, test.inputs())
    assert auc(probabilities[:, 1], test.labels) > 0.8
    assert accuracy(probabilities, test.labels) > 0.7


def test_record_sampling_is_poisson():
    trainer, data = FedSGD(network_of(make_task())), make_dataset(2000)
    sizes = [
        trainer.train_records(trainer.initial(), data, 1.0, sampling_rate=0.2).examples for _ in range(50)
    ]
    # Hoeffding over 100,000 coins at error probability 1e-9.
    assert abs(sum(sizes) / 100_000 - 0.2) < 0.0104
    assert len(set(sizes)) > 5


def test_an_empty_sample_is_an_update_of_zero():
    trainer, data = FedSGD(network_of(make_task())), make_dataset(1)
    samples = [trainer.train_records(trainer.initial(), data, 1.0, sampling_rate=0.5) for _ in range(64)]
    empty = [local for local in samples if local.examples == 0]
    assert empty
    assert all(not array.any() for local in empty for array in local.update.values())


def test_empty_dataset_is_refused():
    empty = make_dataset(5).take(np.array([], dtype=np.int64))
    network = network_of(make_task())
    for trainer in (FedSGD(network), FedAvg(network, 0.1)):
        with pytest.raises(InvalidInput, match="no rows"):
            trainer.train(trainer.initial(), empty)


def test_custom_tasks_bring_their_own_trainer():
    with pytest.raises(InvalidInput, match="trainer's own"):
        network_of(make_task(model={"kind": "custom", "parameters": 7}))
    with pytest.raises(InvalidInput, match="own trainer"):
        trainer_of(make_task(training={"algorithm": "custom"}))
    assert rule_of(make_task(rule={"lr_num": 3, "momentum": 9})).momentum == 9


def test_auc_counts_ties_half():
    labels = np.array([0, 0, 1, 1])
    assert auc(np.array([0.1, 0.4, 0.35, 0.8]), labels) == 0.75
    assert auc(np.array([1.0, 1.0, 1.0, 1.0]), labels) == 0.5
    with pytest.raises(InvalidInput, match="both labels"):
        auc(np.array([1.0]), np.array([1]))


def test_layout_refuses_other_shapes():
    layout = Layout.of({"w": np.zeros((2, 2))})
    with pytest.raises(InvalidInput, match="names and shapes"):
        layout.flatten({"w": np.zeros(4)})
    with pytest.raises(InvalidInput, match="4 parameters"):
        layout.unflatten(np.zeros(5))


def test_update_is_not_shown():
    assert "1.5" not in repr(LocalUpdate({"w": np.array([1.5])}, 3))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_record_that_is_not_finite_adds_nothing_and_changes_nothing_else(network):
    parameters, inputs, labels = example(network)
    layout = Layout.of(parameters)
    others = np.arange(len(labels)) != 3
    expected = network.clipped_gradient_sum(parameters, inputs[others], labels[others], 0.3)
    for value in (np.inf, np.nan, 1e308):
        inputs[3] = value
        total = network.clipped_gradient_sum(parameters, inputs, labels, 0.3)
        np.testing.assert_allclose(layout.flatten(total), layout.flatten(expected), atol=1e-12)


def test_records_that_are_not_finite_measure_zero():
    spec = make_task(metrics={"names": ["accuracy", "loss"], "share": "0.1"}).metrics
    probabilities = np.array([[0.2, 0.8], [np.nan, np.nan], [0.9, 0.1]])
    measured = record_metrics(probabilities, np.array([1, 0, 1]), spec)
    assert measured[1].tolist() == [0, 0]
    assert measured[:, 0].tolist() == [1, 0, 0]
    assert np.isfinite(measured).all()


def test_of_too_many_records_some_are_drawn():
    dataset = make_dataset(40)
    assert at_most(dataset, 40) is dataset
    chosen = at_most(dataset, 10)
    assert len(chosen) == 10
    rows = {row.tobytes() for row in dataset.features}
    assert all(row.tobytes() in rows for row in chosen.features)
    draws = {at_most(dataset, 10).features.tobytes() for _ in range(20)}
    assert len(draws) > 1, "which records take part is drawn anew"
