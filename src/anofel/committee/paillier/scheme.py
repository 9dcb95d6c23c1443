"""The ``paillier`` scheme behind the one interface of committee encryption."""

from collections.abc import Mapping, Sequence

from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits, check_range
from anofel.committee.interface import Bytes, CommitteeKey, Contribution, Envelope, Int64Vector, Report
from anofel.committee.paillier import addition, decryption, encryption
from anofel.committee.paillier.addition import CiphertextAccumulator, CiphertextSum
from anofel.committee.paillier.decryption import DecryptionShare
from anofel.committee.paillier.encryption import CheckedCiphertexts, SecretPreparation
from anofel.committee.paillier.handover import PaillierResharing
from anofel.committee.paillier.key import (
    NAME,
    PaillierKey,
    SecretPaillierShare,
    decode_key,
    decode_share,
    own,
)
from anofel.committee.paillier.keygen.generation import PaillierKeyGeneration
from anofel.committee.paillier.parameters import (
    DEFAULT_MODULUS_BITS,
    check_modulus_bits,
    slot_bits,
)
from anofel.committee.threshold import ThresholdScheme


class PaillierScheme(
    ThresholdScheme[PaillierKey, SecretPaillierShare, SecretPreparation, CiphertextSum, DecryptionShare]
):
    """Threshold Paillier (Damgård-Jurik with s = 1), packed; implements ``Scheme``."""

    name = NAME
    share_type = SecretPaillierShare
    preparation_type = SecretPreparation
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

    def required_bits(self, bound: int, max_posts: int) -> int:
        """Return the bits of one slot."""
        check_range(bound, max_posts)
        return slot_bits(bound, max_posts)

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload."""
        return encryption.payload_bytes(self.own(key), limits)

    def key_generation(self, report: Report | None = None) -> PaillierKeyGeneration:
        """Return dealerless key generation; ``report`` is told the estimated time and the progress."""
        return PaillierKeyGeneration(self.modulus_bits, report)

    def resharing(self) -> PaillierResharing:
        """Return refresh and change of members."""
        return PaillierResharing(insecure_toy=self.insecure_toy)

    def read_key(self, data: bytes) -> PaillierKey:
        """Parse and validate a key. Raises ``KeyRefused``."""
        return decode_key(data, insecure_toy=self.insecure_toy)

    def read_share(self, key: CommitteeKey, data: bytes) -> SecretPaillierShare:
        """Read a stored share. Raises ``ShareRefused``."""
        return decode_share(self.own(key), data)

    def prepare(self, key: CommitteeKey, context: PostContext, limits: TaskLimits) -> SecretPreparation:
        """Make all that does not depend on the update."""
        return encryption.prepare(self.own(key), context, limits)

    def seal(self, prepared: SecretPreparation, values: Int64Vector) -> Contribution:
        """Encrypt the update."""
        return encryption.encrypt(prepared, values)

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check the envelope. Raises ``EnvelopeRefused``."""
        encryption.verify_envelope(self.own(key), context, limits, envelope)

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check many envelopes. Raises ``EnvelopeRefused``."""
        encryption.verify_envelopes(self.own(key), limits, items)

    def verify_payload(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
    ) -> CheckedCiphertexts:
        """Check and parse a payload. Raises ``PayloadRefused``."""
        return encryption.verify_payload(self.own(key), context, limits, envelope, payload)

    def accumulator(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits
    ) -> CiphertextAccumulator:
        """Begin an empty sum."""
        return CiphertextAccumulator(self.own(key), iteration, limits)

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> CiphertextSum:
        """Parse a published sum. Raises ``PayloadRefused``."""
        return addition.read_sum(self.own(key), iteration, limits, data)

    def make_share(
        self, key: PaillierKey, share: SecretPaillierShare, total: CiphertextSum, agreed: AgreedSet
    ) -> bytes:
        """Make a member's share of the sum with its proof."""
        return decryption.partial_decrypt(key, share, total.residues, agreed.digest).to_bytes(key)

    def check_share(
        self, key: PaillierKey, total: CiphertextSum, agreed: AgreedSet, member: int, share: bytes
    ) -> DecryptionShare:
        """Check a member's share. Raises ``ShareRefused``."""
        return decryption.verify_share(key, member, total.residues, agreed.digest, share)

    def open_sum(
        self, key: PaillierKey, total: CiphertextSum, shares: Mapping[int, DecryptionShare]
    ) -> Int64Vector:
        """Return the exact sum from t checked shares."""
        return decryption.combine(key, total, shares)


class InsecureToyPaillierScheme(PaillierScheme):
    """For tests: also reads and makes toy moduli, and reads keys of the insecure dealer."""

    insecure_toy = True
