"""Key generation without a dealer at toy size: what it makes, and who is named when it fails."""

import itertools
import math
from dataclasses import replace

import gmpy2
import numpy as np
import pytest

from anofel.committee.count_key import from_keys
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import GeneratedKey, PostedRounds, RoundMessage
from anofel.committee.paillier.arithmetic.parameters import STATISTICAL_BITS
from anofel.committee.paillier.arithmetic.sharing import lagrange
from anofel.committee.paillier.key import Origin
from anofel.committee.paillier.key_rounds import engine
from anofel.committee.paillier.key_rounds.messages import Kind, RoundBody
from anofel.committee.paillier.key_rounds.modulus import own_parts
from anofel.committee.paillier.key_rounds.sizes import TINY_MODULUS, Sizes
from anofel.framing import Reader, Writer
from tests.paillier.support import (
    SCHEME,
    Committee,
    Recording,
    new_run,
    run_generation,
    shape_of,
)


def split(message: RoundMessage) -> tuple[bytes, RoundBody]:
    reader = Reader(message.body)
    return reader.framed(), RoundBody.from_bytes(reader.framed())


def with_body(message: RoundMessage, body: RoundBody) -> RoundMessage:
    count, _ = split(message)
    return replace(message, body=Writer().framed(count).framed(body.to_bytes()).done())


def flip(data: bytes, at: int = -1) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def changing(member: int, change):
    def apply(messages: list[RoundMessage]) -> list[RoundMessage]:
        _, body = split(messages[member - 1])
        messages[member - 1] = with_body(messages[member - 1], change(body))
        return messages

    return apply


def expect(recording: Recording, number: int, change, culprits: tuple[int, ...], words: str = "") -> None:
    """Everybody and an observer must name the same culprits."""
    failures, rounds = recording.tampered(number, change)
    assert len(failures) == recording.run.shape.num_members
    for failure in failures:
        assert isinstance(failure, KeyGenerationFailed)
        assert failure.culprits == culprits
        assert words in str(failure)
    with pytest.raises(KeyGenerationFailed) as caught:
        recording.generation.observe(recording.run, rounds)
    assert caught.value.culprits == culprits


# What it makes


@pytest.mark.parametrize("name", ["recording", "even_recording"])
def test_everybody_has_the_same_key_and_transcript(name: str, request: pytest.FixtureRequest) -> None:
    recording: Recording = request.getfixturevalue(name)
    keys = {result.key.to_bytes() for result in recording.results.values()}
    transcripts = {result.transcript for result in recording.results.values()}
    assert len(keys) == len(transcripts) == 1
    observed = recording.generation.observe(recording.run, recording.rounds)
    key, transcript = observed.key, observed.transcript
    assert {key.to_bytes()} == keys
    assert {transcript} == transcripts
    assert SCHEME.read_key(key.to_bytes()).origin is Origin.DISTRIBUTED


@pytest.mark.parametrize("name", ["recording", "even_recording"])
def test_every_quorum_decrypts(name: str, request: pytest.FixtureRequest) -> None:
    recording: Recording = request.getfixturevalue(name)
    key = recording.results[1].key
    group = Committee(key, {m: result.share for m, result in recording.results.items()})
    total = group.add([group.vector(1), group.vector(2)])
    for members in itertools.combinations(group.shares, key.shape.threshold):
        assert np.array_equal(group.decrypt(total, members), group.vector(1) + group.vector(2))
    for share in group.shares.values():
        assert SCHEME.read_share(key, share.to_bytes()) == share


@pytest.mark.parametrize("name", ["recording", "even_recording"])
def test_the_modulus_and_the_shares_are_what_the_formulas_say(
    name: str, request: pytest.FixtureRequest
) -> None:
    """With all seeds in one hand: p and q are primes, F(0) is Δ⁴·φ·β, θ is its residue."""
    recording: Recording = request.getfixturevalue(name)
    states = recording.states[recording.round_of("key-deal")]
    candidate, modulus = states[1].public.passed[0]
    parts = [own_parts(state)[candidate] for state in states.values()]
    p, q = (int(sum(part[k] for part in parts)) for k in (0, 1))
    assert p * q == modulus == recording.results[1].key.modulus
    assert gmpy2.is_prime(p)
    assert gmpy2.is_prime(q)
    assert p % 4 == q % 4 == 3
    assert modulus.bit_length() == 512
    n, t = recording.run.shape.num_members, recording.run.shape.threshold
    values = {m: result.share.value for m, result in recording.results.items()}
    members = range(1, t + 1)
    scaled = sum(weight * values[i] for i, weight in lagrange(members, n).items())
    secret, remainder = divmod(scaled, math.factorial(n))
    assert remainder == 0
    assert secret % (math.factorial(n) ** 4 * (p - 1) * (q - 1)) == 0
    assert secret % modulus == recording.results[1].key.theta
    assert all(0 < value < 1 << recording.results[1].key.share_bits for value in values.values())


@pytest.mark.parametrize(
    ("n", "t"),
    [(5, 3), (4, 4), pytest.param(8, 8, marks=pytest.mark.slow), pytest.param(16, 9, marks=pytest.mark.slow)],
)
def test_more_members_and_other_thresholds(n: int, t: int) -> None:
    results, _ = run_generation(SCHEME.key_generation(), new_run(n, t))
    group = Committee(results[1].key, {m: result.share for m, result in results.items()})
    total = group.add([group.vector(1), group.vector(2)])
    last = range(n - t + 1, n + 1)
    assert np.array_equal(group.decrypt(total, last), group.vector(1) + group.vector(2))


def test_two_members_cannot_do_without_a_dealer() -> None:
    words = (
        r"^Key generation without a dealer needs at least 3 members for Paillier: "
        r"two members have no honest majority\.$"
    )
    with pytest.raises(InvalidCommittee, match=words):
        SCHEME.key_generation().begin(new_run(2, 2), 1)
    with pytest.raises(InvalidCommittee, match=words):
        SCHEME.key_generation().observe(new_run(2, 2), [])


def test_every_state_can_be_stored_and_resumed(recording: Recording) -> None:
    generation = recording.generation
    for number, states in enumerate(recording.states):
        state = states[2]
        again = generation.resume(state.to_bytes())
        assert again.to_bytes() == state.to_bytes()
        assert again.message == state.message == recording.rounds[number][1]
        assert state.seed.hex() not in repr(again)
        if state.public.phase in ("first-test", "final-tests", "key-open", "confirm"):
            one = generation.advance(again, recording.rounds[number])
            if isinstance(one, GeneratedKey):
                assert one == recording.results[2]
            else:
                expected = recording.states[number + 1][2]
                assert split(one.message)[1].public == split(expected.message)[1].public


def test_advance_does_not_change_the_state_it_was_given(recording: Recording) -> None:
    number = recording.round_of("first-test", opening=True)
    state = recording.states[number][1]
    before = state.to_bytes()
    recording.generation.advance(state, recording.rounds[number])
    assert state.to_bytes() == before


def test_a_damaged_state_is_refused(recording: Recording) -> None:
    data = recording.states[1][1].to_bytes()
    for damaged in (data[:-1], b"", data.replace(b'"seed"', b'"sead"')):
        with pytest.raises(KeyGenerationFailed, match="damaged"):
            recording.generation.resume(damaged)


def test_the_time_is_estimated_first_and_progress_is_reported() -> None:
    events = []
    generation = SCHEME.key_generation(events.append)
    state = generation.begin(new_run(3, 2), 1).state
    assert events[0].phase == "estimate"
    assert events[0].seconds > 0
    assert state.setting.seconds > 0
    results, _ = run_generation(generation, new_run(3, 2))
    assert results
    assert {
        "samples of the sieve",
        "candidates",
        "tests of candidates",
        "final tests of one candidate",
    } <= {event.phase for event in events}
    assert all(0 <= event.done <= event.total for event in events)


# Sizes


@pytest.mark.parametrize("bits", [512, 2048, 3072])
@pytest.mark.parametrize(("n", "t"), [(3, 2), (4, 3), (5, 3), (16, 9), (16, 16)])
def test_sizes_keep_their_promises(bits: int, n: int, t: int) -> None:
    sizes = Sizes(bits, shape_of(n, t))
    assert sizes.degree >= n - t
    assert sizes.product_degree <= n - 1
    assert sizes.step << STATISTICAL_BITS <= sizes.window
    assert (sizes.low**2).bit_length() == bits
    assert sizes.low + n * sizes.window <= 1 << (bits // 2)
    assert sizes.field > 1 << bits
    assert min(sizes.sieve_primes) > n
    assert math.gcd(sizes.sieve_modulus, TINY_MODULUS) == 1
    assert all(e % p == 1 for e, p in zip(sizes.crt_basis, sizes.sieve_primes, strict=True))
    assert (1 - sizes.success) ** (sizes.batch * sizes.max_batches) < 2**-19
    assert sizes.mask_bits >= sizes.share_bits + STATISTICAL_BITS
    assert sizes.share_bits < 4 * bits


# Who is named when it fails


def test_missing_foreign_stale_and_double_messages_name_their_sender(recording: Recording) -> None:
    generation, state, messages = recording.generation, recording.states[3][1], recording.rounds[3]
    cases = [
        (messages[:2], (3,)),
        ([*messages[:2], replace(messages[2], sender=9)], (9,)),
        ([*messages[:2], replace(messages[2], round=2)], (3,)),
        ([*messages[:2], replace(messages[2], run_id=b"x" * 32)], (3,)),
        ([*messages, replace(messages[2], body=b"other")], (3,)),
    ]
    for given, culprits in cases:
        with pytest.raises(KeyGenerationFailed) as caught:
            generation.advance(state, given)
        assert caught.value.culprits == culprits


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_malformed_body_names_its_sender(recording: Recording, number: int) -> None:
    def cut(messages: list[RoundMessage]) -> list[RoundMessage]:
        messages[1] = replace(messages[1], body=messages[1].body[:-1])
        return messages

    expect(recording, number, cut, (2,))


@pytest.mark.parametrize(
    ("phase", "opening"),
    [("sieve-deal", False), ("modulus-deal", False), ("key-deal", False), ("key-reduce", False)],
)
def test_a_public_part_where_none_belongs_names_its_sender(
    recording: Recording, phase: str, opening: bool
) -> None:
    number = recording.round_of(phase, opening=opening)
    expect(recording, number, changing(2, lambda body: replace(body, public=b"x")), (2,), "public part")


@pytest.mark.parametrize("phase", ["sieve-open", "first-test", "self-test", "confirm"])
def test_sealed_parts_where_none_belong_name_their_sender(recording: Recording, phase: str) -> None:
    number = recording.round_of(phase)
    expect(
        recording, number, changing(3, lambda body: replace(body, sealed=(b"a", b"b", b""))), (3,), "sealed"
    )


@pytest.mark.parametrize("phase", ["sieve-deal", "modulus-deal", "final-tests", "key-deal", "key-reduce"])
def test_a_bad_sealed_part_is_shown_and_its_sender_named(recording: Recording, phase: str) -> None:
    def spoil(body: RoundBody) -> RoundBody:
        return replace(body, sealed=(flip(body.sealed[0]), *body.sealed[1:]))

    expect(recording, recording.round_of(phase), changing(2, spoil), (2,), "sealed part")


@pytest.mark.parametrize("phase", ["sieve-open", "modulus-open", "key-reduce"])
def test_a_false_complaint_names_the_plaintiff(recording: Recording, phase: str) -> None:
    number = recording.round_of(phase)
    key = engine.sealing_key(recording.states[number][3].seed).to_bytes()

    def complain(_: RoundBody) -> RoundBody:
        return RoundBody(Kind.COMPLAINT, bytes([1]) + key)

    expect(recording, number, changing(3, complain), (3,), "complaint")


@pytest.mark.parametrize(
    "data", [b"", b"\x03" + bytes(32), b"\x09" + bytes(32), b"\x01" + bytes(32), b"\x01"]
)
def test_a_complaint_without_evidence_names_the_plaintiff(recording: Recording, data: bytes) -> None:
    number = recording.round_of("modulus-open")
    expect(recording, number, changing(3, lambda _: RoundBody(Kind.COMPLAINT, data)), (3,))


@pytest.mark.parametrize("limit", [None, 0])
def test_a_complaint_after_a_resume_has_a_culprit_unless_the_run_is_too_long(
    recording: Recording, limit: int | None
) -> None:
    number = recording.round_of("modulus-open")
    messages = changing(3, lambda _: RoundBody(Kind.COMPLAINT, b"\x01" + bytes(32)))(
        list(recording.rounds[number])
    )
    state = recording.generation.resume(recording.states[number][1].to_bytes())
    if limit == 0:
        state.history = engine._bounded([(bytes(engine.MAX_HISTORY_BYTES + 1),)])
        state = recording.generation.resume(state.to_bytes())
    with pytest.raises(KeyGenerationFailed, match="complain") as caught:
        recording.generation.advance(state, messages)
    assert caught.value.culprits == (() if limit == 0 else (3,))
    assert ("observe" in str(caught.value)) == (limit == 0)


@pytest.mark.parametrize("phase", ["modulus-open", "first-test", "final-tests", "gcd", "key-open"])
def test_showing_something_else_than_committed_names_the_sender(recording: Recording, phase: str) -> None:
    number = recording.round_of(phase, opening=True)
    expect(
        recording,
        number,
        changing(2, lambda body: replace(body, public=flip(body.public))),
        (2,),
        "committed",
    )


@pytest.mark.parametrize("phase", ["modulus-open", "key-open"])
def test_a_commitment_of_the_wrong_length_names_its_sender(recording: Recording, phase: str) -> None:
    number = recording.round_of(phase)
    expect(recording, number, changing(2, lambda body: replace(body, public=b"short")), (2,), "length")


def test_an_unusable_sealing_key_names_its_sender(recording: Recording) -> None:
    expect(recording, 0, changing(2, lambda body: replace(body, public=body.public[:32] + bytes(32))), (2,))


def test_a_wrong_confirmation_names_its_sender(recording: Recording) -> None:
    number = recording.round_of("confirm")
    expect(recording, number, changing(1, lambda body: replace(body, public=bytes(32))), (1,), "another key")


def test_a_wrong_self_test_share_names_its_sender(recording: Recording) -> None:
    number = recording.round_of("self-test")
    expect(
        recording, number, changing(2, lambda body: replace(body, public=flip(body.public))), (2,), "share"
    )


def test_an_early_opening_names_its_sender(recording: Recording) -> None:
    number = recording.round_of("first-test")
    expect(
        recording, number, changing(2, lambda _: RoundBody(Kind.OPENING, bytes(32))), (2,), "had not failed"
    )


def cheat(recording: Recording, phase: str, member: int, spoil) -> tuple[object, list[list[RoundMessage]]]:
    """Let one member deviate inside a phase until everybody opens its seed.

    ``spoil`` changes what the member makes, before it is sealed and committed. Returns member 1's
    state and all rounds, the last of which holds the opened seeds.
    """
    number, generation, honest = recording.round_of(phase) - 1, recording.generation, engine.PHASES[phase]
    states, rounds = dict(recording.states[number]), list(recording.rounds[: number + 1])

    class Cheating:
        committed = honest.committed

        def __getattr__(self, name: str):
            return getattr(honest, name)

        def make(self, state):
            return spoil(*honest.make(state))

    while states[1].public.phase != "opening":
        following = {}
        for who, state in states.items():
            engine.PHASES[phase] = Cheating() if who == member else honest
            following[who] = generation.advance(state, rounds[-1]).state
        engine.PHASES[phase] = honest
        states = following
        rounds.append([state.message for state in states.values()])
        assert len(rounds) < number + 12
    return states[1], rounds


def spoil_public(public: bytes, private: list[bytes]) -> tuple[bytes, list[bytes]]:
    return flip(public, 0), private


def spoil_private(public: bytes, private: list[bytes]) -> tuple[bytes, list[bytes]]:
    return public, [flip(private[0], 0), *private[1:]]


@pytest.mark.parametrize(
    ("phase", "spoil"),
    [
        ("sieve-open", spoil_public),
        ("modulus-open", spoil_public),
        ("gcd", spoil_public),
        ("key-deal", spoil_private),
        ("key-reduce", spoil_private),
        ("key-open", spoil_public),
    ],
)
def test_a_wrong_computation_is_found_by_replaying_opened_seeds(
    even_recording: Recording, phase: str, spoil
) -> None:
    """Nothing but the arithmetic is wrong; the run fails, everybody opens its seed, the replay finds who."""
    _, rounds = cheat(even_recording, phase, 2, spoil)
    with pytest.raises(KeyGenerationFailed) as caught:
        even_recording.generation.observe(even_recording.run, rounds)
    assert caught.value.culprits == (2,)


def test_members_name_the_same_culprit_as_an_observer(even_recording: Recording) -> None:
    state, rounds = cheat(even_recording, "sieve-open", 2, spoil_public)
    with pytest.raises(KeyGenerationFailed, match="inconsistent") as caught:
        even_recording.generation.advance(state, rounds[-1])
    assert caught.value.culprits == (2,)
    resumed = even_recording.generation.resume(state.to_bytes())
    with pytest.raises(KeyGenerationFailed, match="inconsistent") as caught:
        even_recording.generation.advance(resumed, rounds[-1])
    assert caught.value.culprits == (2,)


def test_a_share_beyond_its_bound_is_shown_and_its_sender_named(recording: Recording) -> None:
    """The part opens well, but a value in it is longer than an honest one can be."""
    number = recording.round_of("key-reduce")
    sender, receiver = recording.states[number][2], recording.states[number][1]
    part = bytearray(len(bytes.fromhex(receiver.stash["self"])))
    part[-1] = 0xFF
    sealed = engine.seal(
        bytes.fromhex(sender.public.sealing_keys[0]),
        bytes(part),
        engine._where(sender.setting, sender.public.round, 2, 1),
    )
    change = changing(2, lambda body: replace(body, sealed=(sealed, *body.sealed[1:])))
    expect(recording, number, change, (2,), "sealed part")


def test_an_opened_seed_that_was_not_committed_names_its_sender(even_recording: Recording) -> None:
    _, rounds = cheat(even_recording, "sieve-open", 2, spoil_public)
    opening = rounds[-1]
    assert split(opening[0])[1].kind is Kind.OPENING
    opening[2] = with_body(opening[2], RoundBody(Kind.OPENING, bytes(32)))
    with pytest.raises(KeyGenerationFailed) as caught:
        even_recording.generation.observe(even_recording.run, rounds)
    assert caught.value.culprits == (2, 3)


def test_observing_an_unfinished_or_overlong_run_fails(recording: Recording) -> None:
    with pytest.raises(KeyGenerationFailed, match="not finished"):
        recording.generation.observe(recording.run, recording.rounds[:-1])
    extra = [replace(message, round=len(recording.rounds)) for message in recording.rounds[-1]]
    with pytest.raises(KeyGenerationFailed, match="after the end"):
        recording.generation.observe(recording.run, [*recording.rounds, extra])


def test_private_parts_are_not_readable_on_the_board(recording: Recording) -> None:
    number = recording.round_of("key-deal")
    state = recording.states[number][1]
    own = bytes.fromhex(state.stash["self"])
    assert all(own not in message.body for message in recording.rounds[number])


# What the board checks


def posted(rounds: list[list[RoundMessage]]) -> PostedRounds:
    """Rounds of which all but three may not be read."""

    def read(number: int) -> list[RoundMessage]:
        assert number in (0, len(rounds) - 2, len(rounds) - 1)
        return rounds[number]

    return PostedRounds(len(rounds), read)


def test_the_board_checks_a_key_by_three_rounds(recording: Recording) -> None:
    end, generation = recording.results[1], recording.generation
    generation.check_key(recording.run, posted(recording.rounds), end.key, end.transcript)
    assert end.key.run == recording.run.run_id
    with pytest.raises(KeyGenerationFailed, match="not finished"):
        generation.check_key(recording.run, posted(recording.rounds[:-1]), end.key, end.transcript)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda key: replace(key, run=bytes(32)), "another run"),
        (lambda key: replace(key, share_epoch=1), "another run"),
        (lambda key: replace(key, generation=bytes(32)), "share"),
        (lambda key: replace(key, theta=key.theta + 1), "share"),
        (lambda key: replace(key, verification_keys=key.verification_keys[::-1]), "share"),
        (
            lambda key: replace(
                key, count_key=replace(key.count_key, public=key.count_key.verification_shares[0])
            ),
            "another count key",
        ),
    ],
)
def test_a_key_that_the_run_did_not_make_is_refused(recording: Recording, change, words: str) -> None:
    end = recording.results[1]
    with pytest.raises(KeyGenerationFailed, match=words):
        recording.generation.check_key(
            recording.run, posted(recording.rounds), change(end.key), end.transcript
        )


@pytest.mark.parametrize("phase", ["self-test", "confirm"])
def test_the_last_two_rounds_must_be_those_of_the_key(recording: Recording, phase: str) -> None:
    number, end = recording.round_of(phase), recording.results[1]
    for change in (
        lambda body: replace(body, public=flip(body.public)),
        lambda body: replace(body, kind=Kind.OPENING),
    ):
        rounds = list(recording.rounds)
        rounds[number] = changing(2, change)(list(rounds[number]))
        with pytest.raises(KeyGenerationFailed) as caught:
            recording.generation.check_key(recording.run, posted(rounds), end.key, end.transcript)
        assert caught.value.culprits == (2,)


def test_messages_of_another_run_make_no_key(recording: Recording) -> None:
    """Somebody replays everything public, first as it is, then with first messages of its own."""
    generation, end = recording.generation, recording.results[1]
    run = replace(recording.run, run_id=bytes(32))
    rounds = [[replace(message, run_id=bytes(32)) for message in sent] for sent in recording.rounds]
    stolen = replace(end.key, run=bytes(32))
    assert stolen.key_id != end.key.key_id
    with pytest.raises(KeyGenerationFailed, match="made for this run") as caught:
        generation.check_key(run, posted(rounds), stolen, end.transcript)
    assert caught.value.culprits == (1,)
    fresh = [generation.begin(run, member).message for member in run.shape.members]
    rounds[0] = [with_body(new, split(old)[1]) for new, old in zip(fresh, rounds[0], strict=True)]
    keys = generation._count.first_keys(run, [replace(m, body=split(m)[0]) for m in fresh])
    own = replace(stolen, count_key=from_keys(run.shape, keys, 0))
    with pytest.raises(KeyGenerationFailed, match="share") as caught:
        generation.check_key(run, posted(rounds), own, end.transcript)
    assert caught.value.culprits == (1,)
