"""Step 4, second half — clip, round and add the client's share of the noise."""

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.parameters import Layout, Parameters
from anofel.learning.trainer import LocalUpdate, RecordTrainer, Trainer
from anofel.privacy.clipping import NormCheckFailed, clip, round_stochastically, round_within
from anofel.privacy.plan import Plan
from anofel.studies.dataset import Dataset

Integers = NDArray[np.int64]

_FLOAT_SLACK = 1e-9
"""Relative error allowed to the floating-point sum of clipped gradients when it is re-checked."""


def train_unit(trainer: Trainer, parameters: Parameters, dataset: Dataset, plan: Plan) -> LocalUpdate:
    """Train as the unit of protection demands: records are clipped one by one, clients as a whole."""
    if plan.spec.unit != "record":
        return trainer.train(parameters, dataset)
    if not isinstance(trainer, RecordTrainer):
        raise InvalidInput("The unit 'record' needs a trainer that clips every record (train_records).")
    if len(dataset) > plan.spec.records_per_client:
        raise InvalidInput(
            f"The dataset has {len(dataset)} records, "
            f"but the task allows {plan.spec.records_per_client} per client."
        )
    return trainer.train_records(parameters, dataset, plan.clipping_norm, float(plan.spec.sampling_rate))


def encode(local: LocalUpdate, layout: Layout, plan: Plan) -> Integers:
    """Clip, scale and round an update to integers whose norm was checked; no noise yet."""
    vector = layout.flatten(local.update)
    if vector.size != plan.dimension:
        raise InvalidInput(f"The task has {plan.dimension} parameters, the update {vector.size}.")
    if plan.spec.unit == "record":
        bound = local.examples * plan.clipping_norm
        if not np.linalg.norm(vector) <= bound * (1 + _FLOAT_SLACK) + np.finfo(float).tiny:
            raise NormCheckFailed("The sum of clipped gradients exceeds its bound; it is not sent.")
        # No repetition here: whether to repeat would depend on the data, and the shared coins would be lost.
        return round_stochastically(np.ldexp(vector, plan.scale_bits))
    return round_within(np.ldexp(clip(vector, plan.clipping_norm), plan.scale_bits), plan.norm_squared)


def draw_noise(plan: Plan, position: int | None = None) -> Integers:
    """Draw the client's share of the noise; it does not depend on the update, so it can be drawn early."""
    return plan.mechanism.sample(plan.local_sigma(position), plan.dimension)


def protect(local: LocalUpdate, layout: Layout, plan: Plan, position: int | None = None) -> Integers:
    """Turn an update into the integers that get encrypted: clip, round, add noise; never clamp."""
    return encode(local, layout, plan) + draw_noise(plan, position)
