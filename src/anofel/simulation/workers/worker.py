"""A worker: it owns the secrets of some clients, and answers orders (``orders``) with bytes.

It trains, proves, encrypts and signs for them one after the other. The proving keys are loaded once. It
believes the simulation that started it: the state of the board comes as a snapshot, which is compared with
the header of its block and not verified posting by posting.
"""

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import msgspec

from anofel.board import snapshot
from anofel.board.attachments import MemoryAttachments
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.openings import Openings
from anofel.board.seat import Sitting
from anofel.board.state import State
from anofel.children import obey_orders
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import BlobHash
from anofel.learning.build import OwnTrainerName, trainer_of
from anofel.learning.flower.settings import FlowerApp
from anofel.messages import Blob, Genesis, Header
from anofel.models.integer_model import IntegerModel
from anofel.phase2_training.step5_submission import SealedSubmission, post_submission, seal_submission
from anofel.primitives import Certificate, CertifierKey
from anofel.proofs.keys import ROLES, STATEMENTS, KeyDirectory, key_file_name
from anofel.simulation.flower import Partitions, flower_trainer
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.people import Applicant, Provers, SimulatedClient
from anofel.simulation.workers import orders
from anofel.tasks.entry_points import fault
from anofel.tasks.task import Task

BUNDLE: Final = 0
"""A simulation has one bundle."""


class _ShownBoard:
    """The board as the last ``Look`` showed it; what is uploaded was stored by the simulation already."""

    def __init__(self, genesis: Genesis) -> None:
        self.genesis = genesis
        self.state = State.at_genesis(genesis)
        self.attachments = MemoryAttachments()
        self.keys = CommitteeKeys(self.attachments)
        self.openings = Openings(self.attachments, self.keys)
        self.stored: dict[BlobHash, Blob] = {}

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:  # noqa: ARG002
        assert isinstance(data, bytes)
        return self.stored.pop(BlobHash(hashlib.sha256(data).digest()))


@dataclass(frozen=True)
class _Task:
    """A task, and where its clients stand if a Flower app trains it."""

    part: SimulatedTask
    partitions: Partitions


class Worker:
    """Answers orders; the first one is ``Start``."""

    def __init__(self) -> None:
        self._tasks: list[_Task] = []
        self._trained: dict[int, int] = {}
        """The task that each client of this worker trains, by its place."""
        self._applicants: dict[int, Applicant] = {}
        self._clients: dict[int, SimulatedClient] = {}
        self._sealed: dict[int, SealedSubmission] = {}
        self._models: dict[int, IntegerModel] = {}
        self._failures: list[str] = []
        self._view: _ShownBoard
        self._provers: Provers

    def obey(self, data: bytes) -> bytes:
        """Do one order; whatever goes wrong is an answer."""
        return orders.encode(self._answer(data))

    def _answer(self, data: bytes) -> orders.Reply:
        try:
            return self._do(orders.read_order(data))
        except AnofelError as error:
            return orders.Failed(error.code, str(error))
        except msgspec.MsgspecError:
            return orders.Failed("invalid-input", "The worker has another version of anofel.")
        except Exception as error:  # a trainer is anybody's code
            return orders.Failed("", f"{fault(error)}.")

    def _do(self, order: orders.Order) -> orders.Reply:
        match order:
            case orders.Start():
                return self._start(order)
            case orders.Ask():
                return self._ask(order)
            case orders.Register():
                return self._register(order)
            case orders.Look():
                return self._look(order)
            case orders.Models():
                self._models = {
                    place: IntegerModel.from_bytes(model) for place, model in order.models.items()
                }
                return orders.Done()
            case orders.TrainAndSeal():
                return self._seal(order)
            case orders.Sign():
                return self._sign(order)

    def _start(self, order: orders.Start) -> orders.Reply:
        if order.version != orders.VERSION:
            raise InvalidInput("The worker has another version of anofel than the simulation.")
        sys.path.extend(name for name in order.path if name not in sys.path)
        genesis = Genesis.from_bytes(order.genesis)
        self._view = _ShownBoard(genesis)
        self._provers = _provers(order.keys, genesis)
        self._tasks = [self._task(*task) for task in order.tasks]
        return orders.Done()

    def _task(self, document: bytes, own: OwnTrainerName, forgives: bool) -> _Task:
        task, partitions = Task.from_bytes(document), Partitions()
        trainer = flower_trainer(own, partitions) if isinstance(own, FlowerApp) else trainer_of(task, own)
        on_failure = self._failures.append if forgives else None
        return _Task(SimulatedTask(task, (), own_trainer=trainer, on_failure=on_failure), partitions)

    def _ask(self, order: orders.Ask) -> orders.Reply:
        task = self._tasks[order.task]
        rows = order.rows.dataset(task.part.task.schema)
        task.partitions.put(rows, order.place, order.of)
        applicant = Applicant.of(rows, task.part.task.dataset_type, CertifierKey.from_bytes(order.certifier))
        self._trained[order.client], self._applicants[order.client] = order.task, applicant
        asked = applicant.ask(order.nonce, self._provers)
        return orders.Asked(
            asked.mpk.to_bytes(), asked.d.to_bytes(), asked.dt.number, asked.ownership.to_bytes()
        )

    def _register(self, order: orders.Register) -> orders.Reply:
        client = self._applicants.pop(order.client).take(Certificate.from_bytes(order.certificate))
        self._clients[order.client] = client
        return orders.Posted(client.registration(self._view.state, self._provers).data)

    def _look(self, order: orders.Look) -> orders.Reply:
        view = self._view
        for key in order.keys:
            view.attachments.add(key)
        view.state = snapshot.decode(order.state, view.genesis, Header.from_bytes(order.header))
        return orders.Done()

    def _seal(self, order: orders.TrainAndSeal) -> orders.Reply:
        client, place = self._clients[order.client], self._trained[order.client]
        sitting, task = Sitting.of(self._view.state, BUNDLE), self._tasks[place].part
        prepared = client.prepare(self._view, sitting, order.target, self._provers)
        self._failures.clear()
        update = task.local_update(client.certified.dataset, self._models[place], order.position)
        sealed = self._sealed[order.client] = seal_submission(prepared, update)
        return orders.Sealed(sealed.payloads, " ".join(self._failures))

    def _sign(self, order: orders.Sign) -> orders.Reply:
        blobs = [Blob.from_bytes(blob) for blob in order.blobs]
        self._view.stored = {blob.sha256: blob for blob in blobs}
        return orders.Posted(post_submission(self._view, self._sealed.pop(order.client)).data)


def _provers(keys: str | dict[str, bytes], genesis: Genesis) -> Provers:
    """Load the proving keys that genesis pins, once."""
    if isinstance(keys, str):
        return Provers(KeyDirectory.pinned(Path(keys), genesis.key_pins))
    with tempfile.TemporaryDirectory(prefix="anofel-worker-") as scratch:
        for name, role in product(STATEMENTS, ROLES):
            path = Path(scratch) / key_file_name(name, role)
            path.write_bytes(keys[path.name])
        return Provers(KeyDirectory.pinned(Path(scratch), genesis.key_pins))


if __name__ == "__main__":
    obey_orders(Worker().obey)
