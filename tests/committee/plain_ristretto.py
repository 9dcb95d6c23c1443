"""ristretto255 in plain integers, from RFC 9496: a second implementation for known answers."""

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def _sqrt_ratio(u: int, v: int) -> tuple[bool, int]:
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    correct, flipped, flipped_i = check == u % P, check == -u % P, check == -u * SQRT_M1 % P
    if flipped or flipped_i:
        r = r * SQRT_M1 % P
    return correct or flipped, P - r if r & 1 else r


INV_SQRT_A_MINUS_D = _sqrt_ratio(1, (-1 - D) % P)[1]


def decode(data: bytes) -> Point:
    s = int.from_bytes(data, "little")
    assert s < P
    assert s & 1 == 0
    ss = s * s % P
    u1, u2 = (1 - ss) % P, (1 + ss) % P
    v = (-(D * u1 * u1) - u2 * u2) % P
    square, invsqrt = _sqrt_ratio(1, v * u2 * u2 % P)
    den_x = invsqrt * u2 % P
    den_y = invsqrt * den_x * v % P
    x = 2 * s * den_x % P
    x = P - x if x & 1 else x
    y = u1 * den_y % P
    t = x * y % P
    assert square
    assert t & 1 == 0
    assert y != 0
    return x, y, 1, t


def encode(point: Point) -> bytes:
    x0, y0, z0, t0 = point
    u1, u2 = (z0 + y0) * (z0 - y0) % P, x0 * y0 % P
    _, invsqrt = _sqrt_ratio(1, u1 * u2 * u2 % P)
    den1, den2 = invsqrt * u1 % P, invsqrt * u2 % P
    z_inv = den1 * den2 * t0 % P
    if t0 * z_inv % P & 1:
        x, y, den = y0 * SQRT_M1 % P, x0 * SQRT_M1 % P, den1 * INV_SQRT_A_MINUS_D % P
    else:
        x, y, den = x0, y0, den2
    if x * z_inv % P & 1:
        y = -y % P
    s = den * (z0 - y) % P
    return (P - s if s & 1 else s).to_bytes(32, "little")


def add(a: Point, b: Point) -> Point:
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e = (x1 * y2 + y1 * x2) % P
    f, g = (z1 * z2 - D * t1 * t2) % P, (z1 * z2 + D * t1 * t2) % P
    h = (y1 * y2 + x1 * x2) % P
    return e * f % P, g * h % P, f * g % P, e * h % P


def negate(a: Point) -> Point:
    return -a[0] % P, a[1], a[2], -a[3] % P


def multiply(scalar: int, point: Point) -> Point:
    result = NEUTRAL
    for bit in bin(scalar % L)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def powers(point: Point) -> list[Point]:
    """1, 2, 4, … times a point, for many multiplications of the same one."""
    table = [point]
    for _ in range(252):
        table.append(add(table[-1], table[-1]))
    return table


def multiply_table(scalar: int, table: list[Point]) -> Point:
    result = NEUTRAL
    for index, point in enumerate(table):
        if scalar >> index & 1:
            result = add(result, point)
    return result


BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def interpolate_at_zero(shares: dict[int, int]) -> int:
    """f(0) modulo L from f(i)."""
    total = 0
    for i, value in shares.items():
        weight = 1
        for j in shares:
            if j != i:
                weight = weight * j * pow(j - i, -1, L) % L
        total += weight * value
    return total % L
