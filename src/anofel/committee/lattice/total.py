"""Steps 7 and 8 for ``lattice``: the sum, its shares, and its opening."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anofel._core import lattice as core
from anofel.committee.accumulation import PostAccumulator
from anofel.committee.context import AgreedSet, IterationContext, TaskLimits
from anofel.committee.errors import DoesNotFit, PayloadRefused, ShareRefused
from anofel.committee.interface import Bytes, Int64Vector
from anofel.committee.lattice.contribution import LatticePayload, codec, core_iteration
from anofel.committee.lattice.key import LatticeKey, LatticeShare
from anofel.committee.refusal import refusing
from anofel.ids import BlobHash, SetDigest

SHARES_ID_LENGTH = 32
SET_DIGEST_LENGTH = 32


@dataclass(frozen=True)
class LatticeSum:
    """An encrypted sum."""

    iteration: IterationContext
    limits: TaskLimits
    set_digest: SetDigest
    content: core.Sum = field(repr=False)

    @property
    def num_posts(self) -> int:
        """How many posts were added."""
        return self.content.num_posts

    @cached_property
    def encoded(self) -> bytes:
        """Set digest ‖ the core's bytes."""
        return self.set_digest + self.content.to_bytes()

    @cached_property
    def digest(self) -> BlobHash:
        """SHA-256 over ``to_bytes()``."""
        return BlobHash(hashlib.sha256(self.encoded).digest())

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        return self.encoded


class LatticeAccumulator(PostAccumulator[LatticePayload, LatticeSum]):
    """Adds contributions one by one."""

    payload_type = LatticePayload

    def __init__(self, key: LatticeKey, iteration: IterationContext, limits: TaskLimits) -> None:
        super().__init__(key.key_id, iteration, limits)
        self._sum = core.RunningSum(codec(limits))

    def add_checked(self, payload: LatticePayload) -> None:
        """Add the masked vector and the wrapped key."""
        with refusing(DoesNotFit):
            self._sum.add(payload.checked)

    def make_sum(self, set_digest: SetDigest) -> LatticeSum:
        """Return the sum of what was added."""
        with refusing(PayloadRefused):
            content = self._sum.finish()
        return LatticeSum(self.iteration, self.limits, set_digest, content)


def read_sum(iteration: IterationContext, limits: TaskLimits, data: Bytes) -> LatticeSum:
    """Parse a published sum."""
    encoded = bytes(data)
    with refusing(PayloadRefused):
        content = core.Sum.read(codec(limits), encoded[SET_DIGEST_LENGTH:])
    return LatticeSum(iteration, limits, SetDigest(encoded[:SET_DIGEST_LENGTH]), content)


def make_share(key: LatticeKey, share: LatticeShare, total: LatticeSum, agreed: AgreedSet) -> bytes:
    """Make a member's share of the sum: the id of the shares used ‖ D ‖ proof."""
    with refusing(ShareRefused):
        made = core.partial_decrypt(key.keys, share.secrets, total.content, agreed.digest)
    return key.shares_id + made


def check_share(
    key: LatticeKey, total: LatticeSum, agreed: AgreedSet, member: int, share: bytes
) -> core.CheckedSumShare:
    """Check a member's share; ``verify_share`` has checked (1) and (2).

    1. The count was decrypted for exactly this sum and set.
    2. The member exists.
    3. The share was made with the current shares of the key.
    4. Its length is right and every point is canonical.
    5. The equality proof holds for this member, sum and set.
    """
    if share[:SHARES_ID_LENGTH] != key.shares_id:
        raise ShareRefused(f"Member {member} used other than the current shares of the key.", (member,))
    points = share[SHARES_ID_LENGTH:]
    with refusing(ShareRefused):
        return core.verify_share(key.keys, total.content, agreed.digest, member, points)


def open_sum(key: LatticeKey, total: LatticeSum, shares: Mapping[int, core.CheckedSumShare]) -> Int64Vector:
    """Open Σs with t checked shares, remove the mask and decode."""
    where = core_iteration(key, total.iteration)
    with refusing(ShareRefused):
        values = core.combine(key.keys, total.content, where, list(shares.values()))
    return np.frombuffer(values, dtype="<i8").astype(np.int64, copy=False)
