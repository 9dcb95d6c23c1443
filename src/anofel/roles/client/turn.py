"""When a client posts, and what it makes before (steps 4 and 5).

A post's time is drawn uniformly between open + post_from and close − margin, whatever the model; a
client that comes too late skips the iteration. After the charge it always posts, at its drawn time (D-20).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from anofel.board.seat import Sitting
from anofel.errors import AnofelError
from anofel.ids import TaskId
from anofel.learning.build import OwnTrainerName
from anofel.learning.certified import CertifiedDataset
from anofel.light_client.base import BoardClient
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase2_training.step3_models import fetch_models
from anofel.phase2_training.step4_training_process import TrainingProcess
from anofel.phase2_training.step5_submission import (
    PreparedSubmission,
    SealedSubmission,
    prepare_submission,
    seal_submission,
)
from anofel.primitives import Commitment, Salt
from anofel.privacy.ledger import Floors, Ledger, Occasion
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate
from anofel.proofs.statements import SubmissionProver
from anofel.roles.client.task import CheckedTask, TaskRefused

MARGIN: Final = 2
"""Blocks between the last drawn time and the close, for the upload and the block that takes the post."""


SEAL_AHEAD: Final = 1
"""Blocks before the drawn time when what training made is taken and encrypted, whatever it is."""


class NoWindow(AnofelError):
    """The bundle leaves no time to post."""

    code = "no-window"


def window(sitting: Sitting) -> range:
    """Return the heights after which a post may be sent: from open + post_from to close − margin."""
    current = sitting.iteration
    return range(current.opened_at + sitting.size.post_from, current.close_by - MARGIN + 1)


def draw_height(heights: range) -> int:
    """Draw one of the heights uniformly, from the system's randomness. Raises ``NoWindow``."""
    if not heights:
        raise NoWindow("The bundle leaves no time between its first post and its close.")
    return heights.start + secrets.randbelow(len(heights))


def is_member(sitting: Sitting, credential: Credential, salt: Salt) -> bool:
    """Whether the client is under the root that was fixed when the iteration opened (D-07)."""
    tree = sitting.state.client_trees.get(sitting.iteration.epoch)
    if tree is None:
        return False
    try:
        position = tree.position(Commitment(credential.d, credential.msk, credential.dt, salt))
    except ValueError:
        return False
    return position < sitting.iteration.num_clients


@dataclass(frozen=True)
class Underway:
    """A post between its charge and its time; it lives in memory only."""

    turn: tuple[int, int]
    """Bundle and iteration."""
    prepared: PreparedSubmission
    plan: Plan | None
    """None for a cover post."""
    training: TrainingProcess | None
    """None if nothing is trained: for a cover post, or after a crash."""

    def seal(self, position: int) -> tuple[SealedSubmission, str]:
        """Encrypt what there is now, and say why it is zero if it is; never refuses (D-20)."""
        if self.plan is None:
            return seal_submission(self.prepared, None), ""
        if self.training is None:
            made = ProtectedUpdate.zero(self.plan, "The client was stopped while it trained.")
        else:
            made = self.training.take()
        spec = self.plan.spec  # of an iteration that others filled up, the last place counts
        place = min(position, spec.max_posts) if spec.adaptive else None
        update = made.with_noise(self.plan, place)
        return seal_submission(self.prepared, update), made.failure


class PostMaker:
    """Makes a client's posts: proof and masks first, then the model trains in a process of its own."""

    def __init__(
        self,
        *,
        credential: Credential,
        load_rows: Callable[[], CertifiedDataset],
        prover: SubmissionProver,
        ledger: Ledger,
        floors: Floors,
        trainer: OwnTrainerName,
    ) -> None:
        """``trainer`` is the client's own one, for custom tasks; empty for all others."""
        self._credential, self._load_rows, self.prover = credential, load_rows, prover
        self._certified: CertifiedDataset | None = None
        self._ledger, self._floors, self._trainer = ledger, floors, trainer
        self._training: dict[TaskId, TrainingProcess] = {}
        self._weighed = b""
        """The task whose ε was computed while there was time."""

    def get_ready(self, checked: CheckedTask) -> None:
        """Load what the first turn needs: the accounting of ε, and the trainer in its process.

        Raises ``FloorNotMet``, ``TrainingUnavailable``.
        """
        if checked.posted.task_id != self._weighed:  # once: ε of a sampled task takes seconds
            self._weighed = checked.posted.task_id
            self._floors.check_task(checked.plan, self._floors.min_anonymity_set)
        self._trained(checked).get_ready()

    def cover(self, board: BoardClient, sitting: Sitting, salt: Salt) -> Underway:
        """Begin a cover post, which trains nothing."""
        return Underway(sitting.turn, self._prepare(board, sitting, None, salt), None, None)

    def begin(
        self, board: BoardClient, sitting: Sitting, checked: CheckedTask, salt: Salt, charge: str
    ) -> Underway:
        """Charge the iteration in the name of a turn, and begin its post.

        What can be refused is refused before the charge, and by nothing that depends on data. Where the
        charge is there already, the client was stopped while it trained: nothing is trained a second time,
        since what stopped it may have been the data. Raises ``FloorNotMet``, ``BudgetExceeded``,
        ``AlreadyCharged``, ``TaskRefused``, ``TrainingUnavailable``.
        """
        if checked.plan.spec.adaptive and not board.counts_posts:
            raise TaskRefused(
                "The noise of the task depends on how many have posted, which headers do not tell: write "
                'follow = "all" in role.toml to take part.'
            )
        current, task_id = sitting.iteration, checked.posted.task_id
        target = board.state.tasks[task_id].position
        prepared, training = self._prepare(board, sitting, target, salt), None
        if not self._ledger.holds(charge):
            posted = fetch_models(board, sitting)[task_id]
            self._floors.check_task(checked.plan, current.num_clients)
            trained = self._trained(checked)
            check_model(posted, checked, trained.get_ready())
            self._ledger.charge(
                charge,
                occasion_of(sitting, task_id),
                plan=checked.plan,
                floors=self._floors,
                anonymity_set=current.num_clients,
            )
            training = trained
            training.begin(posted)
        return Underway(sitting.turn, prepared, checked.plan, training)

    def close(self) -> None:
        """End every training."""
        for training in self._training.values():
            training.close()
        self._training.clear()

    def _trained(self, checked: CheckedTask) -> TrainingProcess:
        name = checked.posted.task_id
        if name not in self._training:
            self.close()
            self._training[name] = TrainingProcess(checked.task, self._trainer, self.load_rows().dataset)
        return self._training[name]

    def load_rows(self) -> CertifiedDataset:
        """Load and check the rows, once: between two requests the time of it would show their number."""
        if self._certified is None:
            self._certified = self._load_rows()
        return self._certified

    def _prepare(
        self, board: BoardClient, sitting: Sitting, target: int | None, salt: Salt
    ) -> PreparedSubmission:
        return prepare_submission(
            board, sitting, self._credential, salt=salt, target=target, prover=self.prover
        )


def occasion_of(sitting: Sitting, task_id: TaskId) -> Occasion:
    """Name what a post in the current iteration would be charged for."""
    bundle, iteration = sitting.turn
    return Occasion(board=sitting.state.genesis_hash, task=task_id, bundle=bundle, iteration=iteration)


def check_model(data: bytes, checked: CheckedTask, layout: Layout) -> None:
    """Refuse a model of another shape, scale or tensors than the trainer's. Raises ``TaskRefused``."""
    model = IntegerModel.from_bytes(data)
    task = checked.task
    if model.scale_bits != task.model.scale_bits or model.layout.size != task.model.parameters:
        raise TaskRefused(f"The model of task '{task.name}' has another size or scale than its document.")
    if model.layout != layout:
        raise TaskRefused(f"The model of task '{task.name}' has other tensors than its trainer.")
