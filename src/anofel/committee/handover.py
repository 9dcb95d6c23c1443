"""Refresh and change of members: the rounds of a handover, the same for every scheme.

Round 0: every receiver posts one one-time sealing key per dealer, in the dealers' order.
Round 1: every dealer deals. Round 2: every receiver confirms key and transcript, or complains
about one dealer. A scheme says in four steps what is dealt and received; see ``HandoverRounds``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import (
    CommitteeKey,
    HandedOverKey,
    HandoverParty,
    HandoverResult,
    HandoverRun,
    ObservedKey,
    RoundMessage,
    SecretHandoverState,
    SecretKeyShare,
)
from anofel.committee.kept import Kept
from anofel.committee.ristretto.run import Bodies, collect
from anofel.committee.ristretto.verdict import Confirmation, SealCheck, settle
from anofel.committee.sealing import CannotOpen, DealerKeys, check_dealer_keys, dealer_key
from anofel.framing import Reader, Writer
from anofel.ids import GenesisHash, RunId, Subject

NUM_ROUNDS = 3

Share = TypeVar("Share", bound=SecretKeyShare)

Dealings = tuple[Bodies, Bodies]
"""The messages of rounds 0 and 1."""


@dataclass(frozen=True, slots=True)
class Received(Kept):
    """What a receiver keeps and what it sends when everybody has dealt."""

    secrets: bytes = field(repr=False)
    """Its new secrets (kept); ``new_share`` reads them."""
    verdict: bytes
    """Its confirmation or complaint (sent)."""


@dataclass(frozen=True, kw_only=True)
class HandoverState(Kept, Generic[Share]):
    """What a party keeps between two rounds (kept)."""

    run: HandoverRun
    round: int
    member: int | None
    share: Share | None = field(repr=False)
    """The old share of a dealer, until it has dealt."""
    sealing: bytes = field(repr=False)
    """The one-time private keys of a receiver; empty for others."""
    received: bytes = field(default=b"", repr=False)
    """A receiver's new secrets, until everybody confirmed; empty before."""
    history: tuple[Bodies, ...] = field(default=(), repr=False)
    body: bytes | None = field(repr=False)
    sender: int

    @property
    def message(self) -> RoundMessage | None:
        """The own message of ``round``, to be sent again after a crash."""
        if self.body is None:
            return None
        return RoundMessage(run_id=self.run.run_id, round=self.round, sender=self.sender, body=self.body)

    @property
    def dealt(self) -> Dealings:
        """The messages of rounds 0 and 1, once they are known."""
        return self.history[0], self.history[1]

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        writer = Writer().raw(write_run(self.run)).number(self.round, 1).number(self.member or 0, 2)
        writer.framed(b"" if self.share is None else self.share.to_bytes())
        writer.framed(self.sealing).framed(self.received)
        writer.number(self.body is not None, 1).framed(self.body or b"").number(self.sender, 2)
        writer.number(len(self.history), 1)
        for bodies in self.history:
            for _, body in sorted(bodies.items()):
                writer.framed(body)
        return writer.done()


class HandoverRounds(ABC, Generic[Share]):
    """Implements ``Handover``; a scheme adds how it reads, deals, receives and finishes."""

    @abstractmethod
    def read_key(self, data: bytes) -> CommitteeKey:
        """Parse and validate a key."""

    @abstractmethod
    def read_share(self, key: CommitteeKey, data: bytes) -> Share:
        """Read a stored secret share."""

    @abstractmethod
    def check(self, run: HandoverRun, share: SecretKeyShare | None) -> Share | None:
        """Return the share as this scheme's. Raises ``InvalidCommittee`` if run or share do not fit it."""

    @abstractmethod
    def deal(self, run: HandoverRun, share: Share, sealing_keys: Bodies) -> bytes:
        """Make a dealer's message."""

    @abstractmethod
    def check_dealings(self, run: HandoverRun, dealt: Dealings) -> None:
        """Check every dealer's message. Raises ``KeyGenerationFailed`` with the dealer."""

    @abstractmethod
    def receive(self, run: HandoverRun, member: int, sealing: DealerKeys, dealt: Dealings) -> Received:
        """Check every dealing; confirm, or complain about one dealer."""

    @abstractmethod
    def finish(self, run: HandoverRun, dealt: Dealings, verdicts: Bodies) -> ObservedKey:
        """Settle the run from public messages alone: the new key and the transcript's hash."""

    @abstractmethod
    def new_share(self, key: CommitteeKey, member: int, received: bytes) -> Share:
        """Return a receiver's new share from what ``receive`` kept."""

    def begin(self, run: HandoverRun, party: HandoverParty) -> HandoverResult:
        """Start a handover."""
        check_run(run)
        check_party(run, party)
        share = self.check(run, party.share)
        sealing = DealerKeys.generate(run.dealers) if party.member is not None else None
        state = HandoverState(
            run=run,
            round=0,
            member=party.member,
            share=share,
            sealing=sealing.to_bytes() if sealing else b"",
            body=sealing.public() if sealing else None,
            sender=party.member or 0,
        )
        return HandoverResult(state, state.message)

    def advance(
        self, state: SecretHandoverState, messages: Sequence[RoundMessage]
    ) -> HandoverResult | HandedOverKey:
        """Go on with all messages of ``state.round``."""
        if not isinstance(state, HandoverState):
            raise InvalidCommittee("The state belongs to another handover.")
        self.check(state.run, state.share)
        bodies = collect_round(state.run, state.round, messages)
        if state.round == NUM_ROUNDS - 1:
            made = self.finish(state.run, state.dealt, bodies)
            share = None if state.member is None else self.new_share(made.key, state.member, state.received)
            return HandedOverKey(made.key, share, made.transcript)
        following = self._dealing(state, bodies) if state.round == 0 else self._receiving(state, bodies)
        return HandoverResult(following, following.message)

    def observe(self, run: HandoverRun, rounds: Sequence[Sequence[RoundMessage]]) -> ObservedKey:
        """Recompute the new key and the transcript from the messages of all rounds alone."""
        check_run(run)
        self.check(run, None)
        if len(rounds) > NUM_ROUNDS:
            raise KeyGenerationFailed("There are messages after the end of the run.")
        bodies = [collect_round(run, number, messages) for number, messages in enumerate(rounds)]
        if bodies:
            check_sealing_keys(run, bodies[0])
        if len(bodies) == NUM_ROUNDS:
            return self.finish(run, (bodies[0], bodies[1]), bodies[2])
        if len(bodies) == NUM_ROUNDS - 1:
            self.check_dealings(run, (bodies[0], bodies[1]))
        raise KeyGenerationFailed("The run is not finished.")

    def resume(self, data: bytes) -> HandoverState[Share]:
        """Read a state that ``to_bytes`` wrote."""
        reader = Reader(data)
        try:
            run = self._read_run(reader)
            stage, member, share = reader.number(1), reader.number(2), reader.framed()
            sealing, received = reader.framed(), reader.framed()
            has_body, body, sender = reader.number(1), reader.framed(), reader.number(2)
            history = tuple(
                {who: reader.framed() for who in senders(run, number)} for number in range(reader.number(1))
            )
            reader.end()
        except ValueError as error:
            raise KeyGenerationFailed(f"The stored state is damaged: {error}.") from None
        return HandoverState(
            run=run,
            round=stage,
            member=member or None,
            share=self.read_share(run.old_key, share) if share else None,
            sealing=sealing,
            received=received,
            history=history,
            body=body if has_body else None,
            sender=sender,
        )

    def _dealing(self, state: HandoverState[Share], bodies: Bodies) -> HandoverState[Share]:
        check_sealing_keys(state.run, bodies)
        share = state.share
        return replace(
            state,
            round=1,
            history=(bodies,),
            body=None if share is None else self.deal(state.run, share, bodies),
            sender=0 if share is None else share.member,
        )

    def _receiving(self, state: HandoverState[Share], bodies: Bodies) -> HandoverState[Share]:
        dealt = (state.history[0], bodies)
        received, body = b"", None
        if state.member is None:
            self.check_dealings(state.run, dealt)
        else:
            sealing = DealerKeys.from_bytes(state.run.dealers, state.sealing)
            told = self.receive(state.run, state.member, sealing, dealt)
            received, body = told.secrets, told.verdict
        return replace(
            state,
            round=2,
            share=None,
            sealing=b"",
            received=received,
            history=dealt,
            body=body,
            sender=state.member or 0,
        )

    def _read_run(self, reader: Reader) -> HandoverRun:
        genesis, run_id = GenesisHash(reader.framed()), RunId(reader.framed())
        old_key = self.read_key(reader.framed())
        dealers = tuple(reader.number(2) for _ in range(reader.number(2)))
        shape = CommitteeShape(num_members=reader.number(2), threshold=reader.number(2))
        members = tuple(Subject(reader.framed()) for _ in shape.members)
        return HandoverRun(
            genesis=genesis, run_id=run_id, old_key=old_key, dealers=dealers, shape=shape, members=members
        )


def write_run(run: HandoverRun) -> bytes:
    """Encode a run."""
    writer = Writer().framed(run.genesis).framed(run.run_id).framed(run.old_key.to_bytes())
    writer.number(len(run.dealers), 2)
    for dealer in run.dealers:
        writer.number(dealer, 2)
    writer.number(run.shape.num_members, 2).number(run.shape.threshold, 2)
    for member in run.members:
        writer.framed(member)
    return writer.done()


def check_run(run: HandoverRun) -> None:
    """Refuse a run whose parties do not fit."""
    old = run.old_key.shape
    if list(run.dealers) != sorted(set(run.dealers)) or len(run.dealers) != old.threshold:
        raise InvalidCommittee(f"{old.threshold} old members deal, each named once and in order.")
    if any(dealer not in old.members for dealer in run.dealers):
        raise InvalidCommittee("A dealer is not in the old committee.")
    if len(run.members) != run.shape.num_members or len(set(run.members)) != len(run.members):
        raise InvalidCommittee("Every new member is named once.")


def check_party(run: HandoverRun, party: HandoverParty) -> None:
    """Refuse a party that has no part in the run."""
    share = party.share
    if share is None and party.member is None:
        raise InvalidCommittee("A party of a handover deals, receives, or both.")
    if share is not None and (share.member not in run.dealers or share.shares_id != run.old_key.shares_id):
        raise InvalidCommittee("A dealer holds a current share and is one of those agreed.")
    if party.member is not None and party.member not in run.shape.members:
        raise InvalidCommittee(f"There is no new member {party.member}.")


def senders(run: HandoverRun, number: int) -> Sequence[int]:
    """Who speaks in a round."""
    return run.dealers if number == 1 else run.shape.members


def collect_round(run: HandoverRun, number: int, messages: Sequence[RoundMessage]) -> dict[int, bytes]:
    """Return a round's bodies by sender; in round 1 the culprits of an error are dealers."""
    try:
        return collect(run.run_id, number, senders(run, number), messages)
    except KeyGenerationFailed as error:
        if number != 1:
            raise
        raise KeyGenerationFailed(str(error), (), error.culprits) from None


def check_sealing_keys(run: HandoverRun, bodies: Bodies) -> None:
    """Refuse a message that is not one key per dealer to which something can be sealed."""
    for member, body in bodies.items():
        try:
            check_dealer_keys(body, run.dealers)
        except CannotOpen:
            raise KeyGenerationFailed(f"Member {member} sent no usable sealing keys.", (member,)) from None


def settle_handover(
    dealers: Sequence[int], sealing_keys: Bodies, verdicts: Bodies, expected: Confirmation, check: SealCheck
) -> None:
    """Raise ``KeyGenerationFailed`` unless every receiver confirmed what was expected."""
    faults = settle(
        verdicts,
        expected,
        lambda receiver, dealer: dealer_key(sealing_keys[receiver], dealers, dealer),
        lambda _: set(dealers),
        check,
    )
    if faults:
        raise KeyGenerationFailed(
            " ".join(dict.fromkeys(fault.sentence for fault in faults)),
            {fault.number for fault in faults if not fault.is_dealer},
            {fault.number for fault in faults if fault.is_dealer},
        )
