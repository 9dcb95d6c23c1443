"""Key generation: the same key everywhere or none anywhere, and culprits by name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from anofel._core import committee as core
from anofel.committee import schemes
from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import KeyGenerationRun, RoundMessage, RoundResult
from anofel.committee.ristretto import round1_deal
from anofel.committee.ristretto.key_generation import NUM_ROUNDS, RistrettoKeyGeneration, RistrettoKeys
from anofel.committee.ristretto.run import RunPlan
from anofel.committee.ristretto.verdict import Complaint, Confirmation
from anofel.committee.sealing import SealingKey, binding, seal
from tests.committee.world import Committee, a_run, generate, name

GENERATION = RistrettoKeyGeneration(2, "test")
RUN = a_run(3, 2)
PUBLIC_PART = 32 + 2
"""A stored lattice share begins with the id of the shares and the member."""
Change = Callable[[list[RoundMessage]], list[RoundMessage]]


def keys_of(ends: list[RistrettoKeys]) -> set[bytes]:
    return {end.keys.to_bytes() for end in ends}


@pytest.mark.parametrize(("num_members", "threshold"), [(2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_everybody_ends_with_the_same_key_and_transcript(num_members: int, threshold: int) -> None:
    run = a_run(num_members, threshold)
    ends, rounds = generate(GENERATION, run)
    assert len(rounds) == NUM_ROUNDS
    assert len(keys_of(ends)) == 1
    assert len({end.transcript for end in ends}) == 1
    observed = GENERATION.observe(run, rounds)
    assert observed.keys.to_bytes() == ends[0].keys.to_bytes()
    assert observed.transcript == ends[0].transcript


def test_two_runs_make_different_keys() -> None:
    one, _ = generate(GENERATION, RUN)
    two, _ = generate(GENERATION, RUN)
    assert keys_of(one) != keys_of(two)
    assert one[0].transcript != two[0].transcript


def test_a_lattice_key_is_read_back_and_validated(lattice: Committee) -> None:
    scheme = schemes.by_name("lattice")
    data = lattice.key.to_bytes()
    assert scheme.read_key(data).key_id == lattice.key.key_id
    for member, share in lattice.shares.items():
        assert scheme.read_share(lattice.key, share.to_bytes()).member == member


def test_a_lattice_share_does_not_show_itself(lattice: Committee) -> None:
    for share in lattice.shares.values():
        shown, scalars = repr(share), share.to_bytes()[PUBLIC_PART:]
        for scalar in (scalars[at : at + 32] for at in range(0, len(scalars), 32)):
            assert repr(scalar)[2:-1] not in shown
            assert scalar.hex() not in shown


def results_after(number: int) -> list[RoundResult]:
    """Everybody's state and message of a round."""
    results = [GENERATION.begin(RUN, member) for member in RUN.shape.members]
    for _ in range(number):
        messages = [result.message for result in results]
        results = [advance(result, messages) for result in results]
    return results


def advance(result: RoundResult, messages: list[RoundMessage]) -> RoundResult:
    following = GENERATION.advance(result.state, messages)
    assert isinstance(following, RoundResult)
    return following


def failure(number: int, change: Change) -> KeyGenerationFailed:
    """Everybody fails alike when the messages of a round are changed; returns that failure."""
    results = results_after(number)
    messages = change([result.message for result in results])
    failures = []
    for result in results:
        with pytest.raises(KeyGenerationFailed) as caught:
            GENERATION.advance(result.state, messages)
        failures.append(caught.value)
    assert len({(str(error), error.culprits) for error in failures}) == 1
    return failures[0]


def replaced(number: int, **changes: object) -> Change:
    """Change the message of member 2."""
    return lambda messages: [replace(m, **changes) if m.sender == number else m for m in messages]  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_message_that_is_missing_foreign_stale_or_double_names_its_sender(number: int) -> None:
    assert failure(number, lambda m: m[:1] + m[2:]).culprits == (2,)
    assert failure(number, replaced(2, run_id=name("another run"))).culprits == (2,)
    assert failure(number, replaced(2, round=number + 1)).culprits == (2,)
    assert failure(number, lambda m: [*m, replace(m[0], sender=4)]).culprits == (4,)
    assert failure(number, lambda m: [*m, replace(m[1], body=b"another")]).culprits == (2,)


def test_a_message_sent_twice_counts_once() -> None:
    results = results_after(0)
    messages = [result.message for result in results]
    advance(results[0], [*messages, messages[1]])


def test_a_sealing_key_of_low_order_names_its_sender() -> None:
    def low_order(messages: list[RoundMessage]) -> list[RoundMessage]:
        return [replace(m, body=bytes(32) + m.body[32:]) if m.sender == 3 else m for m in messages]

    error = failure(0, low_order)
    assert error.culprits == (3,)
    assert "sealing key" in str(error)


@pytest.mark.parametrize("at", [32, 64, 32 + 128, 32 + 160, 32 + 192, 32 + 256, 32 + 288])
def test_a_package_with_a_bad_point_or_proof_names_its_sender(at: int) -> None:
    def tamper(messages: list[RoundMessage]) -> list[RoundMessage]:
        good, bad = messages[0].body, messages[1].body
        body = bad[:at] + good[at : at + 32] + bad[at + 32 :]
        return [messages[0], replace(messages[1], body=body), messages[2]]

    assert failure(0, tamper).culprits == (2,)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": name("another run")},
        {"genesis": name("another board")},
        {"members": (name("a thief"), *RUN.members[1:])},
    ],
)
def test_first_messages_of_another_run_name_their_sender(change: dict[str, Any]) -> None:
    other = replace(RUN, **change)
    messages = [result.message for result in results_after(0)]
    with pytest.raises(KeyGenerationFailed, match="made for this run") as caught:
        GENERATION.observe(other, [[replace(m, run_id=other.run_id) for m in messages]])
    assert caught.value.culprits == (1,)
    with pytest.raises(KeyGenerationFailed, match="made for this run") as caught:
        RistrettoKeyGeneration(2, "another purpose").observe(RUN, [messages])
    assert caught.value.culprits == (1,)


def test_messages_of_the_wrong_length_name_their_sender() -> None:
    for number in (0, 1, 2):
        assert failure(number, replaced(2, body=b"short")).culprits == (2,)


def deal_badly(results: list[RoundResult], dealer: int, receiver: int, share: bytes) -> list[RoundMessage]:
    """Replace what a dealer sealed for one receiver."""
    messages = [result.message for result in results]
    plan = RunPlan(RUN, 2, "test")
    history = results[0].state.history[0]  # type: ignore[attr-defined]
    part = seal(history[receiver][:32], share, binding(plan.digest, dealer, receiver))
    place = receiver - 1 if receiver < dealer else receiver - 2
    body = messages[dealer - 1].body
    body = body[: place * len(part)] + part + body[(place + 1) * len(part) :]
    messages[dealer - 1] = replace(messages[dealer - 1], body=body)
    return messages


def end_with(results: list[RoundResult], messages: list[RoundMessage]) -> KeyGenerationFailed:
    """Play the last two rounds; everybody ends with the same failure, and so does an observer."""
    rounds = [
        [RoundMessage(run_id=RUN.run_id, round=0, sender=s, body=b) for s, b in first.items()]
        for first in [results[0].state.history[0]]
    ]  # type: ignore[attr-defined]
    confirmed = [advance(result, messages) for result in results]
    last = [result.message for result in confirmed]
    failures = []
    for result in confirmed:
        with pytest.raises(KeyGenerationFailed) as caught:
            GENERATION.advance(result.state, last)
        failures.append(caught.value)
    with pytest.raises(KeyGenerationFailed) as caught:
        GENERATION.observe(RUN, [*rounds, messages, last])
    failures.append(caught.value)
    assert len({error.culprits for error in failures}) == 1
    return failures[0]


def test_a_bad_share_has_a_culprit_whom_everybody_can_name() -> None:
    results = results_after(1)
    error = end_with(results, deal_badly(results, 1, 3, (5).to_bytes(32, "little") * 2))
    assert error.culprits == (1,)
    assert "bad share" in str(error)


def test_a_share_that_is_not_canonical_has_a_culprit() -> None:
    results = results_after(1)
    assert end_with(results, deal_badly(results, 2, 1, b"\xff" * 64)).culprits == (2,)


def test_a_part_that_does_not_open_has_a_culprit() -> None:
    results = results_after(1)
    messages = [result.message for result in results]
    broken = bytearray(messages[2].body)
    broken[40] ^= 1
    messages[2] = replace(messages[2], body=bytes(broken))
    assert end_with(results, messages).culprits == (3,)


def with_last_message(sender: int, make: Callable[[RoundResult], bytes]) -> KeyGenerationFailed:
    """Everybody is honest up to the last round, in which one member says something else."""
    before = results_after(1)
    messages = [result.message for result in before]
    results = [advance(result, messages) for result in before]
    last = [result.message for result in results]
    last[sender - 1] = replace(last[sender - 1], body=make(before[sender - 1]))
    failures = []
    for result in results:
        with pytest.raises(KeyGenerationFailed) as caught:
            GENERATION.advance(result.state, last)
        failures.append(caught.value)
    assert len({(str(error), error.culprits) for error in failures}) == 1
    return failures[0]


def test_a_false_complaint_falls_back_on_the_complainer() -> None:
    def complain(accused: int) -> Callable[[RoundResult], bytes]:
        return lambda result: Complaint(accused, result.state.kept.sealing).to_bytes()  # type: ignore[attr-defined]

    error = with_last_message(2, complain(1))
    assert error.culprits == (2,)
    assert "good" in str(error)
    assert with_last_message(2, complain(2)).culprits == (2,)
    assert with_last_message(2, complain(9)).culprits == (2,)


def test_a_complaint_with_a_foreign_key_falls_back_on_the_complainer() -> None:
    foreign = Complaint(1, SealingKey.generate().to_bytes()).to_bytes()
    assert with_last_message(2, lambda _: foreign).culprits == (2,)


def test_a_confirmation_of_something_else_names_its_sender() -> None:
    other = Confirmation(name("keys"), name("transcript")).to_bytes()
    assert with_last_message(3, lambda _: other).culprits == (3,)
    assert with_last_message(3, lambda _: b"\x07" + other[1:]).culprits == (3,)


def test_a_sealed_part_opens_for_its_run_dealer_and_receiver_only() -> None:
    key = SealingKey.generate()
    digest = name("run")
    sealed = seal(key.public(), b"share", binding(digest, 1, 2))
    assert key.open(sealed, binding(digest, 1, 2)) == b"share"
    for wrong in (binding(name("other"), 1, 2), binding(digest, 3, 2), binding(digest, 1, 3)):
        with pytest.raises(Exception, match=r"^$"):
            key.open(sealed, wrong)
    assert "redacted" in repr(key)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"\0", lambda _: b""])
def test_a_damaged_state_is_refused(damage: Callable[[bytes], bytes]) -> None:
    state = results_after(1)[0].state
    with pytest.raises(KeyGenerationFailed, match="damaged"):
        GENERATION.resume(damage(state.to_bytes()))


def test_a_state_and_a_message_do_not_show_secrets() -> None:
    state = results_after(1)[0].state
    for secret in (state.kept.sealing, state.kept.frost):  # type: ignore[attr-defined]
        assert repr(secret)[2:20] not in repr(state)


@pytest.mark.parametrize(("num_members", "threshold"), [(1, 1), (3, 1), (4, 2), (6, 3), (3, 4), (17, 9)])
def test_a_committee_without_an_honest_majority_is_refused(num_members: int, threshold: int) -> None:
    with pytest.raises(InvalidCommittee):
        CommitteeShape(num_members=num_members, threshold=threshold)


def test_members_are_named_once_each() -> None:
    for members in [RUN.members[:2], (RUN.members[0],) * 3]:
        run = KeyGenerationRun(genesis=RUN.genesis, run_id=RUN.run_id, shape=RUN.shape, members=members)
        with pytest.raises(InvalidCommittee):
            GENERATION.begin(run, 1)
    for member in (0, 4):
        with pytest.raises(InvalidCommittee):
            GENERATION.begin(RUN, member)


def test_shares_are_sealed_never_sent_in_the_clear() -> None:
    results = results_after(1)
    dealt = results[0].message.body
    plan = RunPlan(RUN, 2, "test")
    key = SealingKey.from_bytes(results[1].state.kept.sealing)  # type: ignore[attr-defined]
    share = round1_deal.open_part(plan, {1: dealt}, 1, 2, key)
    assert share not in dealt
    package = results[0].state.history[0][1][32:]  # type: ignore[attr-defined]
    core.check_dealt_shares(plan.core_shape, package, 2, share)
