"""Make the trainer that a task asks for. Trainers are made here and nowhere else.

Rules for a trainer of one's own, in the same words in ``docs/networks.md``:

1. A task of the kind ``custom`` names no trainer; everybody who trains or starts it brings the same one,
   as ``module:function``, where ``function(task)`` returns a trainer.
2. A trainer of one's own is used for custom tasks only.
3. Its first model has as many parameters as the task says.
4. What goes wrong in it is said in one sentence that names it (``trainer-failed``); a client then skips the
   iteration.

Security: a trainer of one's own is code that runs with the rights of the one who named it, and sees its data.
"""

from collections.abc import Callable

from anofel.errors import InvalidInput
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedAvg, FedSGD
from anofel.learning.losses import loss_of
from anofel.learning.own_trainer import OwnTrainer, blaming
from anofel.learning.trainer import Trainer
from anofel.models.parameters import Layout
from anofel.tasks.entry_points import load_function
from anofel.tasks.network_sizes import NETWORKS
from anofel.tasks.task import DENSE, Task


class TrainerRefused(InvalidInput):
    """A trainer of one's own cannot be used for a task."""

    code = "trainer-refused"


class TorchMissing(InvalidInput):
    """A task needs PyTorch, which is not installed."""

    code = "torch-missing"


def trainer_of(task: Task, own: str = "") -> Trainer:
    """Make the trainer of a task; `own` names the one that a custom task needs, as ``module:function``.

    Raises ``TrainerRefused``, ``TrainerFailed``, ``TorchMissing``.
    """
    if "custom" in (task.model.kind, task.training.algorithm):
        return _own_trainer(task, own)  # (1)
    if own:  # (2)
        raise TrainerRefused(f"Task '{task.name}' is not custom; it trains without '{own}'.")
    return _torch_trainer(task) if task.model.kind in NETWORKS else _dense_trainer(task)


def network_of(task: Task) -> DenseNetwork:
    """Make the dense network of a task that has one."""
    if task.model.kind not in DENSE:
        raise InvalidInput(f"The network of a task of the kind '{task.model.kind}' is its trainer's own.")
    schema = task.schema
    return DenseNetwork(schema.inputs, schema.classes, task.model.hidden, loss_of(schema))


def _dense_trainer(task: Task) -> FedSGD | FedAvg:
    network, training = network_of(task), task.training
    if training.algorithm == "fedsgd":
        return FedSGD(network, task.model.seed)
    return FedAvg(
        network,
        float(training.learning_rate),
        training.epochs,
        training.batch_size,
        task.model.seed,
        training.max_steps,
        float(training.proximal),
    )


def _torch_trainer(task: Task) -> Trainer:
    try:
        from anofel.learning.pytorch.networks import make_network
        from anofel.learning.pytorch.trainer import TorchTrainer
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise TorchMissing(
            f"The network {task.model.kind} needs PyTorch: pip install 'anofel[torch]'."
        ) from None
    schema = task.schema
    return TorchTrainer.for_task(
        task, lambda: make_network(task.model.kind, schema.row_shape, schema.classes)
    )


def _own_trainer(task: Task, own: str) -> Trainer:
    if not own:
        raise TrainerRefused(f"Task '{task.name}' is custom; name its own trainer as module:function.")
    make = import_trainer(own)
    with blaming(own):  # (4)
        made = make(task)
    if not isinstance(made, Trainer):
        raise TrainerRefused(f"'{own}' must be a function that takes a task and returns a trainer.")
    trainer = OwnTrainer(own, made)
    size = Layout.of(trainer.initial()).size
    if size != task.model.parameters:  # (3)
        raise TrainerRefused(
            f"The trainer '{own}' has {size} parameters, task '{task.name}' {task.model.parameters}."
        )
    return trainer


def import_trainer(own: str) -> Callable[[Task], object]:
    """Import the function that makes a trainer of one's own. Raises ``TrainerRefused``."""
    try:
        made: Callable[[Task], object] = load_function(own, "The trainer")
    except InvalidInput as error:
        raise TrainerRefused(str(error)) from error
    return made
