"""Postings of model owners (steps 1.d and 8′)."""

import hashlib
from dataclasses import dataclass

from anofel.messages.blobs import Blob
from anofel.messages.signing import digest, on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(View):
    """How a sum becomes the next model."""

    kind: int
    """0 is ``integer-mean``, 1 means that the owner decides."""
    lr_num: int
    lr_den: int
    momentum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(View):
    """An owner announces a task."""

    document: bytes
    key_id: bytes
    length: int
    bound: int
    max_posts: int
    min_clients: int
    max_colluders: int
    max_releases: int
    types: tuple[int, ...] | None
    """The dataset types that count; None means all."""
    rule: Rule
    early_end: bool

    def task_id(self, genesis: bytes, owner: bytes) -> bytes:
        """The name of the task on a board: a hash over its owner and everything it announces."""
        announced = on_board(b"anofel/1/task", genesis, digest("the owner", owner), self.to_bytes())
        return hashlib.sha256(announced).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(View):
    """The model that opens an iteration."""

    task: bytes
    iteration: int
    model: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIteration(View):
    """An owner ends an iteration early."""

    task: bytes
    iteration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTask(View):
    """An owner ends its task."""

    task: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyLedger(View):
    """How much privacy a task has spent, in millionths of ε, for both relations."""

    task: bytes
    releases: int
    zero_out: int
    replace: int
