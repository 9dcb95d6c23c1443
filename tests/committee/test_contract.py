"""What both schemes promise alike; a caller need not know which one it has."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest

from anofel.committee import count
from anofel.committee.errors import DoesNotFit, KeyGenerationFailed, NotAgreed, PayloadRefused
from anofel.committee.interface import RoundMessage
from tests.committee.world import (
    ITERATION,
    LIMITS,
    Committee,
    a_post,
    a_run,
    add_up,
    agree,
    assume_counted,
    contribute,
    name,
)


def test_the_range_of_values_and_posts_is_the_same(committee: Committee) -> None:
    scheme = committee.scheme
    assert scheme.required_bits(replace(LIMITS, bound=5, max_posts=2)) >= 4
    for bound in (0, -5, 1 << 62):
        with pytest.raises(DoesNotFit, match=f"bound of a value .* not {bound}"):
            replace(LIMITS, bound=bound)
    for posts in (0, -1, 1 << 20):
        with pytest.raises(DoesNotFit, match=f"posts, not {posts}"):
            replace(LIMITS, max_posts=posts)
    for norm in (0, 1 << 62):
        with pytest.raises(DoesNotFit, match="bound of a norm"):
            replace(LIMITS, norm_bound=norm)
    with pytest.raises(DoesNotFit, match="number of liars"):
        replace(LIMITS, max_liars=-1)


def test_a_sum_is_finished_once(committee: Committee) -> None:
    scheme, key, made = committee.scheme, committee.key, contribute(committee, 1)
    accumulator = scheme.accumulator(key, ITERATION, LIMITS)
    payload = scheme.verify_payload(key, a_post(1), LIMITS, made.envelope, made.payload)
    accumulator.add(payload)
    with pytest.raises(PayloadRefused, match="A post is added once"):
        accumulator.add(payload)
    accumulator.finish()
    with pytest.raises(NotAgreed, match="finished already"):
        accumulator.finish()
    with pytest.raises(NotAgreed, match="nothing can be added"):
        accumulator.add(payload)


def test_a_sum_holds_as_many_posts_as_its_task_allows(committee: Committee) -> None:
    scheme, key, limits = committee.scheme, committee.key, replace(LIMITS, max_posts=2)
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for number in range(2):
        made = contribute(committee, number, limits)
        accumulator.add(scheme.verify_payload(key, a_post(number), limits, made.envelope, made.payload))
    made = contribute(committee, 2, limits)
    payload = scheme.verify_payload(key, a_post(2), limits, made.envelope, made.payload)
    with pytest.raises(DoesNotFit, match="holds 2 posts"):
        accumulator.add(payload)


def test_a_permit_has_the_smallest_number_of_clients_of_the_task(committee: Committee) -> None:
    scheme, key, limits = committee.scheme, committee.key, replace(LIMITS, min_clients=3)
    total = add_up(committee, {n: contribute(committee, n, limits) for n in range(3)}, limits)
    permit = assume_counted(committee, total).permit_sum()
    with pytest.raises(NotAgreed, match="smallest number of clients"):
        scheme.partial_decrypt(key, committee.shares[1], total, permit)
    again = add_up(committee, {n: contribute(committee, n) for n in range(3)})
    scheme.partial_decrypt(key, committee.shares[1], again, assume_counted(committee, again).permit_sum())


def test_a_count_is_opened_by_the_agreed_committee(lattice: Committee, paillier: Committee) -> None:
    total = add_up(lattice, {n: contribute(lattice, n) for n in range(2)})
    encrypted = count.EncryptedCount(
        set_digest=total.set_digest, num_posts=total.num_posts, ciphertext=bytes(64)
    )
    agreed, foreign = agree(lattice, total), paillier.key
    words = "committee key is not the one of the agreed set"
    with pytest.raises(NotAgreed, match=words):
        count.partial_decrypt(foreign, paillier.shares[1].count_share, encrypted, agreed)
    with pytest.raises(NotAgreed, match=words):
        count.verify_share(foreign, encrypted, agreed, 1, bytes(96))
    with pytest.raises(NotAgreed, match=words):
        count.combine(foreign, encrypted, agreed, [])


@pytest.mark.parametrize(
    "change",
    [
        *({"iteration": {field: name("x")}} for field in ("genesis", "task", "scope")),
        *({"iteration": {field: 3}} for field in ("iteration", "position")),
        *({field: name("x")} for field in ("key_id", "close_hash", "set_digest", "sum_digest")),
        {"num_posts": 3},
        {"min_clients": 3},
    ],
    ids=str,
)
def test_the_digest_of_an_agreed_set_covers_every_field(lattice: Committee, change: dict[str, Any]) -> None:
    """Proofs of shares bind this digest; for some fields nothing else would notice."""
    agreed = agree(lattice, add_up(lattice, {n: contribute(lattice, n) for n in range(2)}))
    if "iteration" in change:
        change = {"iteration": replace(agreed.iteration, **change["iteration"])}
    assert replace(agreed, **change).digest != agreed.digest


def test_what_is_kept_is_neither_pickled_nor_copied(committee: Committee) -> None:
    scheme, key, share = committee.scheme, committee.key, committee.shares[1]
    begun = scheme.key_generation().begin(a_run(3, 2), 1)
    for secret in (share, share.count_share, scheme.prepare(key, a_post(1), LIMITS), begun.state):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                attempt(secret)  # type: ignore[operator]


def broken(messages: list[RoundMessage]) -> list[RoundMessage]:
    return [replace(m, body=m.body[:-1]) if m.sender == 2 else m for m in messages]


@pytest.mark.parametrize("number", [0, 1])
def test_an_observer_judges_a_run_that_ended_early(committee: Committee, number: int) -> None:
    """Such a run has no further rounds, and its culprit is named all the same."""
    generation, run = committee.scheme.key_generation(), a_run(3, 2)
    results: list[Any] = [generation.begin(run, member) for member in run.shape.members]
    rounds = []
    for _ in range(number):
        rounds.append([result.message for result in results])
        results = [generation.advance(result.state, rounds[-1]) for result in results]
    messages = [result.message for result in results]
    with pytest.raises(KeyGenerationFailed, match="not finished") as unfinished:
        generation.observe(run, [*rounds, messages])
    assert unfinished.value.culprits == ()
    with pytest.raises(KeyGenerationFailed) as expected:
        generation.advance(results[0].state, broken(messages))
    with pytest.raises(KeyGenerationFailed) as found:
        generation.observe(run, [*rounds, broken(messages)])
    assert found.value.culprits == expected.value.culprits == (2,)
