"""Count first (D-08): the only way to a share of a sum leads through a decrypted count.

1. A ``DecryptedCount`` comes from ``count.combine`` alone, over t verified shares.
2. A ``SumPermit`` comes from ``DecryptedCount.permit_sum`` alone, if count ≥ ``min_clients``.
3. A permit opens the one sum of its agreed set and nothing else.
"""

from anofel.committee.context import AgreedSet, IterationContext
from anofel.committee.errors import NotAgreed, TooFewClients
from anofel.ids import BlobHash, KeyId, SetDigest

_MADE_HERE = object()
"""Known only to the functions that may make counts and permits."""


class DecryptedCount:
    """The number of real updates in an agreed set."""

    __slots__ = ("_agreed", "_value")

    def __init__(self, agreed: AgreedSet, value: int, *, proof_of_origin: object) -> None:
        if proof_of_origin is not _MADE_HERE:
            raise NotAgreed("A count comes from count.combine only.")
        self._agreed = agreed
        self._value = value

    def __repr__(self) -> str:
        return f"DecryptedCount({self._value} of {self._agreed.num_posts} posts)"

    @property
    def agreed(self) -> AgreedSet:
        """The set that was counted."""
        return self._agreed

    @property
    def value(self) -> int:
        """The count."""
        return self._value

    def permit_sum(self) -> "SumPermit":
        """Permit the decryption of this set's sum. Raises ``TooFewClients``."""
        if self._value < self._agreed.min_clients:
            raise TooFewClients(
                f"{self._value} clients took part; the task opens a sum of at least "
                f"{self._agreed.min_clients}."
            )
        return SumPermit(self, proof_of_origin=_MADE_HERE)


class SumPermit:
    """Leave to decrypt the sum of one agreed set."""

    __slots__ = ("_count",)

    def __init__(self, count: DecryptedCount, *, proof_of_origin: object) -> None:
        if proof_of_origin is not _MADE_HERE:
            raise NotAgreed("A permit comes from a decrypted count only.")
        self._count = count

    @property
    def agreed(self) -> AgreedSet:
        """The set whose sum may be decrypted."""
        return self._count.agreed

    @property
    def count(self) -> int:
        """The decrypted count."""
        return self._count.value

    def check(
        self,
        *,
        key_id: KeyId,
        iteration: IterationContext,
        set_digest: SetDigest,
        sum_digest: BlobHash,
        num_posts: int,
        min_clients: int,
    ) -> AgreedSet:
        """Return the agreed set if it is exactly this one. Raises ``NotAgreed``."""
        agreed = self.agreed
        checks = (
            ("committee key", agreed.key_id == key_id),
            ("iteration", agreed.iteration == iteration),
            ("set of posts", agreed.set_digest == set_digest),
            ("sum", agreed.sum_digest == sum_digest),
            ("number of posts", agreed.num_posts == num_posts),
            ("task's smallest number of clients", agreed.min_clients == min_clients),
        )
        for name, equal in checks:
            if not equal:
                raise NotAgreed(f"The {name} is not the one whose count was decrypted.")
        return agreed


def counted(agreed: AgreedSet, value: int) -> DecryptedCount:
    """Make a count; for ``count.combine``, which has verified t shares."""
    return DecryptedCount(agreed, value, proof_of_origin=_MADE_HERE)
