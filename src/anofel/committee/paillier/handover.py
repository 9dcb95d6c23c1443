"""The rounds of a resharing behind the committee's interface; the arithmetic is in ``resharing``."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import (
    ResharedKey,
    ResharingParty,
    ResharingResult,
    ResharingRun,
    RoundMessage,
    SecretResharingState,
)
from anofel.committee.paillier import resharing
from anofel.committee.paillier.key import (
    PaillierKey,
    SecretPaillierShare,
    count_keys_of,
    decode_key,
    decode_share,
)
from anofel.committee.paillier.resharing import PaillierPlan
from anofel.committee.paillier.wire import Malformed, Reader
from anofel.committee.ristretto import resharing as count_rounds
from anofel.committee.ristretto.run import Bodies, transcript_digest
from anofel.committee.ristretto.verdict import Complaint, Confirmation, settle
from anofel.committee.sealing import CannotOpen, DealerKeys, SealingKey, dealer_key
from anofel.committee.wire import Writer


@dataclass(frozen=True, kw_only=True)
class PaillierResharingState:
    """What a party keeps between two rounds (kept)."""

    run: ResharingRun
    round: int
    member: int | None
    share: SecretPaillierShare | None = field(repr=False)
    """The old share of a dealer, until it has dealt."""
    sealing: bytes = field(repr=False)
    received: bytes = field(repr=False)
    """A receiver's new share of N's key and of the count key, until everybody confirmed."""
    history: tuple[Bodies, ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    sender: int

    @property
    def message(self) -> RoundMessage | None:
        """The own message of ``round``, to be sent again after a crash."""
        if self.body is None:
            return None
        return RoundMessage(run_id=self.run.run_id, round=self.round, sender=self.sender, body=self.body)

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        writer = Writer().framed(self.run.old_key.to_bytes()).framed(resharing.write_run(self.run))
        writer.number(self.round, 1).number(self.member or 0, 2).number(self.sender, 2)
        writer.framed(self.share.to_bytes() if self.share else b"").framed(self.sealing).framed(self.received)
        writer.number(self.body is not None, 1).framed(self.body or b"").number(len(self.history), 1)
        for bodies in self.history:
            for _, body in sorted(bodies.items()):
                writer.framed(body)
        return writer.done()


class PaillierResharing:
    """Implements ``Resharing``."""

    def __init__(self, *, insecure_toy: bool) -> None:
        self._insecure_toy = insecure_toy

    def begin(self, run: ResharingRun, party: ResharingParty) -> ResharingResult:
        """Start a resharing."""
        old, share = _old_key(run), party.share
        resharing.check_run(run, old)
        if share is None and party.member is None:
            raise InvalidCommittee("A party of a resharing deals, receives, or both.")
        if share is not None and not isinstance(share, SecretPaillierShare):
            raise InvalidCommittee("The share belongs to another scheme.")
        if share is not None and (share.member not in run.dealers or share.shares_id != old.shares_id):
            raise InvalidCommittee("A dealer holds a current share and is one of those agreed.")
        if party.member is not None and party.member not in run.shape.members:
            raise InvalidCommittee(f"There is no new member {party.member}.")
        PaillierPlan(run, old)
        sealing = DealerKeys.generate(run.dealers) if party.member is not None else None
        state = PaillierResharingState(
            run=run,
            round=0,
            member=party.member,
            share=share,
            sealing=sealing.to_bytes() if sealing else b"",
            received=b"",
            history=(),
            body=sealing.public() if sealing else None,
            sender=party.member or 0,
        )
        return ResharingResult(state, state.message)

    def advance(
        self, state: SecretResharingState, messages: Sequence[RoundMessage]
    ) -> ResharingResult | ResharedKey:
        """Go on with all messages of ``state.round``."""
        if not isinstance(state, PaillierResharingState):
            raise InvalidCommittee("The state belongs to another resharing.")
        plan = PaillierPlan(state.run, _old_key(state.run))
        bodies = count_rounds.collect_round(plan.count, state.round, messages)
        if state.round == 2:
            return _finish(plan, state, bodies)
        following = _deal(plan, state, bodies) if state.round == 0 else _receive(plan, state, bodies)
        return ResharingResult(following, following.message)

    def resume(self, data: bytes) -> PaillierResharingState:
        """Read a state that ``to_bytes`` wrote."""
        reader = Reader(data)
        try:
            old = decode_key(reader.framed(), insecure_toy=self._insecure_toy)
            run = resharing.read_run(reader.framed(), old)
            number, member, sender = reader.number(1), reader.number(2), reader.number(2)
            share, sealing, received = reader.framed(), reader.framed(), reader.framed()
            has_body, body = reader.number(1), reader.framed()
            plan = PaillierPlan(run, old).count
            history = tuple(
                {who: reader.framed() for who in plan.senders(step)} for step in range(reader.number(1))
            )
            reader.end()
        except Malformed as error:
            raise KeyGenerationFailed(f"The stored state is damaged: {error}") from error
        return PaillierResharingState(
            run=run,
            round=number,
            member=member or None,
            share=decode_share(old, share) if share else None,
            sealing=sealing,
            received=received,
            history=history,
            body=body if has_body else None,
            sender=sender,
        )


def _old_key(run: ResharingRun) -> PaillierKey:
    if not isinstance(run.old_key, PaillierKey):
        raise InvalidCommittee(f"The key belongs to the scheme {run.old_key.scheme!r}.")
    return run.old_key


def _deal(plan: PaillierPlan, state: PaillierResharingState, bodies: Bodies) -> PaillierResharingState:
    count_rounds.check_sealing_keys(plan.count, bodies)
    body, share = None, state.share
    if share is not None:
        secrets = core.Secrets.read(count_keys_of(plan.old.count_key), share.member, share.count_share.scalar)
        count = count_rounds.deal(plan.count, secrets, bodies)
        body = Writer().framed(count).framed(resharing.deal(plan, share, bodies)).done()
    sender = 0 if share is None else share.member
    return replace(state, round=1, history=(bodies,), body=body, sender=sender)


def _receive(plan: PaillierPlan, state: PaillierResharingState, bodies: Bodies) -> PaillierResharingState:
    view = _View(plan, (state.history[0], bodies))
    body, received = None, b""
    if state.member is not None:
        sealing = DealerKeys.from_bytes(plan.run.dealers, state.sealing)
        count = count_rounds.receive(plan.count, state.member, sealing, view.count_history, view.count_keys)
        own = view.receive(state.member, sealing)
        if isinstance(count, core.Secrets):
            said = count_rounds.confirmation(plan.count, view.count_history, view.count_keys).to_bytes()
            received = Writer().framed(count.to_secret_bytes()).done()
        else:
            said = count.to_bytes()
        if isinstance(own, Complaint):
            body = Writer().framed(said).framed(own.to_bytes()).done()
        else:
            body = Writer().framed(said).framed(view.confirmation.to_bytes()).done()
            received += Writer().framed(own.to_bytes((plan.share_bits + 7) // 8, "little")).done()
    return replace(
        state,
        round=2,
        share=None,
        sealing=b"",
        received=received,
        history=view.history,
        body=body,
        sender=state.member or 0,
    )


def _finish(plan: PaillierPlan, state: PaillierResharingState, bodies: Bodies) -> ResharedKey:
    view = _View(plan, (state.history[0], state.history[1]))
    count_said, own_said = _split(bodies, dealers=False)
    count_rounds.finish(plan.count, view.count_history, view.count_keys, count_said)
    view.settle(own_said)
    if state.member is None:
        return ResharedKey(view.key, None, view.transcript)
    reader = Reader(state.received)
    scalars, value = reader.framed(), int.from_bytes(reader.framed(), "little")
    secrets = core.Secrets.read(view.count_keys, state.member, scalars)
    share = SecretPaillierShare(
        member=state.member,
        shares_id=view.key.shares_id,
        value=value,
        share_bits=view.key.share_bits,
        count_share=count_key.from_secrets(secrets, 0),
    )
    return ResharedKey(view.key, share, view.transcript)


class _View:
    """What follows from the first two rounds, for everybody."""

    def __init__(self, plan: PaillierPlan, history: tuple[Bodies, Bodies]) -> None:
        self.plan, self.history = plan, history
        count, self._dealt = _split(history[1], dealers=True)
        self.count_history = (history[0], count)
        self.count_keys = count_rounds.new_keys(plan.count, count)
        self.transcript = transcript_digest(plan.digest, history)
        self.key = resharing.new_key(plan, self._dealt, self.count_keys, self.transcript)

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
                total += resharing.open_part(self.plan, self._dealt, dealer, member, key)
            except (CannotOpen, KeyGenerationFailed):
                return Complaint(dealer, key.to_bytes())
        return total

    def settle(self, verdicts: Bodies) -> None:
        """Raise ``KeyGenerationFailed`` unless everybody confirmed this key."""

        def check(dealer: int, receiver: int, key: SealingKey) -> None:
            resharing.open_part(self.plan, self._dealt, dealer, receiver, key)

        dealers = self.plan.run.dealers
        faults = settle(
            verdicts,
            self.confirmation,
            lambda receiver, dealer: dealer_key(self.history[0][receiver], dealers, dealer),
            lambda _: set(dealers),
            check,
        )
        if faults:
            raise KeyGenerationFailed(
                " ".join(dict.fromkeys(fault.sentence for fault in faults)),
                {fault.number for fault in faults if not fault.is_dealer},
                {fault.number for fault in faults if fault.is_dealer},
            )


def _split(bodies: Bodies, *, dealers: bool) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return count parts and own parts; a malformed body names its sender."""
    count, own = {}, {}
    for sender, body in bodies.items():
        reader = Reader(body)
        try:
            count[sender], own[sender] = reader.framed(), reader.framed()
            reader.end()
        except Malformed:
            message = f"Party {sender} sent a malformed message."
            if dealers:
                raise KeyGenerationFailed(message, (), [sender]) from None
            raise KeyGenerationFailed(message, [sender]) from None
    return count, own
