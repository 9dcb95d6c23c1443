"""A fork of a state goes on by itself: what it becomes is right, and what it came from does not notice."""

import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.messages import Posting
from anofel.primitives import ClientTree, Commitment, NameSet
from tests.board.naive_roots import naive_roots
from tests.board.oracle import OracleBoard, number_bytes
from tests.board.test_machine import BoardMachine


class ForkingMachine(BoardMachine):
    """Every posting and every block happens on a fork that is thrown away, before it happens.

    Every block is filled on a fork of the state before, as a validator fills it.
    """

    def offer(self, posting: Posting, expected: bool) -> None:
        before = snapshot.encode(self.board.state)
        forked = self.board.chain.fork()
        (result,) = forked.offer_many([posting.data])
        assert isinstance(result, Posting) == expected
        forked.seal()
        assert snapshot.encode(self.board.state) == before
        super().offer(posting, expected)

    @rule()
    def next_block(self) -> None:
        before = snapshot.encode(self.board.state)
        thrown_away = self.board.chain.fork()
        header = thrown_away.seal()
        assert snapshot.encode(self.board.state) == before
        rests = self.board.chain
        self.board.chain = rests.fork()
        super().next_block()
        assert self.board.blocks[-1].header == header
        assert snapshot.encode(rests.state) == before

    @rule()
    def go_on_from_a_fork_of_a_fork(self) -> None:
        self.board.chain = self.board.chain.fork().fork()
        assert naive_roots(self.board.state) == naive_roots(self.board.chain.fork().state)


def play(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        ForkingMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_discarded_fork_leaves_no_trace() -> None:
    play(examples=10, steps=30)


@pytest.mark.slow
def test_a_discarded_fork_leaves_no_trace_in_many_histories() -> None:
    play(examples=200, steps=80)


def test_registrations_on_a_fork_stay_there() -> None:
    board = OracleBoard.make()
    board.post(board.registration(1))
    forked = board.chain.fork()
    forked.offer(board.registration(2).data)
    forked.seal()
    assert (len(forked.state.clients), len(forked.state.registered)) == (2, 2)
    assert (len(board.state.newcomers), len(board.state.clients), len(board.state.registered)) == (1, 0, 1)


def test_trees_and_names_share_nothing_that_one_of_them_changes() -> None:
    tree, names = ClientTree(), NameSet()
    leaves = [Commitment.from_bytes(number_bytes(number + 1)) for number in range(1100)]
    roots = []
    forks = []
    for start in range(0, 1100, 100):  # across the bounds of pieces
        tree.append(leaves[start : start + 100])
        for number in range(start, start + 100):
            names.add(bytes([number % 256, number // 256]) * 16)
        roots.append((tree.root(), len(names)))
        forks.append((tree.fork(), names.fork()))
        other, others = tree.fork(), names.fork()
        other.append(leaves[:3])
        others.clear()
        assert (tree.root(), len(names)) == roots[-1]
    assert [(one.root(), len(two)) for one, two in forks] == roots
    assert ClientTree.from_leaf_bytes(forks[6][0].leaf_bytes()).root() == roots[6][0]
    assert tree.at_size(700).root() == roots[6][0]
    assert NameSet.from_bytes(names.to_bytes()) == names


def fork_seconds(board: OracleBoard) -> float:
    times = []
    for _ in range(20):
        begun = time.process_time()
        board.state.fork()
        times.append(time.process_time() - begun)
    return min(times)


def test_a_fork_costs_the_same_whatever_the_number_of_clients() -> None:
    """By what is copied, not by a clock alone: 64 times the clients cost less than four times as much."""
    few, many = OracleBoard.make(), OracleBoard.make()
    for board, number in ((few, 1 << 8), (many, 1 << 14)):
        state: State = board.state
        board.chain = Chain(state, board.chain.verifier)
        state.clients.append([Commitment.from_bytes(number_bytes(n + 1)) for n in range(number)])
        for n in range(number):
            state.registered.add(number_bytes(n * 7919 + 1))
    assert fork_seconds(many) < 4 * fork_seconds(few) + 0.001
