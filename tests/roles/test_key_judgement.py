"""A member that kept no messages of a run names its culprits from the board's copies."""

from types import SimpleNamespace
from typing import NoReturn

import pytest

from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import RoundMessage
from anofel.phase1_setup.step1c_committee_key import generation_run, post_round
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.key_ceremony import KeyCeremony
from tests.board.world import World


class WithoutMessages:
    """Key generation that fails and does not know why."""

    def __init__(self) -> None:
        self._real = schemes.by_name("lattice").key_generation()
        self.observe = self._real.observe

    def advance(self, _state: object, _messages: object) -> NoReturn:
        raise KeyGenerationFailed("Somebody did something.")


@pytest.mark.parametrize("culprits", [(), (2,)])
def test_a_run_that_failed_is_judged_from_the_board(keys: KeyDirectory, culprits: tuple[int, ...]) -> None:
    world = World(keys)
    members = world.make_members(3)
    run = world.make_run(members, 2)
    described = generation_run(run, world.board.genesis_hash)
    for member in members:
        begun = schemes.by_name("lattice").key_generation().begin(described, member.number)
        body = begun.message.body[:-1] if member.number in culprits else begun.message.body
        sent = RoundMessage(run_id=described.run_id, round=0, sender=member.number, body=body)
        world.board.post_as(member.role, post_round(run, sent, world.board.upload(body)))
    ceremony = object.__new__(KeyCeremony)
    ceremony.described, ceremony.run_id = run, described.run_id
    board = SimpleNamespace(genesis=world.genesis, attachments=world.board.attachments)
    ceremony.board = board  # type: ignore[assignment]
    ceremony._generation = WithoutMessages()  # type: ignore[assignment]
    with pytest.raises(KeyGenerationFailed) as caught:
        ceremony._advance(world.board.state.runs[described.run_id], begun.state)
    assert caught.value.culprits == culprits
    assert bool(culprits) != ("Somebody did something." in str(caught.value))
