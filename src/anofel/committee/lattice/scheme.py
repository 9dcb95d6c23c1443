"""``lattice`` as a ``Scheme``: shares of sums are here, all else is one line into the module that does it."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from anofel._core import lattice as core
from anofel._core.count import CastBit
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.committee.errors import PayloadRefused, ShareRefused
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
from anofel.committee.lattice.contribution import LatticePayload, LatticePrepared, core_iteration
from anofel.committee.lattice.handover import LatticeHandover
from anofel.committee.lattice.key import NAME, LatticeKey, LatticeShare, own, read_key, read_share
from anofel.committee.lattice.key_generation import LatticeKeyGeneration
from anofel.committee.lattice.total import LatticeAccumulator, LatticeSum
from anofel.committee.refusal import refusing
from anofel.committee.threshold import ThresholdScheme

SHARES_ID_LENGTH: Final = 32


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
        return LatticeSum.from_bytes(iteration, limits, bytes(data))

    def make_share(self, key: LatticeKey, share: LatticeShare, total: LatticeSum, agreed: AgreedSet) -> bytes:
        """Make a member's share of the sum: the id of the shares used ‖ D ‖ proof."""
        with refusing(ShareRefused):
            made = core.partial_decrypt(key.keys, share.secrets, total.content, agreed.digest)
        return key.shares_id + made

    def check_share(
        self, key: LatticeKey, total: LatticeSum, agreed: AgreedSet, member: int, share: bytes
    ) -> core.CheckedSumShare:
        """Check a member's share; ``verify_share`` has checked (1) and (2).

        1. The count was decrypted for exactly this sum and set.
        2. The member exists.
        3. The share was made with the current shares of the key.
        4. Its length is right and every point is canonical.
        5. The equality proof holds for this member, sum and set.
        """
        if share[:SHARES_ID_LENGTH] != key.shares_id:  # (3)
            raise ShareRefused(f"Member {member} used other than the current shares of the key.", (member,))
        points = share[SHARES_ID_LENGTH:]
        with refusing(ShareRefused):  # (4), (5)
            return core.verify_share(key.keys, total.content, agreed.digest, member, points)

    def open_sum(
        self, key: LatticeKey, total: LatticeSum, shares: Mapping[int, core.CheckedSumShare]
    ) -> Int64Vector:
        """Open Σs with t checked shares, remove the mask and decode."""
        where = core_iteration(key, total.iteration)
        with refusing(ShareRefused):
            values = core.combine(key.keys, total.content, where, list(shares.values()))
        return np.frombuffer(values, dtype="<i8").astype(np.int64, copy=False)
