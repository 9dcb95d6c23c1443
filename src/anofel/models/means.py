"""Step 8′ with weights or groups: the mean that the rule applies, in integers and the same for everybody.

With weights (``[weights]``):

1. With ω the weight of 1 in steps, the mean is round(2^16·ω·S / D) for each entry, half to even, in units of
   2^−16 of a step; one beyond ±2^41 steps is cut to them. D is the sum of the weight slot, or
   ⌈``floor``·ω·count⌉ if that is larger: noise can make the former small, or negative.

With groups (``[groups]``):

1. The mean of a group is round(2^16·S / count) for each entry, half to even, in units of 2^−16 of a step;
   one beyond ±2^41 steps is cut to them: no group keeps the others from being used. With weights it is
   the weighted mean.
2. ``median`` takes the middle of the groups' means for each entry, or the two in the middle.
3. ``trimmed-mean`` leaves out the ``trim`` smallest and largest for each entry, or fewer so that one is left.
4. What is kept is added, and divided by how many were kept when the task's rule is applied.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anofel._core import update_rule
from anofel.errors import InvalidInput
from anofel.models.parameters import Integers
from anofel.tasks.task import Task

_FRACTION_BITS = 16


def mean_of(task: Task, sums: Sequence[tuple[Integers, int]]) -> tuple[Integers, int]:
    """Return sum and divisor of what the rule averages; without weights and groups those of the one sum.

    ``sums``: of every opened group the whole sum, slots too, and its count.
    """
    if not sums:
        raise InvalidInput("No group was opened.")
    spec = task.groups
    if spec is None and task.weights is None:
        ((total, count),) = sums
        return total[: task.model.parameters], count
    means = np.sort(np.stack([_mean(task, total, count) for total, count in sums]), axis=0)  # (1)
    if spec is None:
        return means[0], 1 << _FRACTION_BITS
    groups = len(means)
    left_out = (groups - 1) // 2  # (2)
    if spec.combine == "trimmed-mean":
        left_out = min(spec.trim, left_out)  # (3)
    kept = means[left_out : groups - left_out]
    return kept.sum(axis=0, dtype=np.int64), len(kept) << _FRACTION_BITS  # (4)


def _mean(task: Task, total: Integers, count: int) -> Integers:
    if count < 1 or count >> 32:
        raise InvalidInput("A mean is of 1 to 2^32 - 1 updates.")
    numerator, divisor = 1, count
    if task.weights is not None:
        numerator = task.weight_step
        least = math.ceil(Fraction(task.weights.floor) * numerator * count)
        divisor = max(int(total[task.model.parameters]), least)
    own = total[: task.model.parameters].astype("<i8", copy=False).tobytes()
    made = update_rule.fine_mean(own, numerator=numerator, divisor=divisor)
    return np.frombuffer(made, "<i8").astype(np.int64, copy=False)
