"""An independent verifier of contribution proofs: hashlib, plain integers, RFC 9496 and ChaCha12 by hand."""

import hashlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from anofel.committee.context import IterationContext, PostContext, TaskLimits
from tests.committee import plain_ristretto as group
from tests.committee import plain_transcript as transcript

Q, N, L = 70368744067073, 2048, group.L
ROWS, RELATIONS, NORM_BITS, SECRET_BITS, RANGE_ROWS = 256, 3, 92, 24, 128
FIRST, SECOND = 2 * ROWS + NORM_BITS + SECRET_BITS, RELATIONS + RANGE_ROWS
COLUMNS = 2 * ROWS + RELATIONS
PROOF_BYTES = 32 + 10 * 32 + RANGE_ROWS * 15 + (FIRST + SECOND + 6) * 32
DOMAIN = "anofel/1/committee/lattice/contribution"


@dataclass
class Statement:
    context: PostContext
    limits: TaskLimits
    key_id: bytes
    keys: list[bytes]
    """pk_0 … pk_{N−1}, then Y."""
    bit: bytes
    r: bytes
    payload: bytes


def failing(statement: Statement) -> list[str]:
    """Return the names of the equations that do not hold; for vectors of one block."""
    assert statement.limits.length <= N
    widths = Widths(statement.limits)
    places = [Place(widths, *chosen) for chosen in statement.limits.ranges]
    entries = sum(1 + 2 * place.bits for place in places)
    packed, wrapped = statement.payload[: N * widths.w // 8], statement.payload[N * widths.w // 8 :][: N * 32]
    proof = Proof(statement.payload[N * widths.w // 8 + N * 32 :], entries)
    if not all(2**60 <= p < 2**116 - 2**60 for p in proof.shown):
        return ["range"]
    fields = [*covered(statement, widths, wrapped, packed), ("salt", proof.salt)]
    t, tau = ternary(fields, "T"), ternary(fields, "tau")
    fields.append(("commitment", proof.points[0]))
    rho = residues(stream(seed(fields, "rho"), 8 * 2 * RELATIONS * ROWS), RELATIONS * ROWS)
    fields.append(("commitment", proof.points[1]))
    rows = np.frombuffer(stream(seed(fields, "rows"), 68 * RANGE_ROWS), np.uint8).reshape(RANGE_ROWS, 68)
    m = np.unpackbits(rows, axis=1, bitorder="little")[:, : COLUMNS + len(places)]
    fields.append(("masked sums", b"".join(p.to_bytes(15, "little") for p in proof.shown)))
    weights = {
        name: weight_list(fields, name, count)
        for name, count in (
            ("relations", RELATIONS),
            ("secret", ROWS),
            ("range", RANGE_ROWS),
            ("squares", 2 + NORM_BITS + SECRET_BITS + sum(2 * place.bits for place in places)),
            ("coordinates", 2 * len(places)),
        )
    }
    c = transcript.scalar(DOMAIN, [*fields, ("first messages", b"".join(proof.points[2:]))])

    # U = ⟨f, c̃⟩ and V = Aᵀf for f = Tᵀρ
    lifted = lift(packed, widths.w)
    a = public_coefficients(statement.context.iteration, statement.key_id)
    gamma, on_w, omega, xi = weights["relations"], weights["secret"], weights["range"], weights["squares"]
    on_secret = [-value % L for value in times(tau, on_w)]
    first, second = [0] * FIRST, [0] * SECOND
    columns = times(m, omega)
    for i in range(ROWS):
        first[i], first[ROWS + i] = columns[i], columns[ROWS + i] + on_w[i]
    constant = sum(o * p for o, p in zip(omega, proof.shown, strict=True))
    for number, g in enumerate(gamma):
        relation = rho[number * ROWS : (number + 1) * ROWS]
        f = [value % Q for value in times(t, relation)]
        constant += g * (sum(x * word for x, word in zip(f, lifted, strict=True)) % Q)
        for j, v in enumerate(transposed_product(a, f)):
            on_secret[j] += g * v
        for i in range(ROWS):
            first[i] += g * relation[i]
        second[number] = columns[2 * ROWS + number] - g * Q
    second[RELATIONS:] = omega

    xi, on_bits = xi[: 2 + NORM_BITS + SECRET_BITS], xi[2 + NORM_BITS + SECRET_BITS :]
    squares = [xi[0]] * ROWS + [xi[1]] * ROWS + xi[2:]
    linear = [0] * (2 * ROWS)
    linear += [xi[0] * 2**i - xi[2 + i] for i in range(NORM_BITS)]
    linear += [xi[1] * 2**i - xi[2 + NORM_BITS + i] for i in range(SECRET_BITS)]
    of_bit = 0
    for number, place in enumerate(places):
        there, room = weights["coordinates"][2 * number : 2 * number + 2]
        row = [a[place.at - i] if i <= place.at else -a[N + place.at - i] for i in range(N)]
        for j, value in enumerate(row):
            on_secret[j] += there * (
                value - Q if value > Q // 2 else value + Q if value < -(Q // 2) else value
            )
        first += [columns[COLUMNS + number] - there * Q]
        first += [(there + room) * 2**i for i in range(place.bits)] + [room * 2**i for i in range(place.bits)]
        squares += [0, *on_bits[: 2 * place.bits]]
        linear += [0, *(-weight for weight in on_bits[: 2 * place.bits])]
        on_bits = on_bits[2 * place.bits :]
        of_bit += there * place.low - room * place.span
        constant += there * (lifted[place.at] + place.error) + room * 2 * place.error

    x1, x2 = proof.scalars[: FIRST + entries], proof.scalars[FIRST + entries : FIRST + entries + SECOND]
    rho1, rho2, r, k, b, cross = proof.scalars[FIRST + entries + SECOND :]
    quadratic = sum(x * (s * x + c * li) for x, s, li in zip(x1, squares, linear, strict=True))
    quadratic -= c * b * xi[0] * (widths.one_squared - widths.zero_squared)
    quadratic -= c * c * (xi[0] * widths.zero_squared + xi[1] * 225 * 40068)
    committed = sum(p * x for p, x in zip(first + second, x1 + x2, strict=True)) + of_bit * b

    generators, h = make_generators(entries)
    g_point, count_key = group.BASE, group.decode(statement.keys[N])
    x1_point, x2_point, *messages = (group.decode(point) for point in proof.points)
    keys = [group.decode(key) for key in statement.keys[:N]]
    secrets = [group.decode(wrapped[32 * j : 32 * j + 32]) for j in range(N)]
    u, v = group.decode(statement.bit[:32]), group.decode(statement.bit[32:])
    sums = {
        "first": (
            [*x1, rho1, -1, -c],
            [*generators[:FIRST], *generators[FIRST + SECOND :], h, messages[0], x1_point],
        ),
        "second": ([*x2, rho2, -1, -c], [*generators[FIRST : FIRST + SECOND], h, messages[1], x2_point]),
        "linear": (
            [r * w for w in on_secret] + [-c * w for w in on_secret] + [c * constant - committed, -1],
            [*keys, *secrets, g_point, messages[2]],
        ),
        "key": ([r, -1, -c], [g_point, messages[3], group.decode(statement.r)]),
        "bit U": ([k, -1, -c], [g_point, messages[4], u]),
        "bit V": ([k, b, -1, -c], [count_key, g_point, messages[5], v]),
        "quadratic": ([quadratic, cross, -c, -1], [g_point, h, messages[6], messages[7]]),
    }
    return [name for name, (scalars, points) in sums.items() if not is_zero(scalars, points)]


class Widths:
    """b, g, w, β₀² and β₁² from the rules of the documentation."""

    def __init__(self, limits: TaskLimits) -> None:
        assert limits.norm_bound is not None
        n, g = limits.max_posts, 1
        while 64 * n >= 12 * 4 ** (g - 1):
            g += 1
        norm = limits.norm_bound + (root_above(N) >> (g + 1)) + 1
        room = limits.bound * n + -(-57 * limits.max_liars * norm // 20)
        self.b = 1
        while 2 * room + 1 > 2**self.b or 23 * norm > 2**self.b:
            self.b += 1
        self.w = self.b + g
        variance = -(-Q * Q * 2**16 // (12 * 4**self.w)) + 1_061_684
        noise = -(-variance * (N + root_above(45 * N)) // 2**16)
        one = -(-Q * limits.norm_bound // 2**self.b) + root_above(noise)
        self.zero_squared, self.one_squared = 225 * noise, 225 * one * one


class Place:
    """A range in Z_q: lo, span, E and the bits of what is left."""

    def __init__(self, widths: Widths, coordinate: int, low: int, high: int) -> None:
        self.at, self.low = coordinate, Q * low // 2**widths.b
        self.span = -(-Q * high // 2**widths.b) - self.low
        self.error = 32 + Q // 2 ** (widths.w + 1) + 2
        self.bits = (self.span + 2 * self.error).bit_length()


class Proof:
    def __init__(self, data: bytes, entries: int) -> None:
        assert len(data) == PROOF_BYTES + 32 * entries
        self.salt = data[:32]
        self.points = [data[32 + 32 * i : 64 + 32 * i] for i in range(10)]
        shown, rest = data[352 : 352 + RANGE_ROWS * 15], data[352 + RANGE_ROWS * 15 :]
        self.shown = [int.from_bytes(shown[15 * i : 15 * i + 15], "little") for i in range(RANGE_ROWS)]
        self.scalars = [int.from_bytes(rest[i : i + 32], "little") for i in range(0, len(rest), 32)]
        assert all(scalar < L for scalar in self.scalars)


def covered(statement: Statement, widths: Widths, wrapped: bytes, packed: bytes) -> transcript.Fields:
    def number(value: int | None) -> bytes:
        return (value or 0).to_bytes(8, "little")

    ranges: transcript.Fields = []
    for coordinate, low, high in statement.limits.ranges:
        ends = b"".join(end.to_bytes(8, "little", signed=True) for end in (low, high))
        ranges += [("ranged coordinate", number(coordinate)), ("range", ends)]
    post, where, limits = statement.context, statement.context.iteration, statement.limits
    return [
        ("genesis", where.genesis),
        ("task", where.task),
        ("iteration", number(where.iteration)),
        ("committee key", statement.key_id),
        ("position", number(where.position)),
        ("scope", where.scope),
        ("nullifier", post.nullifier),
        ("tag", post.tag),
        ("pk_sig", post.pk_sig),
        ("length", number(limits.length)),
        ("bound", number(limits.bound)),
        ("sum bits", number(widths.b)),
        ("wire bits", number(widths.w)),
        ("norm", number(limits.norm_bound)),
        ("bound of a zero", widths.zero_squared.to_bytes(16, "little")),
        ("bound of a one", widths.one_squared.to_bytes(16, "little")),
        ("bound of the secret", (225 * 40068).to_bytes(16, "little")),
        *ranges,
        ("count key", statement.keys[N]),
        ("encrypted bit", statement.bit),
        ("R", statement.r),
        ("wrapped secret", wrapped),
        ("words", packed),
    ]


# Challenges


def seed(fields: transcript.Fields, use: str) -> bytes:
    return transcript.digest(DOMAIN, [*fields, ("challenge", use.encode())])[:32]


def stream(key: bytes, length: int) -> bytes:
    """ChaCha12 with a 64-bit counter and stream 0."""
    count = -(-length // 64)
    state = np.zeros((16, count), dtype=np.uint32)
    state[:4] = np.frombuffer(b"expand 32-byte k", "<u4")[:, None]
    state[4:12] = np.frombuffer(key, "<u4")[:, None]
    state[12] = np.arange(count)
    x = state.copy()

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for to, by, turn, shift in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[to] += x[by]
            x[turn] ^= x[to]
            x[turn] = x[turn] << np.uint32(shift) | x[turn] >> np.uint32(32 - shift)

    for _ in range(6):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return (x + state).T.astype("<u4").tobytes()[:length]


def ternary(fields: transcript.Fields, use: str) -> NDArray[np.int8]:
    """256 rows of plus bits less minus bits."""
    data = np.frombuffer(stream(seed(fields, use), 2 * 32 * N), np.uint8).reshape(2, 32, N)
    bits = np.unpackbits(data, axis=1, bitorder="little").astype(np.int8)
    return bits[0] - bits[1]


def residues(data: bytes, count: int) -> list[int]:
    found = (int.from_bytes(data[i : i + 8], "little") % 2**46 for i in range(0, len(data), 8))
    return [value for value in found if value < Q][:count]


def weight_list(fields: transcript.Fields, use: str, count: int) -> list[int]:
    data = stream(seed(fields, use), 16 * count)
    return [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]


# Vectors


def times(matrix: "NDArray[np.int8] | NDArray[np.uint8]", weights: list[int]) -> list[int]:
    """Weights times a matrix of small entries, in exact integers."""
    return [int(value) for value in np.array(weights, dtype=object) @ matrix.astype(object)]


def root_above(value: int) -> int:
    return math.isqrt(value - 1) + 1


def lift(packed: bytes, w: int) -> list[int]:
    bits = int.from_bytes(packed, "little")
    return [((bits >> (k * w) & (2**w - 1)) * Q + 2 ** (w - 1) >> w) % Q for k in range(N)]


def transposed_product(a: list[int], f: list[int]) -> list[int]:
    """V_j = Σ_k a_k·f_{j+k}, negated where the index wraps around: by one product of large integers."""

    def packed(values: list[int]) -> int:
        return int.from_bytes(b"".join(value.to_bytes(16, "little") for value in values), "little")

    product = (packed(f) * packed(a[::-1])).to_bytes(32 * N, "little")
    slots = [int.from_bytes(product[16 * i : 16 * i + 16], "little") for i in range(2 * N)]
    # Slot N − 1 + j holds the sum without wrapping, slot j − 1 the part that wraps.
    return [(slots[N - 1 + j] - (slots[j - 1] if j else 0)) % Q for j in range(N)]


@cache
def public_coefficients(iteration: IterationContext, key_id: bytes) -> list[int]:
    """a_0 from SHAKE128, and its coefficients by Lagrange's formula at the roots of X^N + 1."""
    name = transcript.digest(
        "anofel/1/committee/lattice/public",
        [
            ("genesis", iteration.genesis),
            ("task", iteration.task),
            ("iteration", iteration.iteration.to_bytes(8, "little")),
            ("committee key", key_id),
        ],
    )[:32]
    data = hashlib.shake_128(b"anofel/1/committee/lattice/a" + name + bytes(8)).digest(6 * 4 * N)
    values: list[int] = []
    for start in range(0, len(data), 6):
        candidate = int.from_bytes(data[start : start + 6], "little") & (2**46 - 1)
        if candidate < Q and len(values) < N:
            values.append(candidate)
    exponent = (Q - 1) // (2 * N)
    root = next(r for b in range(2, 100) if pow(r := pow(b, exponent, Q), N, Q) == Q - 1)
    powers = [1]
    for _ in range(2 * N - 1):
        powers.append(powers[-1] * root % Q)
    places = [(2 * int(f"{i:011b}"[::-1], 2) + 1) % (2 * N) for i in range(N)]
    inverse_n = pow(N, -1, Q)
    return [
        inverse_n * sum(v * powers[-place * k % (2 * N)] for v, place in zip(values, places, strict=True)) % Q
        for k in range(N)
    ]


# Points


@cache
def make_generators(entries: int) -> tuple[list[group.Point], group.Point]:
    def point(number: int) -> group.Point:
        label = b"anofel/1/committee/lattice/contribution/generator"
        return from_uniform(hashlib.sha512(label + number.to_bytes(8, "little")).digest())

    return [point(number) for number in range(1, FIRST + SECOND + entries + 1)], point(0)


SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235


def from_uniform(data: bytes) -> group.Point:
    """RFC 9496, 4.3.4."""
    halves = (int.from_bytes(data[i : i + 32], "little") % 2**255 % group.P for i in (0, 32))
    return group.add(*(_map(half) for half in halves))


def _map(t: int) -> group.Point:
    p, d = group.P, group.D
    r = group.SQRT_M1 * t * t % p
    u, v = (r + 1) * (1 - d * d) % p, (-1 - r * d) * (r + d) % p
    square, s = group._sqrt_ratio(u, v)
    if not square:
        other = s * t % p
        s = other if other & 1 else -other % p
    c = -1 if square else r
    n = (c * (r - 1) * (d - 1) ** 2 - v) % p
    w0, w1, w2, w3 = 2 * s * v % p, n * SQRT_AD_MINUS_ONE % p, (1 - s * s) % p, (1 + s * s) % p
    return w0 * w3 % p, w2 * w1 % p, w1 * w3 % p, w0 * w2 % p


def is_zero(scalars: list[int], points: list[group.Point]) -> bool:
    """Whether Σ scalar·point is neutral: digits of eight bits, one bucket for each."""
    digits = [(scalar % L).to_bytes(32, "little") for scalar in scalars]
    total = group.NEUTRAL
    for window in range(31, -1, -1):
        for _ in range(8):
            total = group.add(total, total)
        buckets: list[group.Point | None] = [None] * 256
        for digit, point in zip(digits, points, strict=True):
            if value := digit[window]:
                found = buckets[value]
                buckets[value] = point if found is None else group.add(found, point)
        running = group.NEUTRAL
        for bucket in buckets[:0:-1]:
            running = running if bucket is None else group.add(running, bucket)
            total = group.add(total, running)
    return group.encode(total) == bytes(32)
