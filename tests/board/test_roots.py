"""The roots that a board keeps from block to block are those of the definition, whatever happened."""

import hashlib
import sys
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.board import block_end, roots, snapshot
from anofel.board.log import MerkleTree
from anofel.board.records import Record, Records
from anofel.board.rules.committees import MAX_RUN_BLOCKS
from anofel.board.state import Phase, Progress, State
from anofel.messages import EndTask, Model
from tests.board.ended import add_ended, name_of
from tests.board.histories import play_history, prepared
from tests.board.naive_roots import naive_roots, tree_hash
from tests.board.oracle import OracleBoard
from tests.board.prepared import Stages

TraceFunction = Any
NAMES = ("certifiers", "committees", "tasks", "bundles")


def kept_roots(state: State) -> dict[str, bytes]:
    return {name: getattr(roots, name)(state) for name in NAMES}


@settings(max_examples=6)
@given(data=st.data())
def test_any_history_has_the_headers_of_the_definition(data: st.DataObject) -> None:
    """Several bundles, one after the other; also for somebody who loads a snapshot on the way."""
    board = play_history(lambda n: data.draw(st.integers(0, n - 1)), num_blocks=40)
    for block, kept in zip(board.blocks, board.snapshots, strict=True):
        state = snapshot.decode(kept, board.genesis, block.header)
        assert {name: getattr(block.header, name) for name in NAMES} == naive_roots(state)


@pytest.mark.parametrize("stage", ["established", "open", "closed", "counted", "summed"])
def test_a_real_board_has_the_headers_of_the_definition(stages: Stages, stage: str) -> None:
    state = stages(stage).board.state
    assert kept_roots(state) == naive_roots(state)


@given(entries=st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=3)), max_size=60))
def test_a_changed_entry_changes_the_tree_as_if_it_were_made_anew(entries: list[tuple[int, bytes]]) -> None:
    tree, expected = MerkleTree(), list[bytes]()
    for place, entry in entries:
        place = min(place, len(expected))
        expected[place : place + 1] = [entry]
        tree.update({place: entry})
        assert tree.root() == tree_hash(expected)
    together = MerkleTree()
    together.update(dict(enumerate(expected)))
    assert together.root() == tree.root()


@dataclass(slots=True)
class Counter(Record):
    number: int
    live: bool

    @property
    def is_live(self) -> bool:
        return self.live


Operation = tuple[str, int, int, bool]


@given(
    operations=st.lists(
        st.tuples(
            st.sampled_from(["add", "add", "number", "live", "root", "look", "first"]),
            st.integers(0, 20),
            st.integers(0, 5),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_records_know_their_root_and_what_is_live(operations: list[Operation]) -> None:
    def digest(record: Counter) -> bytes:
        return hashlib.sha256(bytes([record.number, record.live])).digest()

    records: Records[int, Counter] = Records()
    for what, key, number, live in operations:
        if what == "add":
            records[key] = Counter(number, live)
        elif what == "root":
            assert records.root(digest) == tree_hash([digest(r) for r in records.values()])
        elif what == "look":
            assert records.live() == [record for record in records.values() if record.live]
        elif what == "first":
            first = records.first_live()
            assert (first is not None) == any(r.live for r in records.values())
            assert first is None or first.live
        elif key in records:
            setattr(records[key], what, number if what == "number" else live)
    assert records.root(digest) == tree_hash([digest(r) for r in records.values()])


def test_nobody_removes_a_record() -> None:
    records = Records({1: Counter(1, live=True)})
    with pytest.raises(TypeError, match="only grows"):
        del records[1]


# What has ended


def lines_of_a_block(state: State) -> int:
    """How many lines of Python an empty block executes, from its beginning to its roots."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        block_end.begin_block(state, state.time)
        block_end.counts_due(state)
        block_end.sums_due(state)
        block_end.end_block(state, block_end.Results())
        kept_roots(state)
    finally:
        sys.settrace(before)
    return count


def test_a_block_does_not_work_for_what_has_ended() -> None:
    """Neither bundles, tasks, committees and runs that ended, nor key generation under way, cost a line."""
    few, many = State.at_genesis(prepared().genesis), State.at_genesis(prepared().genesis)
    for state, number in ((few, 2), (many, 200)):
        add_ended(state, number)
        state.runs[b"young"] = replace(state.runs[name_of("run", 0)], opened_at=MAX_RUN_BLOCKS)
        state.runs[b"young"].posted[0] = {1: bytes(32)}
        lines_of_a_block(state)  # the first block takes in what was put there
    assert lines_of_a_block(few) == lines_of_a_block(many)
    assert kept_roots(many) == naive_roots(many)


def test_an_old_run_ends_and_younger_ones_stay() -> None:
    state = State.at_genesis(prepared().genesis)
    add_ended(state, 2)
    old, young, *_ = state.runs.values()
    for run, height in ((old, 1), (young, 2)):
        run.opened_at, run.done, run.posted = height, False, {0: {1: bytes(32)}}
    kept_roots(state)
    state.height = MAX_RUN_BLOCKS
    lines_of_a_block(state)
    assert (old.done, old.posted) == (True, {})
    assert (young.done, young.posted) == (False, {0: {1: bytes(32)}})
    assert kept_roots(state) == naive_roots(state)


def again(board: OracleBoard) -> State:
    """What somebody has who loads the last snapshot."""
    return snapshot.decode(board.snapshots[-1], board.genesis, board.blocks[-1].header)


def test_an_ended_bundle_keeps_its_outcomes_and_forgets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some blocks after its end the submissions are gone; outcomes stay, and so do all roots."""
    monkeypatch.setattr(block_end, "REMEMBERED_BLOCKS", 3)
    board = prepared().copy()
    for owner, name in zip(board.owners, board.task_ids, strict=True):
        board.post(board.signed(owner, Model(task=name, iteration=1, model=board.blob(bytes(32)))))
    board.next_block()
    for number in range(3):
        board.post(board.submission(number, 3 * number, 1))
    for owner, name in zip(board.owners, board.task_ids, strict=True):
        board.post(board.signed(owner, EndTask(task=name)))
    while board.bundle.phase is not Phase.ENDED:
        board.next_block()
    current, header = board.bundle.current, board.blocks[-1].header
    assert current is not None
    assert board.bundle.ended_at == header.height
    for _ in range(3):
        assert len(current.submissions) == 3
        assert list(again(board).remembered) == [0]
        board.next_block()
    assert not current.submissions
    assert not again(board).remembered
    assert [position.progress for position in current.positions] == [Progress.FAILED] * 2
    assert board.blocks[-1].header.bundles == header.bundles
    assert len(board.snapshots[-1]) < len(board.snapshots[header.height - 1])
    assert naive_roots(board.state)["bundles"] == header.bundles
