"""What every ciphertext, proof and share is bound to.

A *committee* serves one task. Tasks stand in *bundles*; a post addresses every committee of
its bundle, each at its *position*. Fields are raw 32-byte values; the classes check lengths
and ranges, so that the code below them need not.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from anofel.committee.errors import DoesNotFit, InvalidCommittee, InvalidContext
from anofel.ids import AgreedDigest, BlobHash, BlockHash, GenesisHash, KeyId, Nullifier, SetDigest, TaskId

MAX_MEMBERS = 16
"""The largest committee; Δ = n! and the number of DKG messages stay small."""

MAX_POSTS = 1 << 14
"""The largest number of posts that a committee adds in one iteration."""

MAX_LENGTH = 1 << 27
"""The largest number of values in one vector."""

DIGEST_LENGTH = 32


def majority(num_members: int) -> int:
    """Return the smallest threshold allowed: t ≥ ⌈(n+1)/2⌉ (D-09)."""
    return (num_members + 2) // 2


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitteeShape:
    """How many members a committee has (n) and how many of them decrypt (t)."""

    num_members: int
    threshold: int

    def __post_init__(self) -> None:
        if not 2 <= self.num_members <= MAX_MEMBERS:
            raise InvalidCommittee(f"A committee has 2 to {MAX_MEMBERS} members, not {self.num_members}.")
        least = majority(self.num_members)
        if not least <= self.threshold <= self.num_members:
            raise InvalidCommittee(
                f"A committee of {self.num_members} needs a threshold from {least} to "
                f"{self.num_members}, not {self.threshold}."
            )

    @property
    def members(self) -> range:
        """The members' numbers, 1 … n."""
        return range(1, self.num_members + 1)


def check_range(bound: int, max_posts: int) -> None:
    """Refuse what no scheme adds. Raises ``DoesNotFit``."""
    if not 1 <= bound < 1 << 62:
        raise DoesNotFit(f"The bound of a value is from 1 to 2^62 - 1, not {bound}.")
    if not 1 <= max_posts <= MAX_POSTS:
        raise DoesNotFit(f"A committee adds 1 to {MAX_POSTS} posts, not {max_posts}.")


class CoordinateRange(NamedTuple):
    """One coordinate of a vector is within low … high where the count bit is 1, and zero where it is 0."""

    coordinate: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskLimits:
    """What a task promises about its vectors; the same for every post.

    ``max_posts`` counts every post that the committee adds: decoys and the other tasks of the
    bundle included. The board caps admission at it.
    """

    length: int
    bound: int
    """No value is larger in absolute value."""
    max_posts: int
    min_clients: int
    norm_bound: int | None = None
    """B: no honest vector has a larger norm, and contributions are proven; None if they are not."""
    max_liars: int = 1
    """f: how many lying posts a sum of proven contributions has room for."""
    ranges: tuple[CoordinateRange, ...] = ()
    """Coordinates whose ranges are proven, in rising order; a scheme that proves no norm proves none."""

    def __post_init__(self) -> None:
        if not 1 <= self.length <= MAX_LENGTH:
            raise DoesNotFit(f"A vector has 1 to {MAX_LENGTH} values, not {self.length}.")
        check_range(self.bound, self.max_posts)
        if self.norm_bound is not None and not 1 <= self.norm_bound < 1 << 62:
            raise DoesNotFit(f"The bound of a norm is from 1 to 2^62 - 1, not {self.norm_bound}.")
        if not 0 <= self.max_liars < 1 << 32:
            raise DoesNotFit(f"The number of liars is from 0 to 2^32 - 1, not {self.max_liars}.")
        if self.ranges and self.norm_bound is None:
            raise DoesNotFit("Ranges of coordinates are part of a contribution proof; this task has none.")
        if not 2 <= self.min_clients <= self.max_posts:
            raise DoesNotFit(
                f"min_clients is from 2 to max_posts ({self.max_posts}), not {self.min_clients} (D-08)."
            )

    @property
    def proven(self) -> bool:
        """Whether contributions carry their scheme's proof."""
        return self.norm_bound is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationContext:
    """One iteration of one task, at its committee's position in the bundle; public."""

    genesis: GenesisHash
    task: TaskId
    iteration: int
    scope: bytes
    """H(genesis, bundle, iteration), the submission proof's public input."""
    position: int

    def __post_init__(self) -> None:
        _check_digests(genesis=self.genesis, task=self.task, scope=self.scope)
        _check_range("iteration", self.iteration, 1 << 64)
        _check_range("position", self.position, 1 << 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class PostContext:
    """One post: the iteration and the values that the submission proof makes unique."""

    iteration: IterationContext
    nullifier: Nullifier
    tag: bytes
    pk_sig: bytes

    def __post_init__(self) -> None:
        _check_digests(nullifier=self.nullifier, tag=self.tag, pk_sig=self.pk_sig)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreedSet:
    """What t equal ``Aggregate`` postings of a committee state (D-18).

    ``set_digest`` names the posts that were added, ``sum_digest`` the encrypted sum. A share of
    the count or of the sum counts only for the set it names.
    """

    iteration: IterationContext
    key_id: KeyId
    close_hash: BlockHash
    """Hash of the block that closed the iteration."""
    set_digest: SetDigest
    sum_digest: BlobHash
    num_posts: int
    min_clients: int

    def __post_init__(self) -> None:
        _check_digests(
            key_id=self.key_id,
            close_hash=self.close_hash,
            set_digest=self.set_digest,
            sum_digest=self.sum_digest,
        )
        _check_range("num_posts", self.num_posts, MAX_POSTS + 1)
        if self.min_clients < 2:
            raise InvalidContext(f"min_clients is at least 2, not {self.min_clients} (D-08).")

    @property
    def digest(self) -> bytes:
        """SHA-256 over every field; what share proofs bind."""
        where = self.iteration
        state = hashlib.sha256(b"anofel/1/committee/agreed-set")
        for value in (where.genesis, where.task, where.scope, self.key_id, self.close_hash):
            state.update(value)
        state.update(self.set_digest + self.sum_digest)
        numbers = (where.iteration, where.position, self.num_posts, self.min_clients)
        state.update(b"".join(number.to_bytes(8, "little") for number in numbers))
        return state.digest()


def digest_of_agreed(groups: Iterable[AgreedSet]) -> AgreedDigest:
    """Name all groups of an agreement together (SHA-256 over their digests, in order)."""
    digests = b"".join(group.digest for group in groups)
    return AgreedDigest(hashlib.sha256(b"anofel/1/committee/agreed-groups" + digests).digest())


def digest_of_set(nullifiers: Iterable[Nullifier]) -> SetDigest:
    """Name a set of posts by their nullifiers, in no particular order (SHA-256 over the sorted list)."""
    ordered = sorted(nullifiers)
    if len(set(ordered)) != len(ordered):
        raise InvalidContext("A post stands in a set once.")
    return SetDigest(hashlib.sha256(b"anofel/1/committee/set" + b"".join(ordered)).digest())


def _check_digests(**fields: bytes) -> None:
    for name, value in fields.items():
        if len(value) != DIGEST_LENGTH:
            raise InvalidContext(f"{name} has {DIGEST_LENGTH} bytes, not {len(value)}.")


def _check_range(name: str, value: int, end: int) -> None:
    if not 0 <= value < end:
        raise InvalidContext(f"{name} is from 0 to {end - 1}, not {value}.")
