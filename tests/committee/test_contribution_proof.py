"""Contribution proofs through the interface, every lie, and a second verifier that agrees about them."""

import hashlib
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment
from anofel.committee import count
from anofel.committee.context import CoordinateRange, TaskLimits
from anofel.committee.errors import DoesNotFit, InvalidContext, PayloadRefused, VectorRefused
from anofel.committee.interface import Contribution, Envelope, Int64Vector, SubmittedPayload
from tests.committee import plain_contribution as plain
from tests.committee import plain_ristretto as group
from tests.committee.world import ITERATION, Committee, a_post, assume_counted, name, open_sum

LIMITS = TaskLimits(length=34, bound=1000, max_posts=20, min_clients=2, norm_bound=600, max_liars=1)
"""b = 16, and still with four times the norm; g = 5."""
RANGED = replace(LIMITS, ranges=(CoordinateRange(2, -5, 40), CoordinateRange(33, 0, 102)))
"""The same with two ranges, which one proof shows exactly."""
WORDS = 2048 * 21 // 8
WRAPPED = 2048 * 32


def cast(committee: Committee, number: int, *, one: bool) -> count.CastBallot:
    rho = TypeBlinding.generate()
    line = count.BundleCommittee(
        key_id=committee.key.key_id, count_key=committee.key.count_key, accepted_types=None
    )
    commitment = TypeCommitment(DatasetType(3), rho).to_bytes()
    statement = count.BallotStatement(a_post(number), commitment, [line])
    opening = count.TypeOpening(dataset_type=3, blinding=rho.to_secret_bytes())
    return statement.cast(0 if one else None, opening)


def update(number: int) -> Int64Vector:
    """Entries of ±102: a norm of 595."""
    signs = np.random.default_rng(number).choice([-1, 1], LIMITS.length)
    return np.asarray(102 * signs, dtype=np.int64)


def contribute(
    committee: Committee,
    number: int,
    values: Int64Vector,
    *,
    one: bool = True,
    limits: TaskLimits = LIMITS,
) -> Contribution:
    bit = cast(committee, number, one=one).bits[0]
    prepared = committee.scheme.prepare(committee.key, a_post(number), limits, bit)
    return prepared.encrypt(values)


def resent(made: Contribution, payload: bytes, **changes: bytes) -> Contribution:
    """What a liar sends: another payload under a true envelope."""
    digest = hashlib.sha256(payload).digest()
    fields = {"proof": made.envelope.proof, "bit": made.envelope.bit} | changes
    return Contribution(Envelope(payload_length=len(payload), payload_sha256=digest, **fields), payload)


def moved_word(payload: bytes, place: int, by: int) -> bytes:
    """The payload with one of its 21-bit words moved."""
    bits = int.from_bytes(payload[:WORDS], "little")
    word = bits >> (21 * place) & (2**21 - 1)
    bits += ((word + by) % 2**21 - word) << (21 * place)
    return bits.to_bytes(WORDS, "little") + payload[WORDS:]


def long_secret(payload: bytes) -> bytes:
    """The payload with 10,000 added to the first coefficient of the secret."""
    point = group.decode(payload[WORDS : WORDS + 32])
    moved = group.encode(group.add(point, group.multiply(10_000, group.BASE)))
    return payload[:WORDS] + moved + payload[WORDS + 32 :]


def lies(committee: Committee) -> dict[str, Contribution]:
    """Every lie that a registered client may send in its payload."""
    zeros = np.zeros(LIMITS.length, dtype=np.int64)
    honest, decoy = contribute(committee, 1, update(1)), contribute(committee, 1, zeros, one=False)
    garbage = np.random.default_rng(5).bytes(WORDS)
    longer = replace(LIMITS, norm_bound=2400)
    return {
        "garbage words": resent(honest, garbage + honest.payload[WORDS:]),
        "garbage in a decoy": resent(decoy, garbage + decoy.payload[WORDS:]),
        "a long secret": resent(honest, long_secret(honest.payload)),
        "an update in a decoy": resent(honest, honest.payload, bit=decoy.envelope.bit),
        "a false bit": resent(honest, honest.payload, bit=honest.envelope.bit[:32] + decoy.envelope.bit[32:]),
        "four times the norm": contribute(committee, 1, 4 * update(1), limits=longer),
        "wrapped around q": resent(honest, moved_word(honest.payload, 3, 2**20)),
        "one step in the padding": resent(honest, moved_word(honest.payload, 2000, 2**5)),
        "another's proof": resent(
            honest, honest.payload[: WORDS + WRAPPED] + decoy.payload[WORDS + WRAPPED :]
        ),
        "no proof": resent(honest, honest.payload[: WORDS + WRAPPED]),
        "a proof of zeros": resent(honest, honest.payload[: WORDS + WRAPPED] + bytes(plain.PROOF_BYTES)),
    }


def check(committee: Committee, made: Contribution, number: int = 1, limits: TaskLimits = LIMITS) -> None:
    committee.scheme.verify_payload(committee.key, a_post(number), limits, made.envelope, made.payload)


def test_every_lie_is_excluded_and_the_honest_sum_decodes(lattice: Committee) -> None:
    scheme, key = lattice.scheme, lattice.key
    zeros = np.zeros(LIMITS.length, dtype=np.int64)
    honest = {number: contribute(lattice, number, update(number)) for number in (2, 3, 4)}
    decoys = {number: contribute(lattice, number, zeros, one=False) for number in (5, 6)}
    sent = [*lies(lattice).items()]
    items = [SubmittedPayload(a_post(1), made.envelope, made.payload) for _, made in sent]
    good = honest | decoys
    items += [SubmittedPayload(a_post(number), made.envelope, made.payload) for number, made in good.items()]
    verdicts = scheme.check_payloads(key, LIMITS, items)
    for (lie, made), verdict in zip(sent, verdicts, strict=False):
        assert isinstance(verdict, PayloadRefused), lie
        with pytest.raises(PayloadRefused) as alone:
            check(lattice, made)
        assert str(alone.value) == str(verdict), "alone or with others, the verdict is the same"
    accumulator = scheme.accumulator(key, ITERATION, LIMITS)
    for verdict in verdicts[len(sent) :]:
        assert not isinstance(verdict, PayloadRefused)
        accumulator.add(verdict)
    total = accumulator.finish()
    opened = open_sum(lattice, total, assume_counted(lattice, total).permit_sum(), (1, 3))
    assert opened.tolist() == sum(update(number) for number in (2, 3, 4)).tolist()


def test_an_honest_client_is_told_what_does_not_fit(lattice: Committee) -> None:
    with pytest.raises(VectorRefused, match="square of the vector's norm"):
        contribute(lattice, 1, 2 * update(1))
    with pytest.raises(VectorRefused, match="bound on the norm"):
        contribute(lattice, 1, update(1), one=False)
    with pytest.raises(InvalidContext, match="needs the ballot's bit"):
        lattice.scheme.prepare(lattice.key, a_post(1), LIMITS)
    with pytest.raises(DoesNotFit, match="width of a value"):
        contribute(lattice, 1, update(1), limits=replace(LIMITS, norm_bound=2**36))


def test_sizes_do_not_tell_decoys_apart(lattice: Committee) -> None:
    zeros = np.zeros(LIMITS.length, dtype=np.int64)
    sizes = {
        len(contribute(lattice, 1, values, one=one).payload)
        for values, one in ((update(1), True), (zeros, False))
    }
    assert (
        sizes == {lattice.scheme.payload_bytes(lattice.key, LIMITS)} == {WORDS + WRAPPED + plain.PROOF_BYTES}
    )
    assert plain.PROOF_BYTES <= 32_768


def test_a_proof_is_for_its_post_and_task_alone(lattice: Committee) -> None:
    made = contribute(lattice, 1, update(1))
    check(lattice, made)
    with pytest.raises(PayloadRefused):
        check(lattice, made, number=2)
    for change in ({"length": 35}, {"bound": 999}, {"norm_bound": 599}):
        with pytest.raises(PayloadRefused):
            check(lattice, made, limits=replace(LIMITS, **change))
    for field in ("genesis", "task", "scope", "iteration", "position"):
        value = 3 if field in ("iteration", "position") else name("another")
        context = replace(a_post(1), iteration=replace(ITERATION, **{field: value}))
        with pytest.raises(PayloadRefused):
            lattice.scheme.verify_payload(lattice.key, context, LIMITS, made.envelope, made.payload)


def within(number: int) -> Int64Vector:
    """An update whose two ranged coordinates are at the ends of their ranges."""
    values = update(number)
    values[2], values[33] = -5, 102
    return values


def test_a_proof_with_ranges_is_longer_and_the_sum_decodes(lattice: Committee) -> None:
    zeros = np.zeros(LIMITS.length, dtype=np.int64)
    sent = {
        1: contribute(lattice, 1, within(1), limits=RANGED),
        2: contribute(lattice, 2, zeros, limits=RANGED, one=False),
        3: contribute(lattice, 3, within(3), limits=RANGED),
    }
    assert {len(made.payload) for made in sent.values()} == {
        lattice.scheme.payload_bytes(lattice.key, RANGED)
    }
    assert len(sent[1].payload) > WORDS + WRAPPED + plain.PROOF_BYTES
    items = [SubmittedPayload(a_post(number), made.envelope, made.payload) for number, made in sent.items()]
    accumulator = lattice.scheme.accumulator(lattice.key, ITERATION, RANGED)
    for verdict in lattice.scheme.check_payloads(lattice.key, RANGED, items):
        assert not isinstance(verdict, PayloadRefused)
        accumulator.add(verdict)
    total = accumulator.finish()
    opened = open_sum(lattice, total, assume_counted(lattice, total).permit_sum(), (1, 3))
    assert opened.tolist() == (within(1) + within(3)).tolist()


def test_a_value_out_of_its_range_is_refused(lattice: Committee) -> None:
    for coordinate, value in ((2, -6), (2, 41), (33, -1), (33, 103)):
        values = within(1)
        values[coordinate] = value
        with pytest.raises(VectorRefused, match="value with a range is"):
            contribute(lattice, 1, values, limits=RANGED)
        # A liar proves what it can, a wider range: the proof is for that and nothing else.
        wider = replace(RANGED, ranges=(CoordinateRange(2, -6, 41), CoordinateRange(33, -1, 103)))
        made = contribute(lattice, 1, values, limits=wider)
        check(lattice, made, limits=wider)
        with pytest.raises(PayloadRefused):
            check(lattice, made, limits=RANGED)


def test_ranges_that_a_task_may_not_have_are_refused(lattice: Committee) -> None:
    for coordinates in ([(33, 0, 1), (2, 0, 1)], [(34, 0, 1)], [(0, 1, 2)], [(0, 0, 1001)]):
        ranges = tuple(CoordinateRange(*one) for one in coordinates)
        with pytest.raises(DoesNotFit, match="range"):
            lattice.scheme.payload_bytes(lattice.key, replace(LIMITS, ranges=ranges))
    with pytest.raises(DoesNotFit, match="part of a contribution proof"):
        replace(RANGED, norm_bound=None)


def test_checking_releases_the_interpreter(lattice: Committee) -> None:
    """A member goes on with everything else while it checks what arrived."""
    made = contribute(lattice, 1, update(1))
    items = [SubmittedPayload(a_post(1), made.envelope, made.payload)] * 8
    done, ticks = threading.Event(), 0

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    verdicts = lattice.scheme.check_payloads(lattice.key, LIMITS, items)
    during = ticks - before
    done.set()
    thread.join()
    assert not any(isinstance(verdict, PayloadRefused) for verdict in verdicts)
    assert during >= 5


# The second verifier


def test_the_second_implementation_maps_to_the_group_as_the_rfc_does() -> None:
    data = bytes.fromhex(
        "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
        "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6"
    )
    expected = "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"
    assert group.encode(plain.from_uniform(data)).hex() == expected


def failing(committee: Committee, made: Contribution, limits: TaskLimits = LIMITS) -> list[str]:
    public = committee.key.keys.public()  # type: ignore[attr-defined]
    keys = [public[i : i + 32] for i in range(0, len(public), 32)]
    bit, r = made.envelope.bit, made.envelope.proof[:32]
    statement = plain.Statement(a_post(1), limits, committee.key.key_id, keys, bit, r, made.payload)
    return plain.failing(statement)


def test_both_verifiers_accept_honest_proofs(lattice: Committee) -> None:
    zeros = np.zeros(LIMITS.length, dtype=np.int64)
    for values, one in ((update(1), True), (zeros, False)):
        made = contribute(lattice, 1, values, one=one)
        check(lattice, made)
        assert failing(lattice, made) == []


@pytest.mark.slow
def test_both_verifiers_agree_about_ranges(lattice: Committee) -> None:
    made = contribute(lattice, 1, within(1), limits=RANGED)
    check(lattice, made, limits=RANGED)
    assert failing(lattice, made, RANGED) == []
    last = WORDS + WRAPPED + 352 + 15 * plain.RANGE_ROWS + 32 * plain.FIRST
    for part, place, expected in (
        ("k", last, {"first", "linear"}),
        ("a bit of t", last + 32, {"first", "linear", "quadratic"}),
    ):
        changed = bytearray(made.payload)
        changed[place] ^= 2
        lie = resent(made, bytes(changed))
        with pytest.raises(PayloadRefused):
            check(lattice, lie, limits=RANGED)
        assert set(failing(lattice, lie, RANGED)) == expected, part
    moved = resent(made, moved_word(made.payload, 2, -(2**5)))
    with pytest.raises(PayloadRefused):
        check(lattice, moved, limits=RANGED)
    assert failing(lattice, moved, RANGED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lie",
    [
        "garbage words",
        "a long secret",
        "an update in a decoy",
        "a false bit",
        "four times the norm",
        "wrapped around q",
        "another's proof",
    ],
)
def test_both_verifiers_refuse_the_same_lies(lattice: Committee, lie: str) -> None:
    made = lies(lattice)[lie]
    with pytest.raises(PayloadRefused):
        check(lattice, made)
    assert failing(lattice, made)


@pytest.mark.slow
def test_both_verifiers_refuse_a_changed_proof(lattice: Committee) -> None:
    honest = contribute(lattice, 1, update(1))
    start = WORDS + WRAPPED
    responses = start + 352 + 15 * plain.RANGE_ROWS
    last = responses + 32 * (plain.FIRST + plain.SECOND)
    places = {
        "p": (start + 352, {"linear"}),
        "x₁": (responses, {"first", "linear", "quadratic"}),
        "x₂": (responses + 32 * plain.FIRST, {"second", "linear"}),
        "blinding of x₁": (last, {"first"}),
        "blinding of x₂": (last + 32, {"second"}),
        "r": (last + 64, {"linear", "key"}),
        "k": (last + 96, {"bit U", "bit V"}),
        "b": (last + 128, {"bit V", "quadratic"}),
        "cross terms": (last + 160, {"quadratic"}),
    }
    for part, (place, expected) in places.items():
        changed = bytearray(honest.payload)
        changed[place] ^= 2
        made = resent(honest, bytes(changed))
        with pytest.raises(PayloadRefused):
            check(lattice, made)
        if part != "p":  # which every later challenge covers
            assert set(failing(lattice, made)) == expected, part
        else:
            assert failing(lattice, made)
