"""The ``paillier`` scheme behind the one interface of committee encryption."""

from collections.abc import Mapping, Sequence

from anofel._core.count import CastBit
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.committee.interface import Bytes, CommitteeKey, Envelope, Int64Vector, Report
from anofel.committee.paillier import contribution
from anofel.committee.paillier import total as sums
from anofel.committee.paillier.arithmetic.parameters import (
    DEFAULT_MODULUS_BITS,
    check_modulus_bits,
    slot_bits,
)
from anofel.committee.paillier.contribution import CheckedCiphertexts, SecretPreparation
from anofel.committee.paillier.handover import PaillierHandover
from anofel.committee.paillier.key import (
    NAME,
    PaillierKey,
    SecretPaillierShare,
    decode_key,
    decode_share,
    own,
)
from anofel.committee.paillier.key_generation import PaillierKeyGeneration
from anofel.committee.paillier.total import CiphertextAccumulator, CiphertextSum, DecryptionShare
from anofel.committee.threshold import ThresholdScheme


class PaillierScheme(ThresholdScheme[PaillierKey, SecretPaillierShare, CiphertextSum, DecryptionShare]):
    """Threshold Paillier (Damgård-Jurik with s = 1), packed; implements ``Scheme``."""

    name = NAME
    proves_norm = False
    share_type = SecretPaillierShare
    sum_type = CiphertextSum
    checked_type = DecryptionShare
    insecure_toy = False

    def __init__(self, modulus_bits: int = DEFAULT_MODULUS_BITS) -> None:
        check_modulus_bits(modulus_bits, insecure_toy=self.insecure_toy)
        self.modulus_bits = modulus_bits
        """|N| of keys that this object generates; every allowed size is read."""

    def own(self, key: CommitteeKey) -> PaillierKey:
        """Return the key as this scheme's."""
        return own(key)

    def required_bits(self, limits: TaskLimits) -> int:
        """Return the bits of one slot; there is no proof of a norm here."""
        return slot_bits(limits.bound, limits.max_posts)

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload."""
        return contribution.payload_bytes(self.own(key), limits)

    def key_generation(self, report: Report | None = None) -> PaillierKeyGeneration:
        """Return dealerless key generation; ``report`` is told the estimated time and the progress."""
        return PaillierKeyGeneration(self.modulus_bits, report)

    def handover(self) -> PaillierHandover:
        """Return refresh and change of members."""
        return PaillierHandover(insecure_toy=self.insecure_toy)

    def read_key(self, data: bytes) -> PaillierKey:
        """Parse and validate a key. Raises ``KeyRefused``."""
        return decode_key(data, insecure_toy=self.insecure_toy)

    def read_share(self, key: CommitteeKey, data: bytes) -> SecretPaillierShare:
        """Read a stored share. Raises ``ShareRefused``."""
        return decode_share(self.own(key), data)

    def prepare(
        self,
        key: CommitteeKey,
        context: PostContext,
        limits: TaskLimits,
        bit: CastBit | None = None,
    ) -> SecretPreparation:
        """Make all that does not depend on the update."""
        return contribution.prepare(self.own(key), context, limits, bit)

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check the envelope. Raises ``EnvelopeRefused``."""
        contribution.verify_envelope(self.own(key), context, limits, envelope)

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check many envelopes. Raises ``EnvelopeRefused``."""
        contribution.verify_envelopes(self.own(key), limits, items)

    def verify_payload(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
    ) -> CheckedCiphertexts:
        """Check and parse a payload. Raises ``PayloadRefused``."""
        return contribution.verify_payload(self.own(key), context, limits, envelope, payload)

    def accumulator(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits
    ) -> CiphertextAccumulator:
        """Begin an empty sum."""
        return CiphertextAccumulator(self.own(key), iteration, limits)

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> CiphertextSum:
        """Parse a published sum. Raises ``PayloadRefused``."""
        return sums.read_sum(self.own(key), iteration, limits, data)

    def make_share(
        self, key: PaillierKey, share: SecretPaillierShare, total: CiphertextSum, agreed: AgreedSet
    ) -> bytes:
        """Make a member's share of the sum with its proof."""
        return sums.partial_decrypt(key, share, total.residues, agreed.digest).to_bytes(key)

    def check_share(
        self, key: PaillierKey, total: CiphertextSum, agreed: AgreedSet, member: int, share: bytes
    ) -> DecryptionShare:
        """Check a member's share. Raises ``ShareRefused``."""
        return sums.verify_share(key, member, total.residues, agreed.digest, share)

    def open_sum(
        self, key: PaillierKey, total: CiphertextSum, shares: Mapping[int, DecryptionShare]
    ) -> Int64Vector:
        """Return the exact sum from t checked shares."""
        return sums.combine(key, total, shares)
