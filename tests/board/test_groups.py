"""Groups: posts are dealt out at the close, and each group is added, counted and opened alone (D-26)."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.board import groups
from anofel.board.groups import deal
from anofel.board.seat import Sitting
from anofel.board.state import Phase, Progress
from anofel.committee import schemes
from anofel.committee.context import digest_of_set
from anofel.committee.errors import TooFewClients
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.errors import InvalidInput
from anofel.messages import Aggregate, GroupSum
from anofel.models.means import mean_of
from anofel.models.rules import rule_of
from anofel.phase3_access import step6_homomorphic_sum
from anofel.phase3_access.step6_homomorphic_sum import collect
from anofel.proofs.keys import KeyDirectory
from anofel.tasks.task import GroupsSpec, Task
from tests.audit.test_deep import audit
from tests.board.prepared import (
    a_count_share,
    a_sum_share,
    alone,
    an_aggregate,
    everybody,
    fork,
    refused,
    signed,
)
from tests.board.world import ClientOfTest, World, a_task, a_vector
from tests.paillier.dealer import InsecureToyPaillierScheme

THREE = {"number": 3, "combine": "median"}
FEW = {"min_clients": 2, "max_colluders": 0, "expected_clients": 8}
MEDIAN = GroupsSpec(number=3)

names = st.sets(st.binary(min_size=32, max_size=32), max_size=40)


# The deal


@given(names, st.integers(2, 8), st.integers(2, 6))
def test_a_deal_is_a_partition_into_groups_that_are_large_enough(
    posts: set[bytes], number: int, least: int
) -> None:
    dealt = deal(posts, b"c" * 32, groups=number, min_clients=least)
    assert sorted(name for group in dealt for name in group) == sorted(posts)
    assert len(dealt) == max(1, min(number, len(posts) // least))
    sizes = [len(group) for group in dealt]
    assert max(sizes) - min(sizes) <= 1
    assert len(dealt) == 1 or min(sizes) >= least


def test_a_deal_is_the_documented_one() -> None:
    posts = [bytes([number]) * 32 for number in range(7)]
    order = sorted(
        posts, key=lambda name: hashlib.sha256(b"anofel/1/board/group" + b"c" * 32 + name).digest()
    )
    dealt = deal(reversed(posts), b"c" * 32, groups=3, min_clients=2)
    assert dealt == (tuple(order[:2]), tuple(order[2:4]), tuple(order[4:]))
    assert dealt != deal(posts, b"d" * 32, groups=3, min_clients=2)


# The combination, against exact fractions


def grouped(spec: GroupsSpec | None) -> Task:
    """A task of three parameters with these groups."""
    task = a_task()
    return replace(task, groups=spec, model=replace(task.model, parameters=3))


def exact(spec: GroupsSpec, sums: list[tuple[list[int], int]]) -> list[Fraction]:
    means = [[round(Fraction(65536 * value, count)) for value in total] for total, count in sums]
    left_out = (len(sums) - 1) // 2
    if spec.combine == "trimmed-mean":
        left_out = min(spec.trim, left_out)
    columns = [sorted(column)[left_out : len(sums) - left_out] for column in zip(*means, strict=True)]
    return [Fraction(sum(column), 65536 * len(column)) for column in columns]


SUMS = st.lists(
    st.tuples(st.lists(st.integers(-(1 << 40), 1 << 40), min_size=3, max_size=3), st.integers(1, 1 << 14)),
    min_size=1,
    max_size=8,
)
SPECS = [MEDIAN, *(GroupsSpec(number=8, combine="trimmed-mean", trim=trim) for trim in (1, 2, 3))]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.combine} {spec.trim}")
@given(sums=SUMS)
def test_the_mean_of_groups_is_exact(spec: GroupsSpec, sums: list[tuple[list[int], int]]) -> None:
    total, count = mean_of(grouped(spec), [(np.array(values, dtype=np.int64), n) for values, n in sums])
    assert [Fraction(int(value), count) for value in total] == exact(spec, sums)


def test_no_group_keeps_the_others_from_being_used() -> None:
    far = 1 << 60
    sums = [([far, -far, 5], 1), ([2, 2, 5], 1), ([4, 4, 5], 1)]
    total, count = mean_of(grouped(MEDIAN), [(np.array(values, dtype=np.int64), n) for values, n in sums])
    assert [Fraction(int(value), count) for value in total] == [4, 2, 5]
    total, count = mean_of(grouped(MEDIAN), [(np.array([far, -far, 7], dtype=np.int64), 1)])
    assert [Fraction(int(value), count) for value in total] == [1 << 41, -(1 << 41), 7]
    with pytest.raises(InvalidInput, match="No group"):
        mean_of(grouped(MEDIAN), [])


def test_without_groups_the_sum_stays_as_it_is() -> None:
    total = np.array([-5, 7], dtype=np.int64)
    own, count = mean_of(grouped(None), [(total, 3)])
    assert (own.tolist(), count) == ([-5, 7], 3)


# A task's document


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": {"number": 3, "trim": 1}}, "belongs to it alone"),
        ({"groups": {"number": 3, "combine": "trimmed-mean"}}, "belongs to it alone"),
        ({"groups": {"number": 4, "combine": "trimmed-mean", "trim": 2}}, "below half of the groups, 4"),
        ({"groups": {"number": 5}}, "5 groups need expected_clients of 10 or more"),
        ({"groups": THREE, "rule": {"kind": "owner"}}, "not the kind owner"),
        ({"groups": {"number": 33}}, "33"),
    ],
)
def test_groups_that_cannot_be_are_refused(changes: dict[str, dict[str, object]], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        a_task(privacy=FEW, **changes)


# Over a board


@pytest.fixture(scope="module")
def opened(keys: KeyDirectory) -> World:
    world = World(keys)
    world.set_up(num_clients=7, privacy=FEW, groups=THREE)
    return world


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal by the nullifiers alone, so that a test knows who is with whom."""
    monkeypatch.setattr(groups, "_place", lambda _close_hash, name: name)


def dealt_order(world: World, clients: Sequence[ClientOfTest]) -> list[ClientOfTest]:
    """The clients in the order of their nullifiers."""
    scope = Sitting.of(world.board.state, 0).scope

    def nullifier(client: ClientOfTest) -> bytes:
        own = client.credential
        return own.msk.iteration_nullifier(own.d, scope).to_bytes()

    return sorted(clients, key=nullifier)


def submitted(world: World, targets: list[int]) -> None:
    """Post one submission for each client, in the order of their nullifiers, and close the iteration."""
    for place, client in enumerate(dealt_order(world, world.clients[: len(targets)])):
        update = a_vector(world.owners[targets[place]].task, place)
        world.board.post(world.submission(client, targets[place], update))
    world.blocks_until(Phase.CLOSED)


@pytest.mark.usefixtures("in_order")
def test_the_model_is_the_median_of_the_groups(opened: World) -> None:
    world = fork(opened)
    submitted(world, [0] * 7)
    world.run_phase3()
    owner, position = world.owners[0], world.position(world.owners[0])
    assert (position.progress, position.counts, position.count) == (Progress.SUMMED, (2, 2, 3), 7)
    assert world.position(world.owners[1]).progress is Progress.TOO_FEW, "nobody trains it"
    vectors = [a_vector(owner.task, place) for place in range(7)]
    sums = [(np.sum(part, axis=0), len(part)) for part in (vectors[:2], vectors[2:4], vectors[4:])]
    before = owner.model
    assert before is not None
    total, count = mean_of(owner.task, sums)
    assert world.recover(owner).to_bytes() == rule_of(owner.task).apply(before, total, count, 1).to_bytes()
    middle = np.median([total / n for total, n in sums], axis=0)
    np.testing.assert_allclose(world.recover(owner).values - before.values, middle, atol=0.51)
    report = audit(world)
    assert report.ok
    counts = {(record.count, *(record.counts or ())) for record in report.iterations}
    assert counts == {(7, 2, 2, 3), (0,)}
    world.post_model(owner)


@pytest.mark.usefixtures("in_order")
def test_a_group_that_is_too_small_is_never_opened(opened: World) -> None:
    world = fork(opened)
    submitted(world, [0, 0, 0, 1, 0, 0, 0])
    for step in (World.aggregate, World.count_share):
        everybody(world, step)
    seat = world.seat(world.owners[0])
    assert (seat.position.progress, seat.position.counts) == (Progress.COUNTED, (2, 1, 3))
    assert seat.opened == (0, 2)
    assert len(world.board.openings.permits(seat)) == 2
    with pytest.raises(TooFewClients):
        world.board.openings.counts(seat)[1].permit_sum()
    assert world.position(world.owners[1]).progress is Progress.TOO_FEW, "one client"
    everybody(world, World.sum_share, owners=(0,))
    opened_sum = world.board.openings.open_sum(world.seat(world.owners[0]))
    assert opened_sum is not None
    assert [count for _, count in opened_sum.groups] == [2, 3]
    vectors = [a_vector(world.owners[0].task, place) for place in (0, 1, 4, 5, 6)]
    np.testing.assert_array_equal(opened_sum.vector, np.sum(vectors, axis=0))
    assert audit(world).ok


@pytest.mark.parametrize("bit", [0, 1])
def test_deals_of_two_tasks_would_single_out_a_post(bit: int) -> None:
    """Why two tasks with groups do not share a bundle: a liar's post, left out of one, moves its cuts."""
    posts = [bytes([number]) * 32 for number in range(9)]
    first = deal(posts, b"c" * 32, groups=3, min_clients=2)
    order = [name for group in first for name in group]
    second = deal(set(posts) - {order[8]}, b"c" * 32, groups=3, min_clients=2)
    bits = {name: number % 2 for number, name in enumerate(order)} | {order[2]: bit}
    counts = sum(bits[name] for name in first[0]), sum(1 - bits[name] for name in second[0])
    assert counts[0] - (len(second[0]) - counts[1]) == bit, "whoever posts is for the one task or the other"


def test_two_tasks_with_groups_do_not_share_a_bundle(keys: KeyDirectory) -> None:
    world = World(keys)
    for number, changes in enumerate(({"groups": THREE}, {"groups": THREE}, {})):
        world.announce(world.establish(), a_task(f"study {number}", privacy=FEW, **changes))
        world.board.next_block()
        assert bool(world.board.state.bundles) == (number == 2)
    (bundle,) = world.board.state.bundles.values()
    assert bundle.tasks == (world.owners[0].task_id, world.owners[2].task_id)


def test_few_posts_make_fewer_groups(opened: World) -> None:
    world = fork(opened)
    submitted(world, [0] * 5)
    everybody(world, World.aggregate)
    agreed = world.position(world.owners[0]).agreed
    assert agreed is not None
    assert [group.num_posts for group in agreed.groups] == [2, 3]


def test_what_does_not_fit_into_memory_is_read_again(opened: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = fork(opened)
    submitted(world, [0] * 6)
    seat = world.seat(world.owners[0])
    held = collect(world.board, seat)
    monkeypatch.setattr(step6_homomorphic_sum, "_MAX_HELD_BYTES", 0)
    assert collect(world.board, seat).agreement == held.agreement
    assert len(held.totals) == 3


def another_deal(world: World, good: Aggregate) -> Aggregate:
    """Sums that are right for a deal in which two posts have changed places."""
    seat, committee = world.seat(world.owners[0]), world.committees[0]
    assert committee.key is not None
    dealt = [list(names) for names in seat.groups_of(seat.iteration.submissions)]
    dealt[0][0], dealt[1][0] = dealt[1][0], dealt[0][0]
    made = []
    for names in dealt:
        items = [seat.iteration.submissions[name] for name in names]
        accumulator = committee.scheme.accumulator(committee.key, seat.context, seat.limits)
        for post in items:
            payload = world.board.attachments.read(post.payloads[seat.place].sha256)
            checked = committee.scheme.verify_payload(
                committee.key, seat.context_of(post), seat.limits, seat.envelope_of(post), payload
            )
            accumulator.add(checked)
        total = accumulator.finish()
        blob = world.board.upload(total.to_bytes())
        made.append(GroupSum(set_digest=digest_of_set(names), num_posts=len(names), sum=blob))
    return replace(good, groups=tuple(made))


def test_nobody_chooses_who_is_with_whom(opened: World) -> None:
    """Members who could deal would put one client among their friends."""
    world = fork(opened)
    submitted(world, [0] * 6)
    member = world.committees[0].members[0]
    good = an_aggregate(world, 0, member)
    bad = signed(world, member.role, another_deal(world, good))
    alone(world, "wrong-set", bad, signed(world, member.role, good))


def test_shares_are_for_their_own_groups(opened: World) -> None:
    world = fork(opened)
    submitted(world, [0] * 6)
    everybody(world, World.aggregate)
    member = world.committees[0].members[0]
    good = a_count_share(world, 0, member)
    first, second, third = good.shares
    swapped = signed(world, member.role, replace(good, shares=(second, first, third)))
    alone(world, "bad-count-share", swapped, signed(world, member.role, good))
    world.count_share(world.owners[0], world.committees[0], world.committees[0].members[1])
    world.board.next_block()
    sums = a_sum_share(world, 0, member)
    bad = signed(world, member.role, replace(sums, shares=(sums.shares[1], sums.shares[0], sums.shares[2])))
    alone(world, "bad-sum-share", bad, signed(world, member.role, sums))
    with refused(world, "sum-not-agreed"):
        world.board.post_as(member.role, replace(sums, shares=sums.shares[:2]))


@pytest.mark.usefixtures("in_order")
def test_a_lie_that_spoils_a_paillier_sum_spoils_one_group(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schemes.by_name
    toy = InsecureToyPaillierScheme(512)
    monkeypatch.setattr(schemes, "by_name", lambda name: toy if name == "paillier" else known(name))
    world = World(keys)
    scheme = schemes.NAMES.index("paillier")
    world.set_up(num_clients=6, committees=((3, 2, scheme), (3, 2, 0)), privacy=FEW, groups=THREE)
    task = world.owners[0].task
    for place, client in enumerate(dealt_order(world, world.clients)):
        with monkeypatch.context() as lying:
            if place == 3:
                lying.setattr(Packing, "pack", lambda own, _: [1 << (own.bits * own.slots + 5)] * own.count)
            world.board.post(world.submission(client, 0, a_vector(task, place)))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    seat = world.seat(world.owners[0])
    assert (seat.position.progress, seat.position.counts) == (Progress.SUMMED, (2, 2, 2))
    opened_sum = world.board.openings.open_sum(seat)
    assert opened_sum is not None
    honest = [a_vector(task, place) for place in (0, 1, 4, 5)]
    assert len(opened_sum.groups) == 2, "the group of the liar cannot be decoded"
    np.testing.assert_array_equal(opened_sum.vector, np.sum(honest, axis=0))
    assert audit(world).ok
