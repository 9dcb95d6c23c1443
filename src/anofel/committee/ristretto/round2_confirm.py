"""Round 2: every member confirms keys and transcript, or complains about one dealer.

Sent: a ``Confirmation`` or a ``Complaint``. Kept: the encoded keys and the own secret shares, or
nothing after a complaint. They become a key only when everybody confirmed the same.
"""

from collections.abc import Sequence

from anofel._core import committee as core
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.refusal import refusing
from anofel.committee.ristretto.round0_commit import packages, sealing_keys
from anofel.committee.ristretto.round1_deal import open_part
from anofel.committee.ristretto.run import (
    Bodies,
    RistrettoObserved,
    RoundPart,
    RunPlan,
    SecretDrawn,
    SecretOutcome,
    transcript_digest,
)
from anofel.committee.ristretto.verdict import Complaint, Confirmation, settle
from anofel.committee.sealing import CannotOpen, SealingKey


def send(
    plan: RunPlan, member: int, kept: SecretDrawn, history: tuple[Bodies, Bodies]
) -> RoundPart[SecretOutcome | None]:
    """Open and check what the others dealt; nothing is kept after a complaint."""
    commitments, dealt = history
    sealing = SealingKey.from_bytes(kept.sealing)
    shares = {}
    for dealer in sorted(commitments.keys() - {member}):
        try:
            shares[dealer] = _checked_part(plan, history, dealer, member, sealing)
        except (CannotOpen, KeyGenerationFailed):
            return RoundPart(None, Complaint(dealer, sealing.to_bytes()).to_bytes())
    with refusing(KeyGenerationFailed):
        made = core.dkg_part3(plan.core_shape, member, plan.digest, kept.frost, packages(commitments), shares)
    encoded = made.keys.to_bytes()
    confirmation = Confirmation.of(encoded, transcript_digest(plan.digest, (commitments, dealt)))
    return RoundPart(SecretOutcome(encoded, made.secrets.to_secret_bytes()), confirmation.to_bytes())


def receive(
    plan: RunPlan, history: tuple[Bodies, Bodies], checked: Sequence[core.CheckedPackage], bodies: Bodies
) -> RistrettoObserved:
    """Settle the run from public messages and the packages that round 0 returned.

    Raises ``KeyGenerationFailed``.
    """
    commitments, dealt = history
    with refusing(KeyGenerationFailed):
        keys = core.dkg_keys(plan.core_shape, checked)
    transcript = transcript_digest(plan.digest, (commitments, dealt))

    def check(dealer: int, receiver: int, key: SealingKey) -> None:
        _checked_part(plan, history, dealer, receiver, key)

    expected = Confirmation.of(keys.to_bytes(), transcript)
    members, public = set(commitments), sealing_keys(commitments)
    faults = settle(
        bodies,
        expected,
        lambda receiver, _: public[receiver],
        lambda sender: members - {sender},
        check,
    )
    if faults:
        sentences = " ".join(dict.fromkeys(fault.sentence for fault in faults))
        raise KeyGenerationFailed(sentences, {fault.number for fault in faults})
    return RistrettoObserved(keys, transcript)


def _checked_part(
    plan: RunPlan, history: tuple[Bodies, Bodies], dealer: int, receiver: int, key: SealingKey
) -> bytes:
    commitments, dealt = history
    share = open_part(plan, dealt, dealer, receiver, key)
    with refusing(KeyGenerationFailed):
        core.check_dealt_shares(plan.core_shape, packages(commitments)[dealer], receiver, share)
    return share
