"""Step 4 with PyTorch: a trainer for any ``nn.Module`` (FedSGD, FedAvg, and record by record)."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anofel.errors import InvalidInput
from anofel.learning.build import TrainerRefused
from anofel.learning.pytorch.augment import augmented
from anofel.learning.pytorch.module import ModuleRefused, TrainableModule, keeps_buffers, update_of
from anofel.learning.pytorch.records import clipped_gradient_sum
from anofel.learning.sampling import require_rows, sample_records
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset
from anofel.tasks.schema import ImageSchema, TableSchema
from anofel.tasks.task import Task, TrainingSpec

TorchLoss = Callable[[Tensor, Tensor], Tensor]
"""The mean loss of outputs for labels."""

_CHUNK = 256
"""Rows that go through the module at once where the result does not depend on it."""


def logistic_loss(outputs: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Mean negative log-likelihood; one column means two classes."""
    if outputs.shape[1] == 1:
        wanted = labels.to(outputs.dtype) * (1 - label_smoothing) + label_smoothing / 2
        return nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], wanted)
    return nn.functional.cross_entropy(outputs, labels, label_smoothing=label_smoothing)


@dataclass(frozen=True, kw_only=True)
class LocalEpochs:
    """FedAvg on the client: epochs of mini-batches with an optimiser that starts afresh each time."""

    learning_rate: float
    epochs: int = 1
    batch_size: int = 32
    optimiser: str = "sgd"
    momentum: float = 0.0
    max_steps: int = 0
    """The most batches; 0: any number."""
    proximal: float = 0.0
    """μ of FedProx: each step also goes back towards the posted model."""
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    augment: str = "none"
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.learning_rate <= 0 or self.epochs < 1 or self.batch_size < 1:
            raise InvalidInput("FedAvg needs a positive learning rate, epoch count and batch size.")
        if self.optimiser not in ("sgd", "adam") or not 0 <= self.momentum < 1:
            raise InvalidInput("The optimiser is sgd, with a momentum in [0, 1), or adam.")

    @classmethod
    def of(cls, training: TrainingSpec) -> Self | None:
        """Read a task's training; None where one gradient is sent. Raises ``TrainerRefused``."""
        if training.algorithm == "custom":  # it says nothing, and one gradient is not what anybody asked for
            raise TrainerRefused(
                "TorchTrainer trains by the task's algorithm, and 'custom' is none: write fedsgd or fedavg."
            )
        if training.algorithm == "fedsgd":
            return None
        return cls(
            learning_rate=float(training.learning_rate),
            epochs=training.epochs,
            batch_size=training.batch_size,
            optimiser=training.optimiser,
            momentum=float(training.momentum),
            max_steps=training.max_steps,
            proximal=float(training.proximal),
            weight_decay=float(training.weight_decay),
            label_smoothing=float(training.label_smoothing),
            augment=training.augment,
            precision=training.precision,
        )

    def start(self, module: nn.Module) -> torch.optim.Optimizer:
        """Make the optimiser of one iteration."""
        trained = [value for value in module.parameters() if value.requires_grad]
        if self.optimiser == "adam":
            return torch.optim.Adam(trained, lr=self.learning_rate, weight_decay=self.weight_decay)
        return torch.optim.SGD(
            trained, lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def half_precision(self, device: torch.device) -> AbstractContextManager[object]:
        """Multiply in bfloat16 meanwhile, if that is asked for."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16")


class TorchTrainer:
    """Trains a module of PyTorch as any other trainer: parameters in, update out.

    Without `epochs` it sends one full gradient per iteration (FedSGD).
    """

    def __init__(
        self,
        module: nn.Module | TrainableModule,
        *,
        epochs: LocalEpochs | None = None,
        loss: TorchLoss = logistic_loss,
        seed: int = 0,
    ) -> None:
        """Raises ``ModuleRefused`` for what cannot travel; `seed` is public and shuffles the batches."""
        self.module = module if isinstance(module, TrainableModule) else TrainableModule(module)
        if epochs is not None and epochs.label_smoothing and loss is not logistic_loss:
            raise TrainerRefused("Label smoothing belongs to the logistic loss, not to one of your own.")
        self._epochs, self._loss, self._seed = epochs, loss, seed

    @classmethod
    def for_task(cls, task: Task, make: Callable[[], nn.Module], loss: TorchLoss = logistic_loss) -> Self:
        """Make the trainer of a task: `make` is called with PyTorch's randomness set to the task's seed.

        Raises ``TrainerRefused`` for the algorithm ``custom``, which says nothing about training.
        """
        target = task.schema.target if isinstance(task.schema, TableSchema) else None
        if target is not None and loss is logistic_loss:
            raise TrainerRefused("The schema's target is no class: give TorchTrainer a loss for it.")
        module = TrainableModule.made_by(make, task.model.seed)
        return cls(module, epochs=LocalEpochs.of(task.training), loss=loss, seed=task.model.seed)

    def initial(self) -> Parameters:
        """Make the first model."""
        return self.module.initial

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Train on a dataset: the local epochs, or one gradient over all rows."""
        require_rows(dataset)
        if self._epochs is None:
            return LocalUpdate(self._gradient(parameters, dataset), len(dataset))
        return LocalUpdate(self._local_epochs(self._epochs, parameters, dataset), len(dataset))

    def train_records(
        self, parameters: Parameters, dataset: Dataset, clipping_norm: float, sampling_rate: float = 1.0
    ) -> LocalUpdate:
        """Sum the clipped gradients of the records, each sampled independently with `sampling_rate`."""
        require_rows(dataset)
        rows = sample_records(dataset, sampling_rate)
        inputs, labels = self._tensors(rows)
        tensors, loss = self.module.tensors(parameters), self._checked_loss(dataset)
        total = clipped_gradient_sum(self.module, tensors, loss, inputs, labels, clipping_norm)
        return LocalUpdate({name: -array for name, array in total.items()}, len(rows))

    def probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        """Give the probability of every class, one row per record."""
        inputs, _ = self._tensors(dataset)
        tensors = self.module.tensors(parameters)
        with self.module.functional(training=False) as call, torch.no_grad():
            chunks = [
                _checked(call(tensors, chunk), len(chunk), self._classes(dataset)).to("cpu", torch.float64)
                for chunk in torch.split(inputs, _CHUNK)
            ]
        logits = torch.cat(chunks)
        if logits.shape[1] == 1:
            positive = torch.sigmoid(logits)
            return torch.cat([1 - positive, positive], dim=1).numpy()
        return torch.softmax(logits, dim=1).numpy()

    def _gradient(self, parameters: Parameters, dataset: Dataset) -> dict[str, NDArray[np.float64]]:
        """Minus the gradient of the mean loss, in chunks that fit in memory."""
        inputs, labels = self._tensors(dataset)
        tensors = {name: value.requires_grad_() for name, value in self.module.tensors(parameters).items()}
        loss = self._checked_loss(dataset)
        with self.module.functional(training=True) as call:
            for rows, wanted in zip(torch.split(inputs, _CHUNK), torch.split(labels, _CHUNK), strict=True):
                share = loss(call(tensors, rows), wanted) * (len(rows) / len(inputs))
                share.backward()  # type: ignore[no-untyped-call]
        return {name: -_gradient_of(value) for name, value in tensors.items()}

    def _local_epochs(
        self, epochs: LocalEpochs, parameters: Parameters, dataset: Dataset
    ) -> dict[str, NDArray[np.float64]]:
        inputs, labels = self._tensors(dataset)
        module = self.module.loaded(parameters).train()
        optimiser, loss = epochs.start(module), self._checked_loss(dataset, epochs.label_smoothing)
        trained, posted = dict(module.named_parameters()), self.module.tensors(parameters)
        coins = torch.Generator().manual_seed(self._public_number(parameters))
        with keeps_buffers(module):
            for batch in self._batches(epochs, parameters, len(labels)):
                optimiser.zero_grad()
                rows = augmented(inputs[batch], epochs.augment, coins)
                with epochs.half_precision(self.module.device):
                    outputs = module(rows)
                loss(outputs, labels[batch]).backward()  # type: ignore[no-untyped-call]
                if epochs.proximal:
                    _pull(trained, posted, epochs.proximal)
                optimiser.step()
        return update_of(parameters, {name: trained[name] for name in self.module.names})

    def _checked_loss(self, dataset: Dataset, label_smoothing: float = 0.0) -> TorchLoss:
        classes, mean_loss = self._classes(dataset), self._loss
        if label_smoothing:
            mean_loss = partial(logistic_loss, label_smoothing=label_smoothing)

        def loss(outputs: Tensor, labels: Tensor) -> Tensor:
            found = _checked(outputs, len(labels), classes)
            return mean_loss(found.to(self.module.dtype), labels)

        return loss

    def _classes(self, dataset: Dataset) -> int | None:
        """How many classes the outputs must tell apart; a loss of the user's own may want others."""
        return dataset.schema.classes if self._loss is logistic_loss else None

    def _batches(self, epochs: LocalEpochs, parameters: Parameters, rows: int) -> Iterator[Tensor]:
        """Shuffle by the public seed, the posted model and the epoch: new each time, and repeatable."""
        number = self._public_number(parameters)
        orders = (
            torch.from_numpy(np.random.default_rng((self._seed, epoch, number)).permutation(rows))
            for epoch in range(epochs.epochs)
        )
        batches = (
            batch
            for order in orders
            for batch in torch.split(order.to(self.module.device), epochs.batch_size)
        )
        return islice(batches, epochs.max_steps or None)

    def _public_number(self, parameters: Parameters) -> int:
        """Give a number that follows from the posted model."""
        model = hashlib.sha256(self.module.layout.flatten(parameters).tobytes()).digest()
        return int.from_bytes(model[:8], "little")

    def _tensors(self, dataset: Dataset) -> tuple[Tensor, Tensor]:
        """Rows and labels as PyTorch wants them: images with channels first, transformed ones as rows."""
        transformed = isinstance(dataset.schema, ImageSchema) and dataset.schema.transform != "none"
        if transformed:
            scaled = dataset.inputs().astype(np.float32)
        else:
            scaled = np.ldexp(dataset.features.astype(np.float32), -dataset.schema.fraction_bits)
        rows = torch.from_numpy(scaled).to(self.module.device, self.module.dtype)
        if isinstance(dataset.schema, ImageSchema) and not transformed:
            rows = rows.permute(0, 3, 1, 2)
        return rows.contiguous(), torch.from_numpy(dataset.labels.astype(np.int64)).to(self.module.device)


def _checked(outputs: object, rows: int, classes: int | None) -> Tensor:
    """Refuse what is not one row of logits per record: PyTorch would train on much of it without a word."""
    if not isinstance(outputs, Tensor):
        kind = type(outputs).__name__
        raise ModuleRefused(f"The module must give one row of logits per record, but gives a {kind}.")
    if outputs.ndim != 2 or len(outputs) != rows:
        shape = tuple(outputs.shape)
        raise ModuleRefused(
            f"The module must give one row of logits per record, but gives the shape {shape} for {rows}."
        )
    columns = outputs.shape[1]
    if classes is not None and columns != classes and (columns, classes) != (1, 2):
        raise ModuleRefused(f"The module must give one logit per class, but gives {columns} for {classes}.")
    return outputs


def _pull(trained: Mapping[str, Tensor], posted: Mapping[str, Tensor], strength: float) -> None:
    """Add the gradient of FedProx's term, which grows with the distance from the posted model."""
    for name, start in posted.items():
        value = trained[name]
        if value.grad is not None:
            value.grad.add_(value.detach() - start, alpha=strength)


def _gradient_of(value: Tensor) -> NDArray[np.float64]:
    if value.grad is None:  # a parameter that the outputs do not depend on
        return np.zeros(tuple(value.shape))
    return value.grad.to("cpu", torch.float64).numpy()
