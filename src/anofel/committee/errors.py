"""What can go wrong with a committee's keys, posts and shares.

::

    AnofelError
    ├── InvalidInput
    │   ├── InvalidCommittee      sizes, thresholds, members that cannot form a committee
    │   ├── InvalidContext        a context field of the wrong length or range
    │   ├── DoesNotFit            bound, length or number of posts beyond what the scheme can add exactly
    │   ├── PreparationUsed       a preparation is used once
    │   └── VectorRefused         not int64, wrong length, or a value beyond the bound
    ├── VerificationError
    │   ├── KeyRefused            a committee key that does not validate
    │   ├── EnvelopeRefused       the small part of a contribution
    │   ├── PayloadRefused        the large part of a contribution
    │   ├── BallotRefused         the encrypted bits of a bundle and their proof
    │   ├── ShareRefused          a partial decryption; ``culprits`` names its author
    │   └── KeyGenerationFailed   ``culprits`` names who broke the run
    ├── NotAgreed                 sum, count and agreed set do not belong together
    ├── TooFewShares              fewer than t valid shares
    ├── TooFewClients             the decrypted count is below ``min_clients``
    └── Undecodable               the sum is not one that honest posts could make
"""

from collections.abc import Iterable, Mapping

from anofel.errors import AnofelError, InvalidInput, VerificationError


class InvalidCommittee(InvalidInput):
    """Sizes, thresholds or members that cannot form a committee."""

    code = "invalid-committee"


class InvalidContext(InvalidInput):
    """A context field has the wrong length or range."""

    code = "invalid-context"


class DoesNotFit(InvalidInput):
    """The scheme cannot add that many values of that size exactly; the message has the numbers."""

    code = "does-not-fit"


class PreparationUsed(InvalidInput):
    """A preparation encrypts one vector, once."""

    code = "preparation-used"


class VectorRefused(InvalidInput):
    """The vector is not int64, has the wrong length, or holds a value beyond the bound."""

    code = "vector-refused"


class KeyRefused(VerificationError):
    """A committee key does not validate."""

    code = "key-refused"


class _OfABatch(VerificationError):
    """A failed check; of a batch, what is wrong with each of the bad ones."""

    code = "batch"

    def __init__(self, message: str, reasons: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.reasons: dict[int, str] = dict(sorted((reasons or {}).items()))
        """In a batch: one sentence for each bad one, by its place."""

    @property
    def indices(self) -> tuple[int, ...]:
        """In a batch: the places of the bad ones, ascending."""
        return tuple(self.reasons)


class EnvelopeRefused(_OfABatch):
    """The envelope of a contribution does not verify; of a batch, ``indices`` names the bad ones."""

    code = "envelope-refused"


class PayloadRefused(VerificationError):
    """The payload of a contribution is malformed or is not the one its envelope names."""

    code = "payload-refused"


class BallotRefused(_OfABatch):
    """The encrypted bits of a bundle, or their proof, do not verify; ``indices`` as above."""

    code = "ballot-refused"


class _WithCulprits(VerificationError):
    """A failed check with the members who caused it."""

    code = "culprits"

    def __init__(self, message: str, culprits: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.culprits: tuple[int, ...] = tuple(sorted(set(culprits)))


class ShareRefused(_WithCulprits):
    """A partial decryption is not valid; ``culprits`` names its author."""

    code = "share-refused"


class KeyGenerationFailed(_WithCulprits):
    """A run of key generation ended without a key; ``culprits`` names who broke it.

    In a handover ``culprits`` are numbers in the new committee, and ``dealers`` names those who
    broke it by their numbers in the old one.
    """

    code = "key-generation-failed"

    def __init__(self, message: str, culprits: Iterable[int] = (), dealers: Iterable[int] = ()) -> None:
        super().__init__(message, culprits)
        self.dealers: tuple[int, ...] = tuple(sorted(set(dealers)))


class NotAgreed(AnofelError):
    """The sum, the count and the agreed set do not belong together."""

    code = "not-agreed"


class TooFewShares(AnofelError):
    """Fewer than t valid shares were given."""

    code = "too-few-shares"


class TooFewClients(AnofelError):
    """Posts, or the decrypted count, are fewer than the task's ``min_clients``; what is next stays closed."""

    code = "too-few-clients"


class Undecodable(AnofelError):
    """The sum is not one that honest posts could make; nothing is returned."""

    code = "undecodable"
