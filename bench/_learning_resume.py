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


class Checkpoint:
    """One file for one part, replaced as a whole after every iteration."""

    def __init__(self, directory: Path, part: str, identity: dict[str, Any]) -> None:
        """`identity` is all that the part depends on: task, rows, seed, versions, machine."""
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._path = directory / f"{identity['experiment']}, {part}.npz"

    def load(self) -> Saved | None:
        """Read what is done. Raises ``InvalidInput`` if it was done with anything else."""
        if not self._path.exists():
            return None
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                identity, scores, model = str(held["identity"]), held["scores"], held["model"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise InvalidInput(f"{self._path} is not a checkpoint.") from error
        if identity != self._identity:
            raise InvalidInput(
                f"{self._path} was made with another task, seed, version or machine; name another directory."
            )
        return Saved([float(score) for score in scores], model.tobytes())

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
            )
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._path)


def packed(parameters: Parameters) -> bytes:
    """Write floating-point parameters without losing a bit."""
    file = io.BytesIO()
    np.savez(file, **parameters)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(data: bytes) -> Parameters:
    """Read what ``packed`` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
