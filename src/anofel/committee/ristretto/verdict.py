"""The last word of a receiver: *this is the key*, or *that dealer cheated me, see for yourselves*."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.ristretto.run import Bodies
from anofel.committee.sealing import KEY_LENGTH, CannotOpen, SealingKey
from anofel.framing import Reader, Writer

_CONFIRMS = 0
_COMPLAINS = 1


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The hash of the keys and of the transcript."""

    keys_digest: bytes
    transcript: bytes

    @classmethod
    def of(cls, keys: bytes, transcript: bytes) -> "Confirmation":
        """Confirm encoded keys."""
        return cls(hashlib.sha256(keys).digest(), transcript)

    def to_bytes(self) -> bytes:
        """Encode."""
        return Writer().number(_CONFIRMS, 1).raw(self.keys_digest).raw(self.transcript).done()


@dataclass(frozen=True, slots=True)
class Complaint:
    """The accused dealer and the one-time private key that opens what it sealed to the complainer."""

    accused: int
    opened_key: bytes = field(repr=False)

    def to_bytes(self) -> bytes:
        """Encode."""
        return Writer().number(_COMPLAINS, 1).number(self.accused, 2).raw(self.opened_key).done()


SealingKeys = Callable[[int, int], bytes]
"""(receiver, dealer): the receiver's one-time public key for what that dealer seals to it."""

SealCheck = Callable[[int, int, SealingKey], None]
"""(dealer, receiver, key): opens the sealed part and checks it.

Raises ``CannotOpen`` or ``KeyGenerationFailed`` if the dealer cheated.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Whose fault it is that the run ends without a key; a dealer's or a receiver's number."""

    number: int
    is_dealer: bool
    sentence: str


def settle(
    bodies: Bodies,
    expected: Confirmation,
    sealing_keys: SealingKeys,
    dealers: Callable[[int], set[int]],
    check: SealCheck,
) -> list[Fault]:
    """Judge the last messages: no fault if all confirm the same. Everybody reaches the same verdict.

    1. A malformed message, or a confirmation of something else, is its sender's fault.
    2. A complaint about somebody who dealt the complainer nothing is the complainer's fault.
    3. A complaint with a key that is not the complainer's is the complainer's fault.
    4. A complaint is the accused's fault if the opened part is bad, else the complainer's.
    """
    faults = []
    for sender, body in sorted(bodies.items()):
        try:
            verdict = _read(body)
        except ValueError:
            faults.append(Fault(sender, False, f"Member {sender} ended with a malformed message."))
            continue
        if isinstance(verdict, Complaint):
            faults.append(_judge(sender, verdict, sealing_keys, dealers(sender), check))
        elif verdict != expected:
            faults.append(Fault(sender, False, f"Member {sender} confirmed another key or transcript."))
    return faults


def _judge(
    sender: int, complaint: Complaint, sealing_keys: SealingKeys, dealers: set[int], check: SealCheck
) -> Fault:
    accused = complaint.accused
    if accused not in dealers:
        return Fault(sender, False, f"Member {sender} accused {accused}, who dealt it nothing.")
    key = SealingKey.from_bytes(complaint.opened_key)
    if key.public() != sealing_keys(sender, accused):
        return Fault(sender, False, f"Member {sender} opened a key that is not its own.")
    try:
        check(accused, sender, key)
    except (CannotOpen, KeyGenerationFailed):
        return Fault(accused, True, f"Member {accused} sent member {sender} a bad share.")
    return Fault(sender, False, f"Member {sender} accused member {accused} of a share that is good.")


def _read(body: bytes) -> Confirmation | Complaint:
    reader = Reader(body)
    kind = reader.number(1)
    verdict: Confirmation | Complaint
    if kind == _CONFIRMS:
        verdict = Confirmation(reader.raw(32), reader.raw(32))
    elif kind == _COMPLAINS:
        verdict = Complaint(reader.number(2), reader.raw(KEY_LENGTH))
    else:
        raise ValueError("neither a confirmation nor a complaint")
    reader.end()
    return verdict
