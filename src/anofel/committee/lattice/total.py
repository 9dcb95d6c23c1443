"""Step 7 for ``lattice``: the sum."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from anofel._core import lattice as core
from anofel.committee.accumulation import PostAccumulator
from anofel.committee.context import IterationContext, TaskLimits
from anofel.committee.errors import DoesNotFit, PayloadRefused
from anofel.committee.lattice.contribution import LatticePayload, codec
from anofel.committee.lattice.key import LatticeKey
from anofel.committee.refusal import refusing
from anofel.ids import BlobHash, SetDigest

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

    @classmethod
    def from_bytes(cls, iteration: IterationContext, limits: TaskLimits, data: bytes) -> Self:
        """Parse a published sum. Raises ``PayloadRefused``."""
        with refusing(PayloadRefused):
            content = core.Sum.read(codec(limits), data[SET_DIGEST_LENGTH:])
        return cls(iteration, limits, SetDigest(data[:SET_DIGEST_LENGTH]), content)

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
