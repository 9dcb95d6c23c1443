"""A rule with two moments: the board demands the model, and the moments, that the rule makes."""

from dataclasses import replace

import numpy as np

from anofel.models.integer_model import IntegerAdaptive
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import refused
from tests.board.test_schedule import run_iteration
from tests.board.world import World

ADAM = {"kind": "integer-adam", "momentum": 58_982, "lr_num": 1, "lr_den": 10}


def test_the_board_demands_both_moments(keys: KeyDirectory) -> None:
    world = World(keys)
    world.set_up(num_clients=3, rule=ADAM)
    owner, other = world.owners
    first, rule = owner.model, rule_of(owner.task)
    assert first is not None
    assert isinstance(rule, IntegerAdaptive)
    assert first.companions == 2

    total = run_iteration(world)
    after = world.recover(owner)
    assert after.to_bytes() == rule.apply(first, total, 3, 1).to_bytes()
    assert after.second is not None
    assert after.second.max() > 0
    for wrong in (replace(after, second=after.second + 1), replace(after, second=None)):
        owner.model = wrong
        with refused(world, "wrong-model"):
            world.post_model(owner)
    owner.model = after
    for one in (owner, other):
        world.post_model(one)
    world.board.next_block()
    total = run_iteration(world)
    assert world.recover(owner).to_bytes() == rule.apply(after, np.asarray(total), 3, 2).to_bytes()
