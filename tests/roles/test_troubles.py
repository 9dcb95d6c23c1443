"""Troubles around honest parties: the board restarts with a wrong clock, a client lies, one comes late."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from anofel.board.state import Bundle, Progress
from anofel.models.rules import rule_of
from anofel.phase2_training.step5_submission import post_submission
from anofel.proofs.keys import KeyDirectory
from anofel.roles.owner import initial_model
from tests.board.prepared import with_garbage
from tests.board.world import ClientOfTest, a_vector
from tests.node.support import NodeProcess
from tests.roles.support import Deployment, deployed, write_task
from tests.roles.test_training import MEMBERS, announce, establish

HOUR = 3600


def restart(world: Deployment, shift: int) -> None:
    """Kill the board and start it again at its address, with another clock that its operator confirms."""
    port = world.node.url.rpartition(":")[2]
    world.node.stop(signal.SIGKILL)
    script = [sys.executable, "-m", "tests.node.shifted_clock", str(shift), "node", "run"]
    today = datetime.fromtimestamp(time.time() + shift, UTC).strftime("%Y-%m-%d")
    world.node = NodeProcess(world.board.directory, "--port", port, "--today", today, script=script)


def spoil(world: Deployment, bundle: Bundle, client: ClientOfTest) -> None:
    """Post with valid proofs a vector that is no update."""
    task = write_task(world.path / "owner.toml")
    sealed = world.world.sealed(client, 0, a_vector(task, 1), bundle.number)
    garbage = (with_garbage(sealed.payloads[0]),)
    world.view.post(post_submission(world.view, replace(sealed, payloads=garbage)))


def times(world: Deployment) -> list[int]:
    """The time of each block that the view has."""
    store = world.view._store
    blocks = (store.block(height) for height in range(1, world.view.state.height))
    return [block.header.time for block in blocks if block is not None]


def test_a_board_restarted_with_a_wrong_clock_a_liar_and_a_latecomer(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    with deployed(tmp_path, keys) as world:
        committee = establish(world)
        world.offer_certifier_key()
        world.register(3)
        task = write_task(world.path / "owner.toml")
        task_id = announce(world, committee, "owner", "--early-end")
        aggregators = [world.start("aggregator", "run", name) for name in MEMBERS]
        owner = world.start("owner", "run", "owner", "--end-after", "3", "--json")
        expected, rule = initial_model(task), rule_of(task)

        # 1. The board is killed between two posts and comes back an hour ahead.
        bundle, updates = world.wait_open(task_id, 1), [a_vector(task, seed) for seed in range(3)]
        for client, update in zip(world.clients[:2], updates[:2], strict=True):
            world.submit(bundle, client, update)
        restart(world, HOUR)
        world.submit(bundle, world.clients[2], updates[2])
        first = world.wait_outcome(task_id, 1)
        assert (first.progress, first.count) == (Progress.SUMMED, 3)
        expected = rule.apply(expected, np.sum(updates, axis=0, dtype=np.int64), 3, 1)

        # 2. It comes back an hour behind; one client posts garbage, another joins.
        bundle = world.wait_open(task_id, 2)
        restart(world, -HOUR)
        world.register(1)
        spoil(world, bundle, world.clients[0])
        for client in world.clients[1:3]:
            world.submit(bundle, client, a_vector(task, 7))
        second = world.wait_outcome(task_id, 2)
        assert (second.progress, second.count) == (Progress.SUMMED, 2), "the liar is left out"
        expected = rule.apply(expected, 2 * a_vector(task, 7), 2, 2)

        # 3. The latecomer counts; the model is what the plain computation makes of all three.
        bundle = world.wait_open(task_id, 3)
        assert world.view.state.tasks[task_id].model == expected.digest()
        updates = [a_vector(task, 30 + seed) for seed in range(4)]
        for client, update in zip(world.clients, updates, strict=True):
            world.submit(bundle, client, update)
        third = world.wait_outcome(task_id, 3)
        assert (third.progress, third.count) == (Progress.SUMMED, 4)
        expected = rule.apply(expected, np.sum(updates, axis=0, dtype=np.int64), 4, 3)
        result = owner.finish()
        assert [entry["outcome"] for entry in result["iterations"]] == ["summed"] * 3
        assert result["iterations"][2]["model"] == expected.digest().hex()
        assert len(result["epsilon"]) == 3
        assert [process.stop() for process in aggregators] == [0, 0, 0]
        seen = times(world)
        assert seen == sorted(seen)
        assert seen[-1] - seen[0] >= HOUR
        audit = [sys.executable, "-m", "anofel", "audit", world.node.url]
        assert subprocess.run(audit, capture_output=True, check=False).returncode == 0
