"""The clients of a simulation in this process: proofs in threads, training in this one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from anofel.board.seat import Sitting
from anofel.messages import Header, Posting
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Integers
from anofel.phase1_setup.step1b_certification import fresh_nonce
from anofel.phase2_training.step5_submission import PreparedSubmission, post_submission, seal_submission
from anofel.simulation.clients import Newcomer, SimulatedTurn
from anofel.simulation.local_board import LocalBoard
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.people import Applicant, Provers, SimulatedCertifier, SimulatedClient


class ClientsHere:
    """All clients beside the board."""

    def __init__(self, board: LocalBoard, tasks: Sequence[SimulatedTask], provers: Provers) -> None:
        self._board, self._tasks, self._provers = board, tasks, provers
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._clients: dict[int, tuple[int, SimulatedClient]] = {}

    def look(self, header: Header) -> None:
        """Do nothing: the clients read the board itself."""

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def register(self, certifier: SimulatedCertifier, newcomers: Sequence[Newcomer]) -> list[Posting]:
        """Let new clients be certified and make their registrations (step 1.b)."""

        def certified(newcomer: Newcomer) -> SimulatedClient:
            dataset_type = self._tasks[newcomer.task].task.dataset_type
            applicant, nonce = Applicant.of(newcomer.rows, dataset_type, certifier.key), fresh_nonce()
            return applicant.take(certifier.issue(applicant.ask(nonce, self._provers), nonce))

        clients = list(self._pool.map(certified, newcomers))
        self._clients |= {
            newcomer.number: (newcomer.task, client)
            for newcomer, client in zip(newcomers, clients, strict=True)
        }
        state = self._board.state
        return list(self._pool.map(lambda client: client.registration(state, self._provers), clients))

    def submissions(
        self, turns: Sequence[SimulatedTurn], models: Mapping[int, IntegerModel], at_a_time: int
    ) -> Iterator[list[Posting]]:
        """Do steps 3 to 5, some clients at a time; proofs are made while models train."""
        for start in range(0, len(turns), at_a_time):
            some = turns[start : start + at_a_time]
            prepared = [self._pool.submit(self._prepare, turn) for turn in some]
            updates = [self._update(turn, models) for turn in some]
            sealed = self._pool.map(
                lambda ready, update: seal_submission(ready.result(), update), prepared, updates
            )
            yield [post_submission(self._board, entry) for entry in sealed]

    def _prepare(self, turn: SimulatedTurn) -> PreparedSubmission:
        _, client = self._clients[turn.client]
        sitting = Sitting.of(self._board.state, 0)
        return client.prepare(self._board, sitting, turn.target, self._provers)

    def _update(self, turn: SimulatedTurn, models: Mapping[int, IntegerModel]) -> Integers:
        task, client = self._clients[turn.client]
        return self._tasks[task].local_update(client.certified.dataset, models[task], turn.position)
