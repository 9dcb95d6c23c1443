"""What the metric slots of a released sum say (step 8′): means over clients or records, noise included.

They speak of the model that opened the iteration, on the rows that clients train on.
"""

import math

from anofel.models.parameters import Integers
from anofel.privacy.plan import Plan


def reported_metrics(plan: Plan, total: Integers, count: int) -> dict[str, float] | None:
    """Return the noisy mean of every metric, and the standard deviation of the noise in a mean of 0 … 1.

    Unit ``client``: the mean of the clients' means. Unit ``record``: the mean over all records, whose
    number is itself a noisy slot. None if the task has no metric slots, or if noise hides the number.
    """
    if plan.metrics is None:
        return None
    step = plan.metric_weight * plan.scale
    sums = [value / step for value in total[-len(plan.metric_slots) :].tolist()]
    units = sums[-1] if plan.spec.unit == "record" else float(count)
    if units <= 0:
        return None
    means = {name: value / units for name, value in zip(plan.metrics.names, sums, strict=False)}
    if "loss" in means:
        means["loss"] *= float(plan.metrics.loss_bound)
    return means | {"noise": math.sqrt(plan.total_variance(count)) / step / units}
