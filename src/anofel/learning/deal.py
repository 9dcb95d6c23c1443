"""Deal the rows of a study, or of a file, out to clients that do not exist yet: a file for each of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anofel.disk.files import Secret, write_new_directory
from anofel.learning.splits import split_rows
from anofel.studies.load import FileRows, chosen_rows, file_of
from anofel.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Whose rows, how many, and how they are split."""

    task: Task
    clients: int
    file: Path | None = None
    """A user's own file; otherwise the study that the task names."""
    split: str = "iid"
    most: int | None = None
    """The most rows to deal out."""
    seed: int = 0

    def write(self, directory: Path) -> dict[str, int]:
        """Write all files into a new directory; say how many rows each holds.

        They are ``client-1`` and so on, and ``test`` with the rows that an owner measures by. Raises
        ``InvalidInput``, ``FileExists`` and ``StudyNotFetched``.
        """
        train, test = self._load()
        parts: dict[str, FileRows] = {
            f"client-{number}": part
            for number, part in enumerate(split_rows(train, self.clients, self.split, self.seed), start=1)
        }
        parts["test"] = test
        files, sizes = {}, {}
        for name, part in parts.items():
            ending, content = file_of(part)
            files[name + ending], sizes[name + ending] = Secret(content), len(part.labels)
        write_new_directory(directory, files, mode=0o700)
        return sizes

    def _load(self) -> tuple[FileRows, FileRows]:
        train, test = chosen_rows(self.task.study, self.task.schema, self.file, self.seed)
        if self.most is None:
            return train, test
        return _some(train, self.most, self.seed), _some(test, max(1, self.most // 4), self.seed)


def _some(rows: FileRows, most: int, seed: int) -> FileRows:
    return rows.take(np.random.default_rng(seed).permutation(len(rows.labels))[:most])
