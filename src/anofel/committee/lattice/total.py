"""Steps 7 and 8 for ``lattice``: the sum, its shares, and its opening."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anofel._core import committee as core
from anofel.committee import verified
from anofel.committee.context import IterationContext, TaskLimits, digest_of_set
from anofel.committee.errors import DoesNotFit, PayloadRefused, ShareRefused
from anofel.committee.interface import Bytes, CheckedPayload, Int64Vector, check_permit
from anofel.committee.lattice.contribution import LatticePayload, codec, core_iteration
from anofel.committee.lattice.key import LatticeKey, LatticeShare
from anofel.committee.permit import SumPermit
from anofel.committee.refusal import refusing
from anofel.committee.verified import VerifiedShare

SHARES_ID_LENGTH = 32
SET_DIGEST_LENGTH = 32


@dataclass(frozen=True)
class LatticeSum:
    """An encrypted sum."""

    iteration: IterationContext
    set_digest: bytes
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
    def digest(self) -> bytes:
        """SHA-256 over ``to_bytes()``."""
        return hashlib.sha256(self.encoded).digest()

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        return self.encoded


class LatticeAccumulator:
    """Adds contributions one by one."""

    def __init__(self, iteration: IterationContext, limits: TaskLimits) -> None:
        self._iteration = iteration
        self._sum = core.Accumulator(codec(limits))
        self._nullifiers: set[bytes] = set()

    def add(self, payload: CheckedPayload) -> None:
        """Add one contribution."""
        if not isinstance(payload, LatticePayload):
            raise PayloadRefused("The payload is one of another scheme.")
        if payload.nullifier in self._nullifiers:
            raise PayloadRefused("A post is added once.")
        with refusing(DoesNotFit):
            self._sum.add(payload.checked)
        self._nullifiers.add(payload.nullifier)

    def finish(self) -> LatticeSum:
        """Return the sum."""
        with refusing(PayloadRefused):
            content = self._sum.finish()
        return LatticeSum(self._iteration, digest_of_set(self._nullifiers), content)


def read_sum(iteration: IterationContext, limits: TaskLimits, data: Bytes) -> LatticeSum:
    """Parse a published sum."""
    encoded = bytes(data)
    with refusing(PayloadRefused):
        content = core.Sum.read(codec(limits), encoded[SET_DIGEST_LENGTH:])
    return LatticeSum(iteration, encoded[:SET_DIGEST_LENGTH], content)


def partial_decrypt(key: LatticeKey, share: LatticeShare, total: LatticeSum, permit: SumPermit) -> bytes:
    """Make a member's share of the sum: the id of the shares used ‖ D ‖ proof."""
    agreed = check_permit(key, total, permit)
    if share.shares_id != key.shares_id:
        raise ShareRefused("The secret share belongs to another key or to older shares.", (share.member,))
    with refusing(ShareRefused):
        made = core.partial_decrypt(key.keys, share.secrets, total.content, agreed.digest)
    return key.shares_id + made


def verify_share(
    key: LatticeKey, total: LatticeSum, permit: SumPermit, member: int, share: Bytes
) -> VerifiedShare:
    """Check a member's share.

    1. The count was decrypted for exactly this sum and set.
    2. The member exists.
    3. The share was made with the current shares of the key.
    4. Its length is right and every point is canonical.
    5. The equality proof holds for this member, sum and set.
    """
    agreed = check_permit(key, total, permit)
    points = _current(key, member, share)
    with refusing(ShareRefused):
        content = core.verify_share(key.keys, total.content, agreed.digest, member, points)
    return verified.of_sum(member, key.shares_id, agreed, content)


def combine(
    key: LatticeKey, total: LatticeSum, permit: SumPermit, shares: Sequence[VerifiedShare]
) -> Int64Vector:
    """Open Σs with t verified shares, remove the mask and decode."""
    agreed = check_permit(key, total, permit)
    chosen = verified.choose(shares, VerifiedShare, core.VerifiedShare, key, agreed)
    where = core_iteration(key, total.iteration)
    with refusing(ShareRefused):
        values = core.combine(key.keys, total.content, where, list(chosen.values()))
    return np.frombuffer(values, dtype="<i8").astype(np.int64, copy=False)


def _current(key: LatticeKey, member: int, share: Bytes) -> bytes:
    if member not in key.shape.members:
        raise ShareRefused(f"There is no member {member} in this committee.", (member,))
    encoded = bytes(share)
    if encoded[:SHARES_ID_LENGTH] != key.shares_id:
        raise ShareRefused(f"Member {member} used other than the current shares of the key.", (member,))
    return encoded[SHARES_ID_LENGTH:]
