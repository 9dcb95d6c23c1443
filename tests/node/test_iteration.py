"""A whole iteration on an embedded node: blobs on disk, restarts between the phases, pruning at the end."""

import hashlib
import time
from pathlib import Path

import pytest

from anofel.board.chain import Chain
from anofel.board.state import Phase, Progress, State
from anofel.board.verification import Verifier
from anofel.messages import Blob, Block, Posting
from anofel.node import wall_clock
from anofel.node.embedded import AcceptedPosting, EmbeddedNode
from anofel.node.files import NodeConfig, write_node
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard
from anofel.storage.attachments import DirectoryAttachments
from tests.board.test_blobs import has
from tests.board.world import TIME, World, a_vector


class NodeBoard(LocalBoard):
    """The interface of the local board, answered by an embedded node's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.open()

    def open(self) -> None:
        self.node = EmbeddedNode(self.directory)
        self.attachments = DirectoryAttachments(self.directory / "blobs")  # type: ignore[assignment]

    def crash(self) -> None:
        self.node.abandon()
        self.open()

    @property
    def chain(self) -> Chain:  # type: ignore[override]
        return self.node.chain

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:
        assert isinstance(data, bytes)
        sha256, expires = hashlib.sha256(data).digest(), self.state.height + 5
        with self.node.blobs.begin(sha256, len(data), expires=expires) as upload:
            upload.write(data)
            upload.finish()
        receipt = self.node.receipt(sha256, len(data), expires)
        return Blob(sha256=sha256, length=len(data), receipts=(receipt,))

    def post(self, posting: Posting) -> Posting:
        (verdict,) = self.node.admit([posting.data])
        if not isinstance(verdict, AcceptedPosting):
            raise verdict
        return posting

    def next_block(self, time: int | None = None) -> Block:
        header = self.node.seal()
        block = self.node.store.block(header.height)
        assert block is not None
        return block


@pytest.mark.slow
def test_an_iteration_survives_restarts_and_its_payloads_go_after_grace(
    tmp_path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, start = time.time, time.time()
    monkeypatch.setattr(wall_clock.time, "time", lambda: TIME + real() - start)
    world = World(keys)
    config = NodeConfig(snapshot_blocks=2)
    write_node(tmp_path / "node", world.genesis, world.validator, world.storage, keys, config)
    board = NodeBoard(tmp_path / "node")
    world.board = board
    world.set_up(num_clients=4)
    payloads: list[bytes] = []
    for number, client in enumerate(world.clients):
        owner = world.owners[number % 2]
        posting = world.submission(client, number % 2, a_vector(owner.task, number))
        board.post(posting)
        payloads += [entry.payload.sha256 for entry in posting.body.contributions]
        if number == 1:
            board.crash()
    current = world.bundle().current
    assert current is not None
    assert len(current.submissions) == 4
    until = current.close_by + 9 + world.genesis.limits.grace
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    board.crash()
    assert [world.position(owner).progress for owner in world.owners] == [Progress.SUMMED] * 2
    assert all(has(board.node.blobs, name) for name in payloads)
    while board.state.height <= until:
        board.next_block()
    assert not any(has(board.node.blobs, name) for name in payloads)

    # Keys, models, sums and shares are all still there: everybody can follow from genesis.
    follower = Chain(
        State.at_genesis(world.genesis),
        Verifier(
            world.genesis.hash,
            keys.registration_verifier(threads=1),
            keys.submission_verifier(threads=1),
            board.attachments,
        ),
    )
    for block in board.node.store.blocks(1):
        follower.follow(block)
    assert follower.state.height == board.node.store.height
    board.node.close()
