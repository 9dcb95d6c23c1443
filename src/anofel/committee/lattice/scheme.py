"""``lattice`` as a ``Scheme``: every method is one line into the module that does it."""

from collections.abc import Mapping, Sequence

from anofel._core import lattice as core
from anofel._core.count import CastBit
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface import (
    Accumulator,
    Bytes,
    CheckedPayload,
    CommitteeKey,
    Envelope,
    Int64Vector,
    Report,
    SubmittedPayload,
)
from anofel.committee.lattice import contribution
from anofel.committee.lattice import total as sums
from anofel.committee.lattice.contribution import LatticePayload, LatticePrepared
from anofel.committee.lattice.handover import LatticeHandover
from anofel.committee.lattice.key import NAME, LatticeKey, LatticeShare, own, read_key, read_share
from anofel.committee.lattice.key_generation import LatticeKeyGeneration
from anofel.committee.lattice.total import LatticeAccumulator, LatticeSum
from anofel.committee.threshold import ThresholdScheme


class Lattice(ThresholdScheme[LatticeKey, LatticeShare, LatticeSum, core.CheckedSumShare]):
    """The default scheme; implements ``Scheme``."""

    name = NAME
    proves_norm = True
    share_type = LatticeShare
    sum_type = LatticeSum
    checked_type = core.CheckedSumShare

    def own(self, key: CommitteeKey) -> LatticeKey:
        """Return the key as this scheme's."""
        return own(key)

    def required_bits(self, limits: TaskLimits) -> int:
        """Return w = b + g."""
        return contribution.codec(limits).wire_bits

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload."""
        self.own(key)
        return contribution.codec(limits).payload_bytes

    def key_generation(self, report: Report | None = None) -> LatticeKeyGeneration:  # noqa: ARG002
        """Return dealerless key generation; it takes seconds, so there is nothing to report."""
        return LatticeKeyGeneration()

    def handover(self) -> LatticeHandover:
        """Return refresh and change of members."""
        return LatticeHandover()

    def read_key(self, data: bytes) -> LatticeKey:
        """Parse and validate a key."""
        return read_key(data)

    def read_share(self, key: CommitteeKey, data: bytes) -> LatticeShare:
        """Read a stored secret share."""
        return read_share(self.own(key), data)

    def prepare(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, bit: CastBit | None = None
    ) -> LatticePrepared:
        """Make all that does not depend on the update."""
        return contribution.prepare(self.own(key), context, limits, bit)

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check an envelope."""
        contribution.verify_envelope(self.own(key), context, limits, envelope)

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check many envelopes at once."""
        contribution.verify_envelopes(self.own(key), limits, items)

    def verify_payload(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
    ) -> LatticePayload:
        """Check and parse a payload."""
        return contribution.verify_payload(self.own(key), context, limits, envelope, payload)

    def check_payloads(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[SubmittedPayload]
    ) -> list[CheckedPayload | PayloadRefused]:
        """Check many payloads at once."""
        return [*contribution.check_payloads(self.own(key), limits, items)]

    def accumulator(self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits) -> Accumulator:
        """Begin an empty sum."""
        return LatticeAccumulator(self.own(key), iteration, limits)

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> LatticeSum:
        """Parse a published sum."""
        self.own(key)
        return sums.read_sum(iteration, limits, data)

    def make_share(self, key: LatticeKey, share: LatticeShare, total: LatticeSum, agreed: AgreedSet) -> bytes:
        """Make a member's share of the sum."""
        return sums.make_share(key, share, total, agreed)

    def check_share(
        self, key: LatticeKey, total: LatticeSum, agreed: AgreedSet, member: int, share: bytes
    ) -> core.CheckedSumShare:
        """Check a member's share."""
        return sums.check_share(key, total, agreed, member, share)

    def open_sum(
        self, key: LatticeKey, total: LatticeSum, shares: Mapping[int, core.CheckedSumShare]
    ) -> Int64Vector:
        """Return the exact sum."""
        return sums.open_sum(key, total, shares)
