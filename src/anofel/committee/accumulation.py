"""What both schemes check before they add a contribution (step 7).

1. The payload was checked under this key.
2. The payload was checked for this iteration and task.
3. The sum is not finished.
4. A post is added once.
5. The sum holds at most ``max_posts`` posts.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from anofel.committee.context import IterationContext, PostContext, TaskLimits, digest_of_set
from anofel.committee.errors import DoesNotFit, NotAgreed, PayloadRefused
from anofel.committee.interface import CheckedPayload, EncryptedSum
from anofel.ids import KeyId, Nullifier, SetDigest


@dataclass(frozen=True, slots=True)
class PostPayload:
    """What a payload was checked for; a scheme adds what it parsed."""

    context: PostContext
    key_id: KeyId
    limits: TaskLimits

    @property
    def nullifier(self) -> Nullifier:
        """The post it belongs to."""
        return self.context.nullifier


Payload = TypeVar("Payload", bound=PostPayload)
Sum = TypeVar("Sum", bound=EncryptedSum)


class PostAccumulator(ABC, Generic[Payload, Sum]):
    """Adds contributions one by one; implements ``Accumulator``."""

    payload_type: type[Payload]

    def __init__(self, key_id: KeyId, iteration: IterationContext, limits: TaskLimits) -> None:
        self._key_id, self.iteration, self.limits = key_id, iteration, limits
        self._nullifiers: set[Nullifier] = set()
        self._finished = False

    @abstractmethod
    def add_checked(self, payload: Payload) -> None:
        """Add what was parsed."""

    @abstractmethod
    def make_sum(self, set_digest: SetDigest) -> Sum:
        """Return the sum of what was added."""

    @property
    def num_posts(self) -> int:
        """How many posts were added."""
        return len(self._nullifiers)

    def add(self, payload: CheckedPayload) -> None:
        """Add one contribution. Raises ``PayloadRefused``, ``NotAgreed``, ``DoesNotFit``."""
        if not isinstance(payload, self.payload_type) or payload.key_id != self._key_id:
            raise PayloadRefused("The payload was checked under another key.")  # 1
        if payload.context.iteration != self.iteration or payload.limits != self.limits:
            raise PayloadRefused("The payload was checked for another iteration or task.")  # 2
        if self._finished:
            raise NotAgreed("The sum is finished; nothing can be added.")  # 3
        if payload.nullifier in self._nullifiers:
            raise PayloadRefused("A post is added once.")  # 4
        if self.num_posts >= self.limits.max_posts:
            raise DoesNotFit(f"The sum holds {self.limits.max_posts} posts, as many as the task allows.")  # 5
        self.add_checked(payload)
        self._nullifiers.add(payload.nullifier)

    def finish(self) -> Sum:
        """Return the sum, once. Raises ``NotAgreed``."""
        if self._finished:
            raise NotAgreed("The sum is finished already.")
        self._finished = True
        return self.make_sum(digest_of_set(self._nullifiers))
