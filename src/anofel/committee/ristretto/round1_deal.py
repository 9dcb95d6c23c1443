"""Round 1: every member sends every other its shares, sealed.

Sent: one sealed part per other member, ascending, all of the same length. Kept: the sealing
key's private half, FROST's state.
"""

from anofel._core import committee as core
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.refusal import refusing
from anofel.committee.ristretto.round0_commit import packages, sealing_keys
from anofel.committee.ristretto.run import Bodies, RoundPart, RunPlan, SecretDrawn
from anofel.committee.sealing import OVERHEAD, SealingKey, binding, seal

SCALAR_LENGTH = 32


def send(plan: RunPlan, member: int, kept: SecretDrawn, commitments: Bodies) -> RoundPart[SecretDrawn]:
    """Deal shares to the others."""
    with refusing(KeyGenerationFailed):
        dealt = core.dkg_part2(plan.core_shape, member, kept.frost, packages(commitments))
    keys = sealing_keys(commitments)
    parts = (
        seal(keys[receiver], share, binding(plan.digest, member, receiver))
        for receiver, share in sorted(dealt.shares.items())
    )
    return RoundPart(SecretDrawn(kept.sealing, dealt.kept), b"".join(parts))


def receive(plan: RunPlan, bodies: Bodies) -> None:
    """Check the lengths, which is all that everybody can see."""
    expected = (plan.shape.num_members - 1) * _part_length(plan)
    for member, body in bodies.items():
        if len(body) != expected:
            raise KeyGenerationFailed(
                f"Member {member} sent {len(body)} bytes of sealed shares instead of {expected}.", (member,)
            )


def open_part(plan: RunPlan, bodies: Bodies, dealer: int, receiver: int, key: SealingKey) -> bytes:
    """Open what one member dealt to another. Raises ``CannotOpen``."""
    place = receiver - 1 if receiver < dealer else receiver - 2
    length = _part_length(plan)
    sealed = bodies[dealer][place * length : (place + 1) * length]
    return key.open(sealed, binding(plan.digest, dealer, receiver))


def _part_length(plan: RunPlan) -> int:
    return plan.num_keys * SCALAR_LENGTH + OVERHEAD
