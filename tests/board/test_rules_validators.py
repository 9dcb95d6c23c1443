"""Changes of validators: one test per rule, in which only it fails."""

from dataclasses import replace

import pytest

from anofel.messages import ChainAuthor, SignChange, make_posting
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard, Institution
from tests.board.prepared import alone, refused
from tests.board.world import DAY, TIME, World

NEXT = 4
"""The first place that nobody had."""


@pytest.fixture
def world(keys: KeyDirectory) -> CommitteeBoard:
    return CommitteeBoard(keys)


@pytest.fixture
def five(keys: KeyDirectory) -> CommitteeBoard:
    return CommitteeBoard(keys, 5)


def newcomer(world: CommitteeBoard, name: str = "New") -> Institution:
    made = Institution.new(world.authority, name)
    world.everybody_else += (made,)
    return made


def test_one_node_never_changes(keys: KeyDirectory) -> None:
    one, several = World(keys), CommitteeBoard(keys)
    role = one.authority.issue(Purpose.VALIDATOR, "Clinic")
    one.board.chain.begin(TIME + 1)
    body = several.change(0, newcomer(several).entry(several.genesis.nonce))
    with refused(one, "validators-fixed"):
        one.board.chain.offer(make_posting(body, ChainAuthor(role.chain), one.genesis.hash, role.sign).data)
    several.post(several.proposal(0, body))


def test_only_a_validator_proposes_and_signs(world: CommitteeBoard) -> None:
    body, stranger = world.change(0, newcomer(world).entry(world.genesis.nonce)), newcomer(world)
    alone(world, "not-a-validator", world.signed(stranger.role, body), world.proposal(1, body))  # type: ignore[arg-type]
    sign = SignChange(change=body.change_id(world.genesis.hash))
    alone(world, "not-a-validator", world.signed(stranger.role, sign), world.signature(2, body))  # type: ignore[arg-type]


def test_a_change_waits_until_the_decided_one_has_begun(five: CommitteeBoard) -> None:
    five.decide(five.change(0, None, since=6), 1, 2, 3, 4)
    early = five.proposal(1, five.change(2, newcomer(five).entry(five.genesis.nonce), since=9))
    with refused(five, "change-waits"):  # type: ignore[arg-type]
        five.post(early)
    five.until(5)
    with refused(five, "change-waits"):  # type: ignore[arg-type]
        five.post(early)
    five.until(6)
    five.post(early)


def test_a_change_names_the_validators_that_it_changes(world: CommitteeBoard) -> None:
    good = world.change(1, newcomer(world).entry(world.genesis.nonce))
    bad = replace(good, base=bytes(32))
    alone(world, "validators-moved", world.proposal(0, bad), world.proposal(0, good))  # type: ignore[arg-type]


def test_a_change_begins_when_the_engine_can_still_hear_of_it(world: CommitteeBoard) -> None:
    good = world.change(1, newcomer(world).entry(world.genesis.nonce), since=3)
    assert world.state.height == 1
    for since in (0, 1, 2, 100_002):
        with refused(world, "change-height"):  # type: ignore[arg-type]
            world.post(world.proposal(0, replace(good, since=since)))
    world.post(world.proposal(0, replace(good, since=100_001)))
    world.post(world.proposal(0, good))


def test_a_change_is_proposed_once(world: CommitteeBoard) -> None:
    body, other = (world.change(1, newcomer(world).entry(world.genesis.nonce), since=s) for s in (5, 6))
    world.post(world.proposal(0, body))
    alone(world, "change-proposed", world.proposal(2, body), world.proposal(2, other))  # type: ignore[arg-type]


def test_a_change_is_of_a_place_that_there_is_or_of_the_next_one(five: CommitteeBoard) -> None:
    five.decide(five.change(0, None, since=3), 1, 2, 3, 4)
    five.until(3)
    entry = newcomer(five).entry(five.genesis.nonce)
    for place, what in ((0, entry), (0, None), (6, entry), (5, None)):
        with refused(five, "wrong-place"):  # type: ignore[arg-type]
            five.post(five.proposal(1, five.change(place, what, since=9)))
    five.post(five.proposal(1, five.change(5, entry, since=9)))


@pytest.mark.parametrize("number", [2, 4])
def test_enough_validators_stay(keys: KeyDirectory, number: int) -> None:
    world = CommitteeBoard(keys, number)
    good = world.change(1, newcomer(world).entry(world.genesis.nonce))
    alone(world, "too-few-validators", world.proposal(0, replace(good, entry=None)), world.proposal(0, good))  # type: ignore[arg-type]


def test_there_are_not_too_many_validators(keys: KeyDirectory) -> None:
    world = CommitteeBoard(keys, 16)
    entry = newcomer(world).entry(world.genesis.nonce)
    bad, good = (world.change(place, entry) for place in (16, 15))
    alone(world, "too-many-validators", world.proposal(0, bad), world.proposal(0, good))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fault",
    ["another purpose", "expired", "a holder of another purpose", "no binding", "another board's nonce"],
)
def test_who_comes_is_certified_and_asked_for_it(world: CommitteeBoard, fault: str) -> None:
    nonce, come = world.genesis.nonce, newcomer(world)
    entry, bad = come.entry(nonce), come
    if fault == "another purpose":
        bad = replace(come, role=world.authority.issue(Purpose.OWNER, "New"))
    if fault == "expired":
        role = world.authority._ca.issue(Purpose.VALIDATOR, "New", TIME - 9 * DAY, TIME)
        bad = replace(come, role=role)
    if fault == "a holder of another purpose":
        bad = replace(come, storage=world.authority.issue(Purpose.OWNER, "New"))
    wrong = bad.entry(bytes(32) if fault == "another board's nonce" else nonce)
    if fault == "no binding":
        wrong = replace(wrong, validator=replace(wrong.validator, binding=None))
    body = world.change(1, entry)
    spoilt = replace(body, entry=wrong)
    alone(world, "validator-not-certified", world.proposal(0, spoilt), world.proposal(0, body))  # type: ignore[arg-type]


def test_no_key_votes_twice_in_a_board(world: CommitteeBoard) -> None:
    """Not that of another, and not one that was taken away: who stole it must not come back."""
    nonce, old = world.genesis.nonce, world.seats[3]
    fresh = old.with_new_key()
    world.everybody_else += (fresh,)
    for place in (3, 2):
        with refused(world, "validator-key-used"):  # type: ignore[arg-type]
            world.post(world.proposal(0, world.change(place, world.seats[3].entry(nonce))))
    world.decide(world.change(3, fresh.entry(nonce), since=3), 0, 1, 2)
    world.until(3)
    back, good = (world.change(3, one.entry(nonce), since=9) for one in (old, old.with_new_key()))
    alone(world, "validator-key-used", world.proposal(0, back), world.proposal(0, good))  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["validator", "storage"])
def test_nobody_stands_in_two_places(world: CommitteeBoard, what: str) -> None:
    nonce, come = world.genesis.nonce, newcomer(world)
    other = world.seats[2]
    twice = replace(come, role=other.role) if what == "validator" else replace(come, storage=other.storage)
    bad, good = (world.change(NEXT, one.entry(nonce)) for one in (twice, come))
    alone(world, "validator-present", world.proposal(0, bad), world.proposal(0, good))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [NEXT, 1])
def test_nobody_gains_power(world: CommitteeBoard, place: int) -> None:
    nonce, come = world.genesis.nonce, newcomer(world)
    good = world.change(place, come.entry(nonce))
    bad = replace(good, entry=come.entry(nonce, validator=come.validator(nonce, power=2)))
    alone(world, "validator-power", world.proposal(0, bad), world.proposal(0, good))  # type: ignore[arg-type]


def test_a_signature_is_of_a_change_that_is_proposed(world: CommitteeBoard) -> None:
    body = world.change(1, newcomer(world).entry(world.genesis.nonce))
    with refused(world, "change-unknown"):  # type: ignore[arg-type]
        world.post(world.signature(2, body))
    world.post(world.proposal(0, body))
    world.post(world.signature(2, body))


def test_a_validator_signs_a_change_once(world: CommitteeBoard) -> None:
    body = world.change(1, newcomer(world).entry(world.genesis.nonce))
    world.post(world.proposal(0, body))
    alone(world, "change-signed", world.signature(0, body), world.signature(2, body))  # type: ignore[arg-type]
    with refused(world, "change-signed"):  # type: ignore[arg-type]
        world.post(world.signature(2, body))
