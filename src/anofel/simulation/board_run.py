"""A simulation over a board in this process: every step of the paper with its real cryptography.

What differs from a deployment: parties share a process and a clock that waits for them, posts come in the
order of a public seed, a client has no floors and no ledger of its own, and the certificates are those of
a test authority.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from anofel.board.genesis import flaws_of
from anofel.board.state import Bundle, Phase, Progress, TaskState
from anofel.committee.interface import KeyProgress, Report
from anofel.errors import InvalidInput
from anofel.ids import TaskId
from anofel.models.card import digest_of
from anofel.page.facts import card_of, facts_of
from anofel.phase1_setup.step1d_announcement import ledger_entry
from anofel.phase3_access.step8prime_model import metrics_of_sum, next_model
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from anofel.simulation.clients import Clients, Newcomer, SimulatedTurn
from anofel.simulation.clients_here import ClientsHere
from anofel.simulation.committees import STEPS, SimulatedCommittee, establish
from anofel.simulation.local_board import LocalBoard
from anofel.simulation.parts import (
    CommitteeSettings,
    IterationResult,
    OnProgress,
    Participation,
    SimulatedTask,
    begun_iterations,
    make_bundle,
    no_progress,
)
from anofel.simulation.people import Provers, SimulatedCertifier, SimulatedOwner
from anofel.simulation.venue import POSTS_PER_BLOCK, Venue
from anofel.simulation.workers import Workers
from anofel.simulation.workers.crew import Crew, check_trainers


class Simulation:
    """Everybody on one board; use it as a context manager."""

    def __init__(
        self,
        tasks: Sequence[SimulatedTask],
        *,
        committee: CommitteeSettings | None = None,
        participation: Participation | None = None,
        directory: Path | None = None,
        keys: KeyDirectory | None = None,
        on_progress: OnProgress = no_progress,
        workers: Workers | int | None = None,
    ) -> None:
        """Check the tasks; the parties are set up when the first iteration is run.

        With a ``directory``, the board is kept there and ``anofel audit`` accepts it. Without ``keys``,
        insecure development keys are made. ``workers`` own the clients, so many processes for a number;
        without them all clients are in this process. Raises ``InvalidInput``, ``WorkerLost``.
        """
        self.tasks = make_bundle(tasks)
        self.models = {part.task.name: part.first_model() for part in self.tasks}
        """The current model of every task, by the name of the task."""
        self._settings = CommitteeSettings() if committee is None else committee
        self._settings.check(self.tasks)
        self._before = begun_iterations(self.tasks)
        if self._before and any(part.task.rule.schedule for part in self.tasks):
            raise InvalidInput(
                "A run with cryptography goes on with another board, whose iterations begin at 1, so a task "
                "with a schedule of learning rates cannot be resumed."
            )
        self._participation = Participation() if participation is None else participation
        self._on_progress = on_progress
        self.lost: list[str] = []
        """The workers that were lost, in a sentence each."""
        workers = Workers(number=workers) if isinstance(workers, int) else workers
        if workers is not None:
            check_trainers(self.tasks)
        with ExitStack() as stack:
            keys = self._development_keys(stack) if keys is None else keys
            self._venue = Venue(self.tasks, keys, directory)
            self.board: LocalBoard = self._venue.board
            stack.callback(self.board.close)
            self._clients = self._place_clients(keys, workers)
            stack.callback(self._clients.close)
            self._stack = stack.pop_all()
        self._owners: list[SimulatedOwner] = []
        self._committees: dict[TaskId, SimulatedCommittee] = {}
        """The committee of each task."""
        self._numbers: dict[tuple[int, int], int] = {}
        """The numbers of the clients, by task and place."""

    @property
    def switched_off(self) -> tuple[str, ...]:
        """What genesis says is insecure about the board."""
        return tuple(flaws_of(self._venue.genesis))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directory, and of threads or workers."""
        self._stack.close()

    def _place_clients(self, keys: KeyDirectory, workers: Workers | None) -> Clients:
        if workers is None:
            return ClientsHere(self.board, self.tasks, Provers(keys))

        def hear(loss: str) -> None:
            self.lost.append(loss)
            workers.on_loss(loss)

        self._on_progress("Starting workers", 0, 1)
        links = workers.start()
        return Crew(self.board, self.tasks, keys, links, seconds=workers.seconds, on_loss=hear)

    def _development_keys(self, stack: ExitStack) -> KeyDirectory:
        self._on_progress("Making development keys", 0, 1)
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="anofel-simulation-"))
        return make_insecure_development_keys(Path(scratch) / "keys")

    def card(self, result: IterationResult) -> str:
        """Write the card of the model that a result leaves, from the board."""
        facts = facts_of(self.board.state)
        study = next(one for one in facts.studies if one.name == result.task)
        return card_of(facts, study, model=digest_of(result.model), iteration=result.iteration)

    # Phase 1

    def set_up(self) -> None:
        """Do steps 1.a to 1.d: certifier, committees, registrations, tasks. Done once."""
        if self._owners:
            return
        board, certifier = self.board, SimulatedCertifier(self._venue)
        committees = []
        for number in range(len(self.tasks)):
            self._on_progress("Making committee keys", number, len(self.tasks))
            name = f"Committee {number + 1}"
            committees.append(establish(self._venue, name, self._settings, self._tell_key(name)))
        board.next_block(on_sealed=self._clients.look)
        self._register(certifier)
        for number, (part, committee) in enumerate(zip(self.tasks, committees, strict=True), start=1):
            name, key_id = f"Owner {number}", committee.key.key_id
            self._owners.append(SimulatedOwner.announcing(self._venue, name, part, key_id))
            self._committees[self._owners[-1].task_id] = committee
        board.next_block()  # the bundle is made; its first models are due within a few blocks

    def _tell_key(self, name: str) -> Report:
        def report(progress: KeyProgress) -> None:
            whole = f"{name}, about {progress.seconds:.0f} s of computation for each member"
            self._on_progress(f"{whole}: {progress.phase}", progress.done, progress.total)

        return report

    def _register(self, certifier: SimulatedCertifier) -> None:
        everybody = [
            Newcomer(number, *who)
            for number, who in enumerate(
                (index, place, rows)
                for index, part in enumerate(self.tasks)
                for place, rows in enumerate(part.clients)
            )
        ]
        self._numbers = {(newcomer.task, newcomer.place): newcomer.number for newcomer in everybody}
        for start in range(0, len(everybody), POSTS_PER_BLOCK):
            self._on_progress("Registering clients", start, len(everybody))
            some = everybody[start : start + POSTS_PER_BLOCK]
            self.board.post_many(self._clients.register(certifier, some))
            self.board.next_block()

    # Iterations

    def run(self, iterations: int) -> Iterator[IterationResult]:
        """Run iterations; gives the results of each task as they come, until every task has ended."""
        self.set_up()
        for _ in range(iterations):
            live = [owner for owner in self._owners if not self._has_ended(owner)]
            if not live:
                return
            self._open(live)
            number = self._bundle.iterations
            order = self._participation.order(
                self._before + number, [len(part.clients) for part in self.tasks]
            )
            names = [owner.task_id for owner in live]
            self._train([who for who in order if self._owners[who[0]].task_id in names])
            while self._bundle.phase is Phase.OPEN:
                self.board.next_block()
            self._decrypt(live)
            results = [self._result(owner) for owner in live]
            self.board.next_block()  # what was said about ε is on the board when the caller hears of it
            yield from results

    @property
    def _bundle(self) -> Bundle:
        return self.board.state.bundles[0]

    def _task(self, owner: SimulatedOwner) -> TaskState:
        return self.board.state.tasks[owner.task_id]

    def _has_ended(self, owner: SimulatedOwner) -> bool:
        task = self._task(owner)
        return task.ended or self._releases(owner, task) >= owner.part.task.privacy.max_releases

    def _releases(self, owner: SimulatedOwner, task: TaskState) -> int:
        """Count the sums that were opened, with those of an earlier run."""
        return task.releases + (0 if owner.part.begun is None else owner.part.begun.releases)

    def _open(self, live: Sequence[SimulatedOwner]) -> None:
        """Post the models that open the next iteration (step 1.d)."""
        following = self._bundle.iterations + 1
        for owner in live:
            owner.post_model(self.board, following, self.models[owner.part.task.name])
        self.board.next_block(on_sealed=self._clients.look)
        assert self._bundle.phase is Phase.OPEN

    def _train(self, order: Sequence[tuple[int, int]]) -> None:
        """Let the clients train and submit (steps 3 to 5)."""
        turns = [
            SimulatedTurn(self._numbers[who], self._task(self._owners[who[0]]).position, position)
            for position, who in enumerate(order, start=1)
        ]
        models = {place: self.models[part.task.name] for place, part in enumerate(self.tasks)}
        what, done = f"Iteration {self._bundle.iterations}", 0
        self._on_progress(what, done, len(order))
        for postings in self._clients.submissions(turns, models, POSTS_PER_BLOCK):
            self.board.post_many(postings)
            self.board.next_block()
            done += len(postings)
            self._on_progress(what, done, len(order))

    # Phase 3

    def _decrypt(self, live: Sequence[SimulatedOwner]) -> None:
        """Let the committees add, count and open (steps 6 to 8), each step in its block."""
        for _ in range(STEPS):
            if self._bundle.phase is not Phase.CLOSED:
                return
            for owner in live:
                self._committees[owner.task_id].act(self.board, owner.seat(self.board))
            self.board.next_block()

    def _result(self, owner: SimulatedOwner) -> IterationResult:
        """Combine the shares, make the next model and post ε (step 8′)."""
        board, seat, part = self.board, owner.seat(self.board), owner.part
        name, task, position = part.task.name, seat.task, seat.position
        opened = board.openings.open_sum(seat) if position.progress is Progress.SUMMED else None
        if opened is not None:
            self.models[name] = next_model(board, seat)
        if task.releases > len(task.ledger):
            board.post_as(owner.role, ledger_entry(part.task, owner.task_id, task.releases))
        return IterationResult(
            task=name,
            iteration=self._before + seat.number,
            outcome=position.progress.value,
            count=position.count,
            posts=len(seat.iteration.submissions),
            epsilon=part.plan.epsilon(self._releases(owner, task), part.task.privacy.relation),
            metrics=part.measure(self.models[name]) if opened is not None and part.measure else None,
            reported=None if opened is None else metrics_of_sum(board, seat),
            shortened=opened is not None and opened.shortened,
            model=self.models[name],
            total=None if opened is None else opened.vector,
        )
