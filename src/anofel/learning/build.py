"""Build the NumPy trainer that a task asks for."""

import math

from anofel.errors import InvalidInput
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedAvg, FedSGD
from anofel.learning.integer_model import IntegerMean
from anofel.task import Task


def network_of(task: Task) -> DenseNetwork:
    """Make the network of a task; refuses ``custom`` models, which bring their own trainer."""
    if task.model.kind == "custom":
        raise InvalidInput("The task has a custom model; give its own trainer.")
    features = math.prod(task.schema.row_shape)
    return DenseNetwork(features=features, classes=task.schema.classes, hidden=task.model.hidden)


def trainer_of(task: Task) -> FedSGD | FedAvg:
    """Make the trainer of a task."""
    network, training = network_of(task), task.training
    if training.algorithm == "fedsgd":
        return FedSGD(network, task.model.seed)
    if training.algorithm == "fedavg":
        return FedAvg(
            network, float(training.learning_rate), training.epochs, training.batch_size, task.model.seed
        )
    raise InvalidInput("The task has a custom training algorithm; give its own trainer.")


def rule_of(task: Task) -> IntegerMean:
    """Make the update rule of a task; refuses the kind ``owner``, whose owner makes each model."""
    if task.rule.kind != "integer-mean":
        raise InvalidInput("The task's owner makes each model by a rule of its own.")
    return IntegerMean(lr_num=task.rule.lr_num, lr_den=task.rule.lr_den, momentum=task.rule.momentum)
