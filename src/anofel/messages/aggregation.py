"""Postings of aggregators in an iteration (steps 6 to 8)."""

from dataclasses import dataclass

from anofel.ids import AgreedDigest, BlockHash, Nullifier, SetDigest, TaskId
from anofel.messages.blobs import Blob
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion(View):
    """A submission that a committee leaves out of the sum, and why."""

    nullifier: Nullifier
    reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSum(View):
    """What was added for one group of an iteration: which posts, how many, and the encrypted sum."""

    set_digest: SetDigest
    num_posts: int
    sum: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(View):
    """A member says which submissions it added and what the encrypted sums are (steps 6 and 7)."""

    task: TaskId
    iteration: int
    member: int
    close_hash: BlockHash
    excluded: tuple[Exclusion, ...]
    groups: tuple[GroupSum, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountShare(View):
    """A member's share of the count of every group (step 8)."""

    task: TaskId
    iteration: int
    member: int
    agreed: AgreedDigest
    shares: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumShare(View):
    """A member's share of the sum of every group that is opened (step 8)."""

    task: TaskId
    iteration: int
    member: int
    agreed: AgreedDigest
    shares: tuple[Blob, ...]
