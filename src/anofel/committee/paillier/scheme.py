"""The ``paillier`` scheme behind the one interface of committee encryption."""

from collections.abc import Sequence

from anofel.committee import verified
from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.committee.errors import InvalidCommittee, NotAgreed, ShareRefused
from anofel.committee.interface import (
    Bytes,
    CommitteeKey,
    Contribution,
    EncryptedSum,
    Envelope,
    Int64Vector,
    Prepared,
    SecretKeyShare,
    check_permit,
)
from anofel.committee.paillier import addition, decryption, encryption
from anofel.committee.paillier.addition import CiphertextAccumulator, CiphertextSum
from anofel.committee.paillier.decryption import DecryptionShare
from anofel.committee.paillier.encryption import CheckedCiphertexts, SecretPreparation
from anofel.committee.paillier.handover import PaillierResharing
from anofel.committee.paillier.key import PaillierKey, SecretPaillierShare, decode_key, decode_share
from anofel.committee.paillier.keygen.generation import PaillierKeyGeneration
from anofel.committee.paillier.keygen.state import Report
from anofel.committee.paillier.parameters import (
    DEFAULT_MODULUS_BITS,
    check_modulus_bits,
    slot_bits,
)
from anofel.committee.permit import SumPermit
from anofel.committee.verified import VerifiedShare


class PaillierScheme:
    """Threshold Paillier (Damgård-Jurik with s = 1), packed."""

    insecure_toy = False

    def __init__(self, modulus_bits: int = DEFAULT_MODULUS_BITS) -> None:
        check_modulus_bits(modulus_bits, insecure_toy=self.insecure_toy)
        self.modulus_bits = modulus_bits
        """|N| of keys that this object generates; every allowed size is read."""

    @property
    def name(self) -> str:
        """The stable name."""
        return "paillier"

    def required_bits(self, bound: int, max_posts: int) -> int:
        """Return the bits of one slot."""
        return slot_bits(bound, max_posts)

    def payload_bytes(self, key: CommitteeKey, limits: TaskLimits) -> int:
        """Return the exact length of every payload."""
        return encryption.payload_bytes(_ours(key), limits)

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
        return decode_share(_ours(key), data)

    def prepare(self, key: CommitteeKey, context: PostContext, limits: TaskLimits) -> SecretPreparation:
        """Make all that does not depend on the update."""
        return encryption.prepare(_ours(key), context, limits)

    def encrypt(self, prepared: Prepared, values: Int64Vector) -> Contribution:
        """Encrypt the update and consume the preparation."""
        if not isinstance(prepared, SecretPreparation):
            raise InvalidCommittee("The preparation belongs to another scheme.")
        return encryption.encrypt(prepared, values)

    def verify_envelope(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope
    ) -> None:
        """Check the envelope. Raises ``EnvelopeRefused``."""
        encryption.verify_envelope(_ours(key), context, limits, envelope)

    def verify_envelopes(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
    ) -> None:
        """Check many envelopes. Raises ``EnvelopeRefused``."""
        encryption.verify_envelopes(_ours(key), limits, items)

    def verify_payload(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
    ) -> CheckedCiphertexts:
        """Check and parse a payload. Raises ``PayloadRefused``."""
        return encryption.verify_payload(_ours(key), context, limits, envelope, payload)

    def accumulator(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits
    ) -> CiphertextAccumulator:
        """Begin an empty sum."""
        return CiphertextAccumulator(_ours(key), iteration, limits)

    def read_sum(
        self, key: CommitteeKey, iteration: IterationContext, limits: TaskLimits, data: Bytes
    ) -> CiphertextSum:
        """Parse a published sum. Raises ``PayloadRefused``."""
        return addition.read_sum(_ours(key), iteration, limits, data)

    def partial_decrypt(
        self, key: CommitteeKey, share: SecretKeyShare, total: EncryptedSum, permit: SumPermit
    ) -> bytes:
        """Make a member's share of the sum with its proof."""
        agreed, ours, ciphertexts = check_permit(key, total, permit), _ours(key), _sum(total)
        if not isinstance(share, SecretPaillierShare):
            raise ShareRefused("The secret share belongs to another scheme.", [share.member])
        made = decryption.partial_decrypt(ours, share, ciphertexts.residues, agreed.digest)
        return made.to_bytes(ours)

    def verify_share(
        self, key: CommitteeKey, total: EncryptedSum, permit: SumPermit, member: int, share: Bytes
    ) -> VerifiedShare:
        """Check a member's share. Raises ``ShareRefused``."""
        agreed = check_permit(key, total, permit)
        content = decryption.verify_share(_ours(key), member, _sum(total).residues, agreed.digest, share)
        return verified.of_sum(member, key.shares_id, agreed, content)

    def combine(
        self, key: CommitteeKey, total: EncryptedSum, permit: SumPermit, shares: Sequence[VerifiedShare]
    ) -> Int64Vector:
        """Return the exact sum from t verified shares."""
        agreed, ours, ciphertexts = check_permit(key, total, permit), _ours(key), _sum(total)
        chosen = verified.choose(shares, VerifiedShare, DecryptionShare, ours, agreed)
        return decryption.combine(ours, ciphertexts, chosen)


class InsecureToyPaillierScheme(PaillierScheme):
    """For tests: also reads and makes toy moduli, and reads keys of the insecure dealer."""

    insecure_toy = True


def _ours(key: CommitteeKey) -> PaillierKey:
    if not isinstance(key, PaillierKey):
        raise InvalidCommittee(f"The key belongs to the scheme {key.scheme!r}.")
    return key


def _sum(total: EncryptedSum) -> CiphertextSum:
    if not isinstance(total, CiphertextSum):
        raise NotAgreed("The sum belongs to another scheme.")
    return total
