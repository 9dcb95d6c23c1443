"""Step 8′ with groups: one mean from the means of several groups, in integers and the same for everybody.

1. The mean of a group is round(2^16·S / count) for each entry, half to even, in units of 2^−16 of a step;
   one beyond ±2^41 steps is cut to them: no group keeps the others from being used.
2. ``median`` takes the middle of the groups' means for each entry, or the two in the middle.
3. ``trimmed-mean`` leaves out the ``trim`` smallest and largest for each entry, or fewer so that one is left.
4. What is kept is added, and divided by how many were kept when the task's rule is applied.
"""

from collections.abc import Sequence

import numpy as np

from anofel.errors import InvalidInput
from anofel.models.integer_model import Integers
from anofel.tasks.task import GroupsSpec

_FRACTION_BITS = 16
_LIMIT = 1 << (62 - _FRACTION_BITS - 5)
"""What a mean may be in steps, so that 32 of them with their fractions stay within 64 bits."""


def combined(spec: GroupsSpec | None, sums: Sequence[tuple[Integers, int]]) -> tuple[Integers, int]:
    """Return sum and divisor of what the rule averages; for one group the group's own.

    ``sums``: of every opened group the sum and its count.
    """
    if not sums:
        raise InvalidInput("No group was opened.")
    if spec is None:
        ((total, count),) = sums
        return total, count
    means = np.sort(np.stack([_mean(total, count) for total, count in sums]), axis=0)  # (1)
    groups = len(means)
    left_out = (groups - 1) // 2  # (2)
    if spec.combine == "trimmed-mean":
        left_out = min(spec.trim, left_out)  # (3)
    kept = means[left_out : groups - left_out]
    return kept.sum(axis=0, dtype=np.int64), len(kept) << _FRACTION_BITS  # (4)


def _mean(total: Integers, count: int) -> Integers:
    """Round 2^16·S / count, half to even; the whole part first, so that nothing overflows."""
    if count < 1 or count >> 32:
        raise InvalidInput("A mean is of 1 to 2^32 - 1 updates.")
    whole, rest = np.divmod(total, np.int64(count))
    part, left = np.divmod(rest << _FRACTION_BITS, np.int64(count))
    twice = 2 * left
    up = (twice > count) | ((twice == count) & (part % 2 == 1))
    cut = np.clip(whole, -_LIMIT, _LIMIT)
    mean: Integers = (cut << _FRACTION_BITS) + np.where(cut == whole, part + up, 0)
    return mean
