"""Checkpoints of bench/learning.py: a part that was stopped, however, goes on from its last iteration."""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anofel.errors import InvalidInput
from anofel.models.parameters import Parameters


@dataclass(frozen=True)
class Saved:
    """What is done of a part: the score of each iteration, and the model after the last one."""

    scores: list[float]
    model: bytes
    seconds: float = 0.0
    """Of CPU, for all of it."""
    machines: tuple[str, ...] = ()
    """On which it was done, each described in JSON."""


class Checkpoint:
    """One file for one part, replaced as a whole after every iteration."""

    def __init__(self, directory: Path, part: str, identity: dict[str, Any]) -> None:
        """`identity` is all that the part depends on: task, split, rows, seed."""
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._path = directory / f"{identity['experiment']}, {part}, seed {identity['seed']}.npz"

    def load(self) -> Saved | None:
        """Read what is done. Raises ``InvalidInput`` if it was done with anything else."""
        if not self._path.exists():
            return None
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                identity, scores, model = str(held["identity"]), held["scores"], held["model"]
                seconds, machines = float(held["seconds"]), tuple(map(str, held["machines"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise InvalidInput(f"{self._path} is not a checkpoint.") from error
        if identity != self._identity:
            raise InvalidInput(
                f"{self._path} was made with another task, split or seed; name another directory."
            )
        return Saved([float(score) for score in scores], model.tobytes(), seconds, machines)

    def save(self, saved: Saved) -> None:
        """Replace the file; a loss of power leaves the former one or this one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".part")
        with partial.open("wb") as file:
            np.savez(
                file,
                identity=np.array(self._identity),
                scores=np.array(saved.scores, dtype=np.float64),
                model=np.frombuffer(saved.model, dtype=np.uint8),
                seconds=np.array(saved.seconds),
                machines=np.array(saved.machines, dtype=np.str_),
            )
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._path)
        _sync_directory(self._path.parent)


def _sync_directory(directory: Path) -> None:
    """Make the new name of a file last through a loss of power."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def packed(parameters: Parameters) -> bytes:
    """Write floating-point parameters without losing a bit."""
    file = io.BytesIO()
    np.savez(file, **parameters)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(data: bytes) -> Parameters:
    """Read what ``packed`` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
