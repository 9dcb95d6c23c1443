"""How long committee encryption takes, and how many bytes: every scheme, four model sizes, peers.

    python bench/encryption.py            a table, with the bars that ours must keep
    python bench/encryption.py --json     a list of {name, ours, peer_name, peer, ratio, unit}
    python bench/encryption.py --quick    two sizes and fewer additions, in a few minutes
    python bench/encryption.py --no-keygen    all sizes, without real paillier keys

Each row is named on standard error when it is measured. What takes longest are the real paillier keys;
a row before each gives its expected time for one member, and all members run here in turn. ``--quick``
makes toy keys instead.

Every figure is the best of a few runs on this machine, in this process. Peers that are not
installed are left out and named; ``pip install phe gmpy2 tenseal`` adds them.
"""

import argparse
import dataclasses
import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import _bulletproofs
import _paillier_rows
import _table
import numpy as np
from _paper import BENCHMARKS

from anofel.committee import count, schemes
from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    KeyGenerationRun,
    RoundResult,
    Scheme,
    SecretKeyShare,
    SubmittedPayload,
)
from anofel.committee.permit import counted
from tests.paillier.dealer import InsecureToyPaillierScheme

SIZES = (34, 61_706, 273_258, 832_456)
QUICK_SIZES = (34, 832_456)
LARGEST = SIZES[-1]
CLIENTS = 512
DISTINCT = 4
BATCH = 256
"""Submissions in a block."""
BOUND = 32_767
PAILLIER_BITS = 3072
KEY_GENERATIONS = ((3, 2), (5, 3))

BARS = {
    "lattice, 832,456 parameters: encrypt": 0.1,
    "lattice, 832,456 parameters: prepare + encrypt": 0.5,
    "lattice, 832,456 parameters: payload": 4.5,
    "lattice, 832,456 parameters: add 512 clients": 5,
    "lattice, 34 parameters: partial decryption": 0.5,
    "lattice, 832,456 parameters: partial decryption": 0.5,
    "lattice: envelope check, bundle of 2": 0.002,
    "lattice: peak memory above the inputs, 512 × 832,456": 200,
    "lattice, 832,456 parameters: prove a contribution, CPU": 0.25,
    "lattice, 832,456 parameters: verify a contribution proof, CPU": 0.15,
    "lattice, 832,456 parameters: verify a contribution proof in a batch of 4, CPU": 0.12,
    "lattice, 832,456 parameters: contribution proof": 32_768,
    "lattice, 832,456 parameters: check and add 512 proven payloads, CPU": 90,
    "lattice, 832,456 parameters: encrypt and prove, wall time": 0.25,
    "paillier, 61,706 parameters: prepare + encrypt": 1,
    "paillier, 61,706 parameters: payload": 450_000,
}
"""What ours must keep, by the name of the row."""


@dataclasses.dataclass(frozen=True)
class Row(_table.Row):
    """One line of the table, with the bar that it has to keep."""

    @property
    def bar(self) -> float | None:
        """The largest value that ours may have, if the project has set one."""
        return None if self.peer_name else BARS.get(self.name)

    def document(self) -> dict[str, Any]:
        """Return the fields every benchmark of this project has, and the bar."""
        return super().document() | {"bar": self.bar}


@dataclasses.dataclass
class Committee:
    """A committee whose members are all here."""

    scheme: Scheme
    key: CommitteeKey
    shares: dict[int, SecretKeyShare]


def best(runs: int, action: Callable[[], object]) -> float:
    """Return the shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def digest(*parts: object) -> bytes:
    """32 bytes that stand for something."""
    return hashlib.sha256(repr(parts).encode()).digest()


ITERATION = IterationContext(
    genesis=digest("genesis"), task=digest("task"), iteration=1, scope=digest("scope"), position=0
)


def a_post(number: int) -> PostContext:
    """Return the context of one client's post."""
    return PostContext(
        iteration=ITERATION,
        nullifier=digest("nullifier", number),
        tag=digest("tag", number),
        pk_sig=digest("pk", number),
    )


def generate(scheme: Scheme, num_members: int, threshold: int) -> tuple[Committee, float]:
    """Make a committee by dealerless key generation, and the time of its slowest member."""
    shape = CommitteeShape(num_members=num_members, threshold=threshold)
    run = KeyGenerationRun(
        genesis=digest("genesis"),
        run_id=os.urandom(32),
        shape=shape,
        members=tuple(digest("member", i) for i in shape.members),
    )
    generation = scheme.key_generation()
    spent = dict.fromkeys(shape.members, 0.0)

    def timed(member: int, action: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = action()
        spent[member] += time.perf_counter() - start
        return result

    results = {m: timed(m, lambda m=m: generation.begin(run, m)) for m in shape.members}
    while isinstance(results[1], RoundResult):
        messages = [result.message for result in results.values()]
        results = {
            m: timed(m, lambda state=r.state, messages=messages: generation.advance(state, messages))
            for m, r in results.items()
        }
    ends: dict[int, GeneratedKey] = results
    committee = Committee(scheme, ends[1].key, {m: end.share for m, end in ends.items()})
    return committee, max(spent.values())


def measure_scheme(committee: Committee, length: int, adds: int) -> Iterator[Row]:
    """Everything that depends on the size of the model."""
    scheme, key = committee.scheme, committee.key
    limits = TaskLimits(length=length, bound=BOUND, max_posts=CLIENTS, min_clients=2)
    vector = np.random.default_rng(1).integers(-BOUND, BOUND, length, endpoint=True, dtype=np.int64)
    label = f"{scheme.name}, {length:,} parameters"
    prepared = [scheme.prepare(key, a_post(n), limits) for n in range(DISTINCT)]
    prepare = best(3, lambda: scheme.prepare(key, a_post(0), limits))
    queue = iter(prepared)
    contributions = []
    encrypt = best(DISTINCT, lambda: contributions.append(next(queue).encrypt(vector)))
    envelope, payload = contributions[0].envelope, contributions[0].payload
    yield Row(f"{label}: prepare", prepare, "s")
    yield Row(f"{label}: encrypt", encrypt, "s")
    yield Row(f"{label}: prepare + encrypt", prepare + encrypt, "s")
    quoted = BENCHMARKS.get(length)
    yield Row(f"{label}: payload", len(payload) / length, "bytes per parameter")
    if quoted:
        peer = quoted.client_bytes / length
        yield Row(
            f"{label}: payload", len(payload) / length, "bytes per parameter", "the paper, quoted", peer
        )
    yield Row(f"{label}: envelope", len(envelope.proof) + 40, "bytes")

    def check(n: int) -> Any:
        return scheme.verify_payload(
            key, a_post(n), limits, contributions[n].envelope, contributions[n].payload
        )

    yield Row(f"{label}: verify payload", best(3, lambda: check(0)), "s")
    yield from measure_opening(committee, limits, vector, check, adds, label)


def measure_opening(
    committee: Committee,
    limits: TaskLimits,
    vector: np.ndarray,
    check: Callable[[int], Any],
    adds: int,
    label: str,
) -> Iterator[Row]:
    """Adding many, partial decryption, share check, combination."""
    scheme, key = committee.scheme, committee.key
    parsed = [check(n) for n in range(DISTINCT)]
    accumulator = scheme.accumulator(key, ITERATION, limits)
    adding = 0.0
    for n in range(adds):
        # The same few contributions under many names: adding does not look at the name. Their sum
        # is not opened, because equal contributions have equal errors, which the decoder refuses.
        named = dataclasses.replace(parsed[n % DISTINCT], context=a_post(n))
        adding += best(1, lambda named=named: accumulator.add(named))
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for payload in parsed:
        accumulator.add(payload)
    total = accumulator.finish()
    scaled = adding * CLIENTS / adds
    yield Row(f"{label}: add {CLIENTS} clients", scaled, "s")
    agreed = AgreedSet(
        iteration=ITERATION,
        key_id=key.key_id,
        close_hash=digest("close"),
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=total.num_posts,
        min_clients=2,
    )
    permit = counted(agreed, total.num_posts).permit_sum()
    shares: dict[int, bytes] = {}

    def decrypt() -> None:
        shares[1] = scheme.partial_decrypt(key, committee.shares[1], total, permit)

    yield Row(f"{label}: partial decryption", best(3, decrypt), "s")
    check_share = best(3, lambda: scheme.verify_share(key, total, permit, 1, shares[1]))
    yield Row(f"{label}: share check", check_share, "s")
    for member in list(committee.shares)[1 : key.shape.threshold]:
        shares[member] = scheme.partial_decrypt(key, committee.shares[member], total, permit)
    verified = [scheme.verify_share(key, total, permit, member, share) for member, share in shares.items()]
    opened: list[Any] = []
    yield Row(
        f"{label}: combine",
        best(2, lambda: opened.append(scheme.combine(key, total, permit, verified))),
        "s",
    )
    if not np.array_equal(opened[0], vector * DISTINCT):
        raise SystemExit("bench/encryption.py: the sum is wrong.")


def cast_bit(committee: Committee, number: int) -> Any:
    """Return a bit of 1 of a ballot of its own, for one post."""
    from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment

    rho, key = TypeBlinding.generate(), committee.key
    line = count.BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=None)
    commitment = TypeCommitment(DatasetType(7), rho).to_bytes()
    opening = count.TypeOpening(dataset_type=7, blinding=rho.to_secret_bytes())
    return count.BallotStatement(a_post(number), commitment, [line]).cast(0, opening).bits[0]


def cpu(runs: int, action: Callable[[], object]) -> float:
    """Return the least CPU time of some runs, of all threads, in seconds."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def measure_proofs(committee: Committee, length: int) -> Iterator[Row]:
    """Measure what the contribution proof adds for a clipped update of norm ``BOUND``."""
    scheme, key = committee.scheme, committee.key
    plain = TaskLimits(length=length, bound=BOUND, max_posts=CLIENTS, min_clients=2)
    limits = dataclasses.replace(plain, norm_bound=BOUND)
    direction = np.random.default_rng(1).normal(size=length)
    vector = (direction * (BOUND / np.linalg.norm(direction))).astype(np.int64)
    label = f"{scheme.name}, {length:,} parameters"
    bits = [cast_bit(committee, number) for number in range(DISTINCT)]

    def ready(kind: TaskLimits) -> Iterator[Any]:
        return iter([scheme.prepare(key, a_post(n), kind, bit) for n, bit in enumerate(bits)])

    proven: list[Any] = []
    queue = ready(limits)
    with_proof = cpu(DISTINCT, lambda: proven.append(next(queue).encrypt(vector)))
    queue = ready(plain)
    without = cpu(DISTINCT, lambda: next(queue).encrypt(vector))
    preparing = cpu(3, lambda: scheme.prepare(key, a_post(0), limits, bits[0]))
    preparing -= cpu(3, lambda: scheme.prepare(key, a_post(0), plain, bits[0]))
    yield Row(f"{label}: prove a contribution, CPU", with_proof - without + max(0.0, preparing), "s")
    queue = ready(limits)
    wall = best(DISTINCT, lambda: next(queue).encrypt(vector))
    yield Row(f"{label}: encrypt and prove, wall time", wall, "s")
    unproven = next(ready(plain)).encrypt(vector)
    extra = scheme.payload_bytes(key, limits) - contribution_bytes(scheme, limits)
    yield Row(f"{label}: contribution proof", extra, "bytes")
    items = [
        SubmittedPayload(a_post(n), made.envelope, made.payload) for n, made in enumerate(proven[:DISTINCT])
    ]
    parse = cpu(3, lambda: scheme.check_payloads(key, plain, [as_submitted(unproven)]))
    alone = cpu(3, lambda: scheme.check_payloads(key, limits, items[:1])) - parse
    yield Row(f"{label}: verify a contribution proof, CPU", alone, "s")
    together = cpu(3, lambda: scheme.check_payloads(key, limits, items))
    name = f"{label}: verify a contribution proof in a batch of {DISTINCT}, CPU"
    yield Row(name, together / DISTINCT - parse, "s")
    if length == LARGEST:
        checked = scheme.check_payloads(key, limits, items)
        accumulator = scheme.accumulator(key, ITERATION, limits)
        adding = cpu(1, lambda: [accumulator.add(payload) for payload in checked])  # type: ignore[arg-type]
        whole = (together + adding) * CLIENTS / DISTINCT
        yield Row(f"{label}: check and add {CLIENTS} proven payloads, CPU", whole, "s")


def as_submitted(made: Any) -> SubmittedPayload:
    """Return a contribution as a member gets it."""
    return SubmittedPayload(a_post(0), made.envelope, made.payload)


def contribution_bytes(scheme: Scheme, limits: TaskLimits) -> int:
    """Return the bytes of a payload with the widths of proven contributions, but without the proof."""
    blocks = -(-limits.length // 2048)
    return blocks * 256 * scheme.required_bits(limits) + 2048 * 32


def measure_envelopes(committee: Committee) -> Iterator[Row]:
    """Measure what the board checks for one post: u envelopes and one ballot."""
    from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment

    scheme, key = committee.scheme, committee.key
    limits = TaskLimits(length=34, bound=BOUND, max_posts=CLIENTS, min_clients=2)
    prepared = scheme.prepare(key, a_post(0), limits)
    envelope = prepared.encrypt(np.zeros(34, dtype=np.int64)).envelope
    rho = TypeBlinding.generate()
    commitment = TypeCommitment(DatasetType(7), rho).to_bytes()
    opening = count.TypeOpening(dataset_type=7, blinding=rho.to_secret_bytes())
    yield from measure_batch(committee, limits)
    for size in (2, 4):
        line = count.BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=(7,))
        statement = count.BallotStatement(a_post(0), commitment, [line] * size)
        ballot = statement.cast(0, opening).ballot

        def check(size: int = size, statement: Any = statement, ballot: bytes = ballot) -> None:
            for _ in range(size):
                scheme.verify_envelope(key, a_post(0), limits, envelope)
            statement.verify(ballot)

        yield Row(f"{scheme.name}: envelope check, bundle of {size}", best(20, check), "s")
        yield Row(f"ballot, bundle of {size}", len(ballot), "bytes")
        yield from measure_ballot_batch(scheme.name, statement, ballot, size)
        yield Row(f"ballot, bundle of {size}: cast", best(5, lambda s=statement: s.cast(0, opening)), "s")


def measure_batch(committee: Committee, limits: TaskLimits) -> Iterator[Row]:
    """Measure the envelopes of a block at once against one by one."""
    scheme, key = committee.scheme, committee.key
    items = []
    for number in range(BATCH):
        prepared = scheme.prepare(key, a_post(number), limits)
        items.append((a_post(number), prepared.encrypt(np.zeros(limits.length, np.int64)).envelope))

    def one_by_one() -> None:
        for post, envelope in items:
            scheme.verify_envelope(key, post, limits, envelope)

    together = best(5, lambda: scheme.verify_envelopes(key, limits, items)) / BATCH
    name = f"{scheme.name}: one envelope in a batch of {BATCH}"
    yield Row(name, together, "s", "ours, one by one", best(3, one_by_one) / BATCH)


def measure_ballot_batch(
    name: str, statement: count.BallotStatement, ballot: bytes, size: int
) -> Iterator[Row]:
    """Measure the ballots of a block at once against one by one."""
    items = [(statement, ballot)] * BATCH
    together = best(2, lambda: count.verify_ballots(items)) / BATCH
    single = best(10, lambda: statement.verify(ballot))
    label = f"{name}: one ballot in a batch of {BATCH}, bundle of {size}"
    yield Row(label, together, "s", "ours, one by one", single)


def measure_memory(committee: Committee) -> Iterator[Row]:
    """Peak memory of adding 512 contributions of the largest model, in a process of its own."""
    scheme, key = committee.scheme, committee.key
    limits = TaskLimits(length=LARGEST, bound=BOUND, max_posts=CLIENTS, min_clients=2)
    prepared = scheme.prepare(key, a_post(0), limits)
    contribution = prepared.encrypt(np.zeros(LARGEST, dtype=np.int64))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "key").write_bytes(key.to_bytes())
        Path(folder, "proof").write_bytes(contribution.envelope.proof)
        Path(folder, "payload").write_bytes(contribution.payload)
        command = [sys.executable, __file__, "--add-in", folder, "--scheme", scheme.name]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(output)
    yield Row(f"{scheme.name}: peak memory above the inputs, {CLIENTS} × {LARGEST:,}", result["peak"], "MB")


def add_in(folder: Path, name: str) -> None:
    """Parse and add 512 times and print the peak, in the process of ``measure_memory``."""
    from anofel.committee.interface import Envelope

    scheme = schemes.by_name(name)
    limits = TaskLimits(length=LARGEST, bound=BOUND, max_posts=CLIENTS, min_clients=2)
    key = scheme.read_key((folder / "key").read_bytes())
    payload = (folder / "payload").read_bytes()
    envelope = Envelope(
        proof=(folder / "proof").read_bytes(),
        payload_length=len(payload),
        payload_sha256=hashlib.sha256(payload).digest(),
    )
    before = memory("VmRSS")
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for number in range(CLIENTS):
        accumulator.add(scheme.verify_payload(key, a_post(number), limits, envelope, payload))
    accumulator.finish()
    print(json.dumps({"peak": memory("VmHWM") - before}))


def memory(field: str) -> float:
    """Return this process's memory now (VmRSS) or at its peak (VmHWM) in MB, from Linux.

    ``getrusage`` is no use here: a child's maximum begins with what its parent had.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))


def measure_peers(rows: list[Row], missing: list[str]) -> Iterator[Row]:
    """Measure what others need for the same vector; each is named for what it is."""
    ours = {row.name: row.ours for row in rows}
    for length in SIZES:
        name = f"lattice, {length:,} parameters: prepare + encrypt"
        if name not in ours:
            continue
        for peer_name, measure in PEERS.items():
            try:
                peer = measure(length)
            except ImportError as error:
                if (note := f"{peer_name} ({error.name} is not installed)") not in missing:
                    missing.append(note)
                continue
            yield Row(name, ours[name], "s", peer_name, peer)


def measure_proof_peers(rows: list[Row], missing: list[str]) -> Iterator[Row]:
    """Measure a proof by others of less than the contribution proof states, on the same machine."""
    label = f"lattice, {LARGEST:,} parameters"
    named = {
        "prove": f"{label}: prove a contribution, CPU",
        "verify": f"{label}: verify a contribution proof, CPU",
        "bytes": f"{label}: contribution proof",
    }
    ours = {row.name: row for row in rows if row.peer_name is None}
    if not ours.keys() >= {*named.values()}:
        return
    try:
        peer = _bulletproofs.measured()
    except OSError:
        missing.append("Bulletproofs (cargo is not installed)")
        return
    figures = peer.extrapolated(LARGEST)
    for what, name in named.items():
        yield Row(name, ours[name].ours, ours[name].unit, peer.name, figures[what])


def phe_encryption(length: int) -> float:
    """python-paillier, one ciphertext per parameter, 3072 bits: a sample, extrapolated."""
    return _phe_seconds() * length


@functools.cache
def _phe_seconds() -> float:
    """Return python-paillier's time per parameter; it does not depend on the model."""
    import phe  # type: ignore[import-not-found]

    public, _ = phe.generate_paillier_keypair(n_length=3072)
    sample = 8
    return best(2, lambda: [public.encrypt(value) for value in range(sample)]) / sample


def bfv_encryption(length: int) -> float:
    """BFV batched, 4096 slots, one key (no threshold): encryption only."""
    import tenseal  # type: ignore[import-not-found]

    context = tenseal.context(tenseal.SCHEME_TYPE.BFV, poly_modulus_degree=8192, plain_modulus=1032193)
    block = list(range(min(length, 8192)))
    blocks = -(-length // 8192)
    sample = min(blocks, 8)
    seconds = best(2, lambda: [tenseal.bfv_vector(context, block) for _ in range(sample)])
    return seconds / sample * blocks


PEERS: dict[str, Callable[[int], float]] = {
    "phe 3072, extrapolated from a sample": phe_encryption,
    "TenSEAL BFV, one key, no threshold": bfv_encryption,
}
"""What is measured beside ours, by a name that says what it is."""


def run(quick: bool, keygen: bool, names: tuple[str, ...]) -> tuple[list[Row], list[str]]:
    """Measure everything."""
    rows: list[Row] = []
    missing = ["threshold CKKS/BFV (the openfhe wheel has no module for this Python)"]
    for name in names:
        measure = paillier_rows if name == "paillier" else lattice_rows
        for row in measure(quick, keygen):
            print(f"measured: {row.name}", file=sys.stderr)
            rows.append(row)
    rows += measure_peers(rows, missing)
    rows += measure_proof_peers(rows, missing)
    return rows, missing


def lattice_rows(quick: bool, _keygen: bool) -> Iterator[Row]:
    """Measure ``lattice``, with real keys: they take seconds."""
    scheme = schemes.by_name("lattice")
    committees = []
    for num_members, threshold in KEY_GENERATIONS[: 1 if quick else None]:
        committee, seconds = generate(scheme, num_members, threshold)
        committees.append(committee)
        yield Row(f"lattice: key generation ({num_members}, {threshold}), per member", seconds, "s")
    for length in QUICK_SIZES if quick else SIZES:
        adds = CLIENTS if length == LARGEST and not quick else 32
        yield from measure_scheme(committees[0], length, adds)
        yield from measure_proofs(committees[0], length)
    yield from measure_envelopes(committees[0])
    if not quick and sys.platform == "linux":
        yield from measure_memory(committees[0])


def paillier_rows(quick: bool, keygen: bool) -> Iterator[Row]:
    """Measure ``paillier`` with a dealt key: its module samples what takes minutes, and says so."""
    key, shares = _paillier_rows.dealt(PAILLIER_BITS)
    sizes = _paillier_rows.SIZES[: 2 if quick else None]
    yield from (Row(**vars(row)) for row in _paillier_rows.rows(key, shares, sizes))
    scheme = InsecureToyPaillierScheme(PAILLIER_BITS)  # it reads keys of the dealer
    yield from measure_envelopes(Committee(scheme, key, {share.member: share for share in shares}))
    for num_members, threshold in KEY_GENERATIONS:
        for bits, wanted in ((PAILLIER_BITS, keygen and not quick), (_paillier_rows.TOY_BITS, quick)):
            if wanted or bits == PAILLIER_BITS:
                found = _paillier_rows.keygen_rows(bits, num_members, threshold, run=wanted)
                yield from (Row(**vars(row)) for row in found)


def show(rows: list[Row]) -> None:
    """Print the table."""
    print(f"{_table.machine()}\n")
    for row in rows:
        peer = (
            "" if row.peer is None else f"   {row.peer_name}: {row.peer:.4g} (ours is {row.ratio:.2g} of it)"
        )
        bar = "" if row.bar is None else f"   bar {row.bar:g}: {'kept' if row.ours <= row.bar else 'MISSED'}"
        print(f"{row.name:64s} {row.ours:10.4g} {row.unit}{bar}{peer}")


def show_beside(missing: list[str], stream: TextIO) -> None:
    """Print what the paper says, and which peers are not here."""
    print(
        "\nThe paper's own figures for 512 clients, 8 threads, a key of about 256 bits (quoted):", file=stream
    )
    for length, quoted in BENCHMARKS.items():
        client = f"client {quoted.client:.1f} s with training (derived), {quoted.client_bytes / 1e6:g} MB"
        print(f"  {length:>9,} parameters: {client}, aggregators {quoted.aggregator:g} s", file=stream)
    print("\nNot measured: " + "; ".join(missing), file=stream)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print a list instead of a table")
    parser.add_argument("--quick", action="store_true", help="two sizes, fewer additions")
    parser.add_argument("--no-keygen", dest="keygen", action="store_false", help="make no real paillier keys")
    parser.add_argument("--scheme", choices=schemes.NAMES, help="only this scheme")
    parser.add_argument("--add-in", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.add_in:
        add_in(arguments.add_in, arguments.scheme)
        return
    names = (arguments.scheme,) if arguments.scheme else schemes.NAMES
    rows, missing = run(arguments.quick, arguments.keygen, names)
    if arguments.json:
        print(json.dumps([row.document() for row in rows], indent=1))
    else:
        show(rows)
    show_beside(missing, sys.stderr if arguments.json else sys.stdout)


if __name__ == "__main__":
    main()
