"""Bundles of both schemes, and sums of as many posts as a committee admits: exact to the last bit."""

import secrets
from dataclasses import replace

import numpy as np
import pytest

from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment
from anofel.committee import count
from anofel.committee.context import PostContext, TaskLimits
from anofel.committee.count import BallotStatement, BundleCommittee, TypeOpening
from anofel.committee.errors import EnvelopeRefused, KeyRefused, TooFewClients
from anofel.committee.interface import EncryptedSum, Int64Vector, Scheme
from tests.committee.world import (
    ITERATION,
    Committee,
    a_post,
    agree,
    assume_counted,
    name,
    open_count,
    open_sum,
)

TYPE = 7


def at(position: int, post: PostContext) -> PostContext:
    """The post as the committee at this position of the bundle sees it: another task, the same scope."""
    return replace(post, iteration=replace(ITERATION, position=position, task=name(f"task {position}")))


def extremes(number: int, limits: TaskLimits) -> Int64Vector:
    """The largest sum, the smallest, one that cancels, and anything in between."""
    generator = np.random.default_rng(number)
    vector = generator.integers(-limits.bound, limits.bound, limits.length, endpoint=True, dtype=np.int64)
    vector[:3] = limits.bound, -limits.bound, limits.bound * (-1) ** number
    return vector


def test_a_bundle_of_both_schemes_counts_and_adds_exactly(lattice: Committee, paillier: Committee) -> None:
    """Five posts: two train the first task, two the second, one is cover; each addresses both."""
    committees = [lattice, paillier]
    limits = [
        TaskLimits(length=30, bound=1000, max_posts=8, min_clients=2),
        TaskLimits(length=70, bound=2**31, max_posts=8, min_clients=2),
    ]
    targets = [0, 1, 1, None, 0]
    bundle = [
        BundleCommittee(key_id=c.key.key_id, count_key=c.key.count_key, accepted_types=types)
        for c, types in zip(committees, (None, (3, TYPE)), strict=True)
    ]
    accumulators = [
        c.scheme.accumulator(c.key, at(position, a_post(0)).iteration, limits[position])
        for position, c in enumerate(committees)
    ]
    bits: list[dict[bytes, bytes]] = [{}, {}]
    expected = [np.zeros(limit.length, dtype=np.int64) for limit in limits]
    statements = []
    for number, target in enumerate(targets):
        blinding = TypeBlinding.generate()
        commitment = TypeCommitment(DatasetType(TYPE), blinding).to_bytes()
        statement = BallotStatement(a_post(number), commitment, bundle)
        opening = TypeOpening(dataset_type=TYPE, blinding=blinding.to_secret_bytes())
        ballot = statement.cast(target, opening).ballot
        statements.append((statement, ballot))
        for position, committee in enumerate(committees):
            scheme, key, limit = committee.scheme, committee.key, limits[position]
            values = extremes(number, limit) * (target == position)
            expected[position] += values
            post = at(position, a_post(number))
            made = scheme.prepare(key, post, limit).encrypt(values)
            assert len(made.payload) == scheme.payload_bytes(key, limit)
            scheme.verify_envelopes(key, limit, [(post, made.envelope)])
            with pytest.raises(EnvelopeRefused):
                scheme.verify_envelope(key, at(1 - position, a_post(number)), limit, made.envelope)
            accumulators[position].add(scheme.verify_payload(key, post, limit, made.envelope, made.payload))
            bits[position][post.nullifier] = count.bit_of(ballot, position)
    count.verify_ballots(statements)
    for position, committee in enumerate(committees):
        total = accumulators[position].finish()
        counted = open_count(committee, bits[position], agree(committee, total))
        assert counted.value == 2
        members = list(committee.key.shape.members)[-committee.key.shape.threshold :]
        opened = open_sum(committee, total, counted.permit_sum(), members)
        assert np.array_equal(opened, expected[position])
        with pytest.raises(TooFewClients):
            open_count(committee, bits[position], agree(committee, total, min_clients=3)).permit_sum()
        with pytest.raises(KeyRefused):
            committees[1 - position].scheme.payload_bytes(committee.key, limits[position])


def add_many(scheme: Scheme, committee: Committee, limits: TaskLimits) -> tuple[EncryptedSum, Int64Vector]:
    """Everything that happens to ``max_posts`` posts; the whole block is checked at once."""
    key, items, expected = committee.key, [], np.zeros(limits.length, dtype=np.int64)
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for number in range(limits.max_posts):
        values = extremes(number, limits)
        made = scheme.prepare(key, a_post(number), limits).encrypt(values)
        items.append((a_post(number), made.envelope))
        accumulator.add(scheme.verify_payload(key, a_post(number), limits, made.envelope, made.payload))
        expected += values
    scheme.verify_envelopes(key, limits, items)
    return accumulator.finish(), expected


def check_many(committee: Committee, limits: TaskLimits) -> None:
    total, expected = add_many(committee.scheme, committee, limits)
    assert total.num_posts == limits.max_posts
    assert expected[:2].tolist() == [512 * limits.bound, -512 * limits.bound]
    assert expected[2] == 0
    permit = assume_counted(committee, total).permit_sum()
    members = secrets.SystemRandom().sample(list(committee.key.shape.members), committee.key.shape.threshold)
    assert np.array_equal(open_sum(committee, total, permit, members), expected)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 2**20])
def test_512_posts_are_exact_in_lattice(lattice: Committee, bound: int) -> None:
    check_many(lattice, TaskLimits(length=2100, bound=bound, max_posts=512, min_clients=2))


@pytest.mark.parametrize("bound", [1, 2**15 - 1, 2**40])
def test_512_posts_are_exact_in_paillier(paillier: Committee, bound: int) -> None:
    check_many(paillier, TaskLimits(length=40, bound=bound, max_posts=512, min_clients=2))
