"""The clients of a simulation in workers: each belongs to one worker, and nobody else has its secrets."""

import heapq
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import Final

from anofel.board import snapshot
from anofel.board.seat import Sitting
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import BlobHash
from anofel.learning.own_trainer import TrainerFailed
from anofel.messages import Header, Posting
from anofel.models.integer_model import IntegerModel
from anofel.phase1_setup.step1b_certification import CertificateRequest, fresh_nonce
from anofel.primitives import DatasetDigest, DatasetType, MasterPublicKey
from anofel.proofs.keys import ROLES, STATEMENTS, KeyDirectory, key_file_name
from anofel.proofs.statements import OwnershipProof
from anofel.simulation.clients import Newcomer, SimulatedTurn
from anofel.simulation.local_board import LocalBoard
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.people import SimulatedCertifier
from anofel.simulation.workers import orders
from anofel.simulation.workers.links import Link, WorkerLost
from anofel.studies.sent_rows import SentRows

CUSTOM: Final = "custom"
_URGENT: Final = 0
_IN_TURN: Final = 1


class WorkerFailed(AnofelError):
    """Something went wrong in a worker that would have ended the simulation in one process too."""

    code = "worker-failed"


class NoWorkersLeft(AnofelError):
    """Every worker of a simulation is lost."""

    code = "no-workers-left"


def check_trainers(tasks: Sequence[SimulatedTask]) -> None:
    """Refuse trainers that only this process has. Raises ``InvalidInput``."""
    for part in tasks:
        if (
            part.own_trainer is not None
            and not part.trainer_name
            and CUSTOM
            in (
                part.task.model.kind,
                part.task.training.algorithm,
            )
        ):
            raise InvalidInput(
                f"Workers make the trainer of the task '{part.task.name}' themselves; name it with "
                "trainer_name='module:function' beside own_trainer."
            )


def files(keys: KeyDirectory) -> dict[str, bytes]:
    """Read the proof keys, for a machine that has not got them."""
    return {key_file_name(name, role): keys.file(name, role).read() for name in STATEMENTS for role in ROLES}


class _Hand:
    """One worker and what it was asked: one order at a time, urgent ones first."""

    def __init__(self, link: Link, seconds: float) -> None:
        self.link, self._seconds = link, seconds
        self.is_lost = False
        self._queue: list[tuple[int, int, bytes, Future[orders.Reply]]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def ask(self, order: orders.Order, urgency: int = _IN_TURN) -> "Future[orders.Reply]":
        """Give an order; the answer comes, or ``WorkerLost``."""
        answer: Future[orders.Reply] = Future()
        with self._changed:
            heapq.heappush(self._queue, (urgency, next(self._numbers), orders.encode(order), answer))
            self._changed.notify()
        return answer

    def _talk(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                _, _, order, answer = heapq.heappop(self._queue)
            try:
                answer.set_result(orders.read_answer(self.link.converse(order, self._seconds)))
            except Exception as error:
                lost = (
                    error
                    if isinstance(error, WorkerLost)
                    else WorkerLost(f"{self.link.name} answered what no worker says.")
                )
                answer.set_exception(lost)
                self._give_up(lost)
                return

    def _give_up(self, lost: WorkerLost) -> None:
        """Let nobody wait for a worker that is lost."""
        self.link.close()
        with self._changed:
            while True:
                while self._queue:
                    heapq.heappop(self._queue)[3].set_exception(lost)
                if self._is_closed:
                    return
                self._changed.wait()

    def close(self) -> None:
        """End the worker; whoever waits for it hears that it is lost."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self.link.close()
        self._thread.join()


@dataclass
class _Asked:
    """An order under way."""

    hand: _Hand
    client: int
    answer: "Future[orders.Reply]"


class Crew:
    """All clients, in workers."""

    def __init__(
        self,
        board: LocalBoard,
        tasks: Sequence[SimulatedTask],
        keys: KeyDirectory,
        links: Sequence[Link],
        *,
        seconds: float,
        on_loss: Callable[[str], None],
    ) -> None:
        """Start the workers. Raises ``WorkerLost`` and ``WorkerFailed`` where one does not start."""
        self._board, self._tasks, self._on_loss = board, tasks, on_loss
        self._hands = [_Hand(link, seconds) for link in links]
        self._owners: dict[int, _Hand] = {}
        self._trained: dict[int, int] = {}
        """The task of each client, by its place."""
        self._shown: set[BlobHash] = set()
        try:
            self._start(keys)
        except BaseException:
            self.close()
            raise

    def _start(self, keys: KeyDirectory) -> None:
        genesis = self._board.genesis.to_bytes()
        tasks = tuple(
            (part.task.to_bytes(), part.trainer_name, part.on_failure is not None) for part in self._tasks
        )
        path = tuple(sys.path)
        asked = []
        for hand in self._hands:
            here = hand.link.is_here
            order = orders.Start(
                orders.VERSION, genesis, tasks, str(keys.path) if here else files(keys), path if here else ()
            )
            asked.append(hand.ask(order))
        for answer in asked:
            _read(answer.result(), orders.Done)

    def close(self) -> None:
        """End all workers."""
        for hand in self._hands:
            hand.close()

    # Who is there

    def _working(self) -> list[_Hand]:
        working = [hand for hand in self._hands if not hand.is_lost]
        if not working:
            raise NoWorkersLeft("Every worker is lost, and with them all clients; the simulation ends.")
        return working

    def _take(self, asked: _Asked, kind: type[orders.A]) -> "orders.A | None":
        """Wait for an answer; None if the worker is lost, which is said once."""
        try:
            return _read(asked.answer.result(), kind)
        except WorkerLost as lost:
            if not asked.hand.is_lost:
                asked.hand.is_lost = True
                gone = sum(owner is asked.hand for owner in self._owners.values())
                self._on_loss(f"{str(lost).rstrip('.')}; its {gone} clients do not post any more.")
            self._working()
            return None

    def _ask(self, client: int, order: orders.Order, urgency: int = _IN_TURN) -> _Asked:
        hand = self._owners[client]
        return _Asked(hand, client, hand.ask(order, urgency))

    def _tell(self, order: orders.Order) -> None:
        """Tell all workers."""
        for asked in [_Asked(hand, -1, hand.ask(order)) for hand in self._working()]:
            self._take(asked, orders.Done)

    # The clients' part

    def register(self, certifier: SimulatedCertifier, newcomers: Sequence[Newcomer]) -> list[Posting]:
        """Let new clients be certified and make their registrations (step 1.b)."""
        working, asked = self._working(), []
        for newcomer in newcomers:
            self._trained[newcomer.number] = newcomer.task
            self._owners[newcomer.number] = working[newcomer.number % len(working)]
            nonce = fresh_nonce()
            asked.append((nonce, self._ask(newcomer.number, self._request(newcomer, certifier, nonce))))
        certified = []
        for nonce, entry in asked:
            request = self._take(entry, orders.Asked)
            if request is not None:
                certificate = certifier.issue(_request(request), nonce).to_secret_bytes()
                certified.append(self._ask(entry.client, orders.Register(entry.client, certificate)))
        posted = [self._take(entry, orders.Posted) for entry in certified]
        return [Posting.from_bytes(answer.data) for answer in posted if answer is not None]

    def _request(self, newcomer: Newcomer, certifier: SimulatedCertifier, nonce: bytes) -> orders.Ask:
        return orders.Ask(
            newcomer.number,
            newcomer.task,
            newcomer.place,
            len(self._tasks[newcomer.task].clients),
            SentRows.of(newcomer.rows),
            certifier.key.to_bytes(),
            nonce,
        )

    def look(self, header: Header) -> None:
        """Show all workers the board after a block."""
        state, sitting = self._board.state, Sitting.find(self._board.state, 0)
        names = {seat.addressee.committee.shares_id for seat in (sitting.seats if sitting else ())}
        keys = tuple(self._board.attachments.read(name) for name in names - self._shown)
        self._shown |= names
        self._tell(orders.Look(header.to_bytes(), snapshot.encode(state), keys))

    def submissions(
        self, turns: Sequence[SimulatedTurn], models: Mapping[int, IntegerModel], at_a_time: int
    ) -> Iterator[list[Posting]]:
        """Do steps 3 to 5. Workers are ahead of the board by some turns, so that none waits for it."""
        self._tell(orders.Models({place: model.to_bytes() for place, model in models.items()}))
        ahead = max(at_a_time, 4 * len(self._hands))
        turns = [turn for turn in turns if turn.client in self._owners]
        sealing: dict[int, _Asked] = {}
        for start in range(0, len(turns), at_a_time):
            end = start + at_a_time
            for place in range(start + len(sealing), min(end + ahead, len(turns))):
                turn = turns[place]
                sealing[place] = self._ask(
                    turn.client, orders.TrainAndSeal(turn.client, turn.target, turn.position)
                )
            signing = [self._store(sealing.pop(place)) for place in range(start, min(end, len(turns)))]
            posted = [self._take(entry, orders.Posted) for entry in signing if entry is not None]
            yield [Posting.from_bytes(answer.data) for answer in posted if answer is not None]

    def _store(self, asked: _Asked) -> _Asked | None:
        """Store the payloads of a client, and have its posting signed."""
        sealed = self._take(asked, orders.Sealed)
        if sealed is None:
            return None
        hears = self._tasks[self._trained[asked.client]].on_failure
        if sealed.failure and hears is not None:
            hears(sealed.failure)
        blobs = tuple(self._board.upload(payload).to_bytes() for payload in sealed.payloads)
        return self._ask(asked.client, orders.Sign(asked.client, blobs), _URGENT)


def _request(asked: orders.Asked) -> CertificateRequest:
    return CertificateRequest(
        mpk=MasterPublicKey.from_bytes(asked.mpk),
        d=DatasetDigest.from_bytes(asked.d),
        dt=DatasetType(asked.dt),
        ownership=OwnershipProof.from_bytes(asked.ownership),
    )


def _read(answer: orders.Reply, kind: type[orders.A]) -> orders.A:
    if isinstance(answer, orders.Failed):
        failed = TrainerFailed if answer.code in (TrainerFailed.code, "flower-failed") else WorkerFailed
        raise failed(answer.reason)
    if not isinstance(answer, kind):
        raise WorkerFailed(f"A worker answered {type(answer).__name__} instead of {kind.__name__}.")
    return answer
