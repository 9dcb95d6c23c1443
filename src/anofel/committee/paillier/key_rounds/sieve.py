"""Distributed sieving: residues of p and q that no small prime divides, known to nobody.

Each sample has x = Σ x_i and r = Σ r_i modulo M, the product of the sieve primes. Only x·r, masked
by a sharing of zero, is opened. Where a prime ℓ does not divide x·r, x is a unit modulo ℓ and the
x_i are additive shares of a residue that sieving would accept; r hides everything else about it.
"""

from collections.abc import Sequence

from anofel.committee.paillier.arithmetic.integers import Malformed, decode, encode, width
from anofel.committee.paillier.arithmetic.modular import mpz
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.arithmetic.sharing import ModularOpening, deal_modular
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)


def own_residues(state: SecretPaillierState, batch: int) -> list[int]:
    """Return this member's x_i of every sample."""
    modulus = state.setting.sizes.sieve_modulus
    return [mpz(_source(state, batch, k).below(modulus)) for k in range(state.setting.sizes.samples)]


def good_samples(setting: RunSetting, public: PublicState) -> list[list[int]]:
    """Return for every sieve prime the samples that are units modulo it, in order."""
    opened = [mpz(y) for y in public.sieved]
    return [[k for k, y in enumerate(opened) if y % prime] for prime in setting.sizes.sieve_primes]


def _source(state: SecretPaillierState, batch: int, sample: int) -> SeededRandomness:
    return SeededRandomness(state.seed, f"sieve/{batch}/{sample}")


def read_values(data: bytes, count: int, modulus: int, sender: int) -> list[int]:
    """Read a public vector. Raises ``RunStopped`` with the sender."""
    try:
        return decode(data, width(modulus.bit_length()), count, modulus)
    except Malformed as error:
        raise RunStopped(f"A public part is malformed: {error}", [sender]) from error


class SieveDeal:
    """Deal x_i, r_i at ``degree`` and zero at twice that, for every sample."""

    committed = False

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Draw and share the samples of a batch."""
        sizes, n = state.setting.sizes, state.run.shape.num_members
        modulus, columns = sizes.sieve_modulus, [[] for _ in range(n)]  # type: tuple[int, list[list[int]]]
        for k in range(sizes.samples):
            source = _source(state, state.public.batch, k)
            x, r = source.below(modulus), source.below(modulus)
            for secret, degree in ((x, sizes.degree), (r, sizes.degree), (0, sizes.product_degree)):
                for column, share in zip(
                    columns, deal_modular(secret, degree, n, modulus, source), strict=True
                ):
                    column.append(share)
            state.setting.progress("samples of the sieve", k + 1, sizes.samples)
        size = width(modulus.bit_length())
        return b"", [encode(column, size) for column in columns]

    def _read(self, setting: RunSetting, data: bytes) -> list[int]:
        modulus = setting.sizes.sieve_modulus
        return decode(data, width(modulus.bit_length()), 3 * setting.sizes.samples, modulus)

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:  # noqa: ARG002
        """Every value is reduced modulo M."""
        self._read(setting, data)

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Multiply the summed shares of x and r and add the shares of zero."""
        modulus = state.setting.sizes.sieve_modulus
        values = product_shares([self._read(state.setting, part) for part in parts], modulus)
        state.stash["products"] = encode(values, width(modulus.bit_length())).hex()

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:  # noqa: ARG002
        """Nothing is public yet."""
        refuse_public(parts)
        return "sieve-open"


class SieveOpen(PublicOnly):
    """Open x·r of every sample."""

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Show the product shares."""
        return bytes.fromhex(state.stash.pop("products")), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Interpolate every sample."""
        sizes = setting.sizes
        columns = [
            read_values(part, sizes.samples, sizes.sieve_modulus, sender)
            for sender, part in enumerate(parts, 1)
        ]
        opening = ModularOpening(setting.shape.num_members, sizes.product_degree, sizes.sieve_modulus)
        public.sieved = open_rows(opening, columns, "sieve")
        public.num_candidates = min(sizes.batch, *(len(good) // 2 for good in good_samples(setting, public)))
        return "modulus-deal"


def product_shares(columns: Sequence[Sequence[int]], modulus: int) -> list[int]:
    """Return (Σ first)·(Σ second) + Σ third for every triple."""
    sums = [sum(row) for row in zip(*columns, strict=True)]
    triples = zip(sums[0::3], sums[1::3], sums[2::3], strict=True)
    return [(a * b + zero) % modulus for a, b, zero in triples]


def open_rows(opening: ModularOpening, columns: Sequence[Sequence[int]], what: str) -> list[int]:
    """Interpolate every row. Raises ``RunStopped`` without culprits if one is inconsistent."""
    opened = []
    for row in zip(*columns, strict=True):
        value = opening.open(row)
        if value is None:
            raise RunStopped(f"The opened products of the {what} are inconsistent.")
        opened.append(int(value))
    return opened


def refuse_public(parts: Sequence[bytes]) -> None:
    """Refuse public parts in a phase of private parts."""
    wrong = [sender for sender, part in enumerate(parts, 1) if part]
    if wrong:
        raise RunStopped("A message has a public part that its round does not have.", wrong)
