"""Step 4 in a process of its own, so that it can be stopped in time (D-20).

Nobody may read from a client's posts, requests or waits how its training went: the client goes on polling
while the child trains, and takes what is there when its post is due. A child that failed, was killed, ran
out of memory or is not done by then leaves the zero update. The child gets the task's document, the rows
and the models; it holds no secret of the client.

A message is MessagePack behind its length (``anofel.framing``); the child answers on a pipe of its own,
so that a trainer may print what it likes.
"""

import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

import msgspec
import numpy as np

from anofel.children import Child, obey_orders
from anofel.disk.portable import give_way
from anofel.errors import AnofelError
from anofel.framing import receive_message, send_message
from anofel.learning.build import OwnTrainerName, trainer_of
from anofel.learning.trainer import Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.phase2_training.step4_local_training import contribute
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate, fits
from anofel.studies.dataset import Dataset
from anofel.studies.sent_rows import SentRows
from anofel.tasks.entry_points import fault
from anofel.tasks.task import Task

START_SECONDS: Final = 300.0
"""How long a child may take until it is ready; importing a deep-learning library takes seconds."""
NOT_READY: Final = "Training was not done when the post was due."
_MAX_WORDS: Final = 1 << 20


class TrainingUnavailable(AnofelError):
    """No child can train the task; said before any data are shown to it, and before anything is charged."""

    code = "training-unavailable"


class _Start(msgspec.Struct, tag="start", array_like=True):
    document: bytes
    trainer: OwnTrainerName
    path: list[str]


class _Train(msgspec.Struct, tag="train", array_like=True):
    model: bytes


class _Ready(msgspec.Struct, tag="ready", array_like=True):
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


class _Made(msgspec.Struct, tag="made", array_like=True):
    values: bytes
    failure: str


class _Failed(msgspec.Struct, tag="failed", array_like=True):
    reason: str


_Order = _Start | SentRows | _Train
_Answer = _Ready | _Made | _Failed
_OnAnswer = Callable[[_Answer | None], None]
"""Gets None if the child died or wrote nonsense."""
_Orders = SimpleQueue[tuple[Callable[[], _Order], int, _OnAnswer | None] | None]
"""What makes what to say, how long the answer may be, and who gets it; None at the end."""


class TrainingProcess:
    """The child that trains one task on one dataset; it lives as long as it behaves."""

    def __init__(self, task: Task, trainer: OwnTrainerName, dataset: Dataset) -> None:
        """Nothing is started yet; ``trainer`` names the client's own one, for custom tasks."""
        self._task, self._trainer, self._dataset = task, trainer, dataset
        self._plan = Plan.of(task)
        self._child: _Conversation | None = None
        self._answers: SimpleQueue[_Answer | None] = SimpleQueue()
        self.layout: Layout | None = None
        """The tensors of the trainer's models, once it is ready."""

    def get_ready(self) -> Layout:
        """Start the child if none is there, and let it load its trainer. Raises ``TrainingUnavailable``.

        Only the first one is waited for, which has seen no data yet; how the one before it ended, and so
        whether there must be another, may depend on data.
        """
        if self.layout is not None and self._child is not None and self._child.is_alive:
            return self.layout
        self.close()
        try:
            child = _Conversation()
        except OSError as error:
            if self.layout is None:
                raise TrainingUnavailable(f"No process for training can be started: {error}.") from None
            return self.layout  # it ends in the zero update
        order = _Start(self._task.to_bytes(), self._trainer, sys.path)
        if self.layout is None:
            self.layout = _wait_for_layout(child, order)
        else:
            child.ask_later(lambda: order, _MAX_WORDS, lambda _answer: None)
        child.send_later(partial(SentRows.of, self._dataset))
        self._child = child
        return self.layout

    def begin(self, model: bytes) -> None:
        """Let the child train a posted model, after ``get_ready``. Returns at once and never raises."""
        answers: SimpleQueue[_Answer | None] = SimpleQueue()
        self._answers = answers
        self.get_ready()
        if self._child is None:
            answers.put(_Failed("No process for training can be started."))
        else:
            most = 8 * self._plan.dimension + _MAX_WORDS
            self._child.ask_later(lambda: _Train(model), most, answers.put)

    def take(self) -> ProtectedUpdate:
        """Take what training made, now; whatever is missing or unfit is the zero update. Never raises."""
        try:
            answer = self._answers.get_nowait()
        except Empty:
            self.close()
            return ProtectedUpdate.zero(self._plan, NOT_READY)
        if not isinstance(answer, _Made):
            self.close()
            reason = answer.reason if isinstance(answer, _Failed) else "The training process was killed."
            return ProtectedUpdate.zero(self._plan, reason)
        if answer.failure:
            return ProtectedUpdate.zero(self._plan, answer.failure)
        if len(answer.values) == 8 * self._plan.dimension:
            values = np.frombuffer(answer.values, dtype="<i8").astype(np.int64, copy=False)
            if fits(values, self._plan):  # the child runs code of the user's own
                return ProtectedUpdate(values)
        return ProtectedUpdate.zero(self._plan, "What training made exceeds the task's bound.")

    def close(self) -> None:
        """End the child, whatever it does."""
        if self._child is not None:
            self._child.kill()
            self._child = None


def _wait_for_layout(child: "_Conversation", order: _Start) -> Layout:
    answer = child.ask(lambda: order, _MAX_WORDS, START_SECONDS)
    if isinstance(answer, _Ready):
        return Layout(answer.names, answer.shapes)
    child.kill()
    if isinstance(answer, _Failed):
        raise TrainingUnavailable(answer.reason)
    raise TrainingUnavailable(
        f"The training process ended, or was not ready within {START_SECONDS:.0f} seconds."
    )


class _Conversation:
    """The parent's end: one thread talks to the process, so that nobody else waits for it."""

    def __init__(self) -> None:
        # -P: without it Python would import from the working directory first, whoever writes there
        self._child = Child([sys.executable, "-P", "-m", __name__])
        self._orders: _Orders = SimpleQueue()
        threading.Thread(target=_converse, args=(self._child, self._orders), daemon=True).start()
        self._end = weakref.finalize(self, _end, self._child, self._orders)

    @property
    def is_alive(self) -> bool:
        return self._child.is_alive

    def send_later(self, make: Callable[[], _Order]) -> None:
        self._orders.put((make, 0, None))

    def ask_later(self, make: Callable[[], _Order], most: int, answer: _OnAnswer) -> None:
        self._orders.put((make, most, answer))

    def ask(self, make: Callable[[], _Order], most: int, seconds: float) -> _Answer | None:
        """Ask and wait; None if the child ended or took too long."""
        answers: SimpleQueue[_Answer | None] = SimpleQueue()
        self._orders.put((make, most, answers.put))
        try:
            return answers.get(timeout=seconds)
        except Empty:
            return None

    def kill(self) -> None:
        self._end()


def _end(child: Child, orders: _Orders) -> None:
    """Kill the child and all that it started; its thread buries it, so that nobody waits here."""
    child.kill()
    orders.put(None)


def _converse(child: Child, orders: _Orders) -> None:
    """Write what is ordered and read what is answered, until the child ends."""
    while (ordered := orders.get()) is not None:
        make, most, on_answer = ordered
        answer: _Answer | None = None
        with suppress(OSError, ValueError, msgspec.MsgspecError):  # a child that died, or writes nonsense
            send_message(child.orders, msgspec.msgpack.encode(make()))
            if on_answer is not None:
                answer = msgspec.msgpack.decode(receive_message(child.answers, most), type=_Answer)
        if on_answer is not None:
            on_answer(answer)
    child.bury()


# The child


def main() -> None:
    """Answer the orders on standard input until it ends."""
    give_way()  # the client goes on asking for blocks at its times, however busy this is
    pupil = _Pupil()
    obey_orders(pupil.obey)


class _Pupil:
    """What the child knows: its trainer, and later its rows."""

    task: Task
    trainer: Trainer
    dataset: Dataset

    def obey(self, data: bytes) -> bytes | None:
        order = msgspec.msgpack.decode(data, type=_Order)
        if isinstance(order, SentRows):
            self.dataset = order.dataset(self.task.schema)
            return None
        return msgspec.msgpack.encode(self._start(order) if isinstance(order, _Start) else self._train(order))

    def _train(self, order: _Train) -> _Answer:
        try:
            made = contribute(
                self.trainer, IntegerModel.from_bytes(order.model), self.dataset, Plan.of(self.task)
            )
        except AnofelError as error:
            return _Failed(str(error))
        return _Made(made.values.astype("<i8", copy=False).tobytes(), made.failure)

    def _start(self, order: _Start) -> _Answer:
        sys.path[:] = order.path
        try:
            self.task = Task.from_bytes(order.document)
            self.trainer = trainer_of(self.task, order.trainer)
            layout = Layout.of(self.trainer.initial())
            return _Ready(layout.names, layout.shapes)
        except AnofelError as error:
            return _Failed(str(error))
        except Exception as error:
            return _Failed(f"The trainer cannot be loaded: {fault(error)}.")


if __name__ == "__main__":
    main()
