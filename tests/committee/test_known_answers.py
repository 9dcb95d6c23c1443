"""The scheme against plain integers: hashlib, schoolbook products, and RFC 9496 by hand."""

import hashlib
import secrets

import numpy as np
import pytest

from anofel.committee.interface import Envelope
from tests.committee import plain_ristretto as group
from tests.committee import plain_transcript as transcript
from tests.committee.world import ITERATION, LIMITS, Committee, a_post, a_vector, contribute

Q = 70368744067073
N = 2048
B, G = 15, 5  # 2·16·1000 + 1 ≤ 2^15 and 8·√(16/12) < 2^4
W = B + G


def test_the_second_implementation_agrees_with_the_rfc() -> None:
    multiples = {
        2: "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
        3: "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
    }
    for scalar, expected in multiples.items():
        assert group.encode(group.multiply(scalar, group.BASE)).hex() == expected
    assert group.encode(group.NEUTRAL) == bytes(32)
    assert group.encode(group.multiply(group.L - 1, group.BASE)) == group.encode(group.negate(group.BASE))


def test_a_proof_of_plaintext_knowledge_made_by_hand_is_accepted(lattice: Committee) -> None:
    post = a_post(1)
    r, nonce = secrets.randbelow(group.L), secrets.randbelow(group.L)
    public, first = (group.encode(group.multiply(k, group.BASE)) for k in (r, nonce))
    challenge = transcript.scalar(
        "anofel/1/committee/lattice/plaintext-knowledge",
        [
            ("genesis", ITERATION.genesis),
            ("committee key", lattice.key.key_id),
            ("position", ITERATION.position.to_bytes(8, "little")),
            ("scope", ITERATION.scope),
            ("nullifier", post.nullifier),
            ("tag", post.tag),
            ("pk_sig", post.pk_sig),
            ("R", public),
            ("first message", first),
        ],
    )
    response = (nonce + challenge * r) % group.L
    length = lattice.scheme.payload_bytes(lattice.key, LIMITS)
    envelope = Envelope(
        proof=public + first + response.to_bytes(32, "little"),
        payload_length=length,
        payload_sha256=bytes(32),
    )
    lattice.scheme.verify_envelope(lattice.key, post, LIMITS, envelope)


def test_a_contribution_opens_in_plain_integers(lattice: Committee) -> None:
    contribution = contribute(lattice, 1)
    packed, wrapped = contribution.payload[: N * W // 8], contribution.payload[N * W // 8 :]
    secret = _unwrap(lattice, contribution.envelope.proof[:32], wrapped)
    assert all(-32 <= s <= 32 for s in secret)
    mask = _schoolbook(_public_coefficients(lattice), secret)
    bits = int.from_bytes(packed, "little")
    opened = []
    for k in range(N):
        word = bits >> (k * W) & (2**W - 1)
        distance = (word - (int(mask[k]) * 2**W + Q // 2) // Q) % 2**W
        distance -= 2**W if distance >= 2 ** (W - 1) else 0
        opened.append((distance + 2 ** (G - 1)) // 2**G)
        assert abs(distance - opened[-1] * 2**G) <= 1, "one post: the error is one rounding"
    assert opened == [*a_vector(1).tolist(), *([0] * (N - LIMITS.length))]


def test_required_bits_follow_from_bound_and_posts(lattice: Committee) -> None:
    assert lattice.scheme.required_bits(1000, 16) == W
    assert lattice.scheme.required_bits(32767, 512) == 32
    assert lattice.scheme.required_bits(32767, 1024) == 34
    assert lattice.scheme.required_bits(32767, 2**14) == 40


def _unwrap(committee: Committee, r: bytes, wrapped: bytes) -> list[int]:
    """s_j from C_j − x_j·R, with x_j interpolated from two members' shares."""
    raw = {member: share.to_bytes()[34:] for member, share in list(committee.shares.items())[1:]}
    table = group.powers(group.decode(r))
    logarithms = {
        group.encode(
            group.multiply(s, group.BASE) if s >= 0 else group.negate(group.multiply(-s, group.BASE))
        ): s
        for s in range(-32, 33)
    }
    secret = []
    for j in range(N):
        shares = {m: int.from_bytes(data[32 * j : 32 * j + 32], "little") for m, data in raw.items()}
        x = group.interpolate_at_zero(shares)
        masked = group.multiply_table(x, table)
        opened = group.add(group.decode(wrapped[32 * j : 32 * j + 32]), group.negate(masked))
        secret.append(logarithms[group.encode(opened)])
    return secret


def _public_coefficients(committee: Committee) -> list[int]:
    """a_0 from SHAKE128, and its coefficients by Lagrange's formula at the roots of X^N + 1."""
    seed = transcript.digest(
        "anofel/1/committee/lattice/public",
        [
            ("genesis", ITERATION.genesis),
            ("task", ITERATION.task),
            ("iteration", ITERATION.iteration.to_bytes(8, "little")),
            ("committee key", committee.key.key_id),
        ],
    )[:32]
    stream = hashlib.shake_128(b"anofel/1/committee/lattice/a" + seed + bytes(8)).digest(6 * 4 * N)
    values: list[int] = []
    for start in range(0, len(stream), 6):
        candidate = int.from_bytes(stream[start : start + 6], "little") & (2**46 - 1)
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


def _schoolbook(a: list[int], s: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """a·s modulo X^N + 1: every product of coefficients fits 2^51 and every sum 2^62."""
    coefficients = np.array(a, dtype=np.int64)
    product = np.zeros(N, dtype=np.int64)
    for shift, factor in enumerate(s):
        product[shift:] += factor * coefficients[: N - shift]
        product[:shift] -= factor * coefficients[N - shift :]
    return product % Q


@pytest.mark.parametrize("member", [1, 2, 3])
def test_verification_shares_are_the_secrets_times_the_base(lattice: Committee, member: int) -> None:
    share = lattice.shares[member].count_share
    point = group.encode(group.multiply(int.from_bytes(share.scalar, "little"), group.BASE))
    assert point == lattice.key.count_key.verification_shares[member - 1]
