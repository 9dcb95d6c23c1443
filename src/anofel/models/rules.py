"""How a sum becomes the next model (step 8′): the task's own rule, or a function of its owner's."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from anofel.errors import AnofelError, InvalidInput
from anofel.models.integer_model import IntegerMean, IntegerModel, Integers
from anofel.models.parameters import Parameters
from anofel.tasks.entry_points import load_function
from anofel.tasks.task import Task


class UpdateRule(Protocol):
    """How a sum becomes the next model."""

    def apply(self, model: IntegerModel, total: Integers, count: int, iteration: int) -> IntegerModel:
        """Return the next model from the sum of ``count`` updates in an iteration."""
        ...


class OwnerRuleFailed(AnofelError):
    """The owner's own rule did not make a model that can be posted."""

    code = "owner-rule-failed"


def rule_of(task: Task) -> IntegerMean:
    """Make the update rule of a task; refuses the kind ``owner``, whose owner makes each model."""
    rule = task.rule
    if rule.kind != "integer-mean":
        raise InvalidInput("The task's owner makes each model by a rule of its own.")
    return IntegerMean(
        lr_num=rule.lr_num,
        lr_den=rule.lr_den,
        momentum=rule.momentum,
        schedule=rule.schedule,
        max_mean=_max_mean(task),
    )


def _max_mean(task: Task) -> int | None:
    """Give the bound on the norm of the mean in integer steps, rounded up."""
    bound = task.rule.max_mean_norm
    return math.ceil((1 << task.model.scale_bits) * Fraction(bound)) if bound else None


def first_model(task: Task, parameters: Parameters) -> IntegerModel:
    """Make the first model of a task; it carries a velocity exactly if its rule has momentum."""
    return IntegerModel.from_parameters(parameters, task.model.scale_bits, momentum=needs_velocity(task))


def needs_velocity(task: Task) -> bool:
    """Whether the models of a task carry a velocity."""
    return task.rule.kind == "integer-mean" and task.rule.momentum > 0


def update_rule_of(task: Task, entry_point: str = "") -> UpdateRule:
    """Return the rule of a task; for the kind ``owner`` the function that ``entry_point`` names.

    Raises ``InvalidInput`` if a function is missing, or given where nobody would use it.
    """
    if task.rule.kind == "integer-mean":
        if entry_point:
            raise InvalidInput("The task's rule is integer-mean; a function of your own has no place in it.")
        return rule_of(task)
    if not entry_point:
        raise InvalidInput("The task's owner makes each model by a rule of its own; name it with --rule.")
    return OwnRule(entry_point, load_function(entry_point, "The rule"))


@dataclass(frozen=True)
class OwnRule:
    """A function of the owner's own; nobody else can check what it makes."""

    name: str
    function: Callable[..., Any]

    def apply(
        self,
        model: IntegerModel,
        total: Integers,
        count: int,
        iteration: int,  # noqa: ARG002 - the owner's function does not get it
    ) -> IntegerModel:
        """Return the next model. Raises ``OwnerRuleFailed``."""
        try:
            made = self.function(model, total, count)
        except Exception as error:
            raise OwnerRuleFailed(f"The rule '{self.name}' failed: {error!r}.") from error
        if not isinstance(made, IntegerModel):
            raise OwnerRuleFailed(f"The rule '{self.name}' returned no IntegerModel.")
        if (made.layout, made.scale_bits) != (model.layout, model.scale_bits) or made.velocity is not None:
            raise OwnerRuleFailed(
                f"The rule '{self.name}' returned a model of another shape or scale, or with a velocity."
            )
        return made
