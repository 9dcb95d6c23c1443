"""How members make a key without a dealer (step 1.c), and hand it on under the same public key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface.keys import CommitteeKey, SecretKeyShare
from anofel.ids import GenesisHash, RunId, Subject


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyGenerationRun:
    """One attempt at a key: public, the same at every member."""

    genesis: GenesisHash
    run_id: RunId
    """32 bytes, fresh for every attempt; a failed attempt is never continued."""
    shape: CommitteeShape
    members: tuple[Subject, ...]
    """SHA-256 of each member's certificate, in the order of the members' numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundMessage:
    """What a member posts in one round (sent). Private parts stand in ``body``, sealed.

    The transport signs it with the sender's certified key; ``sender`` is then a fact.
    """

    run_id: RunId
    round: int
    sender: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PostedRounds:
    """The complete rounds of a run; their messages are read when they are needed."""

    number: int
    read: Callable[[int], Sequence[RoundMessage]]
    """Returns everybody's messages of a round."""

    def all(self) -> list[Sequence[RoundMessage]]:
        """Read every round."""
        return [self.read(number) for number in range(self.number)]


class SecretRoundState(Protocol):
    """What a member keeps between two rounds (kept; ``repr`` is redacted)."""

    @property
    def run(self) -> KeyGenerationRun:
        """The run it belongs to."""
        ...

    @property
    def member(self) -> int:
        """Whose state it is."""
        ...

    @property
    def round(self) -> int:
        """The round whose messages ``advance`` needs next."""
        ...

    @property
    def message(self) -> RoundMessage:
        """The own message of ``round``, to be sent again after a crash."""
        ...

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only; ``resume`` reads them."""
        ...


@dataclass(frozen=True, slots=True)
class RoundResult:
    """A finished round: store ``state`` first, then send ``message``.

    Sending the stored message again after a crash is harmless; making a new one is not.
    """

    state: SecretRoundState
    message: RoundMessage


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """The end of a successful run. Every member returns the same ``key`` and ``transcript``."""

    key: CommitteeKey
    share: SecretKeyShare
    transcript: bytes
    """SHA-256 over the run and all its messages."""


ESTIMATE = "estimate"
"""The phase of the first report: nothing is done, ``seconds`` is known."""


@dataclass(frozen=True, slots=True)
class ObservedKey:
    """What the messages of a whole run make, as anybody sees it; nobody's share is in it."""

    key: CommitteeKey
    transcript: bytes


@dataclass(frozen=True, slots=True)
class KeyProgress:
    """How far one member's computation is."""

    phase: str
    done: int
    total: int
    seconds: float
    """The expected time of the member's computation in the whole run, on this machine."""


Report: TypeAlias = Callable[[KeyProgress], None]


class KeyGeneration(Protocol):
    """Dealerless key generation (step 1.c) as pure functions from messages to messages.

    The last round is a confirmation: each member posts either the hash of the key and of the
    transcript, or a complaint that opens one sealed part. So a run ends with the same key at
    everybody, or ``advance`` raises ``KeyGenerationFailed`` with the culprits at everybody and
    nobody has returned a key.
    """

    @property
    def min_rounds(self) -> int:
        """The fewest messages that each member posts in a run that succeeds."""
        ...

    def max_rounds(self, shape: CommitteeShape) -> int:
        """Return the most messages that a run takes, failed ones included.

        Raises ``InvalidCommittee`` for a committee that cannot make a key of this scheme.
        """
        ...

    def begin(self, run: KeyGenerationRun, member: int) -> RoundResult:
        """Start a run as the given member."""
        ...

    def advance(
        self, state: SecretRoundState, messages: Sequence[RoundMessage]
    ) -> RoundResult | GeneratedKey:
        """Go on with every member's message of ``state.round``, the own one included.

        Raises ``KeyGenerationFailed``; missing, duplicate, foreign, stale and malformed messages
        name their sender.
        """
        ...

    def resume(self, data: bytes) -> SecretRoundState:
        """Read a state that ``to_bytes`` wrote."""
        ...

    def observe(self, run: KeyGenerationRun, rounds: Sequence[Sequence[RoundMessage]]) -> ObservedKey:
        """Recompute key and transcript from the messages of all rounds alone (anyone; audit).

        Raises ``KeyGenerationFailed`` with the same culprits as ``advance``, also if the run ended early.
        """
        ...

    @property
    def recomputed_on_admission(self) -> bool:
        """Whether a run is so small that a board observes it when its key is posted.

        If not, ``check_key`` looks at each key, and its verdict does not depend on the transcript.
        """
        ...

    def check_key(
        self, run: KeyGenerationRun, rounds: PostedRounds, key: CommitteeKey, transcript: bytes
    ) -> None:
        """Check a key that somebody says the run made (admission). Raises ``KeyGenerationFailed``.

        1. The key names this run.
        2. Everybody's first message shows that its sender knows the secrets behind it, for this run.
        3. Everybody confirmed this key in the last round.

        A scheme whose messages are small recomputes key and transcript from all of them.
        """
        ...


# Refresh and change of members


@dataclass(frozen=True, kw_only=True, slots=True)
class HandoverRun:
    """Hand the same key to a new committee; a refresh is a handover to the same members.

    Old members deal, new members receive; one person may do both.
    """

    genesis: GenesisHash
    run_id: RunId
    old_key: CommitteeKey
    dealers: tuple[int, ...]
    """t old members, ascending."""
    shape: CommitteeShape
    members: tuple[Subject, ...]
    """SHA-256 of each new member's certificate, in the order of the new numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HandoverParty:
    """Who I am in a handover: a dealer (``share``), a receiver (``member``), or both."""

    share: SecretKeyShare | None = None
    member: int | None = None


class SecretHandoverState(Protocol):
    """What a party keeps between the rounds of a handover (kept; ``repr`` is redacted)."""

    @property
    def run(self) -> HandoverRun:
        """The run it belongs to."""
        ...

    @property
    def round(self) -> int:
        """The round whose messages ``advance`` needs next."""
        ...

    @property
    def message(self) -> RoundMessage | None:
        """The own message of ``round``, to be sent again after a crash; None in a round of others."""
        ...

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        ...


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """A finished round of a handover; no message where this party has no part in the round."""

    state: SecretHandoverState
    message: RoundMessage | None


@dataclass(frozen=True, slots=True)
class HandedOverKey:
    """The end of a handover: same ``key_id``, new ``shares_id``; erase the old share now."""

    key: CommitteeKey
    share: SecretKeyShare | None
    """None for a dealer who leaves."""
    transcript: bytes


class Handover(Protocol):
    """Refresh and change of members, in three rounds.

    Round 0: every receiver posts one-time sealing keys. Round 1: every dealer deals. Round 2:
    every receiver confirms or complains. A ``RoundMessage.sender`` is the new number in rounds
    0 and 2 and the old number in round 1.
    """

    def begin(self, run: HandoverRun, party: HandoverParty) -> HandoverResult:
        """Start a handover."""
        ...

    def advance(
        self, state: SecretHandoverState, messages: Sequence[RoundMessage]
    ) -> HandoverResult | HandedOverKey:
        """Go on with all messages of ``state.round``. Raises ``KeyGenerationFailed``."""
        ...

    def resume(self, data: bytes) -> SecretHandoverState:
        """Read a state that ``to_bytes`` wrote."""
        ...

    def observe(self, run: HandoverRun, rounds: Sequence[Sequence[RoundMessage]]) -> ObservedKey:
        """Recompute the new key and the transcript from the messages of all rounds alone (audit).

        Raises ``KeyGenerationFailed`` with the same culprits and dealers as ``advance``.
        """
        ...


def check_made(made: ObservedKey, key: CommitteeKey, transcript: bytes) -> None:
    """Raise ``KeyGenerationFailed`` unless a run made this key, by this transcript."""
    if made.key.shares_id != key.shares_id:
        raise KeyGenerationFailed("The messages of the run make another key.")
    if made.transcript != transcript:
        raise KeyGenerationFailed("The messages of the run have another transcript.")
