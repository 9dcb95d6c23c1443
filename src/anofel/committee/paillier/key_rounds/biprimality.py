"""Is N a product of two primes? Boneh-Franklin's test, and gcd(N, p+q-1) = 1.

With g of Jacobi symbol 1 from public coins: g^((N-1)/4) = ±∏ v_i, where v_1 = g^((p_1+q_1-2)/4) and
v_i = g^((p_i+q_i)/4). All members commit to their values before anybody shows one: a modulus that is
not N = pq would need a guess of somebody's secret exponent.
"""

from collections.abc import Sequence

from anofel.committee.paillier.arithmetic.integers import decode, encode, width
from anofel.committee.paillier.arithmetic.modular import gcd, jacobi, product
from anofel.committee.paillier.arithmetic.parallel import public_powers, secret_powers
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.arithmetic.sharing import ModularOpening, deal_modular
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.key_rounds.modulus import next_batch, own_parts
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.sieve import open_rows, product_shares, read_values
from anofel.committee.paillier.key_rounds.sizes import FINAL_TESTS
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)

TESTS_PER_REPORT = 256
"""Survivors tested between two progress reports."""


def public_base(setting: RunSetting, modulus: int, index: int) -> int:
    """Return the base of a test: public coins with Jacobi symbol 1."""
    transcript = Transcript("anofel/1/paillier/biprimality").append("run", setting.run.run_id)
    transcript.append("modulus", modulus).append("index", index)
    attempt = 0
    while True:
        base = transcript.append("attempt", attempt).residue("base", modulus)
        if jacobi(base, modulus) == 1:
            return base
        attempt += 1


def own_exponent(state: SecretPaillierState, candidate: int) -> int:
    """Return (p_i + q_i)/4, for member 1 (p_1 + q_1 - 2)/4."""
    p, q = own_parts(state)[candidate]
    return (p + q - (2 if state.member == 1 else 0)) // 4


def _equal(left: int, modulus: int, values: Sequence[int]) -> bool:
    """Ask whether one test holds: left = ±∏ v_i."""
    return product(values, modulus) in (left, modulus - left)


class FirstTest(PublicOnly):
    """One test of every survivor."""

    committed = True

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Compute v_i of every survivor."""
        survivors, values = state.public.survivors, []
        for start in range(0, len(survivors), TESTS_PER_REPORT):
            terms = [
                (public_base(state.setting, modulus, 0), own_exponent(state, candidate), modulus)
                for candidate, modulus in survivors[start : start + TESTS_PER_REPORT]
            ]
            values += secret_powers(terms)
            state.setting.progress("tests of candidates", len(values), len(survivors))
        return encode(values, width(state.setting.sizes.modulus_bits)), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Keep the candidates that pass."""
        bits, count = setting.sizes.modulus_bits, len(public.survivors)
        columns = [_read(part, bits, count, sender) for sender, part in enumerate(parts, 1)]
        left = public_powers([(public_base(setting, n, 0), (n - 1) // 4, n) for _, n in public.survivors])
        rows = zip(public.survivors, left, zip(*columns, strict=True), strict=True)
        public.passed = [(c, n) for (c, n), side, values in rows if _equal(side, n, values)]
        return "final-tests" if public.passed else next_batch(setting, public)


class FinalTests:
    """FINAL_TESTS tests of one candidate, and private shares for the gcd."""

    committed = True

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Compute v_i for every base; share R_i, p_i + q_i (less 1 for member 1) and zero modulo N."""
        setting, (candidate, modulus) = state.setting, state.public.passed[0]
        exponent = own_exponent(state, candidate)
        indices = range(1, FINAL_TESTS + 1)
        values = secret_powers([(public_base(setting, modulus, i), exponent, modulus) for i in indices])
        setting.progress("final tests of one candidate", FINAL_TESTS, FINAL_TESTS)
        return encode(values, width(setting.sizes.modulus_bits)), self._shares(state, candidate, modulus)

    def _shares(self, state: SecretPaillierState, candidate: int, modulus: int) -> list[bytes]:
        sizes, n = state.setting.sizes, state.run.shape.num_members
        source = SeededRandomness(state.seed, f"gcd/{state.public.batch}/{candidate}")
        p, q = own_parts(state)[candidate]
        total = p + q - (1 if state.member == 1 else 0)
        mask = source.below(modulus)
        dealt = [
            deal_modular(secret, degree, n, modulus, source)
            for secret, degree in ((mask, sizes.degree), (total, sizes.degree), (0, sizes.product_degree))
        ]
        return [encode(row, width(sizes.modulus_bits)) for row in zip(*dealt, strict=True)]

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:  # noqa: ARG002
        """Every value is reduced modulo N."""
        decode(data, width(setting.sizes.modulus_bits), 3, public.passed[0][1])

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Keep this member's share of R·(p+q-1)."""
        modulus, size = state.public.passed[0][1], width(state.setting.sizes.modulus_bits)
        values = product_shares([decode(part, size, 3, modulus) for part in parts], modulus)
        state.stash["gcd"] = encode(values, size).hex()

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Every test holds, or the candidate is dropped."""
        modulus = public.passed[0][1]
        columns = [
            _read(part, setting.sizes.modulus_bits, FINAL_TESTS, sender)
            for sender, part in enumerate(parts, 1)
        ]
        bases = [public_base(setting, modulus, index) for index in range(1, FINAL_TESTS + 1)]
        left = public_powers([(base, (modulus - 1) // 4, modulus) for base in bases])
        if not all(_equal(a, modulus, b) for a, b in zip(left, zip(*columns, strict=True), strict=True)):
            return drop_candidate(setting, public)
        return "gcd"


class GcdOpen(PublicOnly):
    """Open R·(p+q-1) modulo N: a unit, or the candidate is dropped."""

    committed = True

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Show the product share."""
        return bytes.fromhex(state.stash.pop("gcd")), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Interpolate and compute the gcd."""
        modulus = public.passed[0][1]
        columns = [read_values(part, 1, modulus, sender) for sender, part in enumerate(parts, 1)]
        opening = ModularOpening(setting.shape.num_members, setting.sizes.product_degree, modulus)
        (value,) = open_rows(opening, columns, "gcd check")
        return "key-deal" if gcd(value, modulus) == 1 else drop_candidate(setting, public)


def drop_candidate(setting: RunSetting, public: PublicState) -> str:
    """Go on with the next candidate that passed, or the next batch."""
    public.passed = public.passed[1:]
    return "final-tests" if public.passed else next_batch(setting, public)


def _read(data: bytes, bits: int, count: int, sender: int) -> list[int]:
    size = width(bits)
    if len(data) != size * count:
        raise RunStopped("A public part has the wrong length.", [sender])
    return decode(data, size, count, 1 << (8 * size))
