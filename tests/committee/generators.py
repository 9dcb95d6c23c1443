"""G and H of the dataset type commitment, derived here again from their rule.

The first counter for which y = SHA-512(length ‖ "anofel/1/generator" ‖ name ‖ counter) mod r belongs
to a point of Baby Jubjub; of its two x the even one; times the cofactor 8.
"""

import hashlib

from tests.committee.plain_ballot import FIELD, A, Affine, D, jub_add


def _square_root(value: int) -> int | None:
    """Tonelli-Shanks modulo the field, whose 2-adicity is 28."""
    if pow(value, (FIELD - 1) // 2, FIELD) != 1:
        return None
    odd = (FIELD - 1) >> 28
    c, t, r, m = pow(5, odd, FIELD), pow(value, odd, FIELD), pow(value, (odd + 1) // 2, FIELD), 28
    while t != 1:
        i, power = 0, t
        while power != 1:
            power, i = power * power % FIELD, i + 1
        b = pow(c, 1 << (m - i - 1), FIELD)
        m, c = i, b * b % FIELD
        t, r = t * c % FIELD, r * b % FIELD
    return r


def derive(name: bytes) -> Affine:
    prefix = b"anofel/1/generator"
    for counter in range(256):
        digest = hashlib.sha512(bytes([len(prefix)]) + prefix + name + bytes([counter])).digest()
        y = int.from_bytes(digest, "little") % FIELD
        x = _square_root((1 - y * y) * pow(A - D * y * y, -1, FIELD) % FIELD)
        if x is not None:
            point = (FIELD - x if x & 1 else x, y)
            for _ in range(3):
                point = jub_add(point, point)
            return point
    raise AssertionError("half of all counters succeed")


G, H = derive(b"G"), derive(b"H")
