"""What of a user's module travels, and what is refused by name."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.numpy import load
from torch import nn

from anofel.errors import InvalidInput
from anofel.learning.pytorch.module import ModuleRefused, TrainableModule, keeps_buffers
from anofel.learning.pytorch.trainer import LocalEpochs, TorchTrainer
from anofel.models.exchange import to_safetensors
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from tests.patients import make_dataset
from tests.pytorch.modules import Counting, Patients

TRAVELS = {"first.weight", "first.bias", "second.bias", "last.weight", "last.bias"}
EPOCHS = LocalEpochs(learning_rate=0.3, batch_size=10)


def test_trained_parameters_travel_tied_ones_once_frozen_ones_and_buffers_not() -> None:
    module = TrainableModule(Patients())
    assert set(module.names) == TRAVELS
    assert module.size == 16 + 4 + 4 + 4 + 1


@pytest.mark.parametrize("epochs", [None, EPOCHS])
def test_tied_weights_stay_tied_and_frozen_ones_stay_put(epochs: LocalEpochs | None) -> None:
    source = Patients()
    trainer, rows = TorchTrainer(source, epochs=epochs), make_dataset(40)
    start = trainer.initial()
    update = trainer.train(start, rows).update
    assert set(update) == TRAVELS
    assert all(array.any() for array in update.values())
    loaded = trainer.module.loaded({name: start[name] + update[name] for name in start})
    assert isinstance(loaded, Patients)
    assert loaded.first.weight is loaded.second.weight
    assert torch.equal(loaded.frozen.weight, source.frozen.weight)
    assert not loaded.frozen.weight.requires_grad


def test_the_users_module_is_left_alone() -> None:
    module = Patients()
    before = {name: value.detach().clone() for name, value in module.state_dict().items()}
    trainer = TorchTrainer(module, epochs=EPOCHS)
    trainer.train(trainer.initial(), make_dataset(30))
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    start = trainer.initial()["last.bias"].copy()
    with torch.no_grad():
        module.last.bias += 1
    np.testing.assert_array_equal(trainer.initial()["last.bias"], start)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(5), nn.BatchNorm2d(5), nn.SyncBatchNorm(5)])
def test_batch_norm_is_refused_by_name(norm: nn.Module) -> None:
    with pytest.raises(ModuleRefused, match=f"'1' is a {type(norm).__name__}"):
        TrainableModule(nn.Sequential(nn.Linear(5, 5), norm))


@pytest.mark.parametrize("epochs", [None, EPOCHS])
def test_a_buffer_that_changes_is_refused_by_name(epochs: LocalEpochs | None) -> None:
    trainer = TorchTrainer(Counting(), epochs=epochs)
    with pytest.raises(ModuleRefused, match="buffer 'calls'"):
        trainer.train(trainer.initial(), make_dataset(12))


def test_a_buffer_that_changes_is_refused_record_by_record() -> None:
    trainer = TorchTrainer(Counting())
    with pytest.raises(ModuleRefused, match="buffer 'calls'|record by record"):
        trainer.train_records(trainer.initial(), make_dataset(12), 1.0)


def test_a_module_that_mixes_records_is_refused() -> None:
    class Mixing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(5, 1)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.dense(rows) if bool((rows.sum() > 0).item()) else -self.dense(rows)

    trainer = TorchTrainer(Mixing())
    with pytest.raises(ModuleRefused, match="record by record"):
        trainer.train_records(trainer.initial(), make_dataset(12), 1.0)


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_parameter_without_a_shape_is_refused_by_name() -> None:
    with pytest.raises(ModuleRefused, match="'weight' has no shape"):
        TrainableModule(nn.LazyLinear(3))


def test_a_parameter_that_is_not_real_is_refused_by_name() -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phase = nn.Parameter(torch.zeros(2, dtype=torch.complex64))

    with pytest.raises(ModuleRefused, match="'phase' holds torch.complex64"):
        TrainableModule(Complex())


def test_a_parameter_of_another_precision_is_refused_by_name() -> None:
    mixed = nn.Sequential(nn.Linear(5, 2), nn.Linear(2, 1).double())
    with pytest.raises(ModuleRefused, match="'1.weight' is torch.float64, but '0.weight' is torch.float32"):
        TrainableModule(mixed)
    mixed[1].requires_grad_(False)
    TrainableModule(mixed)  # what is not trained may have any


def test_a_parameter_on_another_device_is_refused_by_name() -> None:
    mixed = nn.Sequential(nn.Linear(5, 2), nn.Linear(2, 1, device="meta"))
    with pytest.raises(ModuleRefused, match="'1.weight' is meta, but '0.weight' is cpu"):
        TrainableModule(mixed)


@pytest.mark.parametrize("made", [None, nn.Linear, {"weight": 1}])
def test_what_is_no_module_is_refused(made: object) -> None:
    with pytest.raises(ModuleRefused, match=f"is a {type(made).__name__} and no nn.Module"):
        TrainableModule(made)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_compiled_script_is_refused_by_name() -> None:
    script = torch.jit.script(nn.Linear(5, 1))
    with pytest.raises(ModuleRefused, match="'1' was compiled to a script"):
        TrainableModule(nn.Sequential(nn.Linear(5, 5), script))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_layer_that_cannot_be_copied_is_refused_by_name() -> None:
    module = nn.Sequential(nn.Linear(5, 5), nn.Sequential(nn.utils.weight_norm(nn.Linear(5, 1))))
    with pytest.raises(ModuleRefused, match=r"'1\.0' cannot be copied: RuntimeError: Only Tensors"):
        TrainableModule(module)


@pytest.mark.parametrize("epochs", [None, EPOCHS])
@pytest.mark.parametrize("values", [[float("nan"), 1.0], [True, False], [3, 4], [float("inf"), -0.0]])
def test_a_buffer_that_stays_is_accepted_whatever_it_holds(
    epochs: LocalEpochs | None, values: list[float]
) -> None:
    module = nn.Linear(5, 1)
    module.register_buffer("constant", torch.tensor(values))
    trainer = TorchTrainer(module, epochs=epochs)
    trainer.train(trainer.initial(), make_dataset(12))


@pytest.mark.parametrize("change", [torch.Tensor.double, lambda kept: kept[:1], lambda kept: kept + 1])
def test_a_buffer_of_another_kind_has_changed(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    module = nn.Linear(5, 1)
    module.register_buffer("kept", torch.tensor([float("nan"), 1.0]))
    with pytest.raises(ModuleRefused, match="buffer 'kept'"), keeps_buffers(module):
        module.kept = change(module.kept)


def test_a_module_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(ModuleRefused, match="no parameter to train"):
        TrainableModule(nn.Linear(2, 2).requires_grad_(False))


def test_a_model_of_another_shape_is_refused() -> None:
    trainer = TorchTrainer(Patients())
    other = {**trainer.initial(), "last.bias": np.zeros(2)}
    with pytest.raises(InvalidInput, match="names and shapes"):
        trainer.train(other, make_dataset(12))
    assert Layout.of(other) != trainer.module.layout


def test_an_exported_model_is_loaded_where_frozen_and_tied_parameters_and_buffers_stay_behind() -> None:
    source = Patients()
    trainer = TorchTrainer(source)
    moved = IntegerModel.from_parameters({name: array + 1 for name, array in trainer.initial().items()}, 16)
    tensors = {name: torch.from_numpy(array) for name, array in load(to_safetensors(moved)).items()}
    with pytest.raises(RuntimeError, match="Missing key"):
        source.load_state_dict(tensors)
    found = source.load_state_dict(tensors, strict=False)
    assert not found.unexpected_keys
    assert set(found.missing_keys) == {"scale", "frozen.weight", "frozen.bias", "second.weight"}
    loaded = trainer.module.loaded(moved.parameters()).state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in source.state_dict().items())
