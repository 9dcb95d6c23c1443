"""Refresh and change of members for ``paillier``; ``arithmetic.dealing`` has the arithmetic.

The count key is handed over by the same messages: each body is its part, then ours.
"""

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed, ShareRefused
from anofel.committee.handover import Dealings, HandoverRounds, Received, settle_handover
from anofel.committee.interface import CommitteeKey, HandoverRun, ObservedKey, SecretKeyShare
from anofel.committee.paillier.arithmetic import dealing
from anofel.committee.paillier.arithmetic.dealing import PaillierPlan
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed
from anofel.committee.paillier.key import (
    PaillierKey,
    SecretPaillierShare,
    count_keys_of,
    decode_key,
    decode_share,
    own,
)
from anofel.committee.refusal import refusing
from anofel.committee.ristretto import handover as count_rounds
from anofel.committee.ristretto.run import Bodies, transcript_digest
from anofel.committee.ristretto.verdict import Complaint, Confirmation
from anofel.committee.sealing import CannotOpen, DealerKeys, SealingKey
from anofel.framing import Writer


class PaillierHandover(HandoverRounds[SecretPaillierShare]):
    """Implements ``Handover``."""

    def __init__(self, *, insecure_toy: bool) -> None:
        self._insecure_toy = insecure_toy

    def read_key(self, data: bytes) -> PaillierKey:
        """Parse and validate a key."""
        return decode_key(data, insecure_toy=self._insecure_toy)

    def read_share(self, key: CommitteeKey, data: bytes) -> SecretPaillierShare:
        """Read a stored secret share."""
        return decode_share(own(key), data)

    def check(self, run: HandoverRun, share: SecretKeyShare | None) -> SecretPaillierShare | None:
        """Refuse a key or share of another scheme, and shares that would grow too long."""
        PaillierPlan(run, own(run.old_key))
        if share is not None and not isinstance(share, SecretPaillierShare):
            raise InvalidCommittee("The share belongs to another scheme.")
        return share

    def deal(self, run: HandoverRun, share: SecretPaillierShare, sealing_keys: Bodies) -> bytes:
        """Make a dealer's message."""
        plan = PaillierPlan(run, own(run.old_key))
        with refusing(ShareRefused):
            secrets = core.Secrets.read(
                count_keys_of(plan.old.count_key), share.member, share.count_share.scalar
            )
        count = count_rounds.deal(plan.count, secrets, sealing_keys)
        return Writer().framed(count).framed(dealing.deal(plan, share, sealing_keys)).done()

    def check_dealings(self, run: HandoverRun, dealt: Dealings) -> None:
        """Check every dealer's message."""
        _View(run, dealt)

    def receive(self, run: HandoverRun, member: int, sealing: DealerKeys, dealt: Dealings) -> Received:
        """Return the new shares of both keys, and for each a confirmation or a complaint."""
        view = _View(run, dealt)
        received, plan = Writer(), view.plan
        count = count_rounds.receive(plan.count, member, sealing, view.count_history, view.count_keys)
        ours = view.receive(member, sealing)
        if isinstance(count, core.Secrets):
            said = count_rounds.confirmation(plan.count, view.count_history, view.count_keys).to_bytes()
            received.framed(count.to_secret_bytes())
        else:
            said = count.to_bytes()
        if isinstance(ours, Complaint):
            return Received(received.done(), Writer().framed(said).framed(ours.to_bytes()).done())
        received.framed(ours.to_bytes((plan.share_bits + 7) // 8, "little"))
        return Received(received.done(), Writer().framed(said).framed(view.confirmation.to_bytes()).done())

    def finish(self, run: HandoverRun, dealt: Dealings, verdicts: Bodies) -> ObservedKey:
        """Settle the run."""
        view = _View(run, dealt)
        count_said, own_said = _split(verdicts, dealers=False)
        count_rounds.finish(view.plan.count, view.count_history, view.count_keys, count_said)
        view.settle(own_said)
        return ObservedKey(view.key, view.transcript)

    def new_share(self, key: CommitteeKey, member: int, received: bytes) -> SecretPaillierShare:
        """Read what was received."""
        ours, reader = own(key), IntegerReader(received)
        scalars, value = reader.framed(), int.from_bytes(reader.framed(), "little")
        with refusing(ShareRefused):
            secrets = core.Secrets.read(count_keys_of(ours.count_key), member, scalars)
        return SecretPaillierShare(
            member=member,
            shares_id=ours.shares_id,
            value=value,
            share_bits=ours.share_bits,
            count_share=count_key.from_secrets(secrets, 0),
        )


class _View:
    """What follows from the first two rounds, for everybody."""

    def __init__(self, run: HandoverRun, history: Dealings) -> None:
        plan = PaillierPlan(run, own(run.old_key))
        self.plan, self.history = plan, history
        count, self._dealt = _split(history[1], dealers=True)
        self.count_history = (history[0], count)
        self.count_keys = count_rounds.new_keys(plan.count, count)
        self.transcript = transcript_digest(plan.digest, history)
        self.key = dealing.new_key(plan, self._dealt, self.count_keys, self.transcript)

    @property
    def confirmation(self) -> Confirmation:
        """What every receiver must confirm."""
        return Confirmation.of(self.key.to_bytes(), self.transcript)

    def receive(self, member: int, sealing: DealerKeys) -> int | Complaint:
        """Open and add what the dealers sent, or name the first who cheated."""
        total = 0
        for dealer in self.plan.run.dealers:
            key = sealing.for_dealer(dealer)
            try:
                total += dealing.open_part(self.plan, self._dealt, dealer, member, key)
            except (CannotOpen, KeyGenerationFailed):
                return Complaint(dealer, key.to_bytes())
        return total

    def settle(self, verdicts: Bodies) -> None:
        """Raise ``KeyGenerationFailed`` unless everybody confirmed this key."""

        def check(dealer: int, receiver: int, key: SealingKey) -> None:
            dealing.open_part(self.plan, self._dealt, dealer, receiver, key)

        settle_handover(self.plan.run.dealers, self.history[0], verdicts, self.confirmation, check)


def _split(bodies: Bodies, *, dealers: bool) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return count parts and own parts; a malformed body names its sender."""
    count, own = {}, {}
    for sender, body in bodies.items():
        reader = IntegerReader(body)
        try:
            count[sender], own[sender] = reader.framed(), reader.framed()
            reader.end()
        except Malformed:
            message = f"Party {sender} sent a malformed message."
            if dealers:
                raise KeyGenerationFailed(message, (), [sender]) from None
            raise KeyGenerationFailed(message, [sender]) from None
    return count, own
