"""A rule with a bound on the mean: the board demands the model that the shortened mean makes."""

import numpy as np

from anofel.models.integer_model import IntegerMean
from anofel.models.rules import rule_of
from anofel.phase3_access.step8prime_model import is_shortened
from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import refused
from tests.board.test_schedule import run_iteration
from tests.board.world import World


def test_the_board_demands_the_model_of_the_shortened_mean(keys: KeyDirectory) -> None:
    world = World(keys)
    world.set_up(num_clients=3, rule={"lr_num": 1, "lr_den": 1, "max_mean_norm": "0.001"})
    owner, _ = world.owners
    first = owner.model
    assert first is not None

    total = run_iteration(world)
    bound = rule_of(owner.task).max_mean
    assert bound == 66
    assert np.linalg.norm(total / 3) > 2 * bound, "otherwise this test shows nothing"
    assert is_shortened(world.board, world.seat(owner))
    owner.model = IntegerMean(lr_num=1, lr_den=1).apply(first, first.own_part(total), 3, 1)
    with refused(world, "wrong-model"):
        world.post_model(owner)
    owner.model = first
    made = world.recover(owner)
    step = made.values - first.values
    assert np.linalg.norm(step) <= bound + np.sqrt(step.size)
    assert np.corrcoef(step, total)[0, 1] > 0.99
    world.post_model(owner)
