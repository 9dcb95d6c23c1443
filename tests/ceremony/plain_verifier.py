"""A second verifier of one statement's ceremony, from ``docs/ceremony-format.md``, in plain Python.

It takes the powers of tau, the constraints as ``.r1cs``, the first key and the last, and the beacon; it says
what is wrong first, or returns. It shares no code with the package.
"""

import hashlib
import secrets
import struct

from tests.ceremony import plain_curve as c

MONTGOMERY = pow(2, -256, c.P)
OWNERSHIP = 0


class Wrong(Exception):
    """What does not hold."""


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Wrong(what)


def sections(data: bytes, kind: bytes) -> dict[int, bytes]:
    need(data[:4] == kind, "kind")
    found, at = {}, 12
    for _ in range(int.from_bytes(data[8:12], "little")):
        number, length = struct.unpack_from("<IQ", data, at)
        need(number not in found, "a section twice")
        need(at + 12 + length <= len(data), "truncated")
        found[number] = data[at + 12 : at + 12 + length]
        at += 12 + length
    need(at == len(data), "trailing bytes")
    return found


def number(data: bytes) -> int:
    value = int.from_bytes(data, "little")
    need(value < c.P, "canonical")
    return value * MONTGOMERY % c.P


def g1(data: bytes) -> c.G1:
    point = (number(data[:32]), number(data[32:64])) if any(data) else None
    need(c.on_g1(point), "curve")
    return point


def g2(data: bytes, *, subgroup: bool = True) -> c.G2:
    if not any(data):
        return None
    x0, x1, y0, y1 = (number(data[i : i + 32]) for i in range(0, 128, 32))
    point = ((x0, x1), (y0, y1))
    need(not subgroup or c.on_g2(point), "subgroup")
    return point


def many(read, data: bytes, size: int, **options):  # type: ignore[no-untyped-def]
    need(len(data) % size == 0, "length")
    return [read(data[i : i + size], **options) for i in range(0, len(data), size)]


def hashed1(point: c.G1) -> bytes:
    return bytes(64) if point is None else b"".join(x.to_bytes(32) for x in point)


def hashed2(point: c.G2) -> bytes:
    if point is None:
        return bytes(128)
    return b"".join(x.to_bytes(32) for pair in point for x in (pair[1], pair[0]))


class Stream:
    """ChaCha20 as the format uses it."""

    def __init__(self, seed: bytes) -> None:
        self.state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack(">8I", seed), 0, 0, 0, 0]
        self.words: list[int] = []

    def word(self) -> int:
        if not self.words:
            x = self.state.copy()
            for _ in range(10):
                for i, j, k, m in (
                    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
                ):  # fmt: skip
                    for a, b, d, turn in ((i, j, m, 16), (k, m, j, 12), (i, j, m, 8), (k, m, j, 7)):
                        x[a] = (x[a] + x[b]) & 0xFFFFFFFF
                        x[d] ^= x[a]
                        x[d] = (x[d] << turn | x[d] >> (32 - turn)) & 0xFFFFFFFF
            self.words = [(a + b) & 0xFFFFFFFF for a, b in zip(x, self.state, strict=True)]
            self.state[12] += 1
        return self.words.pop(0)

    def element(self, modulus: int) -> int:
        while True:
            limbs = [self.word() << 32 | self.word() for _ in range(4)]
            value = sum(limb << 64 * i for i, limb in enumerate(limbs)) & ((1 << 254) - 1)
            if value < modulus:
                return value * pow(2, -256, modulus) % modulus

    def g1(self) -> c.G1:
        while True:
            x, greater = self.element(c.P), self.word() & 1
            y = c.root((x**3 + 3) % c.P)
            if y is not None:
                return x, y if greater == (y > c.P // 2) else -y % c.P

    def g2(self) -> c.G2:
        while True:
            x, greater = (self.element(c.P), self.element(c.P)), self.word() & 1
            y = c.root2(c.add2(c.mul2(x, c.mul2(x, x)), c.B2))
            if y is not None:
                is_greater = (y[1] or y[0]) > c.P // 2
                y = y if greater == is_greater else c.sub2((0, 0), y)
                return c.times((x, y), c.COFACTOR, c.add_g2)


def roots_of_unity(n: int) -> int:
    return pow(5, (c.R - 1) // n, c.R)


def interpolate(values: list[int]) -> list[int]:
    """Coefficients of the polynomial with these values at the powers of ω_n, by the sum itself."""
    n = len(values)
    back = pow(roots_of_unity(n), -1, c.R)
    powers = [1]
    for _ in range(n - 1):
        powers.append(powers[-1] * back % c.R)
    scale = pow(n, -1, c.R)
    return [scale * sum(v * powers[i * j % n] for i, v in enumerate(values) if v) % c.R for j in range(n)]


def matrices(r1cs: bytes) -> tuple[list[list[dict[int, int]]], int, int]:
    """Rows of A, B and C, the number of variables and of public inputs."""
    found = sections(r1cs, b"r1cs")
    variables, outputs, inputs = struct.unpack_from("<III", found[1], 36)
    (rows,) = struct.unpack_from("<I", found[1], 36 + 16 + 8)
    at, read = 0, []
    for _ in range(rows):
        row = []
        for _ in range(3):
            (count,) = struct.unpack_from("<I", found[2], at)
            at += 4
            entries = {}
            for _ in range(count):
                (variable,) = struct.unpack_from("<I", found[2], at)
                entries[variable] = int.from_bytes(found[2][at + 4 : at + 36], "little")
                at += 36
            row.append(entries)
        read.append(row)
    public = outputs + inputs
    read += [[{i: 1}, {}, {}] for i in range(public + 1)]
    return read, variables, public


def factors(count: int) -> list[int]:
    return [secrets.randbits(128) for _ in range(count)]


def log_of(section: bytes) -> tuple[bytes, list[dict]]:  # type: ignore[type-arg]
    at, log = 68, []
    for _ in range(int.from_bytes(section[64:68], "little")):
        kind, length = struct.unpack_from("<II", section, at + 384)
        log.append(
            {
                "delta": g1(section[at : at + 64]),
                "s": g1(section[at + 64 : at + 128]),
                "sx": g1(section[at + 128 : at + 192]),
                "spx": g2(section[at + 192 : at + 320]),
                "challenge": section[at + 320 : at + 384],
                "kind": kind,
                "parameters": section[at + 392 : at + 392 + length],
            }
        )
        at += 392 + length
    need(at == len(section), "length of the log")
    return section[:64], log


def entry_bytes(entry: dict) -> bytes:  # type: ignore[type-arg]
    points = b"".join(hashed1(entry[name]) for name in ("delta", "s", "sx"))
    return points + hashed2(entry["spx"]) + entry["challenge"]


def check_first(powers: dict[int, bytes], first: dict[int, bytes], r1cs: bytes) -> None:
    rows, variables, public = matrices(r1cs)
    n = 1 << (len(rows) - 1).bit_length()
    tau1 = many(g1, powers[2][: 64 * (2 * n - 1)], 64)
    tau2 = many(g2, powers[3][: 128 * n], 128, subgroup=False)
    alpha, beta = many(g1, powers[4][: 64 * n], 64), many(g1, powers[5][: 64 * n], 64)
    header = first[2]
    need(header[84:148] == powers[4][:64], "alpha")
    need(header[148:212] == powers[5][:64], "beta")
    need(header[212:340] == powers[6], "beta in G2")
    a, b1 = many(g1, first[5], 64), many(g1, first[6], 64)
    b2 = many(g2, first[7], 128, subgroup=False)
    ic, el, h = many(g1, first[3], 64), many(g1, first[8], 64), many(g1, first[9], 64)
    need((len(a), len(ic), len(h)) == (variables, public + 1, n), "counts")
    r = factors(variables)
    values = [[sum(r[i] * x for i, x in row[m].items()) % c.R for row in rows] for m in range(3)]
    u, v, w = (interpolate(column + [0] * (n - len(rows))) for column in values)
    need(c.combine(a, r, c.add_g1) == c.combine(tau1[:n], u, c.add_g1), "A")
    need(c.combine(b1, r, c.add_g1) == c.combine(tau1[:n], v, c.add_g1), "B in G1")
    need(c.combine(b2, r, c.add_g2) == c.combine(tau2, v, c.add_g2), "B in G2")
    expected = c.combine(beta + alpha + tau1[:n], u + v + w, c.add_g1)
    need(c.combine(ic + el, r, c.add_g1) == expected, "IC or L")
    quotient = [c.add_g1(tau1[j + n], c.negative(tau1[j])) for j in range(n - 1)]
    r = factors(n)
    back = pow(roots_of_unity(2 * n), -1, c.R)
    half = -pow(2, -1, c.R)
    weights = [x * half * pow(back, j, c.R) % c.R for j, x in enumerate(interpolate(r))][: n - 1]
    need(c.combine(h, r, c.add_g1) == c.combine(quotient, weights, c.add_g1), "H")
    one, two = hashed1(c.ONE), hashed2(c.TWO)
    need(hashed2(g2(header[340:468])) == hashed2(g2(header[532:660])) == two, "gamma or delta")
    hashing = hashlib.blake2b(hashed1(alpha[0]) + hashed1(beta[0]) + hashed2(g2(powers[6])) + two + one + two)
    for points, write in ((ic, hashed1), (quotient, hashed1), (el, hashed1), (a, hashed1), (b1, hashed1)):
        hashing.update(len(points).to_bytes(4) + b"".join(map(write, points)))
    hashing.update(len(b2).to_bytes(4) + b"".join(map(hashed2, b2)))
    need(first[10][:64] == hashing.digest(), "circuit hash")


def check_chain(first: dict[int, bytes], last: dict[int, bytes], beacon: bytes) -> list[dict]:  # type: ignore[type-arg]
    for fixed in (1, 3, 4, 5, 6, 7):
        need(first[fixed] == last[fixed], f"section {fixed}")
    need(first[2][:468] == last[2][:468], "section 2")
    circuit, log = log_of(last[10])
    need(circuit == first[10][:64], "circuit hash")
    delta, before = c.ONE, circuit
    for place, entry in enumerate(log, start=1):
        challenge = hashlib.blake2b(before + hashed1(entry["s"]) + hashed1(entry["sx"])).digest()
        need(entry["challenge"] == challenge, f"challenge {place}")
        need(entry["sx"] not in (entry["s"], c.negative(entry["s"])), f"x {place}")
        sp = Stream(challenge[:32]).g2()
        need(c.same_ratio(entry["s"], entry["sx"], sp, entry["spx"]), f"knowledge {place}")
        need(c.same_ratio(delta, entry["delta"], sp, entry["spx"]), f"delta {place}")
        delta, before = entry["delta"], before + entry_bytes(entry)
    need(sum(entry["kind"] == 0 for entry in log) >= 2, "people")
    need(bool(log) and log[-1]["kind"] == 1 and all(e["kind"] == 0 for e in log[:-1]), "beacon")
    value = hashlib.sha256(b"anofel/1/ceremony-beacon" + bytes([OWNERSHIP]) + beacon).digest()
    need(log[-1]["parameters"].endswith(bytes([2, 10, 3, 32]) + value), "beacon's value")
    for _ in range(1 << 10):
        value = hashlib.sha256(value).digest()
    stream = Stream(value)
    x, s = stream.element(c.R), stream.g1()
    need((log[-1]["s"], log[-1]["sx"]) == (s, c.times(s, x, c.add_g1)), "beacon's points")
    need(g1(last[2][468:532]) == delta, "delta in G1")
    delta2 = g2(last[2][532:660])
    need(c.same_ratio(c.ONE, delta, c.TWO, delta2), "delta in G2")
    for name, section in (("L", 8), ("H", 9)):
        old, new = many(g1, first[section], 64), many(g1, last[section], 64)
        need(len(old) == len(new), name)
        r = factors(len(new))
        sums = c.combine(new, r, c.add_g1), c.combine(old, r, c.add_g1)
        need(c.same_ratio(*sums, c.TWO, delta2), name)
    return log


def check_together(logs: list[list[dict]]) -> None:  # type: ignore[type-arg]
    """Two keys of a ceremony, or more: one person for each place, and nothing in common."""
    for i, one in enumerate(logs):
        for other in logs[:i]:
            need(len(one) == len(other), "counts")
            for place, (mine, theirs) in enumerate(zip(one, other, strict=True), start=1):
                sp = Stream(theirs["challenge"][:32]).g2()
                for sx in (mine["sx"], c.negative(mine["sx"])):
                    need(not c.same_ratio(mine["s"], sx, sp, theirs["spx"]), f"same x {place}")
            last = other[-1]["delta"]
            need(one[-1]["delta"] not in (last, c.negative(last)), "same delta")


def digest(powers: bytes, shape: bytes, circuit: bytes, log: list[dict]) -> bytes:  # type: ignore[type-arg]
    """The transcript digest of a ceremony for ownership alone."""
    parts = [b"anofel/1/ceremony", hashlib.blake2b(powers).digest(), bytes([OWNERSHIP]), shape, circuit]
    parts.append(struct.pack("<I", len(log)))
    for entry in log:
        parts.append(hashlib.blake2b(entry_bytes(entry)).digest())
        parts.append(struct.pack("<II", entry["kind"], len(entry["parameters"])) + entry["parameters"])
    return hashlib.sha256(b"".join(parts)).digest()


def verify(powers: bytes, r1cs: bytes, shape: bytes, first: bytes, last: bytes, beacon: bytes) -> bytes:
    """Check everything and return the transcript digest."""
    one, end = sections(first, b"zkey"), sections(last, b"zkey")
    check_first(sections(powers, b"ptau"), one, r1cs)
    return digest(powers, shape, one[10][:64], check_chain(one, end, beacon))
