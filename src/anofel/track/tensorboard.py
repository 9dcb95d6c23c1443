"""Writes iterations as files of TensorBoard: one run for each task, and nothing twice.

Rules, in the same words in ``docs/tracking.md``:

1. Every task is a run of its own, a directory with its name; every iteration is a step.
2. A value is written once, whenever it is known: going on with a directory adds what is new.
3. A directory belongs to one task of one board, or of one simulation; another one is refused.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from anofel.disk.files import read_small_file, replace_file
from anofel.disk.state_files import DamagedState, decode_state
from anofel.errors import InvalidInput
from anofel.models.files import plain_name
from anofel.track.results import TrackedIteration

STATE: Final = "anofel-track.json"
CARD: Final = "model card"


class TrackerMissing(InvalidInput):
    """What writes a tracker's files is not installed."""

    code = "tracker-missing"


@dataclass
class _Written:
    """What a run's directory holds."""

    source: str
    steps: dict[str, int] = field(default_factory=dict)
    """The last step of every value."""


class TensorBoardFiles:
    """The directory that ``tensorboard --logdir`` shows."""

    def __init__(self, directory: Path) -> None:
        """Raises ``TrackerMissing``."""
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise TrackerMissing(
                "TensorBoard's files need the extra: pip install 'anofel[tensorboard]'."
            ) from None
        self._make_writer = SummaryWriter
        self._directory = directory
        self._writers: dict[str, Any] = {}
        self._written: dict[str, _Written] = {}

    def write(self, iterations: Iterable[TrackedIteration]) -> int:
        """Write what is not there yet; returns how many values those were. Raises ``InvalidInput``."""
        new, changed = 0, set()
        for one in iterations:
            added = self._write(one)
            new += added
            if added:
                changed.add(one.task)
        for task in changed:
            self._writers[task].flush()
            written = self._written[task]
            state = json.dumps({"source": written.source, "steps": written.steps}, indent=2)
            replace_file(self._place(task) / STATE, state.encode())
        return new

    def close(self) -> None:
        """End the files."""
        for writer in self._writers.values():
            writer.close()

    def _place(self, task: str) -> Path:
        return self._directory / plain_name(task)

    def _write(self, one: TrackedIteration) -> int:
        written = self._state(one)
        due = [name for name in one.values if written.steps.get(name, -1) < one.iteration]
        has_card = bool(one.card) and written.steps.get(CARD, -1) < one.iteration
        if not due and not has_card:
            return 0
        writer = self._writers.get(one.task)
        if writer is None:
            # Its names hold seconds, and a file of the same second would be written over.
            suffix = f".{secrets.token_hex(8)}"
            writer = self._make_writer(str(self._place(one.task)), filename_suffix=suffix)
            self._writers[one.task] = writer
        for name in due:
            writer.add_scalar(name, one.values[name], one.iteration)
            written.steps[name] = one.iteration
        if has_card:
            writer.add_text(CARD, one.card, one.iteration)
            written.steps[CARD] = one.iteration
        return len(due) + has_card

    def _state(self, one: TrackedIteration) -> _Written:
        """Read what was written before; refuses a directory of another board or simulation (3)."""
        known = self._written.get(one.task)
        if known is None:
            path = self._place(one.task) / STATE
            known = _Written(one.source)
            if path.is_file():
                try:
                    known = decode_state(read_small_file(path), _Written, str(path))
                except DamagedState:
                    raise InvalidInput(f"{path} is damaged; give a new directory.") from None
            self._written[one.task] = known
        if known.source != one.source:
            raise InvalidInput(
                f"{self._place(one.task)} follows another task of this name; give a new directory."
            )
        return known
