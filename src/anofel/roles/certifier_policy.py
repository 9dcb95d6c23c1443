"""What a certifier demands of data before it signs; its own file ``policy.toml`` (``docs/certifier.md``).

Rules, numbered as in ``docs/certifier.md``:

7. The policy names the dataset type; its schema fits every row, and no column that the policy calls
   identifying is a feature or the label.
8. The number of rows lies within the policy's bounds.
9. No more rows than the policy allows equal an earlier one.
10. The policy's own check, a Python function, does not refuse.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from anofel.entry_points import fault, load_function
from anofel.errors import AnofelError, InvalidInput
from anofel.roles.certifier_log import CertificationRefused
from anofel.sections import Section
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.load import load_file
from anofel.studies.schema import Schema, TableSchema, read_schema

MAX_ROWS = 1 << 32

Check = Callable[[Dataset, str], None]
"""A certifier's own check: takes the rows and the subject, and raises ``AnofelError`` to refuse."""


@dataclass(frozen=True, kw_only=True)
class DatasetPolicy:
    """What is demanded of one dataset type."""

    dt: int
    schema: Schema
    min_rows: int
    max_rows: int
    max_duplicates: int
    identifying: tuple[str, ...]
    check: str

    def inspect(self, path: Path, subject: str) -> Dataset:
        """Read the data that a client shows and hold it against the policy.

        Raises ``CertificationRefused`` and, where a row breaks the schema, ``RowDoesNotFit``.
        """
        self._check_columns()
        dataset = load_file(path, self.schema)  # (7)
        if not self.min_rows <= len(dataset) <= self.max_rows:  # (8)
            raise CertificationRefused(
                "row-count",
                f"The data has {len(dataset)} rows; {self.min_rows} to {self.max_rows} are allowed.",
            )
        repeated = _duplicates(dataset)
        if repeated > self.max_duplicates:  # (9)
            raise CertificationRefused(
                "duplicate-rows",
                f"{repeated} rows of the data equal an earlier one; {self.max_duplicates} are allowed.",
            )
        if self.check:  # (10)
            _own_check(self.check)(dataset, subject)
        return dataset

    def _check_columns(self) -> None:
        if not isinstance(self.schema, TableSchema):
            return
        used = {column.name for column in self.schema.columns} | {self.schema.label}
        for name in sorted(used & set(self.identifying)):
            raise CertificationRefused(
                "identifying-column", f"The schema trains on column '{name}', which identifies people."
            )


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What is demanded of every dataset type that a certifier signs."""

    datasets: Mapping[int, DatasetPolicy]

    @classmethod
    def load(cls, path: Path) -> "Policy":
        """Read a policy file; paths of schemas in it are relative to it. Raises ``InvalidInput``."""
        root = Section(read_toml(path), path.name)
        datasets: dict[int, DatasetPolicy] = {}
        for section in root.tables("dataset"):
            made = _read_dataset(section, path.parent)
            if made.dt in datasets:
                raise section.fail("type", f"names the type {made.dt} twice")
            datasets[made.dt] = made
        root.finish()
        return cls(datasets=datasets)

    def of(self, dt: int) -> DatasetPolicy:
        """Return what is demanded of a dataset type. Raises ``CertificationRefused``."""
        if dt not in self.datasets:
            raise CertificationRefused("dataset-type", f"This certifier does not sign dataset type {dt}.")
        return self.datasets[dt]


def _read_dataset(section: Section, base: Path) -> DatasetPolicy:
    policy = DatasetPolicy(
        dt=section.integer("type", 0, 2**32 - 1),
        schema=load_schema(base / section.text("schema")),
        min_rows=section.integer("min_rows", 1, MAX_ROWS, 1),
        max_rows=section.integer("max_rows", 1, MAX_ROWS, MAX_ROWS),
        max_duplicates=section.integer("max_duplicates", 0, MAX_ROWS, 0),
        identifying=section.texts("identifying", ()),
        check=section.text("check", default=""),
    )
    section.finish()
    if policy.check:
        _own_check(policy.check)
    return policy


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file whose decimals stay decimals. Raises ``InvalidInput``."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"'{path}' cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"'{path}' is not TOML: {error}.") from None


def load_schema(path: Path) -> Schema:
    """Read the ``[schema]`` of a file, or that of the study a task file names. Raises ``InvalidInput``."""
    root = Section(read_toml(path), path.name)
    if "schema" not in root and "task" in root and "study" in (head := root.table("task")):
        return study_named(head.text("study")).schema()
    return read_schema(root.table("schema"))


def _duplicates(dataset: Dataset) -> int:
    """How many rows equal an earlier one, features and label."""
    flat = dataset.features.reshape(len(dataset), -1).astype(np.int64)
    rows = np.column_stack([flat, dataset.labels.astype(np.int64)])
    return len(rows) - len(np.unique(rows, axis=0))


def _own_check(name: str) -> Check:
    found = load_function(name, "The policy's check")

    def check(dataset: Dataset, subject: str) -> None:
        try:
            found(dataset, subject)
        except AnofelError as error:
            raise CertificationRefused("own-check", str(error)) from error
        except Exception as error:  # the certifier's own code: nothing is signed, and its fault is said
            raise CertificationRefused(
                "own-check", f"The policy's check '{name}' failed: {fault(error)}."
            ) from error

    return check
