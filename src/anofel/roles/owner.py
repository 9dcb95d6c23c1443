"""Steps 1.d and 8′ as a process: an owner trains a task from announcement to end (AnoFel §4.3.2, §4.3.3).

1. The announcement is posted once.
2. Whenever the bundle waits: the model that opens the next iteration. After a sum it is what the
   task's rule, or for the rule ``owner`` the owner's own function, makes of it; after anything else
   the last one, unchanged, and the owner says so. Instead of the model it may post that it rejects it.
3. After every release: ε so far.
4. Every outcome is written to ``iterations.jsonl``, every model to ``models/``; where the owner has
   rows of its own to judge by, with the model's quality on them.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from anofel.board.author import RoleHolder
from anofel.board.rules.tasks import KNOWN, NOT_OPEN, check_rejection, check_task
from anofel.board.seat import Seat, Sitting
from anofel.board.state import Bundle, Phase, Position, Progress, TaskState
from anofel.disk.files import replace_file, write_new_file
from anofel.disk.state_files import decode_state, encode_state
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, KeyId, TaskId
from anofel.learning.build import TorchMissing, TrainerMissing, trainer_of
from anofel.learning.evaluate import Measure, evaluate_on
from anofel.light_client.base import BoardClient
from anofel.messages import Block, Model, TaskAnnouncement
from anofel.models.files import model_name
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import UpdateRule, companions_of, first_model, update_rule_of
from anofel.phase1_setup.step1d_announcement import (
    announce,
    end_iteration,
    end_task,
    ledger_entry,
    post_model,
    reject_model,
)
from anofel.phase3_access.step8prime_model import is_shortened, metrics_of_sum, next_model
from anofel.pki.certificates import Purpose
from anofel.roles.directory import RoleDirectory
from anofel.roles.outbox import Outbox
from anofel.roles.outbox_pruning import forget_old
from anofel.roles.role import CertifiedRole, Say
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

TASK: Final = "task"
"""The name of the announcement; a directory serves one task."""
RULE: Final = "rule"
"""The setting that names the owner's own rule."""
TRAINER: Final = "trainer"
"""The setting that names the owner's own trainer."""
MODELS: Final = "models"
FIRST_MODEL: Final = "first.model"
"""Where training starts, if not at the model that follows from the task."""
ITERATIONS: Final = "iterations.jsonl"

_STAYS: Final = {
    Progress.TOO_FEW: "too few clients took part, so nothing was decrypted",
    Progress.UNDECODABLE: "the sum cannot be decoded",
    Progress.FAILED: "the committee did not finish in time",
}


@dataclass(frozen=True)
class Own:
    """What an owner brings along for a task that does not say it all: functions as ``module:function``."""

    rule: str = ""
    """Makes each model, for the rule ``owner``."""
    trainer: str = ""
    """Makes the first model and measures, for a custom task."""
    first: IntegerModel | None = None
    """Where training starts, if not at the usual model."""


OWN_NOTHING: Final = Own()


class NotAnnounced(InvalidInput):
    """The owner has no task yet."""

    code = "not-announced"


class Owner(CertifiedRole):
    """The owner of one task."""

    purpose = Purpose.OWNER
    overtaken = frozenset({NOT_OPEN.code})  # the iteration closed while its early end was on its way

    def __init__(
        self,
        directory: RoleDirectory,
        board: BoardClient,
        say: Say = lambda _text: None,
        *,
        evaluate: Measure | None = None,
        end_after: int = 0,
        reject_rise: float | None = None,
        hold: bool = False,
    ) -> None:
        """``end_after``: ask for the end of an iteration after so many posts, where the bundle allows it.

        ``reject_rise``: reject a model whose loss on the owner's rows is higher by more than this. ``hold``:
        be done when a sum came, before its model is posted.
        """
        super().__init__(directory, board, say)
        self._reject_rise, self._hold, self._held = reject_rise, hold, False
        self._rejecting: int | None = None
        self.evaluate = evaluate
        """How each new model is measured; None if the owner has no rows."""
        self._end_after = end_after
        self._closing = False
        self._announced = announcement_in(directory.outbox)
        self.iterations: list[dict[str, Any]] = read_iterations(directory.path)
        """The outcomes so far, as in ``iterations.jsonl``."""
        self._seen: set[int] = set()
        """The outcomes that this process wrote down."""

    # The task

    def announce(
        self, task: Task, key_id: KeyId, *, early_end: bool = False, own: Own = OWN_NOTHING
    ) -> bytes:
        """Post the announcement, once; return the task's name.

        A refused announcement does not count: the next one takes its place. Raises ``Rejected`` before
        anything is sent, and ``InvalidInput`` for a second task.
        """
        body = self.check(task, key_id, early_end=early_end, own=own)
        if announcement_in(self.directory.outbox) is None:
            self.directory.outbox.forget(TASK)  # one that the board refused makes room
        for name, value in ((RULE, own.rule), (TRAINER, own.trainer)):
            if value != self._setting(name):
                self.directory.keep_setting(name, value)
        if own.first is not None:
            replace_file(self.directory.path / FIRST_MODEL, own.first.to_bytes())
        sent = self.send(TASK, lambda: body)
        if sent.answer is not None and sent.is_refused:
            raise InvalidInput(f"The board refused the task ({sent.answer.refused}): {sent.answer.detail}")
        return self.task_id

    @staticmethod
    def check_own(task: Task, own: Own) -> None:
        """Refuse a rule, a trainer or a first model of one's own here rather than when it is due."""
        check_start(task, own)
        update_rule_of(task, own.rule)

    def check(
        self, task: Task, key_id: KeyId, *, early_end: bool = False, own: Own = OWN_NOTHING
    ) -> TaskAnnouncement:
        """Return the announcement of a task that the board would take, and post nothing.

        Raises ``Rejected``, and ``InvalidInput`` for a second task.
        """
        body = announce(task, key_id=key_id, early_end=early_end)
        self.check_own(task, own)
        stored = announcement_in(self.directory.outbox)
        if stored is not None and stored != body:
            raise InvalidInput("This directory has another task; make a new one with anofel owner init.")
        if stored is None:
            check_task(self.state, body, RoleHolder(self.identity))
        return body

    @property
    def announcement(self) -> TaskAnnouncement:
        """What was announced. Raises ``NotAnnounced``."""
        if self._announced is None:
            self._announced = announcement_in(self.directory.outbox)
        if self._announced is None:
            raise NotAnnounced("This owner has announced no task; do it with anofel owner announce.")
        return self._announced

    @cached_property
    def task(self) -> Task:
        """The task itself."""
        return Task.from_bytes(self.announcement.document)

    def measure_on(self, rows: Dataset) -> None:
        """Measure every new model on rows of the owner's own."""
        self.evaluate = evaluate_on(self.task, rows, trainer_of(self.task, self._setting(TRAINER)))

    @cached_property
    def rule(self) -> UpdateRule:
        """How a sum becomes the next model: the task's rule, or the function that ``role.toml`` names."""
        return update_rule_of(self.task, self._setting(RULE))

    def _setting(self, name: str) -> str:
        return str(self.directory.config.settings.get(name, ""))

    @property
    def task_id(self) -> TaskId:
        """The task's name on the board."""
        return self.announcement.task_id(self.board.genesis.hash, self.identity.subject)

    def reject(self) -> int:
        """Reject the model that the last sum made, and return its iteration. Raises ``InvalidInput``."""
        task = self.state.tasks.get(self.task_id)
        bundle = None if task is None or task.bundle is None else self.state.bundles[task.bundle]
        if task is None or bundle is None:
            raise InvalidInput("There is no model to reject: the task has had no iteration.")
        check_rejection(self.state, reject_model(task.task_id, bundle.iterations), RoleHolder(self.identity))
        self._rejecting = bundle.iterations
        return bundle.iterations

    def close(self) -> None:
        """End the task; an iteration under way still runs to its outcome."""
        self._closing = True

    @property
    def is_done(self) -> bool:
        """Whether the task ended and everything about it was posted."""
        found = self.state.tasks.get(self.task_id)
        if found is not None and self._rejecting is not None:
            return found.model_iteration > self._rejecting
        if self._held:
            return True
        if found is None or not found.ended or self._owes_entry(found):
            return False
        seat = Seat.find(self.state, self.task_id)
        return seat is None or seat.position.progress.is_outcome

    # Steps

    def step(self) -> str:
        """Do what is due for the task."""
        announced = self.announcement
        task = self.state.tasks.get(self.task_id)
        if task is None:
            self.send(TASK, lambda: announced)
            return self.posted("the announcement")
        self._note_outcome()
        forget_old(self.directory.outbox, self.state, self.directory.secrets)
        if self._owes_entry(task):
            entry = ledger_entry(self.task, task.task_id, task.releases)
            self.send(_ledger_name(task), lambda: entry)
        if self._closing and not task.ended:
            self.send(f"end-task/{task.task_id.hex()}", lambda: end_task(task.task_id))
            return self.posted("the end of the task")
        if task.bundle is None:
            wait = self.lasting(self.board.genesis.bundle_wait)
            return f"other tasks to form a bundle ({wait}; another owner's task ends it at once)"
        return self._open(task, self.state.bundles[task.bundle])

    def _owes_entry(self, task: TaskState) -> bool:
        if not task.releases or task.releases in {entry.releases for entry in task.ledger}:
            return False
        sent = self.directory.outbox.find(_ledger_name(task))
        return sent is None or not sent.is_refused

    def _open(self, task: TaskState, bundle: Bundle) -> str:
        following = bundle.iterations + 1
        if bundle.phase is Phase.WAITING and not task.ended:
            if task.model_iteration < following:
                if self._hold and self._has_new_sum(task, bundle.iterations):
                    self._held = True
                    return "your decision: anofel owner reject, or run again to post the model"
                if task.summed and self._is_rejected(task, bundle.iterations):
                    self._send_rejection(task, bundle.iterations)
                else:
                    self._send_model(task, following)
            wait = self.lasting(self.state.class_of(bundle).model)
            return f"iteration {following} to open ({wait}; all owners' models open it at once)"
        sitting = Sitting.find(self.state, bundle.number)
        if sitting is not None and sitting.is_open:
            current = sitting.iteration
            due = self._end_after and len(current.submissions) >= self._end_after and bundle.early_end
            if due and not task.ended and task.task_id not in current.end_votes:
                name = f"end-iteration/{task.task_id.hex()}/{bundle.iterations}"
                self.send(name, lambda: end_iteration(task.task_id, bundle.iterations))
            posts = f"{len(current.submissions)} posts so far"
            wait = self.lasting(self.state.class_of(bundle).train)
            until = f"until block {current.close_by}"
            ends = "" if bundle.early_end else ", announced with --early-end it may end sooner"
            return f"clients in iteration {bundle.iterations} {until} ({wait}{ends}; {posts})"
        if bundle.phase is Phase.ENDED:
            return "nothing, since its bundle has ended"
        size = self.state.class_of(bundle)
        wait = self.lasting(size.aggregate + size.count + size.sum)
        return f"the committee in iteration {bundle.iterations} ({wait}; members that run shorten it)"

    def _has_new_sum(self, task: TaskState, iteration: int) -> bool:
        """Whether this process is the first to see what the sum made."""
        return task.summed and iteration in self._seen

    def _is_rejected(self, task: TaskState, iteration: int) -> bool:
        """Whether to reject what the sum made: as asked, or because it is worse on the owner's rows."""
        if self._rejecting is not None:
            return self._rejecting == iteration
        if self._reject_rise is None or self.evaluate is None or task.model is None:
            return False
        entry = next(entry for entry in self.iterations if entry["iteration"] == iteration)
        made = BlobHash(bytes.fromhex(entry["model"]))
        after, before = (self.evaluate(self._model(model))["loss"] for model in (made, task.model))
        return not after - before <= self._reject_rise  # a loss that is no number is rejected too

    def _send_rejection(self, task: TaskState, iteration: int) -> None:
        self.send(f"reject/{task.task_id.hex()}/{iteration}", lambda: reject_model(task.task_id, iteration))
        entry = next(entry for entry in self.iterations if entry["iteration"] == iteration)
        if not entry["rejected"]:
            entry["rejected"] = True
            _write_iterations(self.directory.path, self.iterations)
            self.say(f"Iteration {iteration}: its model is rejected; the former one stays.")

    def _send_model(self, task: TaskState, iteration: int) -> None:
        def make() -> Model:
            return post_model(task.task_id, iteration, self.board.upload(self._due_model(task).to_bytes()))

        self.send(f"model/{task.task_id.hex()}/{iteration}", make)

    def _due_model(self, task: TaskState) -> IntegerModel:
        """Return the model that opens the next iteration."""
        if task.model is None:
            first = self.directory.path / FIRST_MODEL
            if first.exists():
                return IntegerModel.load(first)
            return initial_model(self.task, self._setting(TRAINER))
        if not task.summed:
            return self._model(task.model)
        made = task.next_model or self._own_model(task)
        return self._model(made)

    def _own_model(self, task: TaskState) -> BlobHash:
        """Return the name of what our own rule made of the last sum; it was made and kept once."""
        number = Sitting.of(self.state, task.bundle).number
        entry = next(entry for entry in self.iterations if entry["iteration"] == number)
        return BlobHash(bytes.fromhex(entry["model"]))

    def _model(self, digest: BlobHash) -> IntegerModel:
        """Return a model of this task by its name: one we made, or one that is on the board."""
        for entry in reversed(self.iterations):
            path = self._model_path(entry["iteration"])
            if entry["model"] == digest.hex() and path.exists():
                return IntegerModel.from_bytes(path.read_bytes())
        task = self.state.tasks[self.task_id]
        if digest == task.next_model:
            return self._combine(Seat.of(self.state, self.task_id))
        return IntegerModel.from_bytes(self.board.attachments.read(digest))

    def _combine(self, seat: Seat) -> IntegerModel:
        """Open the sum and apply the task's rule, or ours (step 8′)."""
        made = next_model(self.board, seat, self.rule if seat.task.facts.own_rule else None)
        path = self._model_path(seat.number)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write_new_file(path, made.to_bytes())
        return made

    def _model_path(self, iteration: int) -> Path:
        """Where the model of an iteration is kept."""
        return self.directory.path / MODELS / model_name(self.task.name, iteration)

    # What happened

    def observe(self, block: Block) -> None:  # noqa: ARG002 - the state after it is what counts
        """Write down the outcome of an iteration, also of one that ended while we were away."""
        if self._announced is not None:
            self._note_outcome()

    def _note_outcome(self) -> None:
        seat = Seat.find(self.state, self.task_id)
        known = {entry["iteration"] for entry in self.iterations}
        if seat is not None and seat.position.progress.is_outcome and seat.number not in known:
            self._record(seat)

    def _record(self, seat: Seat) -> None:
        task, position = seat.task, seat.position
        summed = position.progress is Progress.SUMMED
        model = self._combine(seat) if summed else None
        entry: dict[str, Any] = {
            "iteration": seat.number,
            "outcome": position.progress.value,
            "count": position.count,
            "groups": list(position.counts or ()),
            "posts": len(seat.iteration.submissions),
            "releases": task.releases,
            "model": (model.digest() if model else task.model or b"").hex(),
            "metrics": self.evaluate(model) if model is not None and self.evaluate is not None else None,
            "reported": metrics_of_sum(self.board, seat) if summed else None,
            "shortened": summed and is_shortened(self.board, seat),
            "culprits": _culprits(position),
            "rejected": False,
        }
        self.iterations.append(entry)
        self._seen.add(seat.number)
        _write_iterations(self.directory.path, self.iterations)
        self._say_outcome(entry, position.progress)

    def _say_outcome(self, entry: dict[str, Any], progress: Progress) -> None:
        start = f"Iteration {entry['iteration']}: "
        if progress is Progress.SUMMED:
            quality = ", ".join(f"{name} {value:.4f}" for name, value in (entry["metrics"] or {}).items())
            counts, least = entry["groups"], self.task.privacy.min_clients
            if len(counts) > 1:
                told = ", ".join(map(str, counts))
                self.say(f"{start}updates in its groups: {told}; of fewer than {least} no sum is opened.")
            opened = sum(count for count in counts if count >= least)
            self.say(f"{start}a sum of {opened} updates made a new model. {quality}".rstrip())
            if entry["shortened"]:
                self.say(f"{start}the mean was longer than max_mean_norm allows and was shortened to it.")
            if entry["reported"]:
                told = ", ".join(f"{name} {value:.4f}" for name, value in entry["reported"].items())
                self.say(f"{start}clients report of the model that opened it: {told}.")
        elif progress in _STAYS:
            self.say(f"{start}{_STAYS[progress]}; the model stays.")
        for member in entry["culprits"]:
            self.say(f"{start}member {member} of the committee stated another sum than the agreed one.")

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows."""
        task = self.state.tasks.get(self.task_id)
        ledger = [] if task is None else task.ledger
        return {
            **super().status(),
            "owner": self.identity.subject.hex(),
            "task": self.task_id.hex(),
            "name": self.task.name,
            "registered_clients": len(self.state.clients),
            "bundle": None if task is None else task.bundle,
            "ended": task is not None and task.ended,
            "releases": 0 if task is None else task.releases,
            "epsilon": [
                {
                    "releases": entry.releases,
                    "zero_out": entry.zero_out / 1e6,
                    "replace": entry.replace / 1e6,
                }
                for entry in ledger
            ],
            "iterations": self.iterations,
        }


def announcement_in(outbox: Outbox) -> TaskAnnouncement | None:
    """Return what an owner announced, if it did and the board did not refuse it."""
    sent = outbox.find(TASK)
    if sent is None or (sent.answer is not None and sent.answer.refused not in ("", KNOWN.code)):
        return None
    assert isinstance(sent.posting.body, TaskAnnouncement)
    return sent.posting.body


def check_start(task: Task, own: Own) -> None:
    """Check that the task can start: at the usual model, or at one that is like it. Raises ``InvalidInput``.

    Without PyTorch, or a custom task's trainer, nobody knows the tensors, only how many parameters there are.
    """
    if own.first is None:
        initial_model(task, own.trainer)
        return
    layout = own.first.layout
    try:
        is_alike = layout == initial_model(task, own.trainer).layout
    except (TorchMissing, TrainerMissing):
        is_alike = layout.size == task.model.parameters
    if (
        not is_alike
        or own.first.scale_bits != task.model.scale_bits
        or own.first.companions != companions_of(task)
    ):
        raise InvalidInput("The first model has other tensors, scale or momentum than the task's models.")


def initial_model(task: Task, trainer: str = "") -> IntegerModel:
    """Make the first model of a task, a custom one by the owner's own trainer. Raises ``InvalidInput``."""
    return first_model(task, trainer_of(task, trainer).initial())


def read_iterations(path: Path) -> list[dict[str, Any]]:
    """Read the outcomes that were written down."""
    file = path / ITERATIONS
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [decode_state(line, dict[str, Any], str(file)) for line in lines]


def _write_iterations(path: Path, entries: list[dict[str, Any]]) -> None:
    replace_file(path / ITERATIONS, b"".join(encode_state(entry) + b"\n" for entry in entries))


def _ledger_name(task: TaskState) -> str:
    return f"ledger/{task.task_id.hex()}/{task.releases}"


def _culprits(position: Position) -> list[int]:
    """Return the members whose aggregate is not the agreed one."""
    if position.agreed is None:
        return []
    return sorted(member for member, stated in position.aggregates.items() if stated != position.agreed)
