"""The ``paillier`` rows of ``bench/encryption.py``; runs alone too.

    python bench/_paillier_rows.py [--json] [--sizes 34,61706] [--bits 3072] [--keygen]

Ours and the peers are timed in one run on one thread. What is scaled up from a sample says so in its
name. The key is dealt (same arithmetic as a generated one); ``--keygen`` also makes real ones.
"""

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))  # the dealer is among the tests
import gmpy2
import numpy as np
from _table import Row, machine
from numpy.typing import NDArray

from anofel._core.count import CastBit
from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment
from anofel.committee import count, count_key
from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.interface import Contribution, GeneratedKey, KeyGenerationRun, RoundMessage
from anofel.committee.paillier import total as sums
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.committee.paillier.arithmetic.randomness import SystemRandomness
from anofel.committee.paillier.key import PaillierKey, SecretPaillierShare
from anofel.committee.paillier.scheme import PaillierScheme
from anofel.committee.paillier.total import CiphertextSum
from anofel.committee.permit import SumPermit, counted
from anofel.committee.ristretto.key_generation import NUM_ROUNDS as COUNT_ROUNDS
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration
from tests.paillier.dealer import InsecureToyPaillierScheme, insecure_deal

SIZES = (34, 61_706, 273_258, 832_456)
ALLOWED_BITS = (2048, 3072)
TOY_BITS = 512
KEY_GENERATIONS = ((3, 2), (5, 3))
BOUND, MAX_POSTS = 1 << 15, 1024
ENVELOPE_HEAD = 40
"""Bytes of the payload's length and hash in an envelope."""
SAMPLE_POWERS = 4
"""Partial decryption takes one power per ciphertext; it is scaled up from this many."""

T = TypeVar("T")


def timed(action: Callable[[], T], repeat: int = 1) -> tuple[float, T]:
    """Return the best time of ``repeat`` runs and the last result."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - start)
    return best, result


@dataclass(frozen=True)
class Peers:
    """Seconds per parameter of one ciphertext per parameter, at the same modulus."""

    phe_encrypt: float | None
    naive_encrypt: float
    naive_add: float
    naive_partial: float
    ciphertext_bytes: int


def measure_peers(key: PaillierKey, share: SecretPaillierShare) -> Peers:
    """Time a sample of each peer."""
    n, square = gmpy2.mpz(key.modulus), key.square
    sample = [gmpy2.mpz(secrets.randbelow(key.modulus)) for _ in range(4)]
    naive, encrypted = timed(lambda: [(1 + 5 * n) * gmpy2.powmod(r, n, square) % square for r in sample])
    add, _ = timed(lambda: [encrypted[0] * c % square for c in encrypted for _ in range(100)], 3)
    exponent = 2 * key.delta * share.value
    partial, _ = timed(lambda: gmpy2.powmod_sec(encrypted[0], exponent, square))
    try:
        from phe import PaillierPublicKey
    except ImportError:
        phe = None
    else:
        public = PaillierPublicKey(key.modulus)
        phe = timed(lambda: [public.encrypt(0.01) for _ in range(4)])[0] / 4
    return Peers(phe, naive / 4, add / 400, partial, 2 * key.modulus_bits // 8)


def dealt(bits: int, n: int = 3, t: int = 2) -> tuple[PaillierKey, list[SecretPaillierShare]]:
    """Return a dealt key with a real count key."""
    generation = RistrettoKeyGeneration(1, "bench")
    run = _run(n, t)
    results = [generation.begin(run, member) for member in run.shape.members]
    for _ in range(COUNT_ROUNDS):
        messages = [result.message for result in results]
        results = [generation.advance(result.state, messages) for result in results]
    public = count_key.from_keys(run.shape, results[0].keys, 0)
    shares = [count_key.from_secrets(result.secrets, 0) for result in results]
    return insecure_deal(bits, public, shares)


def rows(
    key: PaillierKey, shares: Sequence[SecretPaillierShare], sizes: Sequence[int] = SIZES
) -> Iterator[Row]:
    """Measure everything but key generation, row by row."""
    peers = measure_peers(key, shares[0])
    yield table_row(key.modulus_bits)
    for size in sizes:
        yield from size_rows(key, shares, peers, size)


def size_rows(key: PaillierKey, shares: Sequence[SecretPaillierShare], peers: Peers, size: int) -> list[Row]:
    """Measure one model size."""
    scheme = InsecureToyPaillierScheme(key.modulus_bits)
    limits = TaskLimits(length=size, bound=BOUND, max_posts=MAX_POSTS, min_clients=2)
    iteration = IterationContext(genesis=bytes(32), task=bytes(32), iteration=1, scope=bytes(32), position=0)
    context = PostContext(iteration=iteration, nullifier=bytes(32), tag=bytes(32), pk_sig=bytes(32))
    values = np.random.default_rng(1).integers(-BOUND, BOUND + 1, size, dtype=np.int64)
    label = f"paillier, {size:,} parameters: "
    naive = f"one ciphertext per parameter, {key.modulus_bits} bits (extrapolated from a sample)"

    key.randomisers.power(1)  # the table is made once per key, timed in its own row below
    client = float("inf")
    for _ in range(3 if size < SIZES[2] else 1):  # the best of a few, as everywhere in this benchmark
        one, prepared = timed(lambda: scheme.prepare(key, context, limits))
        two, made = timed(lambda prepared=prepared: prepared.encrypt(values))
        if one + two < client:
            client, prepare, encrypt = one + two, one, two
    envelope, _ = timed(lambda: scheme.verify_envelope(key, context, limits, made.envelope), 5)
    verify, checked = timed(lambda: scheme.verify_payload(key, context, limits, made.envelope, made.payload))
    accumulator = scheme.accumulator(key, iteration, limits)
    accumulator.add(checked)
    second = replace(checked, context=replace(context, nullifier=b"1" * 32))
    add, _ = timed(lambda: accumulator.add(second))
    found = [
        Row(label + "prepare", prepare, "s"),
        Row(label + "encrypt", encrypt, "s"),
        Row(label + "prepare + encrypt", client, "s"),
        Row(label + "prepare + encrypt", client, "s", naive, size * peers.naive_encrypt),
        Row(label + "payload", len(made.payload), "bytes"),
        Row(label + "payload", len(made.payload), "bytes", naive, float(size * peers.ciphertext_bytes)),
        Row(label + "envelope", len(made.envelope.proof) + ENVELOPE_HEAD, "bytes"),
        Row(label + "envelope check, one committee", envelope, "s"),
        Row(label + "payload check", verify, "s"),
        Row(label + "add one client", add, "s", naive, size * peers.naive_add),
    ]
    if peers.phe_encrypt is not None:
        name = "phe, one ciphertext per parameter (extrapolated from a sample)"
        found.insert(4, Row(label + "prepare + encrypt", client, "s", name, size * peers.phe_encrypt))
    found += _zero_rows(scheme, key, limits, context, values, label)
    return found + _share_rows(scheme, key, shares, peers, label, size)


def cast_bit(key: PaillierKey, context: PostContext, *, one: bool) -> CastBit:
    """Return the bit of a ballot of its own."""
    rho = TypeBlinding.generate()
    line = count.BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=None)
    commitment = TypeCommitment(DatasetType(7), rho).to_bytes()
    opening = count.TypeOpening(dataset_type=7, blinding=rho.to_secret_bytes())
    return count.BallotStatement(context, commitment, [line]).cast(0 if one else None, opening).bits[0]


def _zero_rows(
    scheme: PaillierScheme,
    key: PaillierKey,
    limits: TaskLimits,
    context: PostContext,
    values: NDArray[np.int64],
    label: str,
) -> Iterator[Row]:
    """Measure the proof of zero beside a contribution without it: CPU time, the least of a few runs."""
    runs, proven = 5 if limits.length < SIZES[2] else 2, replace(limits, norm_bound=BOUND)

    def least(kind: TaskLimits, bit: CastBit, vector: NDArray[np.int64]) -> tuple[list[float], Contribution]:
        found: list[list[float]] = []
        for _ in range(runs):
            times = [time.process_time()]
            prepared = scheme.prepare(key, context, kind, bit)
            times.append(time.process_time())
            made = prepared.encrypt(vector)
            times.append(time.process_time())
            scheme.verify_payload(key, context, kind, made.envelope, made.payload)
            times.append(time.process_time())
            found.append([after - before for before, after in pairwise(times)])
        return [min(column) for column in zip(*found, strict=True)], made

    decoy, update = (cast_bit(key, context, one=one) for one in (False, True))
    without, plain = least(limits, update, values)
    for bit, vector, kind in ((update, values, "update"), (decoy, np.zeros_like(values), "decoy")):
        taken, made = least(proven, bit, vector)
        steps = ("prepare", "encrypt", "payload check")
        for step, ours, bare in zip(steps, taken, without, strict=True):
            yield Row(f"{label}{step} with the proof of zero, {kind}, CPU", ours, "s", "without it", bare)
    yield Row(label + "proof of zero", len(made.payload) - len(plain.payload), "bytes")


def _share_rows(
    scheme: PaillierScheme,
    key: PaillierKey,
    shares: Sequence[SecretPaillierShare],
    peers: Peers,
    label: str,
    size: int,
) -> list[Row]:
    """Measure step 8. One power per ciphertext is scaled from a sample; the rest runs at full length.

    The sum repeats one ciphertext, which costs the same as different ones and saves making them.
    """
    limits = TaskLimits(length=size, bound=BOUND, max_posts=MAX_POSTS, min_clients=2)
    iteration = IterationContext(genesis=bytes(32), task=bytes(32), iteration=1, scope=bytes(32), position=0)
    count, sample = Packing.of(limits, key.modulus_bits).count, SAMPLE_POWERS
    ciphertext = key.randomisers.power(12345)
    total = CiphertextSum(iteration, limits, bytes(32), 2, [ciphertext] * count, key.modulus_bits)
    permit = _permit(key, total)
    exponent = 2 * key.delta * shares[0].value
    power, _ = timed(lambda: [gmpy2.powmod_sec(ciphertext, exponent, key.square) for _ in range(sample)])
    made, proof = {}, 0.0
    for share in shares[:2]:
        value = gmpy2.powmod_sec(ciphertext, 2 * key.delta * share.value, key.square)
        proof, one = timed(
            lambda value=value, share=share: sums.prove(
                key, share, total.residues, [value] * count, permit.agreed.digest, SystemRandomness()
            )
        )
        made[share.member] = one.to_bytes(key)
    check, first = timed(lambda: scheme.verify_share(key, total, permit, 1, made[1]))
    verified = [first, scheme.verify_share(key, total, permit, 2, made[2])]
    opening, _ = timed(lambda: scheme.combine(key, total, permit, verified))
    note = f" ({count} powers scaled from {sample})"
    naive = f"one ciphertext per parameter, {key.modulus_bits} bits (extrapolated from a sample)"
    decrypt = power / sample * count + proof
    return [
        Row(label + "partial decryption" + note, decrypt, "s", naive, size * peers.naive_partial),
        Row(label + "share check", check, "s"),
        Row(label + "combine", opening, "s"),
    ]


def _permit(key: PaillierKey, total: CiphertextSum) -> SumPermit:
    agreed = AgreedSet(
        iteration=total.iteration,
        key_id=key.key_id,
        close_hash=bytes(32),
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=2,
        min_clients=2,
    )
    return counted(agreed, 2).permit_sum()


def keygen_rows(bits: int, n: int, t: int, *, run: bool) -> list[Row]:
    """Estimate key generation, and run it if asked."""
    scheme = PaillierScheme if bits in ALLOWED_BITS else InsecureToyPaillierScheme
    generation = scheme(bits).key_generation()
    setting = _run(n, t)
    toy = "" if bits in ALLOWED_BITS else f" of a toy key of {bits} bits"
    label = f"paillier: key generation{toy} ({n}, {t}), per member, "
    found = [Row(label + "expected, from one timed test", generation.estimate_seconds(setting), "s")]
    if run:
        start = sum(os.times()[:4])
        num_rounds, posted = _generate(generation, setting)
        seconds = (sum(os.times()[:4]) - start) / n  # child processes included
        found.append(Row(f"{label}one run of {num_rounds} rounds (CPU)", seconds, "s"))
        found.append(Row(label + "posted in that run", posted / n, "bytes"))
    return found


def _generate(generation: object, setting: KeyGenerationRun) -> tuple[int, int]:
    results = [generation.begin(setting, member) for member in setting.shape.members]  # type: ignore[attr-defined]
    number = posted = 0
    while not isinstance(results[0], GeneratedKey):
        messages: list[RoundMessage] = [result.message for result in results]
        number, posted = number + 1, posted + sum(len(message.body) for message in messages)
        results = [generation.advance(result.state, messages) for result in results]  # type: ignore[attr-defined]
    return number, posted


def _run(n: int, t: int) -> KeyGenerationRun:
    shape = CommitteeShape(num_members=n, threshold=t)
    members = tuple(bytes([i]) * 32 for i in shape.members)
    return KeyGenerationRun(genesis=bytes(32), run_id=secrets.token_bytes(32), shape=shape, members=members)


def table_row(bits: int) -> Row:
    """Time the fixed-base table that a client makes once per key."""
    key, _ = dealt(bits)
    seconds, _ = timed(lambda: key.randomisers)
    return Row("paillier: table of randomisers, once per key", seconds, "s")


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--bits", type=int, default=3072)
    parser.add_argument("--keygen", action="store_true", help="also generate real keys (minutes)")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    found = list(rows(*dealt(options.bits), sizes))
    for n, t in KEY_GENERATIONS:
        found += keygen_rows(options.bits, n, t, run=options.keygen)
    if options.json:
        print(json.dumps([row.document() for row in found], indent=1))
        return
    print(f"{machine()}, gmpy2 {gmpy2.version()}, one thread")
    for row in found:
        data = row.document()
        peer = (
            ""
            if row.peer is None
            else f"   {row.peer:>14,.4g} {row.unit}  ({row.peer_name}; ours is {data['ratio']:.2g} of it)"
        )
        print(f"{row.name:<92} {row.ours:>12,.4g} {row.unit}{peer}")


if __name__ == "__main__":
    main()
