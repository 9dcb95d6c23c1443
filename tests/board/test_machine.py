"""Honest and dishonest roles against the model: the board admits exactly what the model admits."""

import hashlib
from functools import cache

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.rule import Rejected
from anofel.board.seat import Seat
from anofel.board.state import State
from anofel.committee.context import digest_of_set
from anofel.messages import (
    Aggregate,
    CountShare,
    EndIteration,
    EndTask,
    Exclusion,
    GroupSum,
    Model,
    Posting,
    PrivacyLedger,
    RejectModel,
    SumShare,
)
from tests.board.model import BoardModel
from tests.board.naive_roots import naive_roots
from tests.board.oracle import BAD_BALLOT, BAD_ENVELOPE, GARBAGE, VALID, OracleBoard, next_model, number_bytes

TASKS, MEMBERS = st.integers(0, 1), st.integers(1, 3)
MOSTLY = st.sampled_from([True] * 7 + [False])
SHIFT = st.sampled_from([0] * 8 + [-1, 1])
PROOFS = st.sampled_from([VALID] * 6 + [0, BAD_ENVELOPE, BAD_BALLOT])
NUMBERS = st.integers(0, 12)
TAGS = st.one_of(st.sampled_from([0, 1, 3, 4, 6, 7, 9, 10]), st.integers(0, 12), st.just(3 * GARBAGE))


@cache
def prepared() -> OracleBoard:
    return OracleBoard.make()


class BoardMachine(RuleBasedStateMachine):
    """One board and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.board = prepared().copy()
        self.board.bad_blobs.add(hashlib.sha256(b"bad").digest())
        state = self.board.state
        self.model = BoardModel(state.height, state.bundles[0].model_by)
        self.admitted: list[Posting] = []

    # Posting

    def offer(self, posting: Posting, expected: bool) -> None:
        refusal: Rejected | None = None
        try:
            self.board.post(posting)
            self.admitted.append(posting)
        except Rejected as rejected:
            refusal = rejected
        assert (refusal is None) == expected, str(refusal or f"The board admitted {posting.body}.")

    def _iteration(self, shift: int) -> int:
        return max(0, self.model.iteration + shift)

    def _blob_name(self, good: bool, name: str) -> bytes:
        return hashlib.sha256(name.encode() if good else b"bad").digest()

    @rule(nullifier=NUMBERS, epoch=st.sampled_from([0, 0, 0, 1]), known=MOSTLY, proof=PROOFS)
    def register(self, nullifier: int, epoch: int, known: bool, proof: int) -> None:
        root = b"" if known else number_bytes(7)
        posting = self.board.registration(nullifier, epoch=epoch, root=root, proof=proof)
        self.offer(posting, self.model.register(nullifier, epoch, known, proof))

    @rule(nullifier=NUMBERS, tag=TAGS, shift=SHIFT, proof=PROOFS, lines=st.sampled_from([2] * 8 + [1, 3]))
    def submit(self, nullifier: int, tag: int, shift: int, proof: int, lines: int) -> None:
        iteration = self._iteration(shift)
        posting = self.board.submission(nullifier, tag, iteration, proof=proof, lines=lines)
        self.offer(posting, self.model.submit(nullifier, tag, iteration, proof, lines))

    @rule(same_nullifier=st.booleans(), same_tag=st.booleans())
    def submit_again(self, same_nullifier: bool, same_tag: bool) -> None:
        """A client that posted posts again, with its nullifier, its tag, both or neither."""
        if self.model.posts:
            nullifier, tag = next(iter(self.model.posts.items()))
            self.submit(
                nullifier=nullifier if same_nullifier else 15,
                tag=tag if same_tag else 16,
                shift=0,
                proof=VALID,
                lines=2,
            )

    @rule(task=TASKS)
    def submit_honestly(self, task: int) -> None:
        """Two clients of one task; without this rule few iterations reach min_clients."""
        for _ in range(2):
            number = len(self.model.posts) + 20
            self.submit(nullifier=number, tag=3 * number + task, shift=0, proof=VALID, lines=2)

    @rule(task=TASKS, shift=SHIFT, honest=MOSTLY, owner=MOSTLY)
    def post_model(self, task: int, shift: int, honest: bool, owner: bool) -> None:
        iteration = max(0, self.model.iteration + 1 + shift)
        name = (self.model.expected_model(task) or f"first {task}") if honest else "bad"
        body = Model(
            task=self.board.task_ids[task], iteration=iteration, model=self.board.blob(self._model_hash(name))
        )
        author = task if owner else 1 - task
        expected = owner and self.model.post_model(task, iteration, name, honest)
        self.offer(self.board.signed(self.board.owners[author], body), expected)

    @rule(task=TASKS, shift=SHIFT, owner=MOSTLY)
    def reject_model(self, task: int, shift: int, owner: bool) -> None:
        iteration = max(0, self.model.iteration + shift)
        body = RejectModel(task=self.board.task_ids[task], iteration=iteration)
        author = task if owner else 1 - task
        expected = owner and self.model.reject_model(task, iteration)
        self.offer(self.board.signed(self.board.owners[author], body), expected)

    def _model_hash(self, name: str) -> bytes:
        if name.startswith("rule"):
            _, task, iteration = name.split()
            return next_model(self.board.task_ids[int(task)], int(iteration))
        return hashlib.sha256(name.encode()).digest()

    # Committees

    @rule(
        task=TASKS,
        member=MEMBERS,
        shift=SHIFT,
        leaves_out=st.sampled_from([False] * 4 + [True]),
        fault=st.sampled_from([""] * 8 + ["author", "close hash", "sum", "reason", "number"]),
    )
    def aggregate(self, task: int, member: int, shift: int, leaves_out: bool, fault: str) -> None:
        current, iteration = self.board.state.bundles[0].current, self._iteration(shift)
        close_hash = current.close_hash if current and current.close_hash else bytes(32)
        names = sorted(current.submissions) if current else []
        smallest = min(self.model.posts, default=0)
        excluded = [number_bytes(smallest)] if leaves_out else []
        kept = [name for name in names if name not in excluded]
        body = Aggregate(
            task=self.board.task_ids[task],
            iteration=iteration,
            member=member,
            close_hash=bytes(32) if fault == "close hash" else close_hash,
            excluded=tuple(Exclusion(nullifier=n, reason=9 if fault == "reason" else 1) for n in excluded),
            groups=(
                GroupSum(
                    set_digest=digest_of_set(kept),
                    num_posts=len(kept) + (fault == "number"),
                    sum=self.board.blob(
                        self._blob_name(fault != "sum", f"sum {task} {leaves_out} {iteration}")
                    ),
                ),
            ),
        )
        author = member % 3 + 1 if fault == "author" else member
        honest = fault == "" or (fault == "reason" and not leaves_out)
        expected = self.model.aggregate(task, member, iteration, leaves_out, honest)
        self.offer(self.board.signed(self.board.members[task][author - 1].role, body), expected)

    def _agreed(self, task: int, right: bool) -> bytes:
        state = self.board.state
        bundle, known = state.bundles[0], state.tasks[self.board.task_ids[task]]
        if not right or bundle.current is None or bundle.current.positions[known.position].agreed is None:
            return bytes(32)
        return Seat.of(state, known.task_id).agreed_digest

    @rule(task=TASKS, member=MEMBERS, shift=SHIFT, agreed=MOSTLY, proof=PROOFS, own=MOSTLY)
    def count_share(self, task: int, member: int, shift: int, agreed: bool, proof: int, own: bool) -> None:
        iteration = self._iteration(shift)
        body = CountShare(
            task=self.board.task_ids[task],
            iteration=iteration,
            member=member,
            agreed=self._agreed(task, agreed),
            shares=(bytes([proof]),),
        )
        role = self.board.members[task if own else 1 - task][member - 1].role
        right = agreed and own and proof == VALID
        self.offer(self.board.signed(role, body), self.model.count_share(task, member, iteration, right))

    @rule(task=TASKS, member=MEMBERS, shift=SHIFT, agreed=MOSTLY, good=MOSTLY, own=MOSTLY)
    def sum_share(self, task: int, member: int, shift: int, agreed: bool, good: bool, own: bool) -> None:
        iteration = self._iteration(shift)
        body = SumShare(
            task=self.board.task_ids[task],
            iteration=iteration,
            member=member,
            agreed=self._agreed(task, agreed),
            shares=(self.board.blob(self._blob_name(good, f"share {member}")),),
        )
        role = self.board.members[task if own else 1 - task][member - 1].role
        right = agreed and own and good
        self.offer(self.board.signed(role, body), self.model.sum_share(task, member, iteration, right))

    @rule(steps=st.integers(1, 6))
    def go_on(self, steps: int) -> None:
        """Whatever honest roles do next, block after block; without it few histories get far."""
        for _ in range(steps):
            for task in range(2):
                self._honestly(task)
            self.next_block()

    def _honestly(self, task: int) -> None:
        model = self.model
        if model.phase == "waiting":
            self.post_model(task=task, shift=0, honest=True, owner=True)
        elif model.phase == "open" and len(model.posts) <= 2:
            self.submit_honestly(task=task)
        elif model.phase == "closed":
            for member in (1, 2):
                progress = model.committees[task].progress
                if progress == "closed":
                    self.aggregate(task=task, member=member, shift=0, leaves_out=False, fault="")
                elif progress == "aggregated":
                    self.count_share(task=task, member=member, shift=0, agreed=True, proof=VALID, own=True)
                elif progress == "counted":
                    self.sum_share(task=task, member=member, shift=0, agreed=True, good=True, own=True)

    @initialize(begun=MOSTLY)
    def begin(self, begun: bool) -> None:
        """Most histories begin with an open iteration."""
        if begun:
            self.go_on(steps=1)

    # Owners

    @rule(task=TASKS, shift=SHIFT, owner=MOSTLY)
    def end_iteration(self, task: int, shift: int, owner: bool) -> None:
        iteration = self._iteration(shift)
        body = EndIteration(task=self.board.task_ids[task], iteration=iteration)
        expected = owner and self.model.end_iteration(task, iteration)
        self.offer(self.board.signed(self.board.owners[task if owner else 1 - task], body), expected)

    @rule(task=TASKS, sure=st.sampled_from([True] + [False] * 15))
    def end_task(self, task: int, sure: bool) -> None:
        if sure:
            body = EndTask(task=self.board.task_ids[task])
            self.offer(self.board.signed(self.board.owners[task], body), self.model.end_task(task))

    @rule(task=TASKS, releases=st.integers(0, 3))
    def enter(self, task: int, releases: int) -> None:
        body = PrivacyLedger(task=self.board.task_ids[task], releases=releases, zero_out=1, replace=2)
        self.offer(self.board.signed(self.board.owners[task], body), self.model.enter(task, releases))

    # Time

    @rule()
    def next_block(self) -> None:
        header = self.board.next_block().header
        self.model.next_block()
        for name, root in naive_roots(self.board.state).items():
            assert getattr(header, name) == root, f"the root of {name} is not that of the definition"

    @rule(choice=st.integers(0, 1 << 16))
    def post_again(self, choice: int) -> None:
        """No posting is ever admitted twice."""
        if self.admitted:
            posting = self.admitted[choice % len(self.admitted)]
            with pytest.raises(Rejected):
                self.board.post(posting)

    @rule()
    def restart(self) -> None:
        """A stop after a block and a start from the snapshot changes nothing."""
        header = self.board.chain.seal()
        self.model.next_block()
        data = snapshot.encode(self.board.state)
        state: State = snapshot.decode(data, self.board.genesis, header)
        self.board.chain = Chain(state, self.board.chain.verifier)
        self.board.chain.begin(state.time)
        self.board.postings = []

    # What must always be the same

    @invariant()
    def phases_agree(self) -> None:
        bundle = self.board.state.bundles[0]
        assert bundle.phase.value == self.model.phase
        assert bundle.iterations == self.model.iteration
        positions = bundle.current.positions if bundle.current else []
        assert [p.progress.value for p in positions] == [c.progress for c in self.model.committees]

    @invariant()
    def records_agree(self) -> None:
        state, tasks = self.board.state, [self.board.state.tasks[name] for name in self.board.task_ids]
        assert [(t.ended, t.releases) for t in tasks] == [(t.ended, t.releases) for t in self.model.tasks]
        assert len(state.registered) == len(self.model.registered)
        assert state.nullifiers.size == self.model.nullifiers
        current = state.bundles[0].current
        assert len(current.submissions if current else {}) == len(self.model.posts)


def play(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        BoardMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_board_admits_what_the_model_admits() -> None:
    play(examples=40, steps=50)


@pytest.mark.slow
def test_the_board_admits_what_the_model_admits_in_many_histories() -> None:
    play(examples=500, steps=100)
