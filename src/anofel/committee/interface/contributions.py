"""What a client sends for a committee (step 5), and what members add up (steps 6 and 7)."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.ids import BlobHash, Nullifier, SetDigest

Bytes: TypeAlias = bytes | bytearray | memoryview
Int64Vector: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """The small part of a contribution; it travels in the posting."""

    proof: bytes
    """The scheme's part: for ``lattice`` R and its proof of knowledge, for ``paillier`` a digest."""
    payload_length: int
    payload_sha256: BlobHash
    bit: bytes = b""
    """The ballot's encrypted bit for this committee; contribution proofs are bound to it."""


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

    def encrypt(self, values: Int64Vector) -> Contribution:
        """Encrypt the update, prove it where the task wants that, and be used up (step 5).

        Raises ``PreparationUsed`` the second time, ``VectorRefused`` before anything is consumed.
        """
        ...


@dataclass(frozen=True, slots=True)
class SubmittedPayload:
    """A payload with the post and the envelope that it belongs to."""

    context: PostContext
    envelope: Envelope
    payload: Bytes


class CheckedPayload(Protocol):
    """A payload that ``verify_payload`` accepted, parsed."""

    @property
    def nullifier(self) -> Nullifier:
        """The post it belongs to."""
        ...


class EncryptedSum(Protocol):
    """The sum of a set of contributions, still encrypted; everybody computes the same."""

    @property
    def iteration(self) -> IterationContext:
        """Where it belongs."""
        ...

    @property
    def limits(self) -> TaskLimits:
        """What its task promised."""
        ...

    @property
    def set_digest(self) -> SetDigest:
        """``digest_of_set`` over the posts that were added."""
        ...

    @property
    def num_posts(self) -> int:
        """How many posts were added."""
        ...

    @property
    def digest(self) -> BlobHash:
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
