"""The scheme against plain integers: hashlib, schoolbook products, and RFC 9496 by hand."""

import secrets
from dataclasses import replace

import numpy as np
import pytest

from anofel.committee.interface import Envelope
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration
from anofel.committee.ristretto.run import RunPlan
from tests.committee import plain_ristretto as group
from tests.committee import plain_transcript as transcript
from tests.committee.plain_contribution import public_coefficients
from tests.committee.world import ITERATION, LIMITS, Committee, a_post, a_run, a_vector, contribute

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


def test_a_proof_of_possession_holds_by_hand() -> None:
    """z·G = R + c·Σ w_j·φ_j0, for a run of two keys and t = 2."""
    run, member = a_run(3, 2), 2
    plan = RunPlan(run, 2, "test")
    body = RistrettoKeyGeneration(2, "test").begin(run, member).message.body[32:]
    dealt, first, answer = body[:-64], body[-64:-32], int.from_bytes(body[-32:], "little")
    fields = [("run", plan.digest), ("member", member.to_bytes(8, "little")), ("dealt", dealt)]
    domain, total = "anofel/1/committee/possession-of-dealt-secrets", group.NEUTRAL
    for index in range(2):
        constant = group.decode(dealt[index * 64 : index * 64 + 32])
        total = group.add(total, group.multiply(transcript.weight(domain, fields, index), constant))
    challenge = transcript.scalar(domain, [*fields, ("first message", first)])
    expected = group.add(group.decode(first), group.multiply(challenge, total))
    assert group.encode(group.multiply(answer, group.BASE)) == group.encode(expected)


def test_a_contribution_opens_in_plain_integers(lattice: Committee) -> None:
    contribution = contribute(lattice, 1)
    packed, wrapped = contribution.payload[: N * W // 8], contribution.payload[N * W // 8 :]
    secret = _unwrap(lattice, contribution.envelope.proof[:32], wrapped)
    assert all(-32 <= s <= 32 for s in secret)
    mask = _schoolbook(public_coefficients(ITERATION, lattice.key.key_id), secret)
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
    def bits(bound: int, posts: int) -> int:
        return lattice.scheme.required_bits(replace(LIMITS, bound=bound, max_posts=posts))

    assert bits(1000, 16) == W
    assert bits(32767, 512) == 32
    assert bits(32767, 1024) == 34
    assert bits(32767, 2**14) == 40


def test_required_bits_of_proven_contributions_leave_room_for_liars(lattice: Committee) -> None:
    def bits(norm: int, liars: int) -> int:
        return lattice.scheme.required_bits(replace(LIMITS, norm_bound=norm, max_liars=liars))

    # B' = B + 1 at 2048 values and g = 5: ⌈√2048⌉ >> 6 is 0, and 1.
    assert bits(1, 1) == W
    assert bits(133, 1) == W, "2·(16,000 + 2.85·134) + 1 ≤ 2^15"
    assert bits(134, 1) == 16 + G, "2·(16,000 + 2.85·135) + 1 > 2^15"
    assert bits(2000, 10) == 18 + G
    assert bits(11395, 0) == 18 + G, "23·B' ≤ 2^18"
    assert bits(11397, 0) == 19 + G


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
