"""What all rounds share: the run, the kept state, and who may say what when."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from anofel._core import committee as core
from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import KeyGenerationRun, RoundMessage
from anofel.committee.kept import Kept
from anofel.framing import Reader, Writer
from anofel.ids import GenesisHash, RunId, Subject

LAST_ROUND = 2

Bodies = Mapping[int, bytes]
"""The bodies of one round's messages, by sender."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run together with how many keys it makes and what they are for."""

    run: KeyGenerationRun
    num_keys: int
    purpose: str

    def __post_init__(self) -> None:
        if len(self.run.members) != self.run.shape.num_members:
            raise InvalidCommittee(
                f"{len(self.run.members)} members were named for a committee of {self.run.shape.num_members}."
            )
        if len(set(self.run.members)) != len(self.run.members):
            raise InvalidCommittee("A member stands in a committee once.")

    @property
    def shape(self) -> CommitteeShape:
        """Members and threshold."""
        return self.run.shape

    @property
    def core_shape(self) -> core.Shape:
        """The same for the core."""
        return core.Shape(self.num_keys, self.shape.num_members, self.shape.threshold)

    @property
    def digest(self) -> bytes:
        """SHA-256 over everything the run is about."""
        writer = Writer().framed(b"anofel/1/committee/run").framed(self.purpose.encode())
        writer.number(self.num_keys, 4)
        return hashlib.sha256(writer.raw(write_run(self.run)).done()).digest()


@dataclass(frozen=True, slots=True)
class SecretDrawn(Kept):
    """What a member keeps after rounds 0 and 1 (kept)."""

    sealing: bytes = field(repr=False)
    """The private half of its one-time sealing key."""
    frost: bytes = field(repr=False)
    """FROST's state."""


@dataclass(frozen=True, slots=True)
class SecretOutcome(Kept):
    """What a member keeps after round 2, until everybody confirmed (kept)."""

    keys: bytes = field(repr=False)
    shares: bytes = field(repr=False)
    """Its own secret shares."""


@dataclass(frozen=True, slots=True)
class RistrettoObserved:
    """What the messages of a run make, as anybody sees it."""

    keys: core.Keys
    transcript: bytes


KeptSecret = SecretDrawn | SecretOutcome | None
"""None after a complaint."""

_KeptType = TypeVar("_KeptType", bound=KeptSecret, covariant=True)


@dataclass(frozen=True, slots=True)
class RoundPart(Generic[_KeptType]):
    """One member's part in one round: what it keeps and what it sends."""

    kept: _KeptType
    body: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretRistrettoState(Kept):
    """What a member keeps between two rounds (kept)."""

    run: KeyGenerationRun
    member: int
    round: int
    kept: KeptSecret = field(repr=False)
    history: tuple[Bodies, ...] = field(repr=False)
    """The messages of the rounds so far; public."""
    body: bytes = field(repr=False)
    """What this member sends in ``round``; kept, so that it can be sent again."""

    @property
    def message(self) -> RoundMessage:
        """The message of ``round``."""
        return RoundMessage(run_id=self.run.run_id, round=self.round, sender=self.member, body=self.body)

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        writer = Writer().raw(write_run(self.run)).number(self.member, 2).number(self.round, 1)
        writer.framed(self.body).number(self.kept is not None, 1)
        match self.kept:
            case SecretDrawn(sealing, frost):
                writer.framed(sealing).framed(frost)
            case SecretOutcome(keys, shares):
                writer.framed(keys).framed(shares)
        writer.number(len(self.history), 1)
        for bodies in self.history:
            for _, body in sorted(bodies.items()):
                writer.framed(body)
        return writer.done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "SecretRistrettoState":
        """Read what ``to_bytes`` wrote. Raises ``ValueError`` if it is damaged."""
        reader = Reader(data)
        run = read_run(reader)
        member, stage, body = reader.number(2), reader.number(1), reader.framed()
        kind = SecretOutcome if stage == LAST_ROUND else SecretDrawn
        kept = kind(reader.framed(), reader.framed()) if reader.number(1) else None
        history = tuple(
            {sender: reader.framed() for sender in run.shape.members} for _ in range(reader.number(1))
        )
        reader.end()
        return cls(run=run, member=member, round=stage, kept=kept, history=history, body=body)


def write_run(run: KeyGenerationRun) -> bytes:
    """Encode a run."""
    writer = Writer().framed(run.genesis).framed(run.run_id)
    writer.number(run.shape.num_members, 2).number(run.shape.threshold, 2)
    for member in run.members:
        writer.framed(member)
    return writer.done()


def read_run(reader: Reader) -> KeyGenerationRun:
    """Decode a run."""
    genesis, run_id = GenesisHash(reader.framed()), RunId(reader.framed())
    shape = CommitteeShape(num_members=reader.number(2), threshold=reader.number(2))
    members = tuple(Subject(reader.framed()) for _ in shape.members)
    return KeyGenerationRun(genesis=genesis, run_id=run_id, shape=shape, members=members)


def transcript_digest(run_digest: bytes, history: Iterable[Bodies]) -> bytes:
    """SHA-256 over the run and the given rounds' messages, by round and sender."""
    writer = Writer().raw(run_digest)
    for number, bodies in enumerate(history):
        for sender, body in sorted(bodies.items()):
            writer.number(number, 1).number(sender, 2).raw(hashlib.sha256(body).digest())
    return hashlib.sha256(writer.done()).digest()


def collect(
    run_id: RunId, number: int, senders: Iterable[int], messages: Sequence[RoundMessage]
) -> dict[int, bytes]:
    """Return the bodies of one round by sender; everybody spoke once, and nobody else did.

    A message that is repeated byte by byte counts once. Raises ``KeyGenerationFailed``.
    """
    expected = set(senders)
    bodies: dict[int, bytes] = {}
    for message in messages:
        sender = message.sender
        if sender not in expected:
            raise KeyGenerationFailed(f"Member {sender} has no part in round {number}.", (sender,))
        if message.run_id != run_id:
            raise KeyGenerationFailed(f"Member {sender} sent a message of another run.", (sender,))
        if message.round != number:
            raise KeyGenerationFailed(
                f"Member {sender} sent a message of round {message.round} in round {number}.", (sender,)
            )
        if bodies.setdefault(sender, message.body) != message.body:
            raise KeyGenerationFailed(
                f"Member {sender} sent two different messages in round {number}.", (sender,)
            )
    missing = expected - bodies.keys()
    if missing:
        names = ", ".join(map(str, sorted(missing)))
        raise KeyGenerationFailed(f"Round {number} lacks the message of member {names}.", missing)
    return bodies
