"""A Paillier committee whose messages did not make its key, in a round that only an audit reads."""

from dataclasses import replace

import pytest

from anofel.committee import schemes
from anofel.committee.interface import RoundResult
from anofel.phase1_setup.step1c_committee_key import generation_run, post_round
from anofel.proofs.keys import KeyDirectory
from tests.audit.test_goes_on import report_of
from tests.board.world import FinishedRun, World
from tests.paillier.dealer import InsecureToyPaillierScheme

PAILLIER = schemes.NAMES.index("paillier")


def falsely_generated(world: World, round_number: int) -> FinishedRun:
    """All members together post another message of member 2 in one round than the one they went on with."""
    members = world.make_members(3, "False")
    run, genesis = world.make_run(members, 2, PAILLIER), world.board.genesis_hash
    generation = schemes.by_name("paillier").key_generation()
    results = [generation.begin(generation_run(run, genesis), member.number) for member in members]
    while isinstance(results[0], RoundResult):
        messages = [result.message for result in results]
        for member, message in zip(members, messages, strict=True):
            if (member.number, message.round) == (2, round_number):
                message = replace(message, body=bytes([message.body[0] ^ 1]) + message.body[1:])
            blob = world.board.upload(message.body)
            world.board.post_as(member.role, post_round(run, message, blob))
        results = [generation.advance(result.state, messages) for result in results]
    return FinishedRun(members, run, results)


def test_a_false_paillier_run_is_a_finding_of_that_run_alone(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schemes.by_name
    monkeypatch.setattr(
        schemes, "by_name", lambda name: InsecureToyPaillierScheme(512) if name == "paillier" else known(name)
    )
    world = World(keys)
    world.establish(3, 2, PAILLIER, name="Honest")
    false = falsely_generated(world, round_number=1)
    world.post_keys(false)
    world.board.next_block()
    assert len(world.board.state.committees) == 2, "the board reads three rounds of a run"
    report = report_of(world)
    about = f"run {false.run.run_id(world.board.genesis_hash).hex()}"
    assert [(finding.rule, finding.about) for finding in report.findings] == [("committee", about)]
    assert report.height == world.board.blocks[-1].header.height
