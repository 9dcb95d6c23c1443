"""``lattice`` as a ``Scheme``: every method is one line into the module that does it."""

from collections.abc import Sequence

from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.committee.errors import NotAgreed, PreparationUsed, ShareRefused
from anofel.committee.interface import (
    Accumulator,
    Bytes,
    CommitteeKey,
    Contribution,
    EncryptedSum,
    Envelope,
    Int64Vector,
    Prepared,
    SecretKeyShare,
)
from anofel.committee.lattice import contribution
from anofel.committee.lattice import total as sums
from anofel.committee.lattice.contribution import LatticePayload, LatticePrepared
from anofel.committee.lattice.key import NAME, LatticeKey, LatticeShare, own, read_key, read_share
from anofel.committee.lattice.key_generation import LatticeKeyGeneration
from anofel.committee.lattice.resharing import LatticeResharing
from anofel.committee.lattice.total import LatticeAccumulator, LatticeSum
from anofel.committee.permit import SumPermit
from anofel.committee.verified import VerifiedShare


class Lattice:
    """The default scheme; implements ``Scheme``."""

    name = NAME

    def required_bits(self, bound: int, max_posts: int) -> int:
        """Return w = b + g."""
        limits = TaskLimits(length=1, bound=bound, max_posts=max_posts, min_clients=min(2, max_posts))
        return contribution.codec(limits).wire_bits

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload."""
        own(key)
        return contribution.codec(limits).payload_bytes

    def key_generation(self) -> LatticeKeyGeneration:
        """Return dealerless key generation."""
        return LatticeKeyGeneration()

    def resharing(self) -> LatticeResharing:
        """Return refresh and change of members."""
        return LatticeResharing()

    def read_key(self, data: bytes) -> LatticeKey:
        """Parse and validate a key."""
        return read_key(data)

    def read_share(self, key: CommitteeKey, data: bytes) -> LatticeShare:
        """Read a stored secret share."""
        return read_share(own(key), data)

    def prepare(self, key: CommitteeKey, context: PostContext, limits: TaskLimits) -> LatticePrepared:
        """Make all that does not depend on the update."""
        return contribution.prepare(own(key), context, limits)

    def encrypt(self, prepared: Prepared, values: Int64Vector) -> Contribution:
        """Encrypt the update and consume the preparation."""
        if not isinstance(prepared, LatticePrepared):
            raise PreparationUsed("The preparation is one of another scheme.")
        return contribution.encrypt(prepared, values)

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check an envelope."""
        contribution.verify_envelope(own(key), context, limits, envelope)

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check many envelopes at once."""
        contribution.verify_envelopes(own(key), limits, items)

    def verify_payload(
        self,
        key: CommitteeKey,
        context: PostContext,
        limits: TaskLimits,
        envelope: Envelope,
        payload: Bytes,
    ) -> LatticePayload:
        """Check and parse a payload."""
        own(key)
        return contribution.verify_payload(context, limits, envelope, payload)

    def accumulator(self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits) -> Accumulator:
        """Begin an empty sum."""
        own(key)
        return LatticeAccumulator(iteration, limits)

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> LatticeSum:
        """Parse a published sum."""
        own(key)
        return sums.read_sum(iteration, limits, data)

    def partial_decrypt(
        self, key: CommitteeKey, share: SecretKeyShare, total: EncryptedSum, permit: SumPermit
    ) -> bytes:
        """Make a member's share of the sum."""
        if not isinstance(share, LatticeShare):
            raise ShareRefused("The secret share is one of another scheme.", (share.member,))
        return sums.partial_decrypt(own(key), share, _own_sum(total), permit)

    def verify_share(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        member: int,
        share: Bytes,
    ) -> VerifiedShare:
        """Check a member's share."""
        return sums.verify_share(own(key), _own_sum(total), permit, member, share)

    def combine(
        self,
        key: CommitteeKey,
        total: EncryptedSum,
        permit: SumPermit,
        shares: Sequence[VerifiedShare],
    ) -> Int64Vector:
        """Return the exact sum."""
        return sums.combine(own(key), _own_sum(total), permit, shares)


def _own_sum(encrypted: EncryptedSum) -> LatticeSum:
    if not isinstance(encrypted, LatticeSum):
        raise NotAgreed("The sum is one of another scheme.")
    return encrypted
