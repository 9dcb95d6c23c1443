"""A task with metric slots on the board: longer vectors, the same models, and a report that anyone reads."""

import numpy as np
import pytest

from anofel.audit import Auditor
from anofel.board.state import Phase, Progress
from anofel.learning.build import trainer_of
from anofel.models.rules import rule_of
from anofel.phase3_access.step8prime_model import metrics_of_sum
from anofel.privacy.metric_slots import reported_metrics
from anofel.privacy.plan import Plan
from anofel.privacy.protect import protect, train_unit
from anofel.proofs.keys import KeyDirectory
from tests.board.world import World, a_task
from tests.patients import make_dataset


def test_metric_slots_are_summed_stripped_and_read_by_everybody(keys: KeyDirectory) -> None:
    world = World(keys, bundle_size=1)
    world.offer_certifier_key()
    world.establish()
    world.board.next_block()
    task = a_task("measured", metrics={"names": ["accuracy", "loss"], "share": "0.5", "proven_ranges": True})
    owner = world.announce(world.committees[0], task)
    world.add_clients(3)
    world.board.next_block()
    world.post_first_model(owner)
    world.board.next_block()
    limits = world.task_state(owner).facts.limits
    assert limits.length == task.model.parameters + 2
    assert [one.coordinate for one in limits.ranges] == [limits.length - 2, limits.length - 1]

    plan, trainer, before = Plan.of(task), trainer_of(task), owner.model
    assert before is not None
    updates = []
    for seed, client in enumerate(world.clients):
        local = train_unit(trainer, before.parameters(), make_dataset(20, seed), plan)
        updates.append(protect(local, before.layout, plan))
        world.board.post(world.submission(client, 0, updates[-1]))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    position, total = world.position(owner), np.sum(updates, axis=0, dtype=np.int64)
    assert (position.progress, position.count) == (Progress.SUMMED, 3)
    expected = reported_metrics(plan, total, 3)
    assert metrics_of_sum(world.board, world.seat(owner)) == expected
    plain = rule_of(task).apply(before, total[:-2], 3, 1)
    assert world.recover(owner).to_bytes() == plain.to_bytes()
    world.post_model(owner)
    world.board.next_block()
    assert world.task_state(owner).model == plain.digest()

    auditor = Auditor(
        world.genesis,
        registration=keys.registration_verifier(threads=1),
        submission=keys.submission_verifier(threads=1),
        attachments=world.board.attachments,
    )
    auditor.follow(world.board.blocks)
    [kept] = world.task_state(owner).outcomes
    assert kept.reported == tuple(total[-2:].tolist())
    [record] = auditor.finish().iterations
    assert record.reported == pytest.approx(expected)
