"""What a task does to the privacy of a client: sensitivities, noise shares, events, ε, slots.

A plan is plain arithmetic on the announced numbers, so owner, client and auditor get the same one.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anofel.errors import InvalidInput
from anofel.privacy.accounting import epsilon
from anofel.privacy.announced import (
    TAIL,
    check_noise,
    metric_noise,
    metric_range,
    noise_norm_squared,
    norm_bound,
    update_norm,
    value_bound,
)
from anofel.privacy.clipping import rounded_norm_squared
from anofel.privacy.events import Event, Release, Sensitivity
from anofel.privacy.mechanisms import Mechanism, mechanism_named
from anofel.tasks.task import RELATIONS, MetricsSpec, PrivacySpec, Task, WeightsSpec


@dataclass(frozen=True)
class Plan:
    """The privacy of a task whose vectors have `dimension` entries at scale 2^scale_bits."""

    spec: PrivacySpec
    dimension: int
    """Parameters, the weight, and metric slots."""
    scale_bits: int
    metrics: MetricsSpec | None = None
    metric_slots: tuple[str, ...] = ()
    proven: bool = True
    """Whether contributions prove their norm."""
    groups: int = 1
    """How many sums an iteration has; a client is in one of them."""
    weights: WeightsSpec | None = None
    weight_step: int = 0
    """ω: what a client of weight 1 adds to the weight slot, in integer steps; 0 without weights."""

    @classmethod
    def of(cls, task: Task) -> "Plan":
        """Make the plan of a task; refuses one whose noise would be too coarse or too large for integers."""
        mechanism_named(task.privacy.mechanism)
        check_noise(task)
        return cls(
            task.privacy,
            task.length,
            task.model.scale_bits,
            task.metrics,
            task.metric_slots,
            not task.insecure_unproven_contributions,
            1 if task.groups is None else task.groups.number,
            task.weights,
            task.weight_step,
        )

    @property
    def scale(self) -> int:
        """s: integer steps per unit of an update."""
        return 1 << self.scale_bits

    @property
    def clipping_norm(self) -> float:
        """C, of what a client or a record contributes: update, weight and metrics together."""
        return float(self.spec.clipping_norm)

    @property
    def update_norm(self) -> float:
        """What of C is left for a client's update or a record's gradient: all, or √(1 − Σ share²)·C."""
        taken = sum(float(spec.share) ** 2 for spec in (self.metrics, self.weights) if spec is not None)
        return self.clipping_norm * math.sqrt(1 - taken) if taken else self.clipping_norm

    def weight(self, examples: int) -> float:
        """How much the update of a client with so many rows counts, 0 … 1; 1 without weights."""
        if self.weights is None:
            return 1.0
        return min(max(examples, 0), self.weights.most) / self.weights.most

    @property
    def metric_weight(self) -> float:
        """w: what a metric of 1 becomes; all slots together have norm share·C at most."""
        if self.metrics is None:
            return 0.0
        return self.clipping_norm * float(self.metrics.share) / math.sqrt(len(self.metric_slots))

    @property
    def radius(self) -> float:
        """s·C: the clipping norm in integer steps."""
        return self.scale * self.clipping_norm

    @property
    def mechanism(self) -> Mechanism:
        """The noise mechanism of the task."""
        return mechanism_named(self.spec.mechanism)

    @property
    def norm_squared(self) -> int:
        """Δ²: the bound on a client's rounded update (units ``client`` and ``paper``)."""
        return rounded_norm_squared(self.clipping_norm, self.scale, self.dimension)

    def sensitivity(self, relation: str) -> Sensitivity:
        """How far one unit can move the sum, rounding included.

        ``client``: the checked norm Δ, twice for *replace*. ``record``: two datasets are rounded
        with the same coins, so their sums differ by s·C + √d at most (2·s·C + √d for *replace*).
        """
        if relation not in RELATIONS:
            raise InvalidInput(f"There is no relation '{relation}'; use {' or '.join(RELATIONS)}.")
        factor = 2 if relation == "replace" else 1
        if self.spec.unit == "record":
            l2 = factor * self.radius + math.sqrt(self.dimension)
        else:
            l2 = factor * math.sqrt(self.norm_squared)
        return Sensitivity(l2=l2, l1=min(math.sqrt(self.dimension) * l2, l2**2))

    @property
    def clients_per_sum(self) -> int:
        """How many of the expected clients a released sum holds: all, or those of a group."""
        return self.spec.expected_clients // self.groups

    @cached_property
    def required_variance(self) -> float:
        """σ²: what the honest noise in a released sum must reach, in squared integer steps."""
        return (float(self.spec.noise_multiplier) * self.radius) ** 2

    @cached_property
    def _adaptive_base(self) -> float:
        """A in σ_k² = A/k, such that the last h of max_posts posts together reach σ²."""
        last, honest = self.spec.max_posts, self.spec.honest
        return self.required_variance / math.fsum(1 / k for k in range(last - honest + 1, last + 1))

    def local_sigma(self, position: int | None = None) -> int:
        """Give the standard deviation of one client's noise, rounded up to an integer.

        Fixed: σ/√h. Adaptive: σ_k for the client that sees k − 1 posts before its own.
        """
        spec = self.spec
        if spec.unit == "paper":
            return max(1, math.ceil(self.scale * self.paper_sigma / spec.expected_clients))
        if not spec.adaptive:
            return max(1, math.ceil(math.sqrt(self.required_variance / spec.honest)))
        if position is None or not 1 <= position <= spec.max_posts:
            raise InvalidInput(
                f"Adaptive noise needs the position of the post, between 1 and {spec.max_posts}."
            )
        return max(1, math.ceil(math.sqrt(self._adaptive_base / position)))

    @property
    def smallest_local_sigma(self) -> int:
        """The least noise any client adds."""
        return self.local_sigma(self.spec.max_posts if self.spec.adaptive else None)

    @property
    def paper_sigma(self) -> float:
        """The paper's noise scale σ = c·T·S_f/ε, S_f = 2C/|D|, c = √(2 ln(1.25/δ)). Unproven."""
        spec = self.spec
        c = math.sqrt(2 * math.log(1.25 / float(spec.delta)))
        sensitivity = 2 * self.clipping_norm / spec.records_per_client
        return c * spec.max_releases * sensitivity / float(spec.paper_epsilon)

    def guaranteed_variance(self, honest: int | None = None) -> float:
        """Variance that `honest` contributors (h unless told) surely add, whoever they are.

        Adaptive noise shrinks with the position, so the worst case is the last posts.
        """
        count = self.spec.honest if honest is None else honest
        if count < 1:
            raise InvalidInput("Without an honest contributor there is no noise to count on.")
        if not self.spec.adaptive:
            return float(count) * self.local_sigma() ** 2
        last = self.spec.max_posts
        positions = np.arange(max(1, last - count + 1), last + 1, dtype=np.float64)
        return float((np.maximum(1, np.ceil(np.sqrt(self._adaptive_base / positions))) ** 2).sum())

    def total_variance(self, clients: int) -> float:
        """Variance in the sum when `clients` contribute, all of them adding their noise."""
        if not self.spec.adaptive:
            return float(clients) * self.local_sigma() ** 2
        positions = np.arange(1, clients + 1, dtype=np.float64)
        return float((np.ceil(np.sqrt(self._adaptive_base / positions)) ** 2).sum())

    def event(self, relation: str, honest: int | None = None) -> Event:
        """Describe one release. For *replace*, sampling of records is allowed but not credited."""
        rate = float(self.spec.sampling_rate) if relation == "zero-out" else 1.0
        return self.mechanism.event(
            Release(
                variance=self.guaranteed_variance(honest),
                sensitivity=self.sensitivity(relation),
                sampling_rate=rate,
                draws=self.dimension * (self.spec.honest if honest is None else honest),
            )
        )

    def epsilon(self, releases: int, relation: str, honest: int | None = None) -> float:
        """ε after `releases` released sums, at the task's δ. For ``paper``: what its noise gives a client."""
        return epsilon([(self.event(relation, honest), releases)], float(self.spec.delta))

    @property
    def contribution_bound(self) -> int:
        """The largest entry of one client's vector before noise."""
        records = self.spec.records_per_client if self.spec.unit == "record" else 1
        return math.ceil(records * self.radius) + 1

    @property
    def value_bound(self) -> int:
        """The largest entry of one client's vector, noise included (:data:`TAIL`); a task announces it."""
        return value_bound(self.spec, self.scale_bits)

    @property
    def norm_bound(self) -> int:
        """B: the largest norm of one client's vector, noise included; contribution proofs are about it."""
        return norm_bound(self.spec, self.scale_bits, self.dimension)

    @property
    def update_norm_bound(self) -> int:
        """Δ as it stands in B: the largest norm of one client's vector before noise."""
        return update_norm(self.spec, self.scale_bits, self.dimension)

    @property
    def noise_norm_squared(self) -> int:
        """The square of the largest norm of one client's noise that B has room for."""
        return noise_norm_squared(self.spec, self.scale_bits, self.dimension)

    @property
    def metric_range(self) -> tuple[int, int] | None:
        """What a client proves of each metric slot, noise included; None where it proves nothing of it."""
        if not self.proven or self.metrics is None or not self.metrics.proven_ranges:
            return None
        return metric_range(self.spec, self.metrics, self.scale_bits, len(self.metric_slots))

    @property
    def metric_noise(self) -> int:
        """The largest noise in a metric slot whose range is proven."""
        return metric_noise(self.spec, self.scale_bits)

    @property
    def sum_bound(self) -> int:
        """B: the sum of max_posts contributions and their noise stays within ±B (see :data:`TAIL`)."""
        posts = self.spec.max_posts
        variance = posts * self.local_sigma(1 if self.spec.adaptive else None) ** 2
        return posts * self.contribution_bound + math.ceil(TAIL * math.sqrt(variance))

    @property
    def slot_bits(self) -> int:
        """Bits a slot needs so that no sum overflows."""
        return (2 * self.sum_bound).bit_length()
