"""Trainers of one's own, as a deployment names them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np

from anofel.errors import InvalidInput
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedSGD
from anofel.learning.trainer import LocalUpdate, Trainer
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

NOT_A_FUNCTION = 7


def logistic(task: Task) -> Trainer:
    """Logistic regression, brought along; 6 parameters for the patients of the tests."""
    return FedSGD(DenseNetwork(features=task.schema.row_shape[0]))


def nothing(_task: Task) -> object:
    """Not a trainer."""
    return object()


class Answers(FedSGD):
    """Logistic regression whose methods can be made to raise, or to return something else."""

    def __init__(self, task: Task, **methods: object) -> None:
        super().__init__(DenseNetwork(features=task.schema.row_shape[0]))
        for name, answer in methods.items():
            object.__setattr__(self, name, _answering(answer))


def _answering(answer: object) -> object:
    def method(*_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return method


def raises_when_made(_task: Task) -> Trainer:
    """A typing error in the function itself."""
    return {}["weights"]  # type: ignore[return-value]


def starts_with_a_list(task: Task) -> Trainer:
    """Its first model has no names."""
    return Answers(task, initial=[1.0])


def raises_in_training(task: Task) -> Trainer:
    """A text of several lines, as PyTorch writes them."""
    error = RuntimeError("mat1 and mat2 cannot be multiplied.\nSee the manual.")
    return Answers(task, train=error, train_records=error)


def returns_a_dict(task: Task) -> Trainer:
    """Forgets to wrap its update."""
    return Answers(task, train={}, train_records={})


def returns_words(task: Task) -> Trainer:
    """An update that holds no numbers."""
    local = LocalUpdate({"layer0.bias": "zero"}, 1)  # type: ignore[dict-item]
    return Answers(task, train=local, train_records=local)


def gives_too_few_probabilities(task: Task) -> Trainer:
    """One column for two classes."""
    return Answers(task, probabilities=[[1.0]])


def refuses(task: Task) -> Trainer:
    """Raises an error of ours, on purpose."""
    return Answers(task, train=InvalidInput("There is nothing to train on."))


class Mute:
    """Two methods and no others."""

    def initial(self) -> Parameters:
        return {"w": np.zeros(6)}

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        return LocalUpdate(parameters, len(dataset))


def mute(_task: Task) -> Trainer:
    """The least that trains."""
    return Mute()


def depends_on_data(task: Task) -> Trainer:
    """Does what its first label says: code that misbehaves for some rows only."""
    return DependsOnData(DenseNetwork(features=task.schema.row_shape[0]))


class DependsOnData(FedSGD):
    """Prints, raises, stalls, dies, eats memory or writes nonsense, by the number of its rows."""

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Misbehave."""
        print("rows of mine:", dataset.labels[:3])  # must not disturb the pipe
        match len(dataset):
            case 11:
                raise KeyError("row 3")
            case 12:
                time.sleep(3600)
            case 13:
                os.kill(os.getpid(), signal.SIGKILL)
            case 14:
                sys.exit(0)
            case 15:
                return LocalUpdate(
                    {name: np.full_like(value, np.inf) for name, value in parameters.items()}, 15
                )
            case 16:
                raise MemoryError
            case 18:
                subprocess.Popen(["sleep", "7717"], close_fds=False)
                os.kill(os.getpid(), signal.SIGKILL)
            case 17:
                for descriptor in range(3, 64):
                    with suppress(OSError):
                        os.write(descriptor, b"nonsense" * 100)
        return super().train(parameters, dataset)
