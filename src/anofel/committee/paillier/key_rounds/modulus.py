"""The modulus (Boneh-Franklin): N = (Σ p_i)·(Σ q_i), opened; p and q stay shared.

p_1 = q_1 = 3 modulo 4 and the other parts 0, so p and q are 3 modulo 4. Modulo the sieve primes p_i
is a sieved residue; above that it is uniform in the member's window. The product is computed at
``degree`` modulo a Mersenne prime, masked by a sharing of zero, and shown only after everybody
has committed to its share, so that nobody can choose N last.
"""

from collections.abc import Sequence

from anofel.committee.paillier.arithmetic.integers import decode, encode, width
from anofel.committee.paillier.arithmetic.modular import gcd, invert, mpz, primorial
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.arithmetic.sharing import ModularOpening, deal_modular
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.sieve import (
    good_samples,
    open_rows,
    own_residues,
    product_shares,
    read_values,
    refuse_public,
)
from anofel.committee.paillier.key_rounds.sizes import TINY_MODULUS
from anofel.committee.paillier.key_rounds.state import PublicState, RunSetting, SecretPaillierState

FIRST_TRIAL_BOUND = 1 << 13
"""Primes divided by first; the rest of SMALL_FACTOR_BOUND takes a hundred times as long."""


def own_parts(state: SecretPaillierState) -> list[tuple[int, int]]:
    """Return this member's (p_i, q_i) for every candidate of the batch."""
    held = state.cache.get("parts")
    if isinstance(held, tuple) and held[0] == state.public.batch:
        return list(held[1])
    batch, sizes = state.public.batch, state.setting.sizes
    residues = own_residues(state, batch)
    good = good_samples(state.setting, state.public)
    by_prime = list(zip(sizes.sieve_primes, sizes.crt_basis, good, strict=True))
    found = []
    for c in range(state.public.num_candidates):
        pair = []
        for which, name in enumerate("pq"):
            picked = (residues[g[2 * c + which]] % prime * e for prime, e, g in by_prime)
            pair.append(_place(state, sum(picked) % sizes.sieve_modulus, f"{batch}/{c}/{name}"))
        found.append((pair[0], pair[1]))
    state.cache["parts"] = (batch, found)
    return found


def _place(state: SecretPaillierState, residue: int, name: str) -> int:
    """Return a uniform part with the sieved residue modulo M and the public one modulo TINY_MODULUS."""
    sizes = state.setting.sizes
    tiny = _public_residue(state.setting, name) if state.member == 1 else 0
    start = sizes.low if state.member == 1 else 0
    lift = (tiny - residue) * invert(sizes.sieve_modulus, TINY_MODULUS) % TINY_MODULUS
    least = start + (residue + lift * sizes.sieve_modulus - start) % sizes.step
    steps = (start + sizes.window - least) // sizes.step
    source = SeededRandomness(state.seed, f"part/{name}")
    return mpz(least + source.below(steps) * sizes.step)


def _public_residue(setting: RunSetting, name: str) -> int:
    """Return public coins: a unit modulo TINY_MODULUS that is 3 modulo 4."""
    transcript = (
        Transcript("anofel/1/paillier/candidate")
        .append("run", setting.run.run_id)
        .append("name", name.encode())
    )
    odd, attempt = TINY_MODULUS // 4, 0
    while True:
        unit = transcript.append("attempt", attempt).residue("coins", odd)
        if gcd(unit, odd) == 1:
            return (unit * 4 * invert(4, odd) + 3 * odd * invert(odd, 4)) % TINY_MODULUS
        attempt += 1


class ModulusDeal:
    """Share p_i and q_i at ``degree`` and zero at twice that, for every candidate."""

    committed = False

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Share this member's parts."""
        sizes, n, batch = state.setting.sizes, state.run.shape.num_members, state.public.batch
        columns: list[list[int]] = [[] for _ in range(n)]
        parts = own_parts(state)
        for c, (p, q) in enumerate(parts):
            source = SeededRandomness(state.seed, f"modulus/{batch}/{c}")
            for secret, degree in ((p, sizes.degree), (q, sizes.degree), (0, sizes.product_degree)):
                shares = deal_modular(secret, degree, n, sizes.field, source)
                for column, share in zip(columns, shares, strict=True):
                    column.append(share)
            state.setting.progress("candidates", c + 1, len(parts))
        size = width(sizes.field.bit_length())
        return b"", [encode(column, size) for column in columns]

    def _read(self, setting: RunSetting, public: PublicState, data: bytes) -> list[int]:
        field = setting.sizes.field
        return decode(data, width(field.bit_length()), 3 * public.num_candidates, field)

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:  # noqa: ARG002
        """Every value is reduced modulo the field."""
        self._read(setting, public, data)

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Multiply the summed shares and add the shares of zero."""
        field = state.setting.sizes.field
        values = product_shares([self._read(state.setting, state.public, part) for part in parts], field)
        state.stash["products"] = encode(values, width(field.bit_length())).hex()

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:  # noqa: ARG002
        """Nothing is public yet."""
        refuse_public(parts)
        return "modulus-open"


class ModulusOpen(PublicOnly):
    """Open N of every candidate and keep those without small factors."""

    committed = True

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Show the product shares."""
        return bytes.fromhex(state.stash.pop("products")), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Interpolate, check length and residue, divide by small primes."""
        sizes, count = setting.sizes, public.num_candidates
        columns = [read_values(part, count, sizes.field, sender) for sender, part in enumerate(parts, 1)]
        opening = ModularOpening(setting.shape.num_members, sizes.product_degree, sizes.field)
        moduli = open_rows(opening, columns, "modulus")
        public.survivors = [(c, n) for c, n in enumerate(moduli) if _plausible(n, sizes.modulus_bits)]
        return "first-test" if public.survivors else next_batch(setting, public)


def _plausible(modulus: int, bits: int) -> bool:
    """Ask for length, residue and no small factor; the short product of primes decides most cases."""
    if modulus.bit_length() != bits or modulus % 4 != 1:
        return False
    return gcd(modulus, primorial(FIRST_TRIAL_BOUND)) == 1 and gcd(modulus, primorial()) == 1


def next_batch(setting: RunSetting, public: PublicState) -> str:
    """Forget the batch and begin another one, or give up."""
    public.batch += 1
    public.sieved, public.survivors, public.passed = [], [], []
    if public.batch >= setting.sizes.max_batches:
        public.fault = f"No modulus was found in {public.batch} batches."
        return "opening"
    return "sieve-deal"
