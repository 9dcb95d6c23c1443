"""Modules that users may bring, good and bad."""

import torch
from torch import Tensor, nn

from anofel.learning.pytorch.trainer import TorchTrainer
from anofel.learning.trainer import Trainer
from anofel.tasks.task import Task


class Patients(nn.Module):
    """A module with everything that is allowed: tied weights, a frozen layer, a constant buffer, dropout."""

    scale: Tensor

    def __init__(self, features: int = 5) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((features,), 0.5))
        self.frozen = nn.Linear(features, 4)
        self.frozen.requires_grad_(False)
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.dropout = nn.Dropout(0.25)
        self.last = nn.Linear(4, 1)

    def forward(self, rows: Tensor) -> Tensor:
        hidden = torch.tanh(self.frozen(rows * self.scale))
        hidden = torch.tanh(self.second(torch.tanh(self.first(hidden))))
        logits: Tensor = self.last(self.dropout(hidden))
        return logits


class Counting(nn.Module):
    """Keeps state in a buffer."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.dense = nn.Linear(5, 1)

    def forward(self, rows: Tensor) -> Tensor:
        self.calls += 1
        logits: Tensor = self.dense(rows)
        return logits


class Twice(nn.Module):
    """Returns its logits and what they come from."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(5, 1)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.dense(rows), rows


def patients_trainer(task: Task) -> Trainer:
    """A trainer of one's own, as a deployment names it."""
    return TorchTrainer.for_task(task, Patients)


def wide_trainer(task: Task) -> Trainer:
    """Expects more features than a row has."""
    return TorchTrainer.for_task(task, lambda: nn.Linear(7, 1))


def vector_trainer(task: Task) -> Trainer:
    """Its loss gives one number per record, and not their mean."""
    return TorchTrainer.for_task(task, lambda: nn.Linear(5, 1), lambda outputs, _: outputs[:, 0])


def tuple_trainer(task: Task) -> Trainer:
    """Its module returns two things."""
    return TorchTrainer.for_task(task, Twice)


def no_trainer(_task: Task) -> object:
    """Not a trainer."""
    return object()
