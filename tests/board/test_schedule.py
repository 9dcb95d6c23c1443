"""A rule that changes its rate: the board demands the model that the rate of the iteration makes."""

from dataclasses import replace

import numpy as np

from anofel.board.state import Phase
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import refused
from tests.board.world import World, a_vector

SCHEDULE = {"lr_num": 1, "lr_den": 1, "schedule": [{"iteration": 2, "lr_num": 1, "lr_den": 8}]}


def run_iteration(world: World) -> np.ndarray:
    """Three clients train the first task; returns the sum of their updates."""
    updates = [a_vector(world.owners[0].task, seed) for seed in range(3)]
    for client, update in zip(world.clients, updates, strict=True):
        world.board.post(world.submission(client, 0, update))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    return np.sum(updates, axis=0, dtype=np.int64)


def test_the_board_applies_the_rate_of_its_own_iteration(keys: KeyDirectory) -> None:
    world = World(keys)
    world.set_up(num_clients=3, rule=SCHEDULE)
    owner, other = world.owners
    first = owner.model
    assert first is not None

    total = run_iteration(world)
    after = world.recover(owner)
    np.testing.assert_array_equal(after.values - first.values, np.rint(total / 3).astype(np.int64))
    for one in (owner, other):
        world.post_model(one)
    world.board.next_block()

    total = run_iteration(world)
    assert world.bundle().iterations == 2
    wrong = rule_of(owner.task).apply(after, total, 3, 1)
    owner.model = replace(wrong)
    with refused(world, "wrong-model"):
        world.post_model(owner)
    owner.model = after
    second = world.recover(owner)
    np.testing.assert_array_equal(second.values - after.values, np.rint(total / 24).astype(np.int64))
    world.post_model(owner)
