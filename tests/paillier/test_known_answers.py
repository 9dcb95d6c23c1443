"""Everything again with plain Python integers and textbook formulas."""

import hashlib
import itertools
import math

import numpy as np
import pytest

from anofel.committee.context import TaskLimits
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.committee.paillier.arithmetic.parameters import RANDOMISER_BITS
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.contribution import prepare
from anofel.committee.paillier.key import Origin
from anofel.committee.paillier.total import open_ciphertexts, partial_decrypt
from tests.paillier.dealer import insecure_deal
from tests.paillier.support import ITERATION, TOY_BITS, deal_committee, post, shape_of

LIMITS = TaskLimits(length=40, bound=1000, max_posts=64, min_clients=2)


def fixed_committee():
    shape = shape_of(3, 2)
    count = CountKey(shape=shape, public=b"\x01" * 32, verification_shares=(b"\x02" * 32,) * 3)
    secrets = [SecretCountShare(member=i, scalar=b"\x03" * 32) for i in shape.members]
    return insecure_deal(TOY_BITS, count, secrets, SeededRandomness(b"k" * 32, "known answer"))


def length_prefixed(label: str, data: bytes) -> bytes:
    return len(label).to_bytes(2, "little") + label.encode() + len(data).to_bytes(8, "little") + data


def textbook_h(modulus: int) -> int:
    """h = H(N)² by hand."""
    absorbed = length_prefixed("protocol", b"anofel/1/paillier/randomiser-base")
    absorbed += length_prefixed("modulus", modulus.to_bytes((modulus.bit_length() + 7) // 8, "little"))
    absorbed += length_prefixed("challenge", b"h")
    length = (modulus.bit_length() + 7) // 8 + 16
    return int.from_bytes(hashlib.shake_256(absorbed).digest(length), "little") ** 2 % modulus


def test_ciphertexts_are_textbook_paillier_with_the_stated_randomisers() -> None:
    key, _ = fixed_committee()
    n, n2 = key.modulus, key.modulus**2
    source = SeededRandomness(b"r" * 32, "client")
    exponents = [source.bits(RANDOMISER_BITS) for _ in range(Packing.of(LIMITS, TOY_BITS).count)]
    values = np.arange(-20, 20, dtype=np.int64) * 50
    prepared = prepare(key, post(1), LIMITS, None, SeededRandomness(b"r" * 32, "client"))
    payload = prepared.encrypt(values).payload
    bits = (1000 * 64).bit_length() + 1
    slots = (TOY_BITS - 1 - 40) // bits
    h_s = pow(textbook_h(n), n, n2)
    for index, alpha in enumerate(exponents):
        chunk = values.tolist()[index * slots : (index + 1) * slots]
        m = sum(x << (bits * i) for i, x in enumerate(chunk))
        expected = pow(1 + n, m % n, n2) * pow(h_s, alpha, n2) % n2
        assert int.from_bytes(payload[index * 128 : (index + 1) * 128], "little") == expected


def factor(key, shares) -> tuple[int, int]:
    """Find p and q from a multiple of the order, as anybody with all shares can."""
    secret = 2 * shares[0].value - shares[1].value  # F(0) of a line through F(1), F(2)
    odd = secret
    while odd % 2 == 0:
        odd //= 2
    for base in itertools.count(2):
        x = pow(base, odd, key.modulus)
        while x not in (1, key.modulus - 1):
            y = x * x % key.modulus
            if y == 1:
                p = math.gcd(x - 1, key.modulus)
                return p, key.modulus // p
            x = y
    raise AssertionError


def test_threshold_decryption_agrees_with_textbook_decryption() -> None:
    key, shares = fixed_committee()
    p, q = factor(key, shares)
    assert p * q == key.modulus
    assert p % 4 == q % 4 == 3
    lam, n, n2 = math.lcm(p - 1, q - 1), key.modulus, key.modulus**2
    plaintexts = [0, 1, -1, 12345678901234567890, -(n // 2), n // 2]
    ciphertexts = [pow(1 + n, m % n, n2) * pow(7 + i, n, n2) % n2 for i, m in enumerate(plaintexts)]
    for c, m in zip(ciphertexts, plaintexts, strict=True):
        assert (pow(c, lam, n2) - 1) // n * pow(lam, -1, n) % n == m % n
    made = {share.member: partial_decrypt(key, share, ciphertexts, b"x") for share in shares}
    for share in shares:
        expected = [pow(c, 2 * 6 * share.value, n2) for c in ciphertexts]
        assert [int(v) for v in made[share.member].values] == expected
    for pair in itertools.combinations(made, 2):
        assert list(open_ciphertexts(key, {m: made[m].values for m in pair})) == plaintexts


def test_verification_keys_are_powers_of_a_public_square() -> None:
    key, shares = fixed_committee()
    base = int(key.verification_base)
    assert [pow(base, 6 * share.value, key.modulus**2) for share in shares] == list(key.verification_keys)


def test_wire_bytes_do_not_move() -> None:
    """A change of these hashes is a change of the wire format."""
    key, _ = fixed_committee()
    values = np.arange(40, dtype=np.int64)
    made = prepare(key, post(1), LIMITS, None, SeededRandomness(b"r" * 32, "client")).encrypt(values)
    assert ITERATION.iteration == 7
    assert hashlib.sha256(key.to_bytes()).hexdigest()[:16] == "c76ebbb221aa0bd2"
    assert made.envelope.payload_sha256.hex()[:16] == "40c9834ec4a06cf5"
    assert made.envelope.proof.hex()[:16] == "7aaf56ce2a38a27a"
    assert made.envelope.payload_length == 2 * 128 + 16 + 64 + 64


def test_the_dealer_says_what_it_is() -> None:
    key, _ = fixed_committee()
    assert key.origin is Origin.INSECURE_DEALER
    assert "INSECURE_DEALER" in repr(key)


@pytest.mark.parametrize(("n", "t"), [(2, 2), (3, 2), (4, 3), (5, 3), (5, 5)])
def test_every_quorum_opens_the_same_sum(n: int, t: int) -> None:
    group = deal_committee(n, t)
    vectors = [group.vector(seed) for seed in range(3)]
    total = group.add(vectors)
    for members in itertools.combinations(range(1, n + 1), t):
        assert np.array_equal(group.decrypt(total, members), sum(vectors))
