"""When a client posts, and what it makes before (steps 4 and 5).

A post's time is drawn uniformly between open + post_from and close − margin, whatever the model
(DESIGN §6); a client that is late skips the iteration.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from anofel.board.light_client import LightClient
from anofel.board.state import Bundle, Iteration, State
from anofel.errors import AnofelError
from anofel.learning.build import trainer_of
from anofel.learning.certified import CertifiedDataset
from anofel.learning.integer_model import IntegerModel
from anofel.learning.parameters import Layout
from anofel.learning.trainer import Trainer
from anofel.phase1_setup.certification import Credential
from anofel.phase2_training.local_training import LocalTraining
from anofel.phase2_training.submit_update import (
    PreparedSubmission,
    SealedSubmission,
    prepare_submission,
    seal_submission,
)
from anofel.primitives import Commitment, Salt
from anofel.privacy.ledger import Floors, Ledger
from anofel.proofs import SubmissionProver
from anofel.roles.client_task import CheckedTask, TaskRefused

MARGIN: Final = 2
"""Blocks between the last drawn time and the close, for the upload and the block that takes the post."""


class NoWindow(AnofelError):
    """The bundle leaves no time to post."""

    code = "no-window"


def window(state: State, bundle: Bundle) -> range:
    """Return the heights after which a post may be sent: from open + post_from to close − margin."""
    current = bundle.current
    assert current is not None
    return range(current.opened_at + state.class_of(bundle).post_from, current.close_by - MARGIN + 1)


def draw_height(heights: range) -> int:
    """Draw one of the heights uniformly, from the system's randomness. Raises ``NoWindow``."""
    if not heights:
        raise NoWindow("The bundle leaves no time between its first post and its close.")
    return heights.start + secrets.randbelow(len(heights))


def is_member(state: State, current: Iteration, credential: Credential, salt: Salt) -> bool:
    """Whether the client is under the root that was fixed when the iteration opened (D-07)."""
    tree = state.client_trees.get(current.epoch)
    if tree is None:
        return False
    try:
        position = tree.position(Commitment(credential.d, credential.msk, credential.dt, salt))
    except ValueError:
        return False
    return position < current.num_clients


@dataclass(frozen=True)
class Workshop:
    """What a client needs to make submissions."""

    credential: Credential
    certified: CertifiedDataset
    prover: SubmissionProver
    ledger: Ledger
    floors: Floors
    trainer: str
    """The client's own trainer, for custom tasks; empty for all others."""

    def get_ready(self, checked: CheckedTask) -> None:
        """Load the accounting of ε before it is needed; it takes a second. Raises what the floors refuse."""
        self.floors.check_task(checked.plan, self.floors.min_anonymity_set)

    def make(
        self, board: LightClient, bundle: Bundle, checked: CheckedTask | None, salt: Salt
    ) -> SealedSubmission:
        """Make the submission of the open iteration: proof and masks while the model trains.

        Without a task it is a cover post. Every model of the bundle is downloaded either way. What the
        floors or the ledger refuse is raised before anything is drawn.
        """
        models = fetch_models(board, bundle)
        current = bundle.current
        assert current is not None
        if checked is None:
            return seal_submission(self._prepare(board, bundle, None, salt), None)
        self.floors.check_task(checked.plan, current.num_clients)
        trainer = trainer_of(checked.task, self.trainer)
        model = read_model(models[checked.posted.task_id], checked, trainer)
        training = LocalTraining(task=checked.task, trainer=trainer, ledger=self.ledger, floors=self.floors)
        with ThreadPoolExecutor(1) as pool:
            target = board.state.tasks[checked.posted.task_id].position
            prepared = pool.submit(self._prepare, board, bundle, target, salt)
            update = training.update(
                self.certified,
                model,
                iteration=current.number,
                anonymity_set=current.num_clients,
                position=len(current.submissions) + 1 if checked.task.privacy.adaptive else None,
            )
            return seal_submission(prepared.result(), update)

    def _prepare(
        self, board: LightClient, bundle: Bundle, target: int | None, salt: Salt
    ) -> PreparedSubmission:
        return prepare_submission(
            board.state,
            bundle,
            self.credential,
            salt=salt,
            target=target,
            prover=self.prover,
            key_of=board.chain.verifier.shares.key_of,
        )


def fetch_models(board: LightClient, bundle: Bundle) -> dict[bytes, bytes]:
    """Download every model of the bundle, so that nobody sees which one is needed (D-06)."""
    models = ((name, board.state.tasks[name].model) for name in bundle.tasks)
    return {name: board.attachments.read(model) for name, model in models if model is not None}


def read_model(data: bytes, checked: CheckedTask, trainer: Trainer) -> IntegerModel:
    """Read a task's model; refuses one of another shape, scale or tensors than its trainer's.

    Raises ``TaskRefused``.
    """
    model = IntegerModel.from_bytes(data)
    task = checked.task
    if model.scale_bits != task.model.scale_bits or model.layout.size != task.model.parameters:
        raise TaskRefused(f"The model of task '{task.name}' has another size or scale than its document.")
    if model.layout != Layout.of(trainer.initial()):
        raise TaskRefused(f"The model of task '{task.name}' has other tensors than its trainer.")
    return model
