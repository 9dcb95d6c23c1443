"""From shares of φ to shares that decrypt, without anybody learning φ.

φ = N + 1 - p - q and β = Σ β_i are shared over the integers at ``degree``. The members' products
w_j lie on a polynomial of twice the degree, which is never opened: members 1 … 2·degree+1 share
λ_j·w_j again at degree t-1. The sum F has F(0) = Δ⁴·φ·β, a multiple of φ. Opened is only
F + N·ρ, over the integers, with ρ large enough to hide everything but F(0) mod N = θ.
"""

from collections.abc import Sequence

from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, decode, encode, width
from anofel.committee.paillier.arithmetic.modular import gcd, mpz
from anofel.committee.paillier.arithmetic.parameters import dealt_bits
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.arithmetic.sharing import IntegerPolynomial, lagrange
from anofel.committee.paillier.key import verification_key
from anofel.committee.paillier.key_rounds.modulus import own_parts
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.sieve import refuse_public
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)


class KeyDeal:
    """Share φ_i and β_i over the integers at ``degree``."""

    committed = False

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Deal both polynomials."""
        sizes, (candidate, modulus) = state.setting.sizes, state.public.passed[0]
        p, q = own_parts(state)[candidate]
        phi = (modulus + 1 if state.member == 1 else 0) - p - q
        source = SeededRandomness(state.seed, f"key/{state.public.batch}/{candidate}")
        beta = source.below(modulus)
        bits = sizes.modulus_bits + 1
        dealt = [IntegerPolynomial.deal(s, bits, state.run.shape, sizes.degree, source) for s in (phi, beta)]
        size = width(self._bits(state.setting))
        return b"", [encode([poly.at(j) for poly in dealt], size) for j in state.run.shape.members]

    def _bits(self, setting: RunSetting) -> int:
        return dealt_bits(setting.sizes.modulus_bits + 1, setting.shape, setting.sizes.degree)

    def _read(self, setting: RunSetting, data: bytes) -> list[int]:
        bits = self._bits(setting)
        return decode(data, width(bits), 2, 1 << bits)

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:  # noqa: ARG002
        """Both shares keep their bound."""
        self._read(setting, data)

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Multiply the summed shares: w_j, never shown."""
        pairs = [self._read(state.setting, part) for part in parts]
        phi, beta = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        state.stash["w"] = f"{phi * beta:x}"

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:  # noqa: ARG002
        """Nothing is public yet."""
        refuse_public(parts)
        return "key-reduce"


class KeyReduce:
    """Share λ_j·w_j at degree t-1, and the mask R_i."""

    committed = False

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Deal the product (members 1 … 2·degree+1) and the mask (everybody)."""
        sizes, shape, degree = state.setting.sizes, state.run.shape, state.run.shape.threshold - 1
        source = SeededRandomness(state.seed, f"reduce/{state.public.batch}/{state.public.passed[0][0]}")
        w, dealers = int(state.stash.pop("w"), 16), range(1, sizes.product_degree + 2)
        weight = lagrange(dealers, shape.num_members).get(state.member, 0)
        product = IntegerPolynomial.deal(weight * w, sizes.product_bits, shape, degree, source)
        mask = IntegerPolynomial.deal(source.bits(sizes.mask_bits), sizes.mask_bits, shape, degree, source)
        first, second = (width(bits) for bits in self._bits(state.setting))
        return b"", [encode([product.at(j)], first) + encode([mask.at(j)], second) for j in shape.members]

    def _bits(self, setting: RunSetting) -> tuple[int, int]:
        sizes, degree = setting.sizes, setting.shape.threshold - 1
        product = dealt_bits(sizes.product_bits, setting.shape, degree)
        return product, dealt_bits(sizes.mask_bits, setting.shape, degree)

    def _read(self, setting: RunSetting, data: bytes) -> tuple[int, int]:
        reader, (first, second) = IntegerReader(data), self._bits(setting)
        (share,) = reader.integers(width(first), 1, 1 << first)
        (mask,) = reader.integers(width(second), 1, 1 << second)
        reader.end()
        return share, mask

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:  # noqa: ARG002
        """Both shares keep their bound."""
        self._read(setting, data)

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Keep F(i) and the mask's share."""
        pairs = [self._read(state.setting, part) for part in parts]
        state.stash["share"] = f"{sum(pair[0] for pair in pairs):x}"
        state.stash["mask"] = f"{sum(pair[1] for pair in pairs):x}"

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:  # noqa: ARG002
        """Nothing is public yet."""
        refuse_public(parts)
        return "key-open"


class KeyOpen(PublicOnly):
    """Show F(i) + N·ρ(i) and the verification key."""

    committed = True

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Mask the share."""
        sizes, modulus = state.setting.sizes, state.public.passed[0][1]
        share, mask = int(state.stash["share"], 16), int(state.stash.pop("mask"), 16)
        masked = encode([share + modulus * mask], width(sizes.masked_bits))
        v = verification_key(modulus, state.run.shape.num_members, share)
        return masked + encode([v], 2 * width(sizes.modulus_bits)), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Interpolate θ over the integers; the verification keys are checked with the key."""
        sizes, shape, modulus = setting.sizes, setting.shape, public.passed[0][1]
        masked, keys = [], []
        for sender, part in enumerate(parts, 1):
            reader = IntegerReader(part)
            try:
                masked.append(reader.number(width(sizes.masked_bits)))
                keys += reader.integers(2 * width(sizes.modulus_bits), 1, modulus * modulus)
                reader.end()
            except Malformed as error:
                raise RunStopped(f"A public part is malformed: {error}", [sender]) from error
        public.theta = _interpolate(masked, shape.num_members, shape.threshold) % modulus
        if gcd(public.theta, modulus) != 1:
            raise RunStopped("θ is not a unit.")
        public.verification_keys = keys
        public.generation = public.transcript
        return "self-test"


def _interpolate(values: Sequence[int], n: int, t: int) -> int:
    """Return the value at 0 of an integer polynomial of degree t-1. Raises ``RunStopped``."""
    base = range(1, t + 1)

    def scaled(at: int) -> int:
        return sum(mpz(weight) * values[i - 1] for i, weight in lagrange(base, n, at).items())

    delta = sum(lagrange(base, n).values())
    for member in range(t + 1, n + 1):
        if scaled(member) != delta * values[member - 1]:
            raise RunStopped("The masked shares do not lie on one polynomial.")
    quotient, remainder = divmod(scaled(0), delta)
    if remainder:
        raise RunStopped("The masked shares do not open an integer.")
    return int(quotient)
