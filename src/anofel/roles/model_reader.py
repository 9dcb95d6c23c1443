"""The models of a task, for anyone who takes part: read from a board whose every block was verified.

Rules, in the same words in ``docs/owner.md``:

1. A task is meant by its name or by the beginning of its id, and from 16 hexadecimal digits on by its id
   alone, since anybody can give a task such a name; what could be two tasks is refused.
2. The model of iteration N is the one that stands after it: what opened the next iteration, or what the last
   sum makes by the task's rule. Iteration 0 has the first model.
3. A model has the hash that its posting names; the board's rules hold it to be what the sum makes.
4. With a model those of the same iteration of all tasks of its bundle are fetched: a request for one alone
   would tell the node in which task somebody takes part.
"""

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from anofel.board.attachments import AttachmentMissing
from anofel.board.interface import BoardView
from anofel.board.seat import Seat
from anofel.board.state import Progress
from anofel.disk.sections import nearest
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, TaskId
from anofel.messages import Block, Model, Posting, RejectModel
from anofel.models.integer_model import IntegerModel
from anofel.phase3_access.step8prime_model import next_model
from anofel.roles.client.task import MIN_ID_DIGITS
from anofel.tasks.task import Task

_LEAST_DIGITS: Final = 4
"""Fewer do not name a task."""


class NoSuchModel(InvalidInput):
    """The board has no such task, or the task no such model."""

    code = "no-such-model"


@dataclass(frozen=True)
class FetchedModel:
    """A model, its task and the iteration that it stands after."""

    model: IntegerModel
    task: Task
    task_id: TaskId
    iteration: int
    newest: int
    """The newest iteration of which there is a model."""


class ModelReader:
    """Notes the models that blocks post and sums make; show it every block from genesis on."""

    def __init__(self, board: BoardView, name: str) -> None:
        self._board, self._name = board, name
        self._tasks: dict[TaskId, Task] = {}
        self._posted: dict[tuple[TaskId, int], BlobHash] = {}
        self._made: dict[TaskId, tuple[int, IntegerModel]] = {}

    def observe(self, block: Block) -> None:
        """Take the models of a verified block; the board's state is that after it."""
        for data in block.postings:
            body = Posting.from_bytes(data).body
            if isinstance(body, Model):
                self._posted[body.task, body.iteration - 1] = body.model.sha256
            elif isinstance(body, RejectModel):
                stays = self._board.state.tasks[body.task].model
                assert stays is not None
                self._posted[body.task, body.iteration] = stays
        for task_id in self._board.state.tasks:
            if task_id not in self._tasks:
                self._tasks[task_id] = Task.from_bytes(self._board.state.tasks[task_id].announcement.document)
            if self._is_meant(task_id):
                self._note_sum(task_id)

    def _is_meant(self, task_id: TaskId) -> bool:
        digits = self._name.lower()
        is_id = len(digits) >= _LEAST_DIGITS and task_id.hex().startswith(digits)
        if len(digits) >= MIN_ID_DIGITS and set(digits) <= set("0123456789abcdef"):
            return is_id
        return self._tasks[task_id].name == self._name or is_id

    def _note_sum(self, task_id: TaskId) -> None:
        """Keep what the last sum makes: a board forgets the shares of a bundle that has ended (2)."""
        seat = Seat.find(self._board.state, task_id)
        if seat is None or seat.position.progress is not Progress.SUMMED or seat.task.facts.own_rule:
            return
        if self._made.get(task_id, (0, None))[0] != seat.number:
            self._made[task_id] = seat.number, next_model(self._board, seat)

    def fetch(self, iteration: int | None = None) -> FetchedModel:
        """Give the model after an iteration, by default the newest. Raises ``NoSuchModel``."""
        task_id = self._task_id()
        posted = {number: sha256 for (owner, number), sha256 in self._posted.items() if owner == task_id}
        if not posted:
            raise NoSuchModel(f"The task '{self._name}' has no model yet: its owner has not posted one.")
        made = self._made.get(task_id)
        newest = max(*posted, made[0] if made else 0)
        wanted = newest if iteration is None else iteration
        if wanted in posted:  # (3)
            model = self._read(task_id, wanted)
        elif made is not None and wanted == made[0]:
            model = made[1]
        else:
            raise NoSuchModel(
                f"The task '{self._name}' has no model of iteration {wanted}; it has those of 0 to {newest}."
            )
        return FetchedModel(model, self._tasks[task_id], task_id, wanted, newest)

    def _read(self, task_id: TaskId, iteration: int) -> IntegerModel:
        """Read a posted model, in the order of its bundle with those beside it (4)."""
        state = self._board.state
        number = state.tasks[task_id].bundle
        assert number is not None, "a task with a model is in a bundle"
        found: dict[TaskId, bytes] = {}
        for other in state.bundles[number].tasks:
            sha256 = self._posted.get((other, iteration))
            if sha256 is not None:
                with nullcontext() if other == task_id else suppress(AttachmentMissing):
                    found[other] = self._board.attachments.read(sha256)
        return IntegerModel.from_bytes(found[task_id])

    def _task_id(self) -> TaskId:
        """Find the task that is meant (1)."""
        found = [task_id for task_id in self._tasks if self._is_meant(task_id)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(task_id.hex()[:16] for task_id in found)
            raise NoSuchModel(f"Several tasks are called '{self._name}'; name one by its id: {ids}.")
        names = sorted({task.name for task in self._tasks.values()})
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise NoSuchModel(f"The board has no task '{self._name}'{nearest(self._name, names)}; {there}.")
