"""Round 0: every member posts a one-time sealing key and its FROST package.

Sent: sealing key (32 bytes) ‖ package. Kept: the sealing key's private half, FROST's state.
The package ends with a proof that its sender knows the secrets behind it, for this run and this member. So
nobody takes part in a run with what somebody else posted in another.
"""

from anofel._core import committee as core
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.refusal import refusing
from anofel.committee.ristretto.run import Bodies, RoundPart, RunPlan, SecretDrawn
from anofel.committee.sealing import KEY_LENGTH, CannotOpen, SealingKey, check_public


def send(plan: RunPlan, member: int) -> RoundPart[SecretDrawn]:
    """Draw keys and polynomials."""
    sealing = SealingKey.generate()
    with refusing(KeyGenerationFailed):
        drawn = core.dkg_part1(plan.core_shape, member, plan.digest)
    return RoundPart(SecretDrawn(sealing.to_bytes(), drawn.kept), sealing.public() + drawn.package)


def receive(plan: RunPlan, bodies: Bodies) -> list[core.CheckedPackage]:
    """Check everybody's keys, commitments and proofs, as anyone can; return the packages.

    1. The sealing key is one to which something can be sealed.
    2. The package has its exact length and canonical points.
    3. Every proof of knowledge holds.
    4. The proof of possession holds for this run and this member.
    """
    checked = []
    for member, body in sorted(bodies.items()):
        try:
            check_public(body[:KEY_LENGTH])
        except CannotOpen:
            raise KeyGenerationFailed(f"Member {member} sent no usable sealing key.", (member,)) from None
        with refusing(KeyGenerationFailed):
            package = core.dkg_check_package(plan.core_shape, member, plan.digest, body[KEY_LENGTH:])
        checked.append(package)
    return checked


def sealing_keys(bodies: Bodies) -> dict[int, bytes]:
    """Return everybody's sealing key."""
    return {member: body[:KEY_LENGTH] for member, body in bodies.items()}


def packages(bodies: Bodies) -> dict[int, bytes]:
    """Return everybody's FROST package."""
    return {member: body[KEY_LENGTH:] for member, body in bodies.items()}
