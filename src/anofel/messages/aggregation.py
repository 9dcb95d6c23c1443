"""Postings of aggregators in an iteration (steps 6 to 8)."""

from dataclasses import dataclass

from anofel.ids import BlockHash, Nullifier, SetDigest, TaskId
from anofel.messages.blobs import Blob
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion(View):
    """A submission that a committee leaves out of the sum, and why."""

    nullifier: Nullifier
    reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(View):
    """A member says which submissions it added and what the encrypted sum is (steps 6 and 7)."""

    task: TaskId
    iteration: int
    member: int
    close_hash: BlockHash
    excluded: tuple[Exclusion, ...]
    set_digest: SetDigest
    num_posts: int
    sum: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class CountShare(View):
    """A member's share of the count (step 8)."""

    task: TaskId
    iteration: int
    member: int
    agreed: bytes
    share: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SumShare(View):
    """A member's share of the sum (step 8)."""

    task: TaskId
    iteration: int
    member: int
    agreed: bytes
    share: Blob
