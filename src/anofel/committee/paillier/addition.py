"""Step 7 - add ciphertexts: one running product per position, whatever the number of clients."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from anofel.committee.accumulation import PostAccumulator
from anofel.committee.context import DIGEST_LENGTH, IterationContext, TaskLimits
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface import Bytes
from anofel.committee.paillier.arithmetic import gcd, mpz, product
from anofel.committee.paillier.encryption import CheckedCiphertexts, read_residues
from anofel.committee.paillier.key import PaillierKey
from anofel.committee.paillier.packing import Packing
from anofel.committee.paillier.wire import Malformed, Reader, encode, width


@dataclass(frozen=True)
class CiphertextSum:
    """The encrypted sum; everybody computes the same bytes."""

    iteration: IterationContext
    limits: TaskLimits
    set_digest: bytes
    num_posts: int
    residues: list[int] = field(repr=False)
    modulus_bits: int

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 over ``to_bytes()``."""
        return hashlib.sha256(self.to_bytes()).digest()

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        head = self.set_digest + self.num_posts.to_bytes(4, "little")
        return head + encode(self.residues, 2 * width(self.modulus_bits))


class CiphertextAccumulator(PostAccumulator[CheckedCiphertexts, CiphertextSum]):
    """Adds contributions one by one."""

    payload_type = CheckedCiphertexts

    def __init__(self, key: PaillierKey, iteration: IterationContext, limits: TaskLimits) -> None:
        super().__init__(key.key_id, iteration, limits)
        self._key = key
        self._residues = [mpz(1)] * Packing.of(limits, key.modulus_bits).count

    def add_checked(self, payload: CheckedCiphertexts) -> None:
        """Multiply the ciphertexts."""
        square = self._key.square
        self._residues = [a * c % square for a, c in zip(self._residues, payload.residues, strict=True)]

    def make_sum(self, set_digest: bytes) -> CiphertextSum:
        """Return the sum of what was added."""
        bits = self._key.modulus_bits
        return CiphertextSum(self.iteration, self.limits, set_digest, self.num_posts, self._residues, bits)


def read_sum(key: PaillierKey, iteration: IterationContext, limits: TaskLimits, data: Bytes) -> CiphertextSum:
    """Parse a sum that somebody else published. Raises ``PayloadRefused``."""
    reader = Reader(bytes(data))
    try:
        set_digest, num_posts = reader.raw(DIGEST_LENGTH), reader.number(4)
        body = reader.raw(Packing.of(limits, key.modulus_bits).count * 2 * width(key.modulus_bits))
        reader.end()
    except Malformed as error:
        raise PayloadRefused(f"The sum is malformed: {error}") from error
    if num_posts > limits.max_posts:
        raise PayloadRefused(f"The sum claims {num_posts} posts; the task allows {limits.max_posts}.")
    residues = read_residues(key, body)
    if gcd(product(residues, key.square), key.modulus) != 1:
        raise PayloadRefused("A ciphertext of the sum is not a unit.")
    return CiphertextSum(iteration, limits, set_digest, num_posts, residues, key.modulus_bits)
