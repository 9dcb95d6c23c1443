"""What an iteration costs each role: seconds and bytes, for the paper's numbers of clients and networks.

    python bench/protocol.py              a table, with the bars of the design
    python bench/protocol.py --json       a list of {name, ours, peer_name, peer, ratio, unit}
    python bench/protocol.py --quick      16 and 512 clients, the smallest network; a few minutes
    python bench/protocol.py --processes  also a run of `anofel demo` with 16 clients as processes

Split as the paper's tables are: setup (prove, verify, bytes), client (prove, encrypt, sign, bytes),
aggregator (verify, add, decrypt), owner (combine). A bundle of two, a committee of three with threshold two,
random vectors of 16 bits, real proofs, keys and ciphertexts of the scheme `lattice`; `bench/encryption.py`
measures `paillier`. The paper's figures stand beside, quoted: another machine, eight threads, a toy key.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _iteration import Committee, Crowd, Iteration, Opening, next_model
from _paper import BENCHMARKS
from _processes import measure_demo
from _table import Row, best, report, taken

from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys

CLIENTS = (16, 32, 64, 128, 256, 512)
NETWORKS = {"LeNet-5": 61_706, "ResNet-20": 273_258, "SqueezeNet": 832_456}
DISTINCT = 16
"""Posts that are really made; aggregators of more clients check and add these again under other names."""
BATCH = 64

LARGEST = "SqueezeNet, 512 clients"
BARS = {
    f"{LARGEST}: client, from the end of training to the wire": 0.25,
    f"{LARGEST}: client, all but training, CPU": 1.0,
    f"{LARGEST}: client, bytes per parameter and committee": 4.5,
    f"{LARGEST}: aggregator, from the close": 5.0,
    "aggregator: peak memory, 512 against 16 clients": 1.2,
    "submission: prove, 512 against 16 clients": 1.2,
}
"""The largest value that ours may have, by the name of the row (design, §10)."""

QUOTED = "the paper, quoted"
PAPER_PROOFS = {
    16: (1.97, 4.65e-3, 0.79, 4.67e-3),
    32: (2.04, 4.74e-3, 0.85, 4.55e-3),
    64: (2.09, 4.61e-3, 0.96, 4.57e-3),
    128: (2.16, 4.62e-3, 1.04, 4.53e-3),
    256: (2.22, 4.64e-3, 1.14, 4.54e-3),
    512: (2.28, 4.65e-3, 1.25, 4.56e-3),
}
"""Setup prove and verify, training prove and verify, in seconds (its table of runtimes)."""
PAPER_SETUP_BYTES = 360
DERIVED = "the paper, derived from its percentages"

NOTES = """\
LeNet-5 has 61,706 parameters, ResNet-20 273,258, SqueezeNet 832,456.
Aggregators check and add {distinct} distinct posts; more clients are these again under other names. The sum
that is opened is that of the {distinct}.
Most registered clients are only leaves in the tree, made as real ones are; the proofs are those of ours.
The paper's machine is another one with eight threads, its keys have about 256 bits, and its circuits hold
trees of exactly so many clients; ours always holds 2^21.
"""


def measure_proofs(num_clients: int, crowd: Crowd, keys: KeyDirectory, runs: int) -> Iterator[Row]:
    """Measure the paper's first table: proofs of setup and training, and the bytes of setup."""
    label, (setup_prove, setup_verify, prove, verify) = f"{num_clients} clients", PAPER_PROOFS[num_clients]
    yield Row(f"{label}: setup, prove", best(runs, crowd.register), "s", QUOTED, setup_prove)
    posting, registration = crowd.register(), keys.registration_verifier()
    one = best(runs, lambda: registration.verify(*crowd.proven_registration(posting)))
    yield Row(f"{label}: setup, verify", one, "s", QUOTED, setup_verify)
    yield Row(f"{label}: setup, posting", len(posting.data), "bytes", QUOTED, PAPER_SETUP_BYTES)
    yield Row(f"{label}: client, prove", best(runs, crowd.prove), "s", QUOTED, prove)
    membership, submission = crowd.prove().membership, keys.submission_verifier()
    one = best(runs, lambda: submission.verify(*crowd.proven_submission(membership)))
    yield Row(f"{label}: board, verify", one, "s", QUOTED, verify)
    batch = [crowd.proven_submission(membership)] * BATCH
    many = best(2, lambda: submission.verify_batch(batch)) / BATCH
    yield Row(f"{label}: board, verify in a batch of {BATCH}", many, "s", QUOTED, verify)


def measure_client(label: str, iteration: Iteration, runs: int, quoted: bool) -> Iterator[Row]:
    """Measure what a client does in an iteration beside training."""
    length, cpu, waiting, proven = iteration.length, [], [], iteration.crowd.prove()
    for _ in range(runs):
        ready = []
        before = taken(lambda ready=ready: ready.append(iteration.prepare(iteration.crowd.prove())))
        after = taken(lambda ready=ready: iteration.sign(iteration.seal(ready[0])))
        waiting.append(after.wall)
        cpu.append(before.cpu + after.cpu)
    preparing = best(runs, lambda: iteration.prepare(proven))
    yield Row(f"{label}: client, masks and ballot (while training)", preparing, "s")
    prepared_ones = iter([iteration.prepare(proven) for _ in range(runs)])
    sealed = []
    encrypting = best(runs, lambda: sealed.append(iteration.seal(next(prepared_ones))))
    yield Row(f"{label}: client, encrypt for two committees", encrypting, "s")
    yield Row(f"{label}: client, hash and sign", best(runs, lambda: iteration.sign(sealed[0])), "s")
    yield Row(f"{label}: client, from the end of training to the wire", min(waiting), "s")
    peer = {"peer_name": DERIVED, "peer": BENCHMARKS[length].beside_training} if quoted else {}
    yield Row(f"{label}: client, all but training, CPU", min(cpu), "s", **peer)
    payloads = sum(len(payload) for payload in sealed[0].payloads)
    size = iteration.sign(sealed[0]) + payloads
    yield Row(f"{label}: client, bytes", size, "bytes", QUOTED, BENCHMARKS[length].client_bytes)
    each = payloads / length / len(sealed[0].payloads)
    yield Row(f"{label}: client, bytes per parameter and committee", each, "bytes")


def measure_opening(label: str, opening: Opening, num_clients: int, quoted: bool) -> Iterator[Row]:
    """Measure one aggregator and the owner."""
    length = opening.iteration.length
    verifying, adding = opening.add_under_many_names(num_clients)
    yield Row(f"{label}: aggregator, verify (on arrival)", verifying, "s")
    yield Row(f"{label}: aggregator, add (on arrival)", adding, "s")
    opened = opening.total()
    counting = best(2, lambda: opened.count_share(1))
    permit = opened.open_count().permit_sum()
    shares: dict[int, bytes] = {}

    def decrypt(member: int) -> None:
        shares[member] = opened.sum_share(member, permit)

    decrypting = best(2, lambda: decrypt(1))
    decrypt(2)
    yield Row(f"{label}: aggregator, decrypt (count and sum)", counting + decrypting, "s")
    closing = opened.finishing + counting + decrypting
    yield Row(f"{label}: aggregator, from the close", closing, "s")
    peer = {"peer_name": QUOTED, "peer": BENCHMARKS[length].aggregator} if quoted else {}
    yield Row(f"{label}: aggregator, all", verifying + adding + closing, "s", **peer)
    size = len(opened.total.to_bytes()) + len(shares[1])
    yield Row(f"{label}: aggregator, bytes", size, "bytes", QUOTED, BENCHMARKS[length].client_bytes)
    checking = taken(lambda: opened.verified(shares, permit)).wall
    verified = opened.verified(shares, permit)
    total: list[np.ndarray] = []
    combining = best(2, lambda: total.append(opened.combine(verified, permit)))
    if not np.array_equal(total[0], opening.iteration.vector * len(opening.posts)):
        raise SystemExit("bench/protocol.py: the sum is wrong.")
    updating = best(2, lambda: next_model(length, total[0], len(opening.posts)))
    yield Row(f"{label}: owner, combine and next model", checking + combining + updating, "s")


def measure_memory(keys: Path, networks: dict[str, int]) -> Iterator[Row]:
    """Measure the peak memory of an aggregator that checks and adds, in processes of their own."""
    peaks = {}
    length = max(networks.values())
    for number in (16, 512):
        command = [sys.executable, __file__, "--add", str(number), str(length), "--keys", str(keys)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks[number] = json.loads(output)["peak"]
        yield Row(f"aggregator: peak memory, {number} clients, {length:,} parameters", peaks[number], "MB")
    yield Row("aggregator: peak memory, 512 against 16 clients", peaks[512] / peaks[16], "times")


def add_in_this_process(num_clients: int, length: int, keys: Path) -> None:
    """Check and add in the process of ``measure_memory``, and print the peak above what was there before.

    ``getrusage`` is no use here: a child's maximum begins with what its parent had.
    """
    crowd = Crowd(16, 2, KeyDirectory.open(keys))
    iteration = Iteration((Committee.generate("lattice"),), crowd, length, num_clients)
    opening = Opening(iteration, [iteration.post(number) for number in range(2)])
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    opening.add_under_many_names(num_clients)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    print(json.dumps({"peak": peak}))


def measure(keys: KeyDirectory, *, quick: bool, notes: list[str]) -> Iterator[Row]:
    """Measure everything in this process and its children."""
    numbers = (16, 512) if quick else CLIENTS
    networks = {"LeNet-5": NETWORKS["LeNet-5"]} if quick else NETWORKS
    distinct, runs = (4, 2) if quick else (DISTINCT, 5)
    notes.append(NOTES.format(distinct=distinct))
    committees = (Committee.generate("lattice"), Committee.generate("lattice"))
    proving = {}
    for number in numbers:
        crowd = Crowd(number, distinct, keys)
        for row in measure_proofs(number, crowd, keys, runs):
            proving[row.name] = row.ours
            yield row
        for name, length in networks.items():
            label = f"{name}, {number} clients"
            iteration = Iteration(committees, crowd, length, number)
            yield from measure_client(label, iteration, runs, quoted=number == 512)
            posts = [iteration.post(place) for place in range(distinct)]
            yield from measure_opening(label, Opening(iteration, posts), number, quoted=number == 512)
    ratio = proving["512 clients: client, prove"] / proving["16 clients: client, prove"]
    yield Row("submission: prove, 512 against 16 clients", ratio, "times")
    if Path("/proc/self/clear_refs").exists():
        yield from measure_memory(keys.path, networks)
    else:
        notes.append("Peak memory is measured on Linux only.")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print a list instead of a table")
    parser.add_argument("--quick", action="store_true", help="16 and 512 clients, the smallest network")
    parser.add_argument("--processes", action="store_true", help="also run anofel demo with 16 clients")
    parser.add_argument("--keys", type=Path, help="proof keys; otherwise development keys are made")
    parser.add_argument("--add", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.add:
        add_in_this_process(*arguments.add, arguments.keys)
        return
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as scratch:
        path = arguments.keys or Path(scratch) / "keys"
        keys = KeyDirectory.open(path) if path.exists() else make_insecure_development_keys(path)
        for row in measure(keys, quick=arguments.quick, notes=notes):
            print(f"measured: {row.name}", file=sys.stderr)
            rows.append(row)
        if arguments.processes:
            rows += measure_demo(Path(scratch), notes)
    report("One iteration, role by role", rows, BARS, notes, as_json=arguments.json)


if __name__ == "__main__":
    main()
