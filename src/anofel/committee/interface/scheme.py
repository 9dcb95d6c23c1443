"""The scheme: a way to add vectors under a committee's key."""

from collections.abc import Sequence
from typing import Protocol

from anofel._core.count import CastBit
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface.ceremonies import Handover, KeyGeneration, Report
from anofel.committee.interface.contributions import (
    Accumulator,
    Bytes,
    CheckedPayload,
    EncryptedSum,
    Envelope,
    Int64Vector,
    Prepared,
    SubmittedPayload,
)
from anofel.committee.interface.keys import CommitteeKey, SecretKeyShare
from anofel.committee.permit import SumPermit
from anofel.committee.verified import VerifiedShare


class Scheme(Protocol):
    """A way to add vectors under a committee's key."""

    @property
    def name(self) -> str:
        """The stable name: ``lattice`` or ``paillier``."""
        ...

    @property
    def proves_norm(self) -> bool:
        """Whether contribution proofs bound the norm; those of every scheme show zero where the bit is 0."""
        ...

    def required_bits(self, limits: TaskLimits) -> int:
        """Return the bits one value takes on the wire so that sums of max_posts vectors are exact.

        Raises ``DoesNotFit`` with the numbers if the scheme has no such size.
        """
        ...

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload: it depends on nothing a client chooses."""
        ...

    def key_generation(self, report: Report | None = None) -> KeyGeneration:
        """Return dealerless key generation; ``report`` is told the expected time and the progress."""
        ...

    def handover(self) -> Handover:
        """Return refresh and change of members."""
        ...

    def read_key(self, data: bytes) -> CommitteeKey:
        """Parse and validate a key; every client does. Raises ``KeyRefused``."""
        ...

    def read_share(self, key: CommitteeKey, data: bytes) -> SecretKeyShare:
        """Read a stored secret share and check it against the key. Raises ``ShareRefused``."""
        ...

    def prepare(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, bit: CastBit | None = None
    ) -> Prepared:
        """Make all that does not depend on the update (step 5, while the model trains).

        ``bit`` is the one of the ballot for this committee; it is needed (``InvalidContext``) if the
        task wants contributions proven.
        """
        ...

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check the envelope (admission). Raises ``EnvelopeRefused``."""
        ...

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check the envelopes of many posts at once, as ``verify_envelope`` checks each (admission).

        Raises ``EnvelopeRefused``; ``indices`` and ``reasons`` name the bad ones.
        """
        ...

    def verify_payload(
        self,
        key: CommitteeKey,
        context: PostContext,
        limits: TaskLimits,
        envelope: Envelope,
        payload: Bytes,
    ) -> CheckedPayload:
        """Check and parse a payload (step 6). Raises ``PayloadRefused``; the verdict is deterministic."""
        ...

    def check_payloads(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[SubmittedPayload]
    ) -> list[CheckedPayload | PayloadRefused]:
        """Check payloads of one iteration together, as ``verify_payload`` checks each (step 6)."""
        ...

    def accumulator(self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits) -> Accumulator:
        """Begin an empty sum (step 7)."""
        ...

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> EncryptedSum:
        """Parse a sum that somebody else published. Raises ``PayloadRefused``."""
        ...

    def partial_decrypt(
        self, key: CommitteeKey, share: SecretKeyShare, total: EncryptedSum, permit: SumPermit
    ) -> bytes:
        """Make a member's share of the sum with its proof (step 8).

        Raises ``NotAgreed`` unless the permit is for exactly this sum and set, and
        ``ShareRefused`` if the secret share is stale.
        """
        ...

    def verify_share(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        member: int,
        share: Bytes,
    ) -> VerifiedShare:
        """Check a member's share, once. Raises ``ShareRefused`` with the member as culprit."""
        ...

    def combine(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        shares: Sequence[VerifiedShare],
    ) -> Int64Vector:
        """Return the exact sum from t verified shares; those of the lowest members are used.

        Raises ``ShareRefused`` for a share that was verified for another key or agreed set or is
        given twice, ``TooFewShares``, ``Undecodable``.
        """
        ...


def check_permit(key: CommitteeKey, total: EncryptedSum, permit: SumPermit) -> AgreedSet:
    """Return the agreed set if key, sum and permit belong together (D-08, D-18), else raise.

    Both schemes call it first in ``partial_decrypt``, ``verify_share`` and ``combine``.
    """
    return permit.check(
        key_id=key.key_id,
        iteration=total.iteration,
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=total.num_posts,
        min_clients=total.limits.min_clients,
    )
