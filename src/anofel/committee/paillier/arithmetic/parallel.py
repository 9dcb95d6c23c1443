"""Powers on all cores.

GMP's secure power holds the GIL, so a share of the secret powers goes to child processes: this module
run as a program. They get their work on standard input, never as arguments, and answer on standard
output. Public powers release the GIL and run on threads.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import gmpy2

from anofel.children import Child
from anofel.committee.paillier.arithmetic.modular import mpz, power, power_secret
from anofel.framing import Reader, Writer

MIN_PER_WORKER: Final = 48
"""Below this many powers a process costs more than it saves (a start takes about 0.1 s)."""

Term = tuple[int, int, int]
"""(base, exponent, modulus)."""


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def secret_powers(terms: Sequence[Term], workers: int | None = None) -> list[int]:
    """Return base^exponent mod modulus for secret positive exponents."""
    wanted = num_cores() if workers is None else workers
    workers = max(1, min(wanted, len(terms) // MIN_PER_WORKER))
    size = -(-len(terms) // workers) or 1
    chunks = [terms[start : start + size] for start in range(0, len(terms), size)]
    children = [_start(chunk) for chunk in chunks[1:]]
    try:
        results = _compute(chunks[0]) if chunks else []
        for child, chunk in zip(children, chunks[1:], strict=True):
            results += _collect(child, len(chunk))
    finally:
        for child in children:
            child.close()
    return results


def public_powers(terms: Sequence[Term]) -> list[int]:
    """Return base^exponent mod modulus for public exponents."""
    with ThreadPoolExecutor(num_cores()) as pool:
        return list(pool.map(_public_power, terms))


def _public_power(term: Term) -> int:
    gmpy2.get_context().allow_release_gil = True  # the context belongs to the pool's thread
    return power(*term)


def _compute(terms: Iterable[Term]) -> list[int]:
    return [power_secret(*term) for term in terms]


def _start(terms: Sequence[Term]) -> Child:
    # -P: without it Python would import from the working directory first, whoever writes there
    child = Child([sys.executable, "-P", "-m", __name__], own_group=False)
    child.orders.write(_encode(value for term in terms for value in term))
    child.orders.close()
    return child


def _collect(child: Child, count: int) -> list[int]:
    values = _decode(child.answers.read())
    child.bury()
    if child.returncode != 0 or len(values) != count:
        raise RuntimeError("a worker process for Paillier powers failed")
    return values


def _encode(values: Iterable[int]) -> bytes:
    writer = Writer()
    for value in values:
        writer.framed(int(value).to_bytes((int(value).bit_length() + 7) // 8, "little"))
    return writer.done()


def _decode(data: bytes) -> list[int]:
    reader, values, left = Reader(data), [], len(data)
    while left:
        value = reader.framed()
        values.append(mpz(int.from_bytes(value, "little")))
        left -= 4 + len(value)
    return values


if __name__ == "__main__":
    received = _decode(sys.stdin.buffer.read())
    answers = _compute(zip(received[0::3], received[1::3], received[2::3], strict=True))
    sys.stdout.buffer.write(_encode(answers))
