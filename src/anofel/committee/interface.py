"""The one interface of committee encryption; ``lattice`` and ``paillier`` implement it.

The order of calls, by role (AnoFel steps 1.c, 5, 6-8):

1. Members: ``scheme.key_generation().begin(run, member)``, then ``advance`` once per round with
   everybody's messages of that round, until it returns a ``GeneratedKey``.
2. Client: ``scheme.read_key(bytes)``; ``prepare`` while the model trains; ``encrypt`` afterwards.
3. Board: ``verify_envelopes`` at admission (and the bundles' ballots, see ``anofel.committee.count``).
4. Members: ``verify_payload`` as payloads arrive, ``Accumulator.add``, ``finish``.
5. Members: the count first. ``count.partial_decrypt`` … ``count.combine`` gives a
   ``DecryptedCount``; its ``permit_sum()`` gives a ``SumPermit`` or raises ``TooFewClients``.
6. Members: ``partial_decrypt`` with that permit. Board: ``verify_share``, once per share.
   Anyone: ``combine`` what it returned.

Rules that hold for every implementation:

* What is sent and what is kept are different types. Kept types redact ``repr``.
* ``verify_*`` and ``read_*`` raise; they never return a boolean.
* Nothing above this file asks which scheme it has; ``schemes.by_name`` is the only place that knows.
* Vectors are C-contiguous int64 arrays and cross into native code as one buffer per call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.permit import SumPermit
from anofel.committee.verified import VerifiedShare

Int64Vector: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = bytes | bytearray | memoryview


# Keys


@runtime_checkable
class CommitteeKey(Protocol):
    """A committee's public key with its members' verification shares; what ``CommitteeKey`` posts."""

    @property
    def scheme(self) -> str:
        """The scheme's name, as in ``Scheme.name``."""
        ...

    @property
    def key_id(self) -> bytes:
        """SHA-256 over what survives a change of shares: scheme, public key, count key.

        Contexts, masks and proofs of clients bind this one.
        """
        ...

    @property
    def shares_id(self) -> bytes:
        """SHA-256 over ``to_bytes()``: changes with every refresh. Share proofs bind this one."""
        ...

    @property
    def shape(self) -> CommitteeShape:
        """Members and threshold."""
        ...

    @property
    def share_epoch(self) -> int:
        """0 after key generation, one more after each refresh or change of members."""
        ...

    @property
    def count_key(self) -> CountKey:
        """The committee's ElGamal key for the encrypted bit; the same type for all schemes."""
        ...

    def to_bytes(self) -> bytes:
        """Encode canonically: ``read_key(k.to_bytes()) == k``, and no other bytes are read as k."""
        ...


class SecretKeyShare(Protocol):
    """One member's secret share of a committee key (kept; ``repr`` is redacted)."""

    @property
    def member(self) -> int:
        """Whose share it is, 1 … n."""
        ...

    @property
    def shares_id(self) -> bytes:
        """``CommitteeKey.shares_id`` of the key it belongs to; a stale share is refused by it."""
        ...

    @property
    def count_share(self) -> SecretCountShare:
        """The share of the count key."""
        ...

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        ...


# Key generation


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyGenerationRun:
    """One attempt at a key: public, the same at every member."""

    genesis: bytes
    run_id: bytes
    """32 bytes, fresh for every attempt; a failed attempt is never continued."""
    shape: CommitteeShape
    members: tuple[bytes, ...]
    """SHA-256 of each member's certificate, in the order of the members' numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundMessage:
    """What a member posts in one round (sent). Private parts stand in ``body``, sealed.

    The transport signs it with the sender's certified key; ``sender`` is then a fact.
    """

    run_id: bytes
    round: int
    sender: int
    body: bytes


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


class KeyGeneration(Protocol):
    """Dealerless key generation (step 1.c) as pure functions from messages to messages.

    The last round is a confirmation: each member posts either the hash of the key and of the
    transcript, or a complaint that opens one sealed part. So a run ends with the same key at
    everybody, or ``advance`` raises ``KeyGenerationFailed`` with the culprits at everybody and
    nobody has returned a key.
    """

    @property
    def num_rounds(self) -> int:
        """How many messages each member posts."""
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

    def observe(
        self, run: KeyGenerationRun, rounds: Sequence[Sequence[RoundMessage]]
    ) -> tuple[CommitteeKey, bytes]:
        """Recompute key and transcript from the messages of all rounds alone (anyone; audit).

        Raises ``KeyGenerationFailed`` with the same culprits as ``advance``.
        """
        ...


# Refresh and change of members


@dataclass(frozen=True, kw_only=True, slots=True)
class ResharingRun:
    """Hand the same key to a new committee; a refresh is a resharing to the same members.

    Old members deal, new members receive; one person may do both.
    """

    genesis: bytes
    run_id: bytes
    old_key: CommitteeKey
    dealers: tuple[int, ...]
    """t old members, ascending."""
    shape: CommitteeShape
    members: tuple[bytes, ...]
    """SHA-256 of each new member's certificate, in the order of the new numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResharingParty:
    """Who I am in a resharing: a dealer (``share``), a receiver (``member``), or both."""

    share: SecretKeyShare | None = None
    member: int | None = None


class SecretResharingState(Protocol):
    """What a party keeps between the rounds of a resharing (kept; ``repr`` is redacted)."""

    @property
    def run(self) -> ResharingRun:
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
class ResharingResult:
    """A finished round of a resharing; no message where this party has no part in the round."""

    state: SecretResharingState
    message: RoundMessage | None


@dataclass(frozen=True, slots=True)
class ResharedKey:
    """The end of a resharing: same ``key_id``, new ``shares_id``; erase the old share now."""

    key: CommitteeKey
    share: SecretKeyShare | None
    """None for a dealer who leaves."""
    transcript: bytes


class Resharing(Protocol):
    """Refresh and change of members, in three rounds.

    Round 0: every receiver posts one-time sealing keys. Round 1: every dealer deals. Round 2:
    every receiver confirms or complains. A ``RoundMessage.sender`` is the new number in rounds
    0 and 2 and the old number in round 1.
    """

    def begin(self, run: ResharingRun, party: ResharingParty) -> ResharingResult:
        """Start a resharing."""
        ...

    def advance(
        self, state: SecretResharingState, messages: Sequence[RoundMessage]
    ) -> ResharingResult | ResharedKey:
        """Go on with all messages of ``state.round``. Raises ``KeyGenerationFailed``."""
        ...

    def resume(self, data: bytes) -> SecretResharingState:
        """Read a state that ``to_bytes`` wrote."""
        ...

    def observe(
        self, run: ResharingRun, rounds: Sequence[Sequence[RoundMessage]]
    ) -> tuple[CommitteeKey, bytes]:
        """Recompute the new key and the transcript from the messages of all rounds alone (audit).

        Raises ``KeyGenerationFailed`` with the same culprits and dealers as ``advance``.
        """
        ...


# Contributions


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """The small part of a contribution; it travels in the posting."""

    proof: bytes
    """The scheme's part: for ``lattice`` R and its proof of knowledge, for ``paillier`` a digest."""
    payload_length: int
    payload_sha256: bytes


@dataclass(frozen=True, slots=True)
class Contribution:
    """What ``encrypt`` returns; a retry resends these very bytes."""

    envelope: Envelope
    payload: bytes


class Prepared(Protocol):
    """All that does not depend on the update (kept; used once; ``repr`` is redacted)."""

    @property
    def context(self) -> PostContext:
        """The post it was made for."""
        ...


class CheckedPayload(Protocol):
    """A payload that ``verify_payload`` accepted, parsed."""

    @property
    def nullifier(self) -> bytes:
        """The post it belongs to."""
        ...


class EncryptedSum(Protocol):
    """The sum of a set of contributions, still encrypted; everybody computes the same."""

    @property
    def iteration(self) -> IterationContext:
        """Where it belongs."""
        ...

    @property
    def set_digest(self) -> bytes:
        """``digest_of_set`` over the posts that were added."""
        ...

    @property
    def num_posts(self) -> int:
        """How many posts were added."""
        ...

    @property
    def digest(self) -> bytes:
        """SHA-256 over ``to_bytes()``; it stands in ``AgreedSet.sum_digest``."""
        ...

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        ...


class Accumulator(Protocol):
    """Adds contributions one by one (step 7); its memory does not grow with their number.

    Only the 32-byte nullifiers of the added posts are kept.
    """

    def add(self, payload: CheckedPayload) -> None:
        """Add one contribution.

        Raises ``PayloadRefused`` for a second one of the same post and ``DoesNotFit`` beyond
        ``max_posts``.
        """
        ...

    def finish(self) -> EncryptedSum:
        """Return the sum of what was added; nothing can be added afterwards."""
        ...


# The scheme


class Scheme(Protocol):
    """A way to add vectors under a committee's key."""

    @property
    def name(self) -> str:
        """The stable name: ``lattice`` or ``paillier``."""
        ...

    def required_bits(self, bound: int, max_posts: int) -> int:
        """Return the bits one value takes on the wire so that sums of max_posts values are exact.

        Raises ``DoesNotFit`` with the numbers if the scheme has no such size.
        """
        ...

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload: it depends on nothing a client chooses."""
        ...

    def key_generation(self) -> KeyGeneration:
        """Return dealerless key generation."""
        ...

    def resharing(self) -> Resharing:
        """Return refresh and change of members."""
        ...

    def read_key(self, data: bytes) -> CommitteeKey:
        """Parse and validate a key; every client does. Raises ``KeyRefused``."""
        ...

    def read_share(self, key: CommitteeKey, data: bytes) -> SecretKeyShare:
        """Read a stored secret share and check it against the key. Raises ``ShareRefused``."""
        ...

    def prepare(self, key: CommitteeKey, context: PostContext, limits: TaskLimits) -> Prepared:
        """Make all that does not depend on the update (step 5, while the model trains)."""
        ...

    def encrypt(self, prepared: Prepared, values: Int64Vector) -> Contribution:
        """Encrypt the update and consume the preparation (step 5).

        Raises ``PreparationUsed`` the second time, ``VectorRefused`` before anything is consumed.
        """
        ...

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check the envelope (admission). Raises ``EnvelopeRefused``."""
        ...

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check the envelopes of many posts at once, as ``verify_envelope`` checks each (admission).

        Raises ``EnvelopeRefused``; ``indices`` and ``reasons`` name the bad ones.
        """
        ...

    def verify_payload(
        self,
        key: CommitteeKey,
        context: PostContext,
        limits: TaskLimits,
        envelope: Envelope,
        payload: Bytes,
    ) -> CheckedPayload:
        """Check and parse a payload (step 6). Raises ``PayloadRefused``; the verdict is deterministic."""
        ...

    def accumulator(self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits) -> Accumulator:
        """Begin an empty sum (step 7)."""
        ...

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> EncryptedSum:
        """Parse a sum that somebody else published. Raises ``PayloadRefused``."""
        ...

    def partial_decrypt(
        self, key: CommitteeKey, share: SecretKeyShare, total: EncryptedSum, permit: SumPermit
    ) -> bytes:
        """Make a member's share of the sum with its proof (step 8).

        Raises ``NotAgreed`` unless the permit is for exactly this sum and set, and
        ``ShareRefused`` if the secret share is stale.
        """
        ...

    def verify_share(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        member: int,
        share: Bytes,
    ) -> VerifiedShare:
        """Check a member's share, once. Raises ``ShareRefused`` with the member as culprit."""
        ...

    def combine(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        shares: Sequence[VerifiedShare],
    ) -> Int64Vector:
        """Return the exact sum from t verified shares; those of the lowest members are used.

        Raises ``ShareRefused`` for a share that was verified for another key or agreed set or is
        given twice, ``TooFewShares``, ``Undecodable``.
        """
        ...


def check_permit(key: CommitteeKey, total: EncryptedSum, permit: SumPermit) -> AgreedSet:
    """Return the agreed set if key, sum and permit belong together (D-08, D-18), else raise.

    Both schemes call it first in ``partial_decrypt``, ``verify_share`` and ``combine``.
    """
    return permit.check(
        key_id=key.key_id,
        iteration=total.iteration,
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=total.num_posts,
    )
