"""What an iteration costs beside two other ways to add in secret, on the same vectors and in the same run.

    python bench/baselines.py             a table
    python bench/baselines.py --json      a list of {name, ours, peer_name, peer, ratio, unit}
    python bench/baselines.py --quick     16 clients, the smallest network

Flower's SecAgg+ (flwr, Apache-2.0) runs as it is, in an environment of its own that pip makes in a temporary
directory; ``--flower-python`` names one that is there already. It hides updates from a server that knows
every client, needs four round trips with clients that stay, and has no anonymity. Truex et al. (threshold
Paillier, one ciphertext for each parameter) is a model: primitives measured here times their number.
CPU seconds are of all cores together. Ours is the scheme ``lattice``, a committee of three, threshold two.
"""

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gmpy2
import numpy as np
from _iteration import BOUND, Committee, Crowd, Iteration, Opening, Post
from _table import Row, report, taken

from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys

FLOWER = "flwr==1.41.0"
NETWORKS = {"LeNet-5": 61_706, "SqueezeNet": 832_456}
SCALE = 1 << 16
"""Ours adds integers: a vector times this, rounded."""
PAILLIER_BITS = 3072
COMMITTEE_THRESHOLD = 2

NOTES = """\
Ours, "all of step 5": the membership proof, ballot, masks and ciphertexts for a bundle of two, one post.
"Encryption alone": masks and ciphertext for one committee, which is what secure aggregation is.
Ours makes proof and masks while the model trains; SecAgg+ begins when the update is there.
Flower's bytes are those of the records' contents. Its settings are its own: clip 8, 2^22 levels.
Truex et al. is a MODEL at {bits} bits: one exponentiation by N mod N² for each parameter that a client
encrypts, one by a share of twice that length for each that a party decrypts, one product to add.
"""


@dataclass(frozen=True)
class Case:
    """So many clients with vectors of one network."""

    network: str
    vectors: np.ndarray

    @property
    def label(self) -> str:
        """Name the rows."""
        return f"{self.network}, {len(self.vectors)} clients"

    def integers(self, client: int) -> np.ndarray:
        """Return a client's vector as ours adds it."""
        scaled = np.rint(self.vectors[client].astype(np.float64) * SCALE)
        return np.clip(scaled, -BOUND, BOUND).astype(np.int64)


@dataclass(frozen=True)
class Ours:
    """What ours took."""

    client: float
    encryption: float
    server: float
    up: int
    error: float


def measure_ours(case: Case, committees: tuple[Committee, ...], keys: KeyDirectory) -> Ours:
    """Let every client post its vector, and open the sum."""
    number, length = case.vectors.shape
    crowd = Crowd(number, number, keys)
    posts: list[Post] = []
    spent = []
    iteration = Iteration(committees, crowd, length, number)
    for client in range(number):
        iteration.vector = case.integers(client)
        spent.append(taken(lambda client=client: posts.append(iteration.post(client))).cpu)
    size = iteration.sign(posts[0].sealed) + sum(len(payload) for payload in posts[0].sealed.payloads)
    found: list[np.ndarray] = []
    server = taken(lambda: found.append(_open(iteration, posts))).cpu
    expected = sum(case.integers(client) for client in range(number))
    if not np.array_equal(found[0], expected):
        raise SystemExit("bench/baselines.py: the sum is wrong.")
    error = float(np.abs(found[0] / SCALE / number - case.vectors.mean(axis=0)).max())
    return Ours(float(np.mean(spent)), _encryption_alone(case, committees[0], crowd), server, size, error)


def _encryption_alone(case: Case, committee: Committee, crowd: Crowd) -> float:
    alone = Iteration((committee,), crowd, case.vectors.shape[1], len(case.vectors))
    alone.vector = case.integers(0)
    context = alone.post_context(crowd.prove().membership, 0)

    def encrypt() -> None:
        prepared = committee.scheme.prepare(committee.key, context, alone.limits)
        prepared.encrypt(alone.vector)

    return _least_cpu(3, encrypt)


def _open(iteration: Iteration, posts: list[Post]) -> np.ndarray:
    """Do what two aggregators and the owner do; the second aggregator adds for itself."""
    opening = Opening(iteration, posts)
    for _ in range(COMMITTEE_THRESHOLD):
        opened = opening.total()
    permit = opened.open_count().permit_sum()
    shares = {member: opened.sum_share(member, permit) for member in range(1, COMMITTEE_THRESHOLD + 1)}
    return opened.combine(opened.verified(shares, permit), permit)


# Flower


def flower_python(directory: Path) -> Path:
    """Make an environment with Flower in it and return its Python."""
    print(f"installing {FLOWER} for this run", file=sys.stderr)
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", FLOWER]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def measure_flower(case: Case, ours: Ours, python: Path, scratch: Path) -> Iterator[Row]:
    """Measure SecAgg+ with few neighbours, and with all of them (which is SecAgg)."""
    number = len(case.vectors)
    path = scratch / "vectors.npy"
    np.save(path, case.vectors)
    for shares, threshold in ((9, 5), (number, number // 2)):
        name = f"Flower SecAgg+, {shares} shares, threshold {threshold}"
        program = Path(__file__).with_name("_flower_round.py")
        command = [str(python), str(program), str(path), str(shares), str(threshold)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        label = case.label
        yield Row(f"{label}: client CPU, all of step 5", ours.client, "s", name, found["client_cpu"])
        yield Row(f"{label}: client CPU, encryption alone", ours.encryption, "s", name, found["client_cpu"])
        yield Row(f"{label}: client, bytes up", ours.up, "bytes", name, found["up"])
        yield Row(f"{label}: client, round trips", 1, "posts", name, found["trips"])
        yield Row(f"{label}: adding and opening, CPU", ours.server, "s", name, found["server_cpu"])
        yield Row(f"{label}: largest error of the mean", ours.error, "", name, found["error"])


# Truex et al., a model


@dataclass(frozen=True)
class Primitives:
    """Seconds of one operation modulo N²."""

    encrypt: float
    decrypt: float
    add: float


def measure_primitives(bits: int = PAILLIER_BITS) -> Primitives:
    """Measure with a random odd number of the modulus' size; times do not depend on its factors."""
    modulus = gmpy2.mpz(secrets.randbits(bits) | (1 << (bits - 1)) | 1)
    square = modulus * modulus
    base, share = gmpy2.mpz(secrets.randbits(bits)), gmpy2.mpz(secrets.randbits(2 * bits))
    other, many = gmpy2.mpz(secrets.randbits(2 * bits)) % square, 1000
    return Primitives(
        encrypt=_least_cpu(5, lambda: gmpy2.powmod(base, modulus, square)),
        decrypt=_least_cpu(5, lambda: gmpy2.powmod(other, share, square)),
        add=_least_cpu(3, lambda: [other * other % square for _ in range(many)]) / many,
    )


def _least_cpu(runs: int, action: Callable[[], object]) -> float:
    return min(taken(action).cpu for _ in range(runs))


def model_truex(case: Case, ours: Ours, primitives: Primitives) -> Iterator[Row]:
    """Multiply."""
    number, length = case.vectors.shape
    name = f"Truex et al., MODEL, {PAILLIER_BITS} bits"
    label = case.label
    yield Row(f"{label}: client CPU, all of step 5", ours.client, "s", name, length * primitives.encrypt)
    yield Row(f"{label}: client, bytes up", ours.up, "bytes", name, length * 2 * PAILLIER_BITS // 8)
    opening = length * (number * primitives.add + COMMITTEE_THRESHOLD * primitives.decrypt)
    yield Row(f"{label}: adding and opening, CPU", ours.server, "s", name, opening)


def measure(arguments: argparse.Namespace, notes: list[str]) -> Iterator[Row]:
    """Measure everything."""
    networks = {"LeNet-5": NETWORKS["LeNet-5"]} if arguments.quick else NETWORKS
    committees = (Committee.generate("lattice"), Committee.generate("lattice"))
    primitives = measure_primitives()
    with tempfile.TemporaryDirectory() as scratch:
        keys = make_insecure_development_keys(Path(scratch) / "keys")
        python = arguments.flower_python
        try:
            python = python or flower_python(Path(scratch) / "flower")
        except (OSError, subprocess.CalledProcessError) as error:
            notes.append(f"Flower is not measured: {FLOWER} could not be installed ({error}).")
        for number in (16,) if arguments.quick else (16, 64):
            for name, length in networks.items():
                rng = np.random.default_rng(length)
                case = Case(name, rng.normal(0, 0.01, (number, length)).astype(np.float32))
                ours = measure_ours(case, committees, keys)
                if python is not None:
                    yield from measure_flower(case, ours, python, Path(scratch))
                yield from model_truex(case, ours, primitives)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print a list instead of a table")
    parser.add_argument("--quick", action="store_true", help="16 clients, the smallest network")
    parser.add_argument("--flower-python", type=Path, help="a Python that has flwr; otherwise one is made")
    arguments = parser.parse_args()
    notes = [NOTES.format(bits=PAILLIER_BITS)]
    rows = []
    for row in measure(arguments, notes):
        print(f"measured: {row.name} ({row.peer_name})", file=sys.stderr)
        rows.append(row)
    report("Beside SecAgg+ and Truex et al.", rows, {}, notes, as_json=arguments.json)


if __name__ == "__main__":
    main()
