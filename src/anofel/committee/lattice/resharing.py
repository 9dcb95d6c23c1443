"""Refresh and change of members for ``lattice``: all 2049 keys in one run of three rounds."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from anofel._core import committee as core
from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import (
    ResharedKey,
    ResharingParty,
    ResharingResult,
    ResharingRun,
    RoundMessage,
    SecretResharingState,
)
from anofel.committee.lattice.key import NUM_KEYS, LatticeKey, LatticeShare, own, read_key, read_share
from anofel.committee.refusal import refusing
from anofel.committee.ristretto import resharing as rounds
from anofel.committee.ristretto.run import Bodies
from anofel.committee.ristretto.verdict import Complaint
from anofel.committee.sealing import DealerKeys
from anofel.committee.wire import Reader, Writer


@dataclass(frozen=True, kw_only=True)
class LatticeResharingState:
    """What a party keeps between two rounds (kept)."""

    run: ResharingRun
    round: int
    member: int | None
    share: LatticeShare | None = field(repr=False)
    """The old share of a dealer, until it has dealt."""
    sealing: bytes = field(repr=False)
    """The one-time private keys of a receiver; empty for others."""
    received: bytes = field(repr=False)
    """A receiver's new secret shares, until everybody confirmed; empty before."""
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
        writer = Writer().raw(_write_run(self.run)).number(self.round, 1).number(self.member or 0, 2)
        writer.framed(b"" if self.share is None else self.share.to_bytes())
        writer.framed(self.sealing).framed(self.received)
        writer.number(self.body is not None, 1).framed(self.body or b"").number(self.sender, 2)
        writer.number(len(self.history), 1)
        for bodies in self.history:
            for _, body in sorted(bodies.items()):
                writer.framed(body)
        return writer.done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "LatticeResharingState":
        """Read what ``to_bytes`` wrote. Raises ``ValueError`` if it is damaged."""
        reader = Reader(data)
        run = _read_run(reader)
        stage, member = reader.number(1), reader.number(2)
        share, sealing, received = reader.framed(), reader.framed(), reader.framed()
        has_body, body, sender = reader.number(1), reader.framed(), reader.number(2)
        plan = _plan(run)
        history = tuple(
            {who: reader.framed() for who in plan.senders(number)} for number in range(reader.number(1))
        )
        reader.end()
        return cls(
            run=run,
            round=stage,
            member=member or None,
            share=read_share(own(run.old_key), share) if share else None,
            sealing=sealing,
            received=received,
            history=history,
            body=body if has_body else None,
            sender=sender,
        )


class LatticeResharing:
    """Implements ``Resharing``."""

    def begin(self, run: ResharingRun, party: ResharingParty) -> ResharingResult:
        """Start a resharing."""
        _check(run, party)
        share = party.share if isinstance(party.share, LatticeShare) else None
        sealing = DealerKeys.generate(run.dealers) if party.member is not None else None
        state = LatticeResharingState(
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
        if not isinstance(state, LatticeResharingState):
            raise TypeError("the state belongs to another resharing")
        plan = _plan(state.run)
        bodies = rounds.collect_round(plan, state.round, messages)
        if state.round == 0:
            following = _deal(plan, state, bodies)
        elif state.round == 1:
            following = _receive(plan, state, bodies)
        else:
            return _finish(plan, state, bodies)
        return ResharingResult(following, following.message)

    def resume(self, data: bytes) -> LatticeResharingState:
        """Read a state that ``to_bytes`` wrote."""
        try:
            return LatticeResharingState.from_bytes(data)
        except ValueError as error:
            raise KeyGenerationFailed(f"The stored state is damaged: {error}.") from None


def _deal(plan: rounds.ResharingPlan, state: LatticeResharingState, bodies: Bodies) -> LatticeResharingState:
    rounds.check_sealing_keys(plan, bodies)
    body = None if state.share is None else rounds.deal(plan, state.share.secrets, bodies)
    return LatticeResharingState(
        run=state.run,
        round=1,
        member=state.member,
        share=state.share,
        sealing=state.sealing,
        received=b"",
        history=(bodies,),
        body=body,
        sender=0 if state.share is None else state.share.member,
    )


def _receive(
    plan: rounds.ResharingPlan, state: LatticeResharingState, bodies: Bodies
) -> LatticeResharingState:
    history = (state.history[0], bodies)
    keys = rounds.new_keys(plan, bodies)
    body, received = None, b""
    if state.member is not None:
        sealing = DealerKeys.from_bytes(plan.dealers, state.sealing)
        secrets = rounds.receive(plan, state.member, sealing, history, keys)
        if isinstance(secrets, Complaint):
            body = secrets.to_bytes()
        else:
            received = secrets.to_secret_bytes()
            body = rounds.confirmation(plan, history, keys).to_bytes()
    return LatticeResharingState(
        run=state.run,
        round=2,
        member=state.member,
        share=None,
        sealing=b"",
        received=received,
        history=history,
        body=body,
        sender=state.member or 0,
    )


def _finish(plan: rounds.ResharingPlan, state: LatticeResharingState, bodies: Bodies) -> ResharedKey:
    history = (state.history[0], state.history[1])
    keys = rounds.new_keys(plan, history[1])
    transcript = rounds.finish(plan, history, keys, bodies)
    key = LatticeKey(state.run.shape, state.run.old_key.share_epoch + 1, keys)
    if state.member is None:
        return ResharedKey(key, None, transcript)
    with refusing(KeyGenerationFailed):
        secrets = core.Secrets.read(keys, state.member, state.received)
    return ResharedKey(key, LatticeShare(key.shares_id, secrets), transcript)


def _check(run: ResharingRun, party: ResharingParty) -> None:
    old = own(run.old_key)
    threshold = old.shape.threshold
    if list(run.dealers) != sorted(set(run.dealers)) or len(run.dealers) != threshold:
        raise InvalidCommittee(f"{threshold} old members deal, each named once and in order.")
    if len(run.members) != run.shape.num_members or len(set(run.members)) != len(run.members):
        raise InvalidCommittee("Every new member is named once.")
    if party.member is not None and party.member not in run.shape.members:
        raise InvalidCommittee(f"There is no new member {party.member}.")
    share = party.share
    if share is None and party.member is None:
        raise InvalidCommittee("A party of a resharing deals, receives, or both.")
    if share is not None and (share.member not in run.dealers or share.shares_id != old.shares_id):
        raise InvalidCommittee("A dealer holds a current share and is one of those agreed.")


def _plan(run: ResharingRun) -> rounds.ResharingPlan:
    digest = hashlib.sha256(b"anofel/1/committee/resharing" + _write_run(run)).digest()
    return rounds.ResharingPlan(
        run_id=run.run_id,
        digest=digest,
        old_keys=own(run.old_key).keys,
        num_keys=NUM_KEYS,
        dealers=run.dealers,
        shape=run.shape,
    )


def _write_run(run: ResharingRun) -> bytes:
    writer = Writer().framed(run.genesis).framed(run.run_id).framed(run.old_key.to_bytes())
    writer.number(len(run.dealers), 2)
    for dealer in run.dealers:
        writer.number(dealer, 2)
    writer.number(run.shape.num_members, 2).number(run.shape.threshold, 2)
    for member in run.members:
        writer.framed(member)
    return writer.done()


def _read_run(reader: Reader) -> ResharingRun:
    genesis, run_id, old_key = reader.framed(), reader.framed(), read_key(reader.framed())
    dealers = tuple(reader.number(2) for _ in range(reader.number(2)))
    shape = CommitteeShape(num_members=reader.number(2), threshold=reader.number(2))
    members = tuple(reader.framed() for _ in shape.members)
    return ResharingRun(
        genesis=genesis, run_id=run_id, old_key=old_key, dealers=dealers, shape=shape, members=members
    )
