"""The body of a round's message: an ordinary one, a complaint, or an opened seed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import KeyGenerationRun, RoundMessage
from anofel.committee.paillier.wire import Malformed, Reader
from anofel.committee.wire import Writer


class Kind(IntEnum):
    """What a body is."""

    ORDINARY = 0
    COMPLAINT = 1
    """A sealed part was bad: its sender, and the one-time key that opens it to everybody."""
    OPENING = 2
    """The run failed in public: the seed, so that everybody can replay everybody."""


@dataclass(frozen=True, slots=True)
class SecretDraft:
    """A message before its private parts are sealed (kept)."""

    kind: Kind
    public: bytes = b""
    private: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed body (sent)."""

    kind: Kind
    public: bytes = b""
    sealed: tuple[bytes, ...] = ()
    """One part per member, empty for the sender; or none at all."""

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        writer = Writer().number(self.kind, 1).framed(self.public).number(len(self.sealed), 1)
        for part in self.sealed:
            writer.framed(part)
        return writer.done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Body":
        """Decode. Raises ``Malformed``."""
        reader = Reader(data)
        kind, public = reader.number(1), reader.framed()
        sealed = tuple(reader.framed() for _ in range(reader.number(1)))
        reader.end()
        if kind not in tuple(Kind):
            raise Malformed("The message has an unknown kind.")
        return cls(Kind(kind), public, sealed)


def in_order(run: KeyGenerationRun, number: int, messages: Sequence[RoundMessage]) -> list[RoundMessage]:
    """Return the messages of one round by member. Raises ``KeyGenerationFailed`` with the senders.

    Foreign, stale, duplicate and missing messages are refused.
    """
    wrong = [m.sender for m in messages if m.run_id != run.run_id or m.round != number]
    if wrong:
        raise KeyGenerationFailed(f"A message of another run or round was given for round {number}.", wrong)
    foreign = [m.sender for m in messages if m.sender not in run.shape.members]
    if foreign:
        raise KeyGenerationFailed("A message comes from outside the committee.", foreign)
    senders = [m.sender for m in messages]
    twice = [sender for sender in senders if senders.count(sender) > 1]
    if twice:
        raise KeyGenerationFailed(f"A member sent two messages in round {number}.", twice)
    missing = [member for member in run.shape.members if member not in senders]
    if missing:
        raise KeyGenerationFailed(f"Messages of round {number} are missing.", missing)
    return sorted(messages, key=lambda message: message.sender)


def parse(messages: Sequence[RoundMessage], num_members: int) -> list[Body]:
    """Parse one round. Raises ``KeyGenerationFailed`` with the senders of malformed bodies."""
    bodies = []
    for message in messages:
        try:
            body = Body.from_bytes(message.body)
            if len(body.sealed) not in (0, num_members):
                raise Malformed("The message has the wrong number of sealed parts.")
        except Malformed as error:
            raise KeyGenerationFailed(f"A message is malformed: {error}", [message.sender]) from error
        bodies.append(body)
    return bodies
