"""Refresh and change of members: the same keys, new shares; ``handover`` has the rounds.

A dealer posts its commitments, then one sealed part per receiver, ascending.

A complaint opens the key for the accused dealer alone: the secret that is dealt outlives a failed
run, and one more point of an honest dealer's polynomial could be the one that a coalition lacks.

Afterwards a share of the old committee is stale: no check accepts it. t old members who *kept*
theirs could still decrypt together, so erasing them is part of the protocol.
"""

from dataclasses import dataclass, field

from anofel._core import committee as core
from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.handover import settle_handover
from anofel.committee.refusal import refusing
from anofel.committee.ristretto.run import Bodies, transcript_digest
from anofel.committee.ristretto.verdict import Complaint, Confirmation
from anofel.committee.sealing import (
    OVERHEAD,
    CannotOpen,
    DealerKeys,
    SealingKey,
    binding,
    dealer_key,
    seal,
)

SCALAR_LENGTH = 32


@dataclass(frozen=True, kw_only=True)
class RistrettoPlan:
    """What every party knows."""

    digest: bytes
    """Names the run: everything it is about."""
    old_keys: core.Keys = field(repr=False)
    num_keys: int
    dealers: tuple[int, ...]
    shape: CommitteeShape

    @property
    def commitments_length(self) -> int:
        """Bytes of a dealer's commitments."""
        return self.num_keys * self.shape.threshold * SCALAR_LENGTH

    @property
    def part_length(self) -> int:
        """Bytes of a sealed part."""
        return self.num_keys * SCALAR_LENGTH + OVERHEAD

    @property
    def core_shape(self) -> core.Shape:
        """The new committee for the core."""
        return core.Shape(self.num_keys, self.shape.num_members, self.shape.threshold)


def deal(plan: RistrettoPlan, secrets: core.Secrets, sealing_keys: Bodies) -> bytes:
    """Make a dealer's message."""
    if secrets.member not in plan.dealers:
        raise InvalidCommittee(f"Member {secrets.member} is not one of the agreed dealers.")
    with refusing(KeyGenerationFailed):
        dealing = core.handover_deal(
            plan.old_keys, secrets, plan.dealers, plan.shape.num_members, plan.shape.threshold
        )
    parts = (
        seal(
            dealer_key(sealing_keys[receiver], plan.dealers, secrets.member),
            share,
            binding(plan.digest, secrets.member, receiver),
        )
        for receiver, share in zip(plan.shape.members, dealing.shares, strict=True)
    )
    return dealing.commitments + b"".join(parts)


def new_keys(plan: RistrettoPlan, dealt: Bodies) -> core.Keys:
    """Check every dealing and compute the keys after it; anyone can.

    1. Every message has its exact length.
    2. Every dealer's commitment to the constant is its weighted verification share.
    3. The public keys are the old ones.
    """
    expected = plan.commitments_length + plan.shape.num_members * plan.part_length
    for dealer, body in dealt.items():
        if len(body) != expected:
            raise KeyGenerationFailed(
                f"Dealer {dealer} sent {len(body)} bytes instead of {expected}.", (), (dealer,)
            )
    try:
        with refusing(KeyGenerationFailed):
            return core.handover_keys(
                plan.old_keys, plan.shape.num_members, plan.shape.threshold, _commitments(plan, dealt)
            )
    except KeyGenerationFailed as error:
        raise KeyGenerationFailed(str(error), (), error.culprits) from None


def receive(
    plan: RistrettoPlan, member: int, sealing: DealerKeys, history: tuple[Bodies, Bodies], keys: core.Keys
) -> core.Secrets | Complaint:
    """Open and add what the dealers sent, or name the first who cheated."""
    shares = {}
    for dealer in plan.dealers:
        try:
            shares[dealer] = _checked_part(plan, history[1], dealer, member, sealing.for_dealer(dealer))
        except (CannotOpen, KeyGenerationFailed):
            return Complaint(dealer, sealing.for_dealer(dealer).to_bytes())
    with refusing(KeyGenerationFailed):
        return core.handover_receive(keys, member, _commitments(plan, history[1]), shares)


def confirmation(plan: RistrettoPlan, history: tuple[Bodies, Bodies], keys: core.Keys) -> Confirmation:
    """Return what every receiver must confirm."""
    return Confirmation.of(keys.to_bytes(), transcript_digest(plan.digest, history))


def finish(plan: RistrettoPlan, history: tuple[Bodies, Bodies], keys: core.Keys, verdicts: Bodies) -> bytes:
    """Settle the run from public messages alone. Returns the transcript's hash."""
    expected = confirmation(plan, history, keys)

    def check(dealer: int, receiver: int, key: SealingKey) -> None:
        _checked_part(plan, history[1], dealer, receiver, key)

    settle_handover(plan.dealers, history[0], verdicts, expected, check)
    return expected.transcript


def _commitments(plan: RistrettoPlan, dealt: Bodies) -> dict[int, bytes]:
    return {dealer: body[: plan.commitments_length] for dealer, body in dealt.items()}


def _checked_part(plan: RistrettoPlan, dealt: Bodies, dealer: int, receiver: int, key: SealingKey) -> bytes:
    start = plan.commitments_length + (receiver - 1) * plan.part_length
    sealed = dealt[dealer][start : start + plan.part_length]
    share = key.open(sealed, binding(plan.digest, dealer, receiver))
    with refusing(KeyGenerationFailed):
        core.check_dealt_shares(plan.core_shape, _commitments(plan, dealt)[dealer], receiver, share)
    return share
