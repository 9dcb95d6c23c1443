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
from anofel.learning.federated import FedAvg, FedSGD
from anofel.learning.metrics import accuracy
from anofel.learning.pytorch.augment import augmented
from anofel.learning.pytorch.module import ModuleRefused
from anofel.learning.pytorch.networks import make_network
from anofel.learning.pytorch.records import micro_batch
from anofel.learning.pytorch.trainer import LocalEpochs, TorchTrainer, logistic_loss
from anofel.learning.splits import iid
from anofel.learning.trainer import Predictor, RecordTrainer, Trainer
from anofel.models.parameters import Layout, Parameters
from anofel.phase2_training.step4_local_training import rehearse
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode, train_unit
from tests.patients import make_dataset, make_task
from tests.plain_path import iterate
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
    epochs = LocalEpochs(learning_rate=0.1, epochs=2, batch_size=40)
    orders = [order for model in (start, moved) for order in trainer._batches(epochs, model, 40)]
    assert len({tuple(order.tolist()) for order in orders}) == 4


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


def options(**training: Any) -> TorchTrainer:
    made = trainer_of(image_task(training=training))
    assert isinstance(made, TorchTrainer)
    return made


def moved_by(trainer: TorchTrainer, rows: Any) -> np.ndarray:
    return trainer.module.layout.flatten(trainer.train(trainer.initial(), rows).update)


def test_no_more_batches_are_taken_than_the_task_says() -> None:
    rows = make_digits(48)
    epochs, trainer = LocalEpochs(learning_rate=0.1, epochs=3, batch_size=16, max_steps=4), options()
    batches = [*trainer._batches(epochs, trainer.initial(), 48)]
    assert [len(batch) for batch in batches] == [16] * 4
    one, first = options(max_steps=1), batches[0].numpy()
    gradient = TorchTrainer(trainer.module).train(trainer.initial(), rows.take(first)).update
    expected = 0.1 * trainer.module.layout.flatten(gradient)
    np.testing.assert_allclose(moved_by(one, rows), expected, atol=1e-6)


def test_fedprox_holds_a_client_back_to_the_posted_model() -> None:
    rows, dense = ROWS, DenseNetwork(features=5)
    start = {name: array + 0.3 for name, array in dense.initial().items()}
    epochs = LocalEpochs(learning_rate=0.2, epochs=5, batch_size=50, proximal=2.0)
    ours = TorchTrainer(logistic(), epochs=epochs)
    posted = {"weight": start["layer0.weight"], "bias": start["layer0.bias"]}
    theirs = FedAvg(dense, 0.2, epochs=5, batch_size=50, proximal=2.0).train(start, rows).update
    update = ours.train(posted, rows).update
    np.testing.assert_allclose(update["weight"], theirs["layer0.weight"], rtol=1e-6)
    free = FedAvg(dense, 0.2, epochs=5, batch_size=50).train(start, rows).update
    assert np.linalg.norm(theirs["layer0.weight"]) < 0.9 * np.linalg.norm(free["layer0.weight"])
    by_hand = {name: array.copy() for name, array in start.items()}
    for _ in range(5):
        gradient = dense.gradient(by_hand, rows.inputs(), rows.labels)
        for name in by_hand:
            by_hand[name] = by_hand[name] - 0.2 * (gradient[name] + 2.0 * (by_hand[name] - start[name]))
    np.testing.assert_allclose(theirs["layer0.bias"], by_hand["layer0.bias"] - start["layer0.bias"])


@pytest.mark.parametrize("labels", [1, 10])
def test_smoothed_labels_are_a_mixture_with_all_classes(labels: int) -> None:
    outputs = torch.randn((6, labels), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wanted = torch.arange(6) % max(labels, 2)
    found = logistic_loss(outputs, wanted, label_smoothing=0.2)
    every = [logistic_loss(outputs, torch.full((6,), label)) for label in range(max(labels, 2))]
    expected = 0.8 * logistic_loss(outputs, wanted) + 0.2 * torch.stack(every).mean()
    torch.testing.assert_close(found, expected)


def test_label_smoothing_needs_the_logistic_loss() -> None:
    epochs = LocalEpochs(learning_rate=0.1, label_smoothing=0.1)
    with pytest.raises(TrainerRefused, match="not to one of your own"):
        TorchTrainer(logistic(), epochs=epochs, loss=lambda outputs, _: outputs.mean())


@pytest.mark.parametrize("how", ["shift", "shift-and-flip"])
def test_augmented_images_are_the_images_moved(how: str) -> None:
    images = torch.from_numpy(make_digits(64).features).permute(0, 3, 1, 2).float()
    images[:, :, :4], images[:, :, -4:], images[..., :4], images[..., -4:] = 0, 0, 0, 0
    found = augmented(images, how, torch.Generator().manual_seed(3))
    assert found.shape == images.shape
    assert not torch.equal(found, images)
    mirrored = 0
    for image, moved in zip(images, found, strict=True):
        candidates = [image] if how == "shift" else [image, image.flip(2)]
        fits = [
            any(
                torch.equal(torch.roll(candidate, (down, right), (1, 2)), moved)
                for down in range(-3, 4)
                for right in range(-3, 4)
            )
            for candidate in candidates
        ]
        assert any(fits)
        mirrored += fits == [False, True]
    assert (mirrored > 10) == (how == "shift-and-flip")


def test_augmentation_is_repeatable_and_changes_the_update() -> None:
    rows = make_digits(40)
    one, two = (moved_by(options(augment="shift"), rows) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, moved_by(options(), rows))


def test_half_precision_leaves_the_parameters_in_full_precision() -> None:
    rows = make_digits(40)
    half, full = (moved_by(options(precision=name), rows) for name in ("bfloat16", "float32"))
    assert not np.array_equal(half, full)
    assert np.linalg.norm(half - full) < 0.1 * np.linalg.norm(full)
    assert not np.array_equal(half, torch.from_numpy(half).to(torch.bfloat16).double().numpy())


def test_weight_decay_shrinks_what_the_gradient_leaves_alone() -> None:
    trainer = TorchTrainer(
        logistic(),
        epochs=LocalEpochs(learning_rate=0.1, batch_size=50, weight_decay=0.5),
        loss=lambda outputs, _: 0 * outputs.sum(),
    )
    start = {name: array + 1.0 for name, array in trainer.initial().items()}
    np.testing.assert_allclose(trainer.train(start, ROWS).update["bias"], -0.05 * start["bias"])


@pytest.mark.parametrize("key", ["weight_decay", "label_smoothing", "augment", "precision"])
def test_what_needs_pytorch_is_refused_without(key: str) -> None:
    value = {"augment": "shift", "precision": "bfloat16"}.get(key, "0.1")
    with pytest.raises(InvalidInput, match="plain sgd only"):
        image_task(model={"kind": "logistic"}, training={key: value})


def test_only_images_are_augmented() -> None:
    with pytest.raises(InvalidInput, match="only images are augmented"):
        make_task(
            model={"kind": "custom", "parameters": 6},
            training={"algorithm": "fedavg", "learning_rate": "0.1", "augment": "shift"},
        )


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
