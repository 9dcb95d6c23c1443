"""What a posting still has to prove once the rules about the state are met.

``check`` functions make claims from the posting *and* the state, so a claim names everything that
its verdict depends on; ``verification`` verifies claims, in batches and once.
"""

from dataclasses import dataclass

from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.messages import Blob, Registration, Run, Submission
from anofel.primitives import Scope


@dataclass(frozen=True, slots=True)
class CommitteeRef:
    """A committee as verification needs it; the key file is an attachment."""

    key_id: bytes
    scheme: int
    shares_id: bytes


@dataclass(frozen=True, slots=True)
class Addressee:
    """One committee of a bundle, with its task's vectors."""

    committee: CommitteeRef
    task_id: bytes
    limits: TaskLimits
    types: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class PossessionClaim:
    """A certifier knows the secret of its key."""

    key: bytes
    possession: bytes
    holder: bytes


@dataclass(frozen=True, slots=True)
class RegistrationClaim:
    """The registration proof is valid."""

    body: Registration
    message_key: bytes


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A blob is the committee key that the posting describes."""

    run: Run
    key_id: bytes
    shares_id: bytes
    share_epoch: int


@dataclass(frozen=True, slots=True)
class ModelClaim:
    """A blob is a canonical model file of the task's shape."""

    sha256: bytes
    length: int
    scale_bits: int
    momentum: bool


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
    """A blob is an encrypted sum over the stated set."""

    addressee: Addressee
    iteration: IterationContext
    sum_digest: bytes
    set_digest: bytes
    num_posts: int


@dataclass(frozen=True, slots=True)
class CountShareClaim:
    """A share of the count is valid for the agreed set."""

    addressee: Addressee
    agreed: AgreedSet
    bits: tuple[tuple[bytes, bytes], ...]
    """Nullifier and encrypted bit of every post in the set."""
    member: int
    share: bytes
    author: str


@dataclass(frozen=True, slots=True)
class SumShareClaim:
    """A share of the sum is valid for the agreed set whose count was opened."""

    addressee: Addressee
    agreed: AgreedSet
    bits: tuple[tuple[bytes, bytes], ...]
    count_shares: tuple[tuple[int, bytes], ...]
    member: int
    share: bytes
    """SHA-256 of the share, an attachment."""
    author: str


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
