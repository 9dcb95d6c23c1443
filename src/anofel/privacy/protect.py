"""Step 4, second half — clip, round and add the client's share of the noise.

What is encrypted has bounds, and who exceeded them could not post. So update and noise are held to bounds of
their own, which together are those: whether noise fits does not depend on the update (D-20).
"""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from anofel.errors import AnofelError, InvalidInput
from anofel.learning.metrics import record_metrics
from anofel.learning.sampling import at_most
from anofel.learning.trainer import LocalUpdate, Predictor, RecordTrainer, Trainer
from anofel.models.parameters import Integers, Layout, Parameters, Vector
from anofel.privacy.announced import TAIL
from anofel.privacy.clipping import NormCheckFailed, clip, round_stochastically, round_within
from anofel.privacy.plan import Plan
from anofel.studies.dataset import Dataset

_FLOAT_SLACK = 1e-9
"""Relative error allowed to the floating-point sum of clipped gradients when it is re-checked."""

_DRAWS: Final = 64
"""Noise of the package's mechanisms does not fit once in 2^40 draws."""

_EXACT_BELOW: Final = 1 << 62
"""Squares with a sum below this do not overflow 64 bits."""


class NoiseTooWide(AnofelError):
    """A mechanism's noise never fits into the bounds of its task, whatever the data are."""

    code = "noise-too-wide"


def train_unit(trainer: Trainer, parameters: Parameters, dataset: Dataset, plan: Plan) -> LocalUpdate:
    """Train as the unit of protection demands: records are clipped one by one, clients as a whole.

    Of more records than the task allows for a client, as many as it allows are drawn: to refuse would tell
    the owner who has more. Where the task has metric slots, the posted model is measured on the same rows.
    """
    if plan.spec.unit == "record":
        dataset = at_most(dataset, plan.spec.records_per_client)
        if not isinstance(trainer, RecordTrainer):
            raise InvalidInput("The unit 'record' needs a trainer that clips every record (train_records).")
        local = trainer.train_records(parameters, dataset, plan.update_norm, float(plan.spec.sampling_rate))
    else:
        local = trainer.train(parameters, dataset)
    if plan.metrics is None:
        return local
    if not isinstance(trainer, Predictor):
        raise InvalidInput("The task has metric slots; its trainer has to give probabilities.")
    measured = record_metrics(trainer.probabilities(parameters, dataset), dataset.labels, plan.metrics)
    if plan.spec.unit == "record":
        return replace(local, metrics=(*measured.sum(axis=0).tolist(), float(len(dataset))))
    return replace(local, metrics=tuple(measured.mean(axis=0).tolist()))


def encode(local: LocalUpdate, layout: Layout, plan: Plan) -> Integers:
    """Clip, scale and round an update and its metrics to integers whose norm was checked; no noise yet."""
    update = layout.flatten(local.update)
    expected = plan.dimension - len(plan.metric_slots) - (plan.weights is not None)
    if update.size != expected:
        raise InvalidInput(f"The task has {expected} parameters, the update {update.size}.")
    metrics = _weighted_metrics(local, plan)
    if plan.spec.unit == "record":
        if local.examples > plan.spec.records_per_client:
            raise NormCheckFailed("The trainer speaks of more records than it was given; nothing is sent.")
        bound = local.examples * plan.update_norm
        if not np.linalg.norm(update) <= bound * (1 + _FLOAT_SLACK) + np.finfo(float).tiny:
            raise NormCheckFailed("The sum of clipped gradients exceeds its bound; it is not sent.")
        # No repetition here: whether to repeat would depend on the data, and the shared coins would be lost.
        return round_stochastically(np.ldexp(np.concatenate([update, metrics]), plan.scale_bits))
    # The parts have norm √(1 − Σ share²)·C and share·C at most; clipping all to C covers float errors.
    weight = plan.weight(local.examples)
    slot = [] if plan.weights is None else [weight * plan.weight_step / plan.scale]
    parts = [weight * clip(update, plan.update_norm), np.array(slot), metrics]
    whole = clip(np.concatenate(parts), plan.clipping_norm)
    return round_within(np.ldexp(whole, plan.scale_bits), plan.norm_squared)


def _weighted_metrics(local: LocalUpdate, plan: Plan) -> Vector:
    """Scale the metrics so that one unit's have norm share·C at most, which is checked."""
    metrics = np.array(local.metrics, dtype=np.float64)
    if metrics.size != len(plan.metric_slots):
        raise InvalidInput(f"The task has {len(plan.metric_slots)} metric slots, the update {metrics.size}.")
    most = local.examples if plan.spec.unit == "record" else 1
    if not np.all((metrics >= 0) & (metrics <= most * (1 + _FLOAT_SLACK))):
        raise NormCheckFailed("A metric is not within its bounds; nothing is sent.")
    return metrics * plan.metric_weight


def draw_noise(plan: Plan, position: int | None = None) -> Integers:
    """Draw the client's share of the noise; it does not depend on the update, so it can be drawn early.

    Noise that the bounds have no room for is drawn again. Raises ``NoiseTooWide``.
    """
    sigma, most = plan.local_sigma(position), plan.value_bound - plan.contribution_bound
    for _ in range(_DRAWS):
        noise = plan.mechanism.sample(sigma, plan.dimension)
        if _is_within(noise, most, plan.noise_norm_squared) and _slots_are_within(
            noise, plan, -plan.metric_noise, plan.metric_noise
        ):
            return noise
    raise NoiseTooWide(
        f"The noise of '{plan.spec.mechanism}' exceeded {TAIL} of its standard deviations, or the norm or "
        f"the range that Gaussian noise keeps to, {_DRAWS} times in a row; the task needs another mechanism."
    )


@dataclass(frozen=True, eq=False)
class ProtectedUpdate:
    """What a client adds to the sum before its noise, and why it is zero if it had to be."""

    values: Integers
    failure: str = ""
    """For the client's own eyes; empty if all went well."""

    def __repr__(self) -> str:
        return f"ProtectedUpdate(<redacted>, failure={self.failure!r})"

    @classmethod
    def zero(cls, plan: Plan, failure: str) -> Self:
        """Make what stands in for an update that is missing, late or unfit (D-20)."""
        return cls(np.zeros(plan.dimension, dtype=np.int64), failure)

    def with_noise(self, plan: Plan, position: int | None = None) -> Integers:
        """Add the client's share of the noise; an update that is zero carries it too."""
        return self.values + draw_noise(plan, position)


def fits(values: Integers, plan: Plan) -> bool:
    """Whether rounded integers are within the bounds that the plan counts on."""
    if values.shape != (plan.dimension,):
        return False
    longest = plan.update_norm_bound**2 if plan.spec.unit == "record" else plan.norm_squared
    _, high = plan.metric_range or (0, 0)
    return _is_within(values, plan.contribution_bound, longest) and _slots_are_within(
        values, plan, 0, high - plan.metric_noise
    )


def _slots_are_within(values: Integers, plan: Plan, low: int, high: int) -> bool:
    """Whether the metric slots are within low … high; always where their ranges are not proven."""
    if plan.metric_range is None:
        return True
    slots = values[-len(plan.metric_slots) :]
    return low <= int(slots.min()) and int(slots.max()) <= high


def _is_within(values: Integers, most: int, norm_squared: int) -> bool:
    """Whether no entry is larger than ``most``, nor the square of the norm than ``norm_squared``."""
    if int(values.min()) < -most or int(values.max()) > most:
        return False
    if float(np.linalg.norm(values.astype(np.float64))) ** 2 > norm_squared * (1 + _FLOAT_SLACK):
        return False
    exact = values if norm_squared < _EXACT_BELOW else values.astype(object)
    return int(np.dot(exact, exact)) <= norm_squared


def protect(local: LocalUpdate, layout: Layout, plan: Plan, position: int | None = None) -> Integers:
    """Turn an update into the integers that get encrypted: clip, round, add noise; never clamp."""
    return encode(local, layout, plan) + draw_noise(plan, position)
