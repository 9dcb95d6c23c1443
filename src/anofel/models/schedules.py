"""Learning-rate schedules as tables of rational rates: what a task file holds, and nobody recomputes.

The functions below only help to write such a table; a task carries the fractions themselves, so that
owner, clients, board and auditors apply the same ones.
"""

import math

from anofel.errors import InvalidInput
from anofel.tasks.task import MAX_CHANGES, RateChange

_STEPS = 1 << 20


def step_schedule(lr_num: int, lr_den: int, *, every: int, factor: int, times: int) -> tuple[RateChange, ...]:
    """Divide the rate by `factor` after every so many iterations."""
    if min(lr_num, lr_den, every, times) < 1 or factor < 2:
        raise InvalidInput("A step schedule divides a positive rate by 2 or more, at least once.")
    return _checked(
        tuple(
            RateChange(iteration=1 + every * step, lr_num=lr_num, lr_den=lr_den * factor**step)
            for step in range(1, times + 1)
        )
    )


def cosine_schedule(lr_num: int, lr_den: int, *, iterations: int) -> tuple[RateChange, ...]:
    """Let the rate fall along half a cosine, from the second of `iterations` on; it never reaches zero."""
    if min(lr_num, lr_den) < 1 or iterations < 2:
        raise InvalidInput("A cosine schedule needs a positive rate and two iterations or more.")
    changes = []
    for iteration in range(2, iterations + 1):
        share = (1 + math.cos(math.pi * (iteration - 1) / iterations)) / 2
        num = max(1, round(lr_num * share * _STEPS))
        common = math.gcd(num, lr_den * _STEPS)
        change = RateChange(iteration=iteration, lr_num=num // common, lr_den=lr_den * _STEPS // common)
        changes.append(change)
    return _checked(tuple(changes))


def schedule_toml(changes: tuple[RateChange, ...]) -> str:
    """Write a schedule as it stands under ``[rule]`` in a task file."""
    lines = [
        f"  {{ iteration = {change.iteration}, lr_num = {change.lr_num}, lr_den = {change.lr_den} }},"
        for change in changes
    ]
    return "\n".join(["schedule = [", *lines, "]", ""])


def _checked(changes: tuple[RateChange, ...]) -> tuple[RateChange, ...]:
    if len(changes) > MAX_CHANGES:
        raise InvalidInput(f"A schedule holds at most {MAX_CHANGES} changes.")
    return changes
