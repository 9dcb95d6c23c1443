"""What the rules of admission cannot see, and an audit does: runs, sums, bounds, ε."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from anofel.audit import AuditFailed, Auditor
from anofel.audit.report import AuditReport
from anofel.board.state import Phase, Progress
from anofel.certificates import Purpose
from anofel.keys import KeyDirectory
from anofel.phase2_training.announce_task import announce, ledger_entry
from anofel.phase3_access.homomorphic_sum import collect, post_aggregate
from tests.audit.replay import flip
from tests.board.conftest import recording
from tests.board.prepared import Recording, fork, install
from tests.board.world import World, a_task, a_vector

__all__ = ["recording"]


IN_THE_VECTOR = 32 + 4 + 4
"""A sum of the lattice scheme begins with the set's digest and the number of posts; then comes the vector."""


def audit(world: World) -> AuditReport:
    auditor = Auditor(
        world.genesis,
        registration=world.keys.registration_verifier(threads=1),
        submission=world.keys.submission_verifier(threads=1),
        attachments=world.board.attachments,
    )
    for block in world.board.blocks:
        auditor.take(block)
    return auditor.finish()


@pytest.fixture(scope="module")
def stages(keys: KeyDirectory) -> SimpleNamespace:
    """The same board with its committees, after its close, and after its first release."""
    world = World(keys)
    world.offer_certifier_key()
    for _ in range(2):
        world.establish()
    world.board.next_block()
    established = fork(world)
    for number, committee in enumerate(world.committees):
        world.announce(committee, a_task(f"study {number}"))
    world.add_clients(4)
    world.board.next_block()
    for owner in world.owners:
        world.post_first_model(owner)
    world.board.next_block()
    for number, client in enumerate(world.clients):
        target = number % 2
        world.board.post(world.submission(client, target, a_vector(world.owners[target].task, number)))
    world.blocks_until(Phase.CLOSED)
    closed = fork(world)
    world.run_phase3()
    return SimpleNamespace(established=established, closed=closed, released=world)


def refused(world: World, rule: str) -> AuditFailed:
    with pytest.raises(AuditFailed) as caught:
        audit(world)
    assert caught.value.rule == rule
    assert caught.value.height == world.board.blocks[-1].header.height
    return caught.value


def test_an_honest_board_is_accepted(stages: SimpleNamespace) -> None:
    world = fork(stages.released)
    for owner in world.owners:
        world.board.post_as(owner.role, ledger_entry(owner.task, owner.task_id, 1))
    world.board.next_block()
    report = audit(world)
    assert [record.outcome for record in report.iterations] == ["summed", "summed"]
    assert all("Aggregator" in name for record in report.committees for name in record.members)


def test_a_bound_that_does_not_follow_from_the_document_is_found(stages: SimpleNamespace) -> None:
    world = fork(stages.established)
    key = world.committees[0].key
    assert key is not None
    body = announce(a_task(), key_id=key.key_id)
    owner = world.authority.issue(Purpose.OWNER, "Owner")
    world.board.post_as(owner, replace(body, bound=body.bound - 1))
    world.board.next_block()
    assert "bound" in str(refused(world, "announcement"))


def test_a_key_that_its_run_did_not_make_is_found(keys: KeyDirectory, recording: Recording) -> None:
    world = World(keys)
    install(world, recording.committees[0], "Aggregator")
    world.board.next_block()
    assert "run" in str(refused(world, "committee"))


def test_a_sum_that_t_members_made_up_is_found(stages: SimpleNamespace) -> None:
    world = fork(stages.closed)
    owner, committee = world.owners[0], world.committees[0]
    task, bundle = world.task_state(owner), world.bundle()
    assert committee.key is not None
    collected = collect(
        world.board.state, bundle, task, committee.scheme, committee.key, world.board.attachments.read
    )
    encoded = collected.total.to_bytes()
    blob = world.board.store(flip(encoded, IN_THE_VECTOR))
    for member in committee.members[:2]:
        body = post_aggregate(owner.task_id, bundle, member.number, collected, blob)
        world.board.post_as(member.role, body)
    world.board.next_block()
    assert world.position(owner).progress is Progress.AGGREGATED
    assert "not the sum of the accepted payloads" in str(refused(world, "aggregate"))


def test_an_epsilon_that_is_too_small_is_found(stages: SimpleNamespace) -> None:
    world = fork(stages.released)
    owner = world.owners[0]
    entry = ledger_entry(owner.task, owner.task_id, 1)
    world.board.post_as(owner.role, replace(entry, zero_out=entry.zero_out * 9 // 10))
    world.board.next_block()
    assert "claims" in str(refused(world, "ledger"))
