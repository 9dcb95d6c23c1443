"""A recorded history: two iterations of two tasks, written as a node writes it; made once per test run."""

import shutil
from pathlib import Path

from anofel.board.state import Phase
from anofel.phase1_setup.step1a_certifier_key import offer_key, revoke_key
from anofel.phase1_setup.step1d_announcement import end_iteration, end_task, ledger_entry, reject_model
from anofel.pki.certificates import Purpose, verify_chain
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore, write_genesis
from tests.board.world import TIME, World, a_vector


def play(keys: KeyDirectory, world: World | None = None) -> World:
    """A history with every kind of posting in it."""
    world = world or World(keys)
    spare, secret = world.authority.issue(Purpose.CERTIFIER, "Second clinic"), CertifierSecret.generate()
    holder = verify_chain(spare.chain, [world.authority.root], Purpose.CERTIFIER, TIME)
    world.board.post_as(spare, offer_key(secret, holder=holder, genesis=world.board.genesis_hash))
    world.set_up(num_clients=5, early_end=True)
    world.board.post_as(spare, revoke_key(secret.public_key()))
    for iteration in (1, 2):
        for number, client in enumerate(world.clients):
            target = (0, 0, 1, 1, None)[number]
            update = None if target is None else a_vector(world.owners[target].task, number)
            if iteration == 1 or target != 1:
                world.board.post(world.submission(client, target, update))
        for owner in world.owners:
            world.board.post_as(owner.role, end_iteration(owner.task_id, iteration))
        world.blocks_until(Phase.CLOSED)
        world.run_phase3()
        if iteration == 2:
            break
        for owner in world.owners:
            if owner is world.owners[0]:
                world.recover(owner)
                world.post_model(owner)
            else:
                world.board.post_as(owner.role, reject_model(owner.task_id, iteration))
            world.board.post_as(owner.role, ledger_entry(owner.task, owner.task_id, 1))
        world.board.next_block()
    world.board.post_as(world.owners[1].role, end_task(world.owners[1].task_id))
    world.board.next_block()
    assert world.bundle().phase is Phase.WAITING
    return world


def write(world: World, directory: Path) -> None:
    """Write the board as a node's directory."""
    store = BlockStore(directory, world.genesis)
    for block in world.board.blocks:
        store.append(block)
    store.close()
    write_genesis(directory, world.genesis)
    for name in ("registration", "submission"):
        source = world.keys.verification[name].path
        shutil.copy(source, directory / f"{name}.verification.key")
    for name, data in world.board.attachments.items():
        path = DirectoryAttachments(directory / "blobs").path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
