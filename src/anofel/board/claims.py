"""What a posting still has to prove once the rules about the state are met.

``check`` functions make claims from the posting *and* the state, so a claim names everything that
its verdict depends on; ``verification`` verifies claims, in batches and once.
"""

import hashlib
from dataclasses import dataclass

from anofel.board.state import GroupTotal
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.ids import BlobHash, GenesisHash, KeyId, Nullifier, SharesId, Subject, TaskId
from anofel.messages import Blob, Registration, Run, Submission
from anofel.primitives import Scope


@dataclass(frozen=True, slots=True)
class CommitteeRef:
    """A committee as verification needs it; the key file is an attachment."""

    key_id: KeyId
    scheme: int
    shares_id: SharesId


@dataclass(frozen=True, slots=True)
class Addressee:
    """One committee of a bundle, with its task's vectors."""

    committee: CommitteeRef
    task_id: TaskId
    limits: TaskLimits
    types: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class PossessionClaim:
    """A certifier knows the secret of its key."""

    key: bytes
    possession: bytes
    holder: Subject


@dataclass(frozen=True, slots=True)
class RegistrationClaim:
    """The registration proof is valid."""

    body: Registration
    message_key: bytes


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A blob is the committee key that the posting describes, and the messages of its run made it."""

    genesis: GenesisHash
    run: Run
    base: SharesId | None
    """In a handover, the shares with which it began."""
    rounds: tuple[tuple[tuple[int, BlobHash], ...], ...]
    """Sender and SHA-256 of every message of the complete rounds."""
    key_id: KeyId
    shares_id: SharesId
    share_epoch: int
    transcript: bytes

    @property
    def digest(self) -> bytes:
        """SHA-256 over the run and its messages: what the key that was made depends on."""
        state = hashlib.sha256(self.run.run_id(self.genesis) + (self.base or b""))
        for messages in self.rounds:
            for sender, sha256 in messages:
                state.update(sender.to_bytes(2, "little") + sha256)
        return state.digest()


@dataclass(frozen=True, slots=True)
class ModelClaim:
    """A blob is a canonical model file of the task's shape."""

    sha256: BlobHash
    length: int
    scale_bits: int
    companions: int


@dataclass(frozen=True, slots=True)
class SubmissionClaim:
    """Membership proof, envelopes and ballot are valid for the open iteration of the bundle."""

    body: Submission
    message_key: bytes
    client_root: bytes
    scope: Scope
    contexts: tuple[PostContext, ...]
    addressees: tuple[Addressee, ...]


@dataclass(frozen=True, slots=True)
class SumClaim:
    """The blobs are encrypted sums over the stated groups."""

    addressee: Addressee
    iteration: IterationContext
    groups: tuple[GroupTotal, ...]


@dataclass(frozen=True, slots=True)
class CountedGroup:
    """An agreed set whose count is opened, with what encrypts the count."""

    agreed: AgreedSet
    bits: tuple[tuple[Nullifier, bytes], ...]
    """Nullifier and encrypted bit of every post in the set."""
    count_shares: tuple[tuple[int, bytes], ...] = ()
    """Member and share of those who opened it, once they did."""


@dataclass(frozen=True, slots=True)
class CountShareClaim:
    """The shares of the counts are valid, one for each agreed group."""

    addressee: Addressee
    groups: tuple[CountedGroup, ...]
    member: int
    shares: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SumShareClaim:
    """The shares of the sums are valid, one for each group whose count reached ``min_clients``."""

    addressee: Addressee
    groups: tuple[CountedGroup, ...]
    member: int
    shares: tuple[BlobHash, ...]
    """SHA-256 of each share, an attachment."""


Proof = (
    PossessionClaim
    | RegistrationClaim
    | KeyClaim
    | ModelClaim
    | SubmissionClaim
    | SumClaim
    | CountShareClaim
    | SumShareClaim
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Everything that verification must confirm before a posting is applied."""

    blobs: tuple[Blob, ...] = ()
    proof: Proof | None = None
    context: bytes = b""
    """What the verdict depends on beside the posting itself."""
