"""What following a board costs one client in an iteration: every posting, or headers and a sample.

Measured: what a posting costs that is followed (a block of real submissions) and one that is drawn and judged
alone; a block with so many names, fetched, verified and kept; the outline; a header with its signatures. The
columns for many posts put these together. Rows that say "from" are computed from the measured cost of one.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from _table import Row

from anofel.board.chain import Chain, verify_commit
from anofel.board.log import merkle_root
from anofel.board.verification import Verifier
from anofel.light_client import header_client, sample
from anofel.light_client.header_client import HeaderClient
from anofel.messages.postings import posting_id
from anofel.network.transport import Transport
from anofel.primitives import ClientTree, Commitment
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard
from tests.board.prepared import a_submission, fork
from tests.board.served import ServedWorld, serving
from tests.board.world import World

KIB: Final = 1 << 10
SIZES: Final = (100, 1_000, 10_000, 100_000)
IN_A_BLOCK: Final = 1_000
POSTS: Final = 6
"""So many real submissions are made and followed."""


def cpu(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Processor seconds of this process; of a thread, where a node in another one works meanwhile."""
    start = clock()
    work()
    return clock() - start


def rows_of_following(keys: KeyDirectory, sizes: Sequence[int] = SIZES) -> list[Row]:
    world = World(keys)
    world.set_up(num_clients=POSTS)
    served = ServedWorld(world, keys)
    served.next_block()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, serving(served) as url:
        client = HeaderClient(Path(scratch) / "view", Transport(url), genesis_hash=world.genesis.hash)
        client.sync()
        before = client.state
        following = fork(world)
        verifier = Verifier(
            world.genesis.hash,
            keys.registration_verifier(threads=1),
            keys.submission_verifier(threads=1),
            world.board.attachments,
        )
        chain = Chain(following.board.state, verifier)
        for number in range(POSTS):
            world.board.post(a_submission(world, number, number % 2))
        block = served.next_block()
        names = [posting_id(data) for data in block.postings]
        with patch.object(header_client, "draw", lambda *_: []):
            client.sync()
        first, *others = block.postings
        chain.offer(first)  # reads the committees' keys, once
        followed = cpu(lambda: chain.offer_many(others)) / len(others)
        judged = [
            cpu(lambda data=data: sample.judge(client.verifier, before, client.state, block.header, data))
            for data in block.postings
        ]
        one = sorted(judged)[len(judged) // 2]
        posting = sum(map(len, block.postings)) / POSTS
        header = min(cpu(lambda: verify_commit(world.genesis, client._eras, block)) for _ in range(20))
        rows += [
            Row("following: a submission, every posting verified", followed * 1000, "ms"),
            Row("following: a submission that is drawn, alone", one * 1000, "ms"),
            Row("following: a header with one vote", header * 1000, "ms"),
            Row("following: a header with the seal of four validators", _sealed(keys) * 1000, "ms"),
            Row("following: bytes of a submission", posting / KIB, "KiB"),
        ]
        for number in sizes:
            rows += _rows_of(client, served, number, followed, one, posting)
        client.close()
    assert names
    return rows


def _sealed(keys: KeyDirectory) -> float:
    board = CommitteeBoard(keys)
    board.until(3)
    eras, block = board.state.validators.eras, board.blocks[-1]
    return min(cpu(lambda: verify_commit(board.genesis, eras, block)) for _ in range(20))


def _add_block(served: ServedWorld, number: int) -> None:
    """Add a signed block with so many random names."""
    block, world = served.next_block(), served.world
    made = tuple(secrets.token_bytes(32) for _ in range(number))
    header = replace(block.header, postings=merkle_root([posting_id(data) for data in made]))
    signature = world.validator.sign(header.vote_bytes(world.genesis.hash))
    vote = replace(block.commit[0], signature=signature)
    served.blocks[-1] = replace(block, header=header, commit=(vote,), postings=made)
    world.board.state.tip = header.hash(world.genesis.hash)
    served.note()


def _rows_of(
    client: HeaderClient, served: ServedWorld, number: int, followed: float, one: float, posting: float
) -> list[Row]:
    for first in range(0, number, IN_A_BLOCK):
        _add_block(served, min(IN_A_BLOCK, number - first))
    outline = len(served.outlines.outline(len(served.blocks), None))
    with patch.object(header_client, "draw", lambda *_: []):
        spent = cpu(client.sync, time.thread_time)
    names = 32 * number
    drawn = min(number, sample.SAMPLE)
    leaves = [Commitment.from_bytes(secrets.token_bytes(31) + b"\0") for _ in range(number)]
    grown = cpu(lambda: ClientTree().append(leaves))
    what = f"{number:,} posts"
    return [
        Row(f"{what}: processor, every posting (from one)", followed * number, "s"),
        Row(f"{what}: processor, headers: names and state", spent, "s"),
        Row(f"{what}: processor, headers: {drawn} drawn (from one)", one * drawn, "s"),
        Row(f"{what}: processor, headers: as many new leaves, once", grown, "s"),
        Row(f"{what}: bytes, every posting (from one)", posting * number / KIB, "KiB"),
        Row(f"{what}: bytes, headers: names", names / KIB, "KiB"),
        Row(f"{what}: bytes, headers: outline and drawn", (outline + posting * drawn) / KIB, "KiB"),
    ]
