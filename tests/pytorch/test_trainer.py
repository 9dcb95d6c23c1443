"""Training with PyTorch against the NumPy networks, loops over records, and optimisers by hand."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anofel.errors import AnofelError, InvalidInput
from anofel.learning.build import TrainerRefused, trainer_of
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedSGD
from anofel.learning.metrics import accuracy
from anofel.learning.pytorch.module import ModuleRefused
from anofel.learning.pytorch.networks import make_network
from anofel.learning.pytorch.records import micro_batch
from anofel.learning.pytorch.trainer import LocalEpochs, TorchTrainer
from anofel.learning.splits import iid
from anofel.learning.trainer import Predictor, RecordTrainer, Trainer
from anofel.models.parameters import Layout, Parameters
from anofel.phase2_training.step4_local_training import rehearse
from anofel.privacy.plain_path import iterate
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode, train_unit
from tests.patients import make_dataset, make_task
from tests.pytorch.digits import SCHEMA, image_task, make_digits
from tests.pytorch.modules import Patients

ROWS = make_dataset(50)


def logistic() -> nn.Module:
    return nn.Linear(5, 1).double()


def as_dense(parameters: Parameters) -> dict[str, np.ndarray]:
    return {"layer0.weight": parameters["weight"], "layer0.bias": parameters["bias"]}


def test_it_follows_the_protocols() -> None:
    trainer = TorchTrainer(logistic())
    assert isinstance(trainer, Trainer)
    assert isinstance(trainer, RecordTrainer)
    assert isinstance(trainer, Predictor)


def test_a_gradient_equals_the_one_in_numpy() -> None:
    trainer, dense = TorchTrainer(logistic()), FedSGD(DenseNetwork(features=5))
    start = trainer.initial()
    ours, theirs = trainer.train(start, ROWS), dense.train(as_dense(start), ROWS)
    assert ours.examples == theirs.examples == 50
    np.testing.assert_allclose(ours.update["weight"], theirs.update["layer0.weight"], rtol=1e-6)
    np.testing.assert_allclose(ours.update["bias"], theirs.update["layer0.bias"], rtol=1e-6)
    np.testing.assert_allclose(
        trainer.probabilities(start, ROWS), dense.probabilities(as_dense(start), ROWS), rtol=1e-6
    )


@pytest.mark.parametrize("clipping_norm", [0.2, 0.6, 100.0])
def test_clipped_sums_equal_those_in_numpy(clipping_norm: float) -> None:
    trainer, dense = TorchTrainer(logistic()), FedSGD(DenseNetwork(features=5))
    start = trainer.initial()
    ours = trainer.train_records(start, ROWS, clipping_norm).update
    theirs = dense.train_records(as_dense(start), ROWS, clipping_norm).update
    np.testing.assert_allclose(ours["weight"], theirs["layer0.weight"], rtol=1e-6)


@pytest.mark.parametrize("kind", ["lenet5", "resnet20-gn", "squeezenet-gn"])
def test_clipped_sums_equal_the_loop_over_records(kind: str) -> None:
    trainer, rows = TorchTrainer(make_network(kind, SCHEMA.shape, 10).double()), make_digits(3)
    start, layout = trainer.initial(), trainer.module.layout
    expected = np.zeros(layout.size)
    for row in range(3):
        one = layout.flatten(trainer.train(start, rows.take(np.array([row]))).update)
        expected += one * min(1, 0.5 / np.linalg.norm(one))
    total = layout.flatten(trainer.train_records(start, rows, 0.5).update)
    np.testing.assert_allclose(total, expected, atol=1e-9)
    assert np.linalg.norm(total) <= 3 * 0.5


def test_micro_batches_do_not_change_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = TorchTrainer(make_network("lenet5", SCHEMA.shape, 10))
    rows, start, layout = make_digits(10), trainer.initial(), trainer.module.layout
    whole = layout.flatten(trainer.train_records(start, rows, 1.0).update)
    monkeypatch.setattr("anofel.learning.pytorch.records._MAX_NUMBERS", 3 * layout.size)
    assert micro_batch(layout.size) == 3
    np.testing.assert_allclose(
        layout.flatten(trainer.train_records(start, rows, 1.0).update), whole, atol=1e-6
    )
    monkeypatch.undo()
    assert (micro_batch(61_706), micro_batch(832_456), micro_batch(1 << 30)) == (135, 10, 1)


def test_records_are_sampled_secretly_and_an_empty_sample_is_zero() -> None:
    trainer, row = TorchTrainer(logistic()), make_dataset(1)
    samples = [trainer.train_records(trainer.initial(), row, 1.0, 0.5) for _ in range(64)]
    empty = [local for local in samples if local.examples == 0]
    assert 0 < len(empty) < 64
    assert not any(array.any() for local in empty for array in local.update.values())


def test_a_record_of_the_unit_record_passes_the_norm_check_in_single_precision() -> None:
    task = image_task(
        training={"algorithm": "fedsgd"},
        privacy={
            "unit": "record",
            "clipping_norm": "0.001",
            "noise_multiplier": "1",
            "records_per_client": 40,
        },
        model={"scale_bits": 24},
    )
    trainer, plan = trainer_of(task), Plan.of(task)
    local = train_unit(trainer, trainer.initial(), make_digits(40), plan)
    encode(local, Layout.of(trainer.initial()), plan)


@pytest.mark.parametrize(
    ("optimiser", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)], ids=["sgd", "momentum", "adam"]
)
def test_local_epochs_do_what_the_optimiser_does_by_hand(optimiser: str, momentum: float) -> None:
    epochs = LocalEpochs(learning_rate=0.1, epochs=3, batch_size=50, optimiser=optimiser, momentum=momentum)
    trainer = TorchTrainer(logistic(), epochs=epochs)
    dense, start = FedSGD(DenseNetwork(features=5)), trainer.initial()
    value, state = as_dense(start), {}
    for step in range(1, 4):
        for name, minus in dense.train(value, ROWS).update.items():
            value = {
                **value,
                name: value[name] + _step_by_hand(-minus, name, state, step, optimiser, momentum),
            }
    update = trainer.train(start, ROWS).update
    np.testing.assert_allclose(update["weight"], value["layer0.weight"] - start["weight"], rtol=1e-4)


def _step_by_hand(
    gradient: np.ndarray, name: str, state: dict, step: int, optimiser: str, momentum: float
) -> np.ndarray:
    if optimiser == "sgd":
        state[name] = momentum * state.get(name, 0) + gradient
        return -0.1 * state[name]
    first, second = state.get(name, (0, 0))
    first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
    state[name] = first, second
    return -0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)


def test_training_is_repeatable_and_shuffles_anew_for_another_model() -> None:
    trainer = trainer_of(image_task())
    assert isinstance(trainer, TorchTrainer)
    rows, start = make_digits(40), trainer.initial()
    one, two = trainer.train(start, rows).update, trainer.train(start, rows).update
    assert all(np.array_equal(one[name], two[name]) for name in one)
    moved = {name: array + one[name] for name, array in start.items()}
    orders = [trainer._order(model, epoch, 40).tolist() for model in (start, moved) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


def test_an_update_is_what_the_module_itself_moved_by() -> None:
    trainer = TorchTrainer(Patients(), epochs=LocalEpochs(learning_rate=1e-30))
    start = {name: array + 1e-9 for name, array in trainer.initial().items()}
    update = trainer.train(start, ROWS).update
    assert not any(array.any() for array in update.values())  # rounding to single precision is no update


def test_lenet5_learns_through_the_integer_path() -> None:
    task = image_task(training={"optimiser": "sgd", "momentum": "0.9", "learning_rate": "0.02", "epochs": 2})
    clients, test = iid(make_digits(320), 4, 0), make_digits(100, seed=1)
    trainer = trainer_of(task)
    assert isinstance(trainer, Predictor)
    *_, (model, _) = iterate(task, clients, 4)
    assert accuracy(trainer.probabilities(model.parameters(), test), test.labels) > 0.8


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0.0},
        {"learning_rate": 0.1, "epochs": 0},
        {"learning_rate": 0.1, "batch_size": 0},
        {"learning_rate": 0.1, "optimiser": "lion"},
        {"learning_rate": 0.1, "momentum": 1.0},
    ],
)
def test_local_epochs_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(InvalidInput):
        LocalEpochs(**wrong)


def test_no_rows_are_refused() -> None:
    empty = ROWS.take(np.array([], dtype=np.int64))
    trainer = TorchTrainer(logistic())
    with pytest.raises(InvalidInput, match="no rows"):
        trainer.train(trainer.initial(), empty)
    with pytest.raises(InvalidInput, match="no rows"):
        trainer.train_records(trainer.initial(), empty, 1.0)


class Wrapped(nn.Module):
    """Returns its logits in something else."""

    def __init__(self, wrap: Callable[[torch.Tensor], Any], outputs: int = 1) -> None:
        super().__init__()
        self.dense, self.wrap = nn.Linear(5, outputs), wrap

    def forward(self, rows: torch.Tensor) -> Any:
        return self.wrap(self.dense(rows))


@pytest.mark.parametrize("epochs", [None, LocalEpochs(learning_rate=0.1)])
@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Wrapped(lambda logits: (logits, logits)), "one row of logits per record, but gives a tuple"),
        (Wrapped(lambda logits: {"logits": logits}), "one row of logits per record, but gives a dict"),
        (Wrapped(lambda logits: logits[:, 0]), r"but gives the shape \(\d+,\) for \d+"),
        (Wrapped(lambda logits: logits.mean(dim=0, keepdim=True).tile(2, 1)), "the shape .2, 1. for"),
        (nn.Linear(5, 3), "one logit per class, but gives 3 for 2"),
    ],
    ids=["tuple", "dict", "1-D", "mean", "too many"],
)
def test_outputs_of_another_shape_are_refused_wherever_the_module_is_called(
    module: nn.Module, message: str, epochs: LocalEpochs | None
) -> None:
    trainer = TorchTrainer(module, epochs=epochs)
    start = trainer.initial()
    with pytest.raises(ModuleRefused, match=message):
        trainer.train(start, ROWS)
    with pytest.raises(ModuleRefused, match=message):
        trainer.train_records(start, ROWS, 1.0)
    with pytest.raises(ModuleRefused, match=message):
        trainer.probabilities(start, ROWS)


@pytest.mark.parametrize("outputs", [1, 9])
def test_one_logit_or_too_few_do_not_tell_ten_classes_apart(outputs: int) -> None:
    trainer = TorchTrainer(nn.Sequential(nn.Flatten(), nn.Linear(784, outputs)))
    start, rows = trainer.initial(), make_digits(4)
    for use in (trainer.train, trainer.probabilities):
        with pytest.raises(ModuleRefused, match=f"one logit per class, but gives {outputs} for 10"):
            use(start, rows)


def test_a_loss_of_ones_own_may_want_other_columns() -> None:
    def distance(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return ((outputs - labels[:, None]) ** 2).mean()

    trainer = TorchTrainer(nn.Linear(5, 3), loss=distance)
    assert trainer.train(trainer.initial(), ROWS).update["weight"].any()
    assert trainer.probabilities(trainer.initial(), ROWS).shape == (50, 3)


def test_a_loss_of_ones_own_is_used() -> None:
    def mean(outputs: torch.Tensor, _labels: torch.Tensor) -> torch.Tensor:
        return outputs.mean()

    trainer = TorchTrainer(logistic(), loss=mean)
    np.testing.assert_allclose(trainer.train(trainer.initial(), ROWS).update["bias"], [-1.0])


def test_a_task_file_chooses_the_optimiser() -> None:
    task = image_task(training={"optimiser": "adam", "learning_rate": "0.001", "epochs": 2})
    assert task.training.momentum == Decimal(0)
    assert LocalEpochs.of(task.training) == LocalEpochs(
        learning_rate=0.001, epochs=2, batch_size=16, optimiser="adam"
    )
    assert LocalEpochs.of(image_task(training={"algorithm": "fedsgd"}).training) is None
    with pytest.raises(InvalidInput, match="belongs to the optimiser sgd"):
        image_task(training={"optimiser": "adam", "momentum": "0.9"})
    with pytest.raises(InvalidInput, match="plain sgd only"):
        image_task(model={"kind": "logistic"}, training={"optimiser": "adam"})


def test_a_custom_algorithm_says_nothing_about_training() -> None:
    task = image_task(training={"algorithm": "custom"})
    with pytest.raises(TrainerRefused, match="'custom' is none: write fedsgd or fedavg"):
        TorchTrainer.for_task(task, lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))


@pytest.mark.parametrize("unit", ["client", "record"])
@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("wide_trainer", 8, "mat1 and mat2 shapes cannot be multiplied|size mismatch"),
        ("vector_trainer", 6, "scalar|0-D tensor|ndim"),
        ("tuple_trainer", 6, "gives a tuple"),
    ],
)
def test_a_module_that_cannot_train_is_one_sentence_before_anything_is_charged(
    name: str, size: int, message: str, unit: str
) -> None:
    privacy = {"unit": unit, "records_per_client": 50}
    task = make_task(model={"kind": "custom", "parameters": size}, privacy=privacy)
    trainer = trainer_of(task, f"tests.pytorch.modules:{name}")
    with pytest.raises(AnofelError, match=message) as found:
        rehearse(task, trainer, ROWS)
    assert found.value.code in ("trainer-failed", "module-refused")
    assert "\n" not in str(found.value)
