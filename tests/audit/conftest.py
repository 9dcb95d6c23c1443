"""What the tests of the audit share: an honest board at three points."""

from types import SimpleNamespace

import pytest

from anofel.board.state import Phase
from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import fork
from tests.board.world import World, a_task, a_vector


@pytest.fixture(scope="session")
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
