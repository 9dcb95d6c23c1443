"""Equal histories give equal headers: in other processes, after a stop, and in batches."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.board import snapshot
from anofel.board.chain import Chain, InvalidBlock
from anofel.board.rule import Rejected
from anofel.board.snapshot import DamagedSnapshot
from anofel.board.state import State
from anofel.messages import Posting
from tests.board.histories import Recorded, play_history, prepared, random_histories, replay, write
from tests.board.oracle import OracleBoard, OracleVerifier
from tests.board.prepared import Stages, copy_state

ROOT = Path(__file__).parents[2]


def replayed_elsewhere(path: Path, hash_seed: int) -> list[str]:
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.board.histories", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_two_processes_with_different_hash_seeds_agree(stages: Stages, tmp_path: Path) -> None:
    world = stages("summed")
    blobs = world.board.attachments._blobs
    real = Recorded(
        world.genesis.to_bytes(),
        [block.to_bytes() for block in world.board.blocks],
        keys=str(world.keys.path),
        blobs=blobs,
    )
    recorded = [real, *random_histories(seed=4, number=8)]
    write(tmp_path / "histories", recorded)
    expected = [name for one in recorded for name in replay(one)]
    assert expected[len(real.blocks) - 1] == world.board.state.tip.hex()
    assert replayed_elsewhere(tmp_path / "histories", 1) == expected
    assert replayed_elsewhere(tmp_path / "histories", 2) == expected


def fresh(board: OracleBoard, height: int) -> Chain:
    """The chain of somebody who starts with the snapshot after a block."""
    state = snapshot.decode(board.snapshots[height - 1], board.genesis, board.blocks[height - 1].header)
    return Chain(state, OracleVerifier(board.genesis.hash, set()))


@settings(max_examples=25)
@given(data=st.data())
def test_a_stop_at_any_height_changes_nothing(data: st.DataObject) -> None:
    board = play_history(lambda n: data.draw(st.integers(0, n - 1)))
    stop = data.draw(st.integers(1, len(board.blocks) - 1))
    chain = fresh(board, 1)
    for height, block in enumerate(board.blocks[1:], start=2):
        if height == stop + 1:
            header = board.blocks[height - 2].header
            again = snapshot.decode(snapshot.encode(chain.state), board.genesis, header)
            chain = Chain(again, OracleVerifier(board.genesis.hash, set()))
        assert chain.follow(block) == block.header.hash(board.genesis.hash)


@settings(max_examples=25)
@given(data=st.data())
def test_many_at_once_are_admitted_as_one_by_one(data: st.DataObject) -> None:
    """Also with postings that are refused, that come twice, and that come too early."""
    board = play_history(lambda n: data.draw(st.integers(0, n - 1)), num_blocks=12)
    offered = [posting for block in board.blocks[1:] for posting in block.postings]
    junk = data.draw(st.lists(st.integers(0, 10), max_size=5))
    offered += [bytes([number]) * number for number in junk]
    start = data.draw(st.integers(1, len(board.blocks)))
    mixed = data.draw(st.permutations(offered)) if data.draw(st.booleans()) else offered
    together, single = fresh(board, start), fresh(board, start)
    for chain in (together, single):
        chain.begin(board.genesis.time)
    expected = [outcome(lambda data=entry: single.offer(data)) for entry in mixed]
    assert [
        result.code if isinstance(result, Rejected) else result.id for result in together.offer_many(mixed)
    ] == expected
    assert together.seal() == single.seal()


def outcome(offer: Callable[[], Posting]) -> str | bytes:
    try:
        return offer().id
    except Rejected as rejected:
        return rejected.code


def test_a_refused_posting_leaves_no_trace_in_the_next_header(stages: Stages) -> None:
    board = prepared().copy()
    quiet = board.copy()
    with pytest.raises(Rejected):
        board.post(board.registration(1, proof=0))
    with pytest.raises(Rejected):
        board.chain.offer(b"junk")
    assert board.next_block().header == quiet.next_block().header


def test_every_block_is_checked(stages: Stages) -> None:
    """A header that states another root, a missing posting, a wrong order: each names the place."""
    board = play_history(random.Random(1).randrange)
    place = next(n for n, block in enumerate(board.blocks[1:], start=1) if len(block.postings) >= 2)
    block = board.blocks[place]

    def refuse(changed: object, match: str) -> None:
        chain = fresh(board, place)
        with pytest.raises(InvalidBlock, match=match):
            chain.follow(changed)  # type: ignore[arg-type]

    for name in ("certifiers", "clients", "nullifiers", "committees", "tasks", "bundles"):
        header = replace(block.header, **{name: bytes(32)})
        refuse(signed_again(board, block, header), f"root of {name}")
    refuse(signed_again(board, block, replace(block.header, previous=bytes(32))), "does not follow")
    refuse(signed_again(board, block, replace(block.header, time=block.header.time - 1)), "time is before")
    refuse(signed_again(board, block, replace(block.header, height=block.header.height + 1)), "height")
    refuse(replace(block, commit=()), "0 of 1 votes")
    refuse(replace(block, postings=block.postings[1:]), "root of postings|Posting")
    refuse(replace(block, postings=(*block.postings, block.postings[0])), f"Posting {len(block.postings)} of")
    far = replace(block.header, time=(1 << 64) - 1)
    refuse(signed_again(board, block, far), "root of postings|Posting|root of")


def signed_again(board: OracleBoard, block, header):  # type: ignore[no-untyped-def]
    signature = board.validator.sign(header.vote_bytes(board.genesis.hash))
    return replace(block, header=header, commit=(replace(block.commit[0], signature=signature),))


@given(place=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_a_damaged_snapshot_is_noticed(place: int, bit: int) -> None:
    board = prepared()
    data = bytearray(board.snapshots[-1])
    data[place % len(data)] ^= 1 << bit
    with pytest.raises(DamagedSnapshot):
        snapshot.decode(bytes(data), board.genesis, board.blocks[-1].header)


def test_a_snapshot_of_another_block_is_noticed() -> None:
    board = prepared().copy()
    board.next_block()
    with pytest.raises(DamagedSnapshot, match="not the state after block"):
        snapshot.decode(board.snapshots[0], board.genesis, board.blocks[1].header)


def test_a_copy_of_a_state_has_the_same_snapshot() -> None:
    state: State = prepared().state
    assert snapshot.encode(copy_state(state)) == snapshot.encode(state)
