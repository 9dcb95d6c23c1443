"""Which committee a name or a prefix means, and what is refused instead of guessed."""

import secrets

import pytest

from anofel.errors import InvalidInput
from anofel.messages import Run
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.key_ceremony import nonce_of
from anofel.roles.committee_names import MIN_DIGITS, NoCommittee, check_members, find_committee, is_there
from tests.board.world import CommitteeOfTest, World


class NamedWorld(World):
    """Key generations have names here, as those of ``anofel aggregator keygen`` do."""

    name = ""

    def make_run(self, members, threshold, scheme=0):  # type: ignore[no-untyped-def]
        nonce = nonce_of(self.name) if self.name else secrets.token_bytes(32)
        subjects = tuple(member.subject for member in members)
        return Run(nonce=nonce, scheme=scheme, threshold=threshold, members=subjects, handover=None)

    def make(self, name: str, people: str) -> CommitteeOfTest:
        self.name = name
        return self.establish(2, 2, name=people)


@pytest.fixture(scope="module")
def world(keys: KeyDirectory) -> NamedWorld:
    made = NamedWorld(keys)
    made.make("lung-1", "University")
    made.make("bone-1", "Hospital")
    return made


def find(world: World, text: str) -> bytes:
    return find_committee(world.board.state, text).key_id


def test_a_name_a_prefix_or_the_whole_id_mean_a_committee(world: NamedWorld) -> None:
    for name, made in zip(("lung-1", "bone-1"), world.committees, strict=True):
        digits = made.key.key_id.hex()
        for text in (name, digits, digits[:MIN_DIGITS], digits[:20].upper()):
            assert find(world, text) == made.key.key_id
            assert is_there(world.board.state, text)


@pytest.mark.parametrize("text", ["lung", "Lung-1", "", "0" * 64, "f" * (MIN_DIGITS - 1)])
def test_what_means_no_committee_is_refused_and_those_that_are_there_are_named(
    world: NamedWorld, text: str
) -> None:
    assert not is_there(world.board.state, text)
    with pytest.raises(NoCommittee, match=f"there is .*{world.committees[0].key.key_id.hex()[:16]}…"):
        find(world, text)


def test_fewer_digits_than_eight_are_never_a_prefix(world: NamedWorld) -> None:
    digits = world.committees[0].key.key_id.hex()
    with pytest.raises(NoCommittee):
        find(world, digits[: MIN_DIGITS - 1])


def test_a_name_that_two_committees_chose_fits_neither(keys: KeyDirectory) -> None:
    """Nobody owns a name: whoever squats on one cannot have an owner announce to its own committee."""
    world = NamedWorld(keys)
    honest, squatter = world.make("lung-1", "University"), world.make("lung-1", "Squatter")
    for ask in (find_committee, is_there):
        with pytest.raises(NoCommittee, match="2 committees are called 'lung-1'"):
            ask(world.board.state, "lung-1")
    assert find(world, honest.key.key_id.hex()[:16]) == honest.key.key_id != squatter.key.key_id


def test_a_run_that_made_no_key_lends_its_name_to_nothing(keys: KeyDirectory) -> None:
    world = NamedWorld(keys)
    world.name = "lung-1"
    finished = world.generate(2, 2, name="University")
    assert not is_there(world.board.state, "lung-1")
    world.post_keys(finished)
    assert is_there(world.board.state, "lung-1")


def test_members_that_nobody_named_are_refused_by_name(world: NamedWorld) -> None:
    state = world.board.state
    committee = find_committee(state, "lung-1")
    check_members(state, committee, ["O=University 1", "O=University 2"])
    with pytest.raises(NoCommittee, match=r"members that you did not name: .*University 2"):
        check_members(state, committee, ["O=University 1"])
    with pytest.raises(InvalidInput, match="names no aggregators"):
        check_members(state, committee, ["University 1"])
