"""What an announced task is: the facts that follow from its document (step 1.d).

Owners, board, clients and audits derive them with the same function, so nobody can state others.
"""

from dataclasses import dataclass

from anofel.committee import schemes
from anofel.committee.context import CoordinateRange, TaskLimits
from anofel.committee.errors import DoesNotFit
from anofel.messages import Class
from anofel.models.rules import companions_of
from anofel.privacy.announced import check_noise, metric_range, norm_bound, value_bound
from anofel.tasks.task import Task


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The numbers of a task that rules and phases need."""

    name: str
    limits: TaskLimits
    parameters: int
    """How many of the numbers of a vector are the model's."""
    scale_bits: int
    max_colluders: int
    max_releases: int
    types: tuple[int, ...] | None
    """The dataset types that count; None means all."""
    rule: str
    """The kind of the rule that makes each model."""
    companions: int
    """How many vectors of the rule its models carry: a velocity, a second moment."""
    groups: int = 1
    """To how many groups the posts of an iteration are dealt (D-26)."""

    @property
    def own_rule(self) -> bool:
        """Whether the owner makes each model by a rule of its own, instead of the document's."""
        return self.rule == "owner"


def limits_of(document: Task, max_posts: int) -> TaskLimits:
    """Derive what a task promises about its vectors, of which so many are added. Raises ``DoesNotFit``."""
    privacy, scale_bits = document.privacy, document.model.scale_bits
    unproven = document.insecure_unproven_contributions
    return TaskLimits(
        length=document.length,
        bound=value_bound(privacy, scale_bits),
        max_posts=max_posts,
        min_clients=privacy.min_clients,
        norm_bound=None if unproven else norm_bound(privacy, scale_bits, document.length),
        max_liars=max(1, privacy.max_colluders),
        ranges=() if unproven else _ranges_of(document),
    )


def _ranges_of(document: Task) -> tuple[CoordinateRange, ...]:
    """Derive which coordinates have proven ranges: the metric slots, where the task asks for it."""
    metrics, slots = document.metrics, len(document.metric_slots)
    if metrics is None or not metrics.proven_ranges:
        return ()
    low, high = metric_range(document.privacy, metrics, document.model.scale_bits, slots)
    first = document.metrics_start
    return tuple(CoordinateRange(first + slot, low, high) for slot in range(slots))


def facts_of(document: Task, size: Class) -> TaskFacts:
    """Derive what follows from a task's document and its size class. Raises ``DoesNotFit``.

    Vectors have room for the sum of as many posts as the class admits: every post of a bundle is added,
    those of its other tasks too. The bound of its vectors takes long to compute for very many clients.
    """
    privacy = document.privacy
    return TaskFacts(
        name=document.name,
        limits=limits_of(document, size.max_posts),
        parameters=document.model.parameters,
        scale_bits=document.model.scale_bits,
        max_colluders=privacy.max_colluders,
        max_releases=privacy.max_releases,
        types=(document.dataset_type,) if document.dataset_type else None,
        rule=document.rule.kind,
        companions=companions_of(document),
        groups=1 if document.groups is None else document.groups.number,
    )


def check_fits(document: Task, size: Class, scheme: str = schemes.DEFAULT) -> None:
    """Refuse a task whose sums a committee cannot add in a size class.

    Raises ``DoesNotFit``, and ``InvalidInput`` for noise that does not fit.
    """
    chosen, limits = schemes.by_name(scheme), limits_of(document, size.max_posts)
    if limits.ranges and not chosen.proves_norm:
        raise DoesNotFit(
            f"The scheme {scheme} proves no ranges: leave proven_ranges out, or choose another committee."
        )
    try:
        chosen.required_bits(limits)
    except DoesNotFit as error:
        raise DoesNotFit(
            f"{error} Sums of {size.max_posts} posts need room: lower scale_bits or clipping_norm, or find a "
            "size class of fewer posts."
        ) from None
    check_noise(document)
