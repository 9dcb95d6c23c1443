"""How a sum becomes the next model (step 8′): the task's own rule, or a function of its owner's."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from anofel.errors import AnofelError, InvalidInput
from anofel.models.integer_model import IntegerAdaptive, IntegerMean, IntegerModel
from anofel.models.parameters import Integers, Parameters
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
    if rule.kind == "owner":
        raise InvalidInput("The task's owner makes each model by a rule of its own.")
    mean = IntegerMean(
        lr_num=rule.lr_num,
        lr_den=rule.lr_den,
        momentum=rule.momentum,
        schedule=rule.schedule,
        max_mean=_in_steps(task, rule.max_mean_norm),
    )
    if rule.kind == "integer-mean":
        return mean
    return IntegerAdaptive(
        **vars(mean),
        yogi=rule.kind == "integer-yogi",
        second_momentum=rule.second_momentum,
        floor=_in_steps(task, rule.floor) or 1,
    )


def _in_steps(task: Task, length: Decimal) -> int | None:
    """Give a length in integer steps, rounded up; none for zero."""
    return math.ceil((1 << task.model.scale_bits) * Fraction(length)) if length else None


def first_model(task: Task, parameters: Parameters) -> IntegerModel:
    """Make the first model of a task, with the vectors that its rule keeps."""
    return IntegerModel.from_parameters(parameters, task.model.scale_bits, companions=companions_of(task))


def companions_of(task: Task) -> int:
    """How many vectors of their rule the models of a task carry."""
    return 0 if task.rule.kind == "owner" else rule_of(task).companions


def update_rule_of(task: Task, entry_point: str = "") -> UpdateRule:
    """Return the rule of a task; for the kind ``owner`` the function that ``entry_point`` names.

    Raises ``InvalidInput`` if a function is missing, or given where nobody would use it.
    """
    if task.rule.kind != "owner":
        if entry_point:
            raise InvalidInput(
                f"The task's rule is {task.rule.kind}; a function of your own has no place in it."
            )
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
