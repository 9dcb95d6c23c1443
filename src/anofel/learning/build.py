"""Make the trainer that a task asks for. Trainers are made here and nowhere else.

Rules for a trainer of one's own, in the same words in ``docs/networks.md``:

1. A task of the kind ``custom`` names no trainer; everybody who trains or starts it brings the same one,
   as ``module:function``, where ``function(task)`` returns a trainer.
2. A trainer of one's own is used for custom tasks only.
3. Its first model has as many parameters as the task says.
4. What goes wrong in it is said in one sentence that names it (``trainer-failed``); a client then skips the
   iteration.
5. A Flower app takes the place of ``module:function``. A schema that names the digest of an app is trained by
   that app, and by nothing else.

Security: a trainer of one's own is code that runs with the rights of the one who named it, and sees its data.
"""

from collections.abc import Callable

from anofel.errors import InvalidInput
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedAvg, FedSGD
from anofel.learning.flower.settings import FlowerApp, app_refused
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


class TrainerMissing(TrainerRefused):
    """A custom task has no trainer here."""

    code = "trainer-missing"


OwnTrainerName = str | FlowerApp
"""What a custom task is trained by: ``module:function``, a Flower app, or empty for nothing."""


def trainer_of(task: Task, own: OwnTrainerName = "") -> Trainer:
    """Make the trainer of a task; `own` names the one that a custom task needs.

    Raises ``TrainerRefused``, ``TrainerFailed``, ``TorchMissing``, ``FlowerRefused``.
    """
    if refused := app_refused(task.schema.app, own):  # (5)
        raise TrainerRefused(f"Task '{task.name}': {refused}")
    if "custom" in (task.model.kind, task.training.algorithm):
        return _own_trainer(task, own)  # (1)
    if own:  # (2)
        name = own.directory if isinstance(own, FlowerApp) else own
        raise TrainerRefused(f"Task '{task.name}' is not custom; it trains without '{name}'.")
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


def _own_trainer(task: Task, own: OwnTrainerName) -> Trainer:
    if not own:
        raise TrainerMissing(
            f"Task '{task.name}' is custom; name its own trainer as module:function, or its Flower app."
        )
    trainer: Trainer
    if isinstance(own, FlowerApp):
        from anofel.learning.flower.trainer import FlowerTrainer

        trainer, name = FlowerTrainer(own), own.name
    else:
        make, name = import_trainer(own), own
        with blaming(own):  # (4)
            made = make(task)
        if not isinstance(made, Trainer):
            raise TrainerRefused(f"'{own}' must be a function that takes a task and returns a trainer.")
        trainer = OwnTrainer(own, made)
    check_size(task, trainer, name)
    return trainer


def check_size(task: Task, trainer: Trainer, name: str) -> None:
    """Refuse a trainer whose models have another size than the task's (3)."""
    size = Layout.of(trainer.initial()).size
    if size != task.model.parameters:
        raise TrainerRefused(
            f"The trainer '{name}' has {size} parameters, task '{task.name}' {task.model.parameters}."
        )


def import_trainer(own: str) -> Callable[[Task], object]:
    """Import the function that makes a trainer of one's own. Raises ``TrainerRefused``."""
    try:
        made: Callable[[Task], object] = load_function(own, "The trainer")
    except InvalidInput as error:
        raise TrainerRefused(str(error)) from error
    return made
