"""The body of a round's message: an ordinary one, a complaint, or an opened seed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed
from anofel.framing import Writer


class Kind(IntEnum):
    """What a body is."""

    ORDINARY = 0
    COMPLAINT = 1
    """A sealed part was bad: its sender, and the one-time key that opens it to everybody."""
    OPENING = 2
    """The run failed in public: the seed, so that everybody can replay everybody."""


@dataclass(frozen=True, slots=True)
class SecretDraft(Kept):
    """A message before its private parts are sealed (kept)."""

    kind: Kind
    public: bytes = b""
    private: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class RoundBody:
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
    def from_bytes(cls, data: bytes) -> "RoundBody":
        """Decode. Raises ``Malformed``."""
        reader = IntegerReader(data)
        kind, public = reader.number(1), reader.framed()
        sealed = tuple(reader.framed() for _ in range(reader.number(1)))
        reader.end()
        if kind not in tuple(Kind):
            raise Malformed("The message has an unknown kind.")
        return cls(Kind(kind), public, sealed)


def parse(sent: Sequence[bytes], num_members: int) -> list[RoundBody]:
    """Parse one round, given by member. Raises ``KeyGenerationFailed`` with malformed senders."""
    bodies, wrong = [], []
    for sender, data in enumerate(sent, 1):
        try:
            body = RoundBody.from_bytes(data)
        except Malformed:
            wrong.append(sender)
            continue
        if len(body.sealed) not in (0, num_members):
            wrong.append(sender)
        bodies.append(body)
    if wrong:
        raise KeyGenerationFailed("A message is malformed.", wrong)
    return bodies
