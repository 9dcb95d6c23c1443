"""BN254 in plain Python integers, from the formulas: slow, short, and nothing of the package in it."""

from __future__ import annotations

P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
LOOP = 29793968203157093288
COFACTOR = 2 * P - R

Fq2 = tuple[int, int]
Fq12 = list[int]
G1 = tuple[int, int] | None
G2 = tuple[Fq2, Fq2] | None

ONE: G1 = (1, 2)
TWO: G2 = (
    (
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
    ),
    (
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
    ),
)


def mul2(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] * b[0] - a[1] * b[1]) % P, (a[0] * b[1] + a[1] * b[0]) % P


def add2(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] + b[0]) % P, (a[1] + b[1]) % P


def sub2(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] - b[0]) % P, (a[1] - b[1]) % P


def inv2(a: Fq2) -> Fq2:
    n = pow(a[0] * a[0] + a[1] * a[1], -1, P)
    return a[0] * n % P, -a[1] * n % P


def pow2(a: Fq2, exponent: int) -> Fq2:
    result: Fq2 = (1, 0)
    for bit in bin(exponent)[2:]:
        result = mul2(result, result)
        if bit == "1":
            result = mul2(result, a)
    return result


B2 = mul2((3, 0), inv2((9, 1)))


def add_g1(a: G1, b: G1) -> G1:
    if a is None or b is None:
        return b if a is None else a
    if a[0] == b[0]:
        if (a[1] + b[1]) % P == 0:
            return None
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def slope_g2(a: tuple[Fq2, Fq2], b: tuple[Fq2, Fq2]) -> Fq2:
    if a[0] == b[0]:
        return mul2(mul2((3, 0), mul2(a[0], a[0])), inv2(add2(a[1], a[1])))
    return mul2(sub2(b[1], a[1]), inv2(sub2(b[0], a[0])))


def add_g2(a: G2, b: G2) -> G2:
    if a is None or b is None:
        return b if a is None else a
    if a[0] == b[0] and add2(a[1], b[1]) == (0, 0):
        return None
    slope = slope_g2(a, b)
    x = sub2(sub2(mul2(slope, slope), a[0]), b[0])
    return x, sub2(mul2(slope, sub2(a[0], x)), a[1])


def times(point, scalar: int, add):  # type: ignore[no-untyped-def]
    result = None
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def combine(points, scalars, add):  # type: ignore[no-untyped-def]
    """Σ scalar·point, with buckets of eight bits."""
    total = None
    for shift in range(248, -1, -8):
        for _ in range(8):
            total = add(total, total)
        buckets = [None] * 256
        for point, scalar in zip(points, scalars, strict=True):
            digit = scalar >> shift & 255
            buckets[digit] = add(buckets[digit], point)
        running = total_here = None
        for bucket in reversed(buckets[1:]):
            running = add(running, bucket)
            total_here = add(total_here, running)
        total = add(total, total_here)
    return total


def negative(point: G1) -> G1:
    return None if point is None else (point[0], -point[1] % P)


def on_g1(point: G1) -> bool:
    return point is None or (point[1] ** 2 - point[0] ** 3 - 3) % P == 0


def on_g2(point: G2) -> bool:
    if point is None:
        return True
    x, y = point
    on_curve = mul2(y, y) == add2(mul2(x, mul2(x, x)), B2)
    return on_curve and times(point, R, add_g2) is None


def mul12(a: Fq12, b: Fq12) -> Fq12:
    """Modulo w^12 − 18·w^6 + 82, where w^6 = 9 + i."""
    product = [0] * 23
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                product[i + j] += x * y
    for i in range(22, 11, -1):
        product[i - 6] += 18 * product[i]
        product[i - 12] -= 82 * product[i]
    return [x % P for x in product[:12]]


def place(a: Fq2, power: int) -> Fq12:
    """a·w^power, for powers below 6."""
    result = [0] * 12
    result[power], result[power + 6] = (a[0] - 9 * a[1]) % P, a[1]
    return result


def line(a: tuple[Fq2, Fq2], b: tuple[Fq2, Fq2], at: tuple[int, int]) -> Fq12:
    slope = slope_g2(a, b)
    parts = (
        place((at[1], 0), 0),
        place(mul2(slope, (-at[0] % P, 0)), 1),
        place(sub2(mul2(slope, a[0]), a[1]), 3),
    )
    return [sum(values) % P for values in zip(*parts, strict=True)]


def frobenius(point: tuple[Fq2, Fq2]) -> tuple[Fq2, Fq2]:
    (x, y), xi = point, (9, 1)
    x, y = (x[0], -x[1] % P), (y[0], -y[1] % P)
    return mul2(x, pow2(xi, (P - 1) // 3)), mul2(y, pow2(xi, (P - 1) // 2))


def miller(p: G1, q: G2) -> Fq12:
    one = [1] + [0] * 11
    if p is None or q is None:
        return one
    f, t = one, q
    for bit in bin(LOOP)[3:]:
        f = mul12(mul12(f, f), line(t, t, p))
        t = add_g2(t, t)  # type: ignore[assignment]
        if bit == "1":
            f = mul12(f, line(t, q, p))
            t = add_g2(t, q)  # type: ignore[assignment]
    first = frobenius(q)
    second = frobenius(first)
    f = mul12(f, line(t, first, p))
    t = add_g2(t, first)  # type: ignore[assignment]
    return mul12(f, line(t, (second[0], sub2((0, 0), second[1])), p))


def product_is_one(pairs: list[tuple[G1, G2]]) -> bool:
    """Whether Π e(p, q) = 1."""
    f = [1] + [0] * 11
    for p, q in pairs:
        f = mul12(f, miller(p, q))
    result = [1] + [0] * 11
    for bit in bin((P**12 - 1) // R)[2:]:
        result = mul12(result, result)
        if bit == "1":
            result = mul12(result, f)
    return result == [1] + [0] * 11


def same_ratio(a: G1, ax: G1, d: G2, dx: G2) -> bool:
    """Whether e(a, dx) = e(ax, d)."""
    return product_is_one([(a, dx), (negative(ax), d)])


def root(x: int) -> int | None:
    y = pow(x, (P + 1) // 4, P)
    return y if y * y % P == x % P else None


def root2(a: Fq2) -> Fq2 | None:
    norm = root((a[0] * a[0] + a[1] * a[1]) % P)
    if norm is None:
        return None
    half = pow(2, -1, P)
    for sign in (norm, -norm):
        x = root((a[0] + sign) * half % P)
        if x:
            found = (x, a[1] * pow(2 * x, -1, P) % P)
            if mul2(found, found) == a:
                return found
    return None
