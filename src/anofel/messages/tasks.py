"""Postings of model owners (steps 1.d and 8′)."""

import hashlib
from dataclasses import dataclass

from anofel.ids import GenesisHash, KeyId, Subject, TaskId
from anofel.messages.blobs import Blob
from anofel.messages.signing import digest, on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnnouncement(View):
    """An owner announces a task: its document, and what cannot be derived from it."""

    document: bytes
    """The task file in its canonical encoding; every number of the task follows from it."""
    key_id: KeyId
    early_end: bool

    def task_id(self, genesis: GenesisHash, owner: Subject) -> TaskId:
        """The name of the task on a board: a hash over its owner and everything it announces."""
        announced = on_board(b"anofel/1/task", genesis, digest("the owner", owner), self.to_bytes())
        return TaskId(hashlib.sha256(announced).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(View):
    """The model that opens an iteration."""

    task: TaskId
    iteration: int
    model: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectModel(View):
    """An owner rejects the model that an iteration's sum makes; the former one opens the next iteration."""

    task: TaskId
    iteration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIteration(View):
    """An owner ends an iteration early."""

    task: TaskId
    iteration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTask(View):
    """An owner ends its task."""

    task: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyLedger(View):
    """How much privacy a task has spent, in millionths of ε, for both relations."""

    task: TaskId
    releases: int
    zero_out: int
    replace: int
