"""What a certifier demands of data before it signs; its own file ``policy.toml`` (``docs/certifier.md``).

Rules, numbered as in ``docs/certifier.md``:

7. The policy names the dataset type; its schema fits every row, and no column that the policy calls
   identifying is a feature or the label.
8. The number of rows lies within the policy's bounds.
9. No more rows than the policy allows equal an earlier one.
10. The policy's own check, a Python function, does not refuse.
12. The file, and what it unpacks to, is not larger than the policy allows.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, Final

import numpy as np
from msgspec import Meta

from anofel.disk.sections import InvalidDocument, Texts, called, read_toml
from anofel.errors import AnofelError, InvalidInput
from anofel.roles.certifier.log import CertificationRefused
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.load import load_file
from anofel.studies.table import AnyFile, opened
from anofel.tasks.entry_points import fault, load_function
from anofel.tasks.schema import Schema, TableSchema
from anofel.tasks.task import DatasetTypeNumber

MAX_ROWS: Final = 1 << 32
MAX_BYTES: Final = 1 << 30
DEFAULT_BYTES: Final = 1 << 26
"""What a policy that says nothing allows: 64 MiB."""

MAX_CERTIFICATES: Final = 1 << 16

_BATCH_ROWS = 1 << 14
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""The types in which Parquet stores cells, and their least bytes; a text has at least its offset."""

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
    max_bytes: int
    max_certificates: int
    identifying: tuple[str, ...]
    check: str

    def check_length(self, length: int) -> None:
        """Refuse a file by its length, before it is read (12). Raises ``CertificationRefused``."""
        if length > self.max_bytes:
            raise CertificationRefused(
                "file-too-large", f"The file has {length} bytes; the policy allows {self.max_bytes}."
            )

    def inspect(self, file: AnyFile, subject: str) -> Dataset:
        """Read the data that a client shows and hold it against the policy.

        Raises ``CertificationRefused`` and, where a row breaks the schema, ``RowDoesNotFit``.
        """
        self._check_columns()
        self._check_size(file)  # (12)
        dataset = load_file(file, self.schema)  # (7)
        self._check_rows(len(dataset))
        repeated = _duplicates(dataset)
        if repeated > self.max_duplicates:  # (9)
            raise CertificationRefused(
                "duplicate-rows",
                f"{repeated} rows of the data equal an earlier one; {self.max_duplicates} are allowed.",
            )
        if self.check:  # (10)
            _own_check(self.check)(dataset, subject)
        return dataset

    def _check_size(self, file: AnyFile) -> None:
        try:
            with opened(file) as content:
                self.check_length(content.seek(0, io.SEEK_END))
                if file.suffix.lower() == ".npz":
                    self._check_npz(zipfile.ZipFile(content))
                elif file.suffix.lower() == ".parquet":
                    self._check_parquet(content)
        except OSError as error:
            raise InvalidInput(f"'{file}' cannot be read: {error.strerror or error}.") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"'{file}' cannot be read by its ending.") from None

    def _check_npz(self, archive: zipfile.ZipFile) -> None:
        """Add up what the archive says, which no reader exceeds, and what its arrays say of themselves."""
        self.check_length(sum(entry.file_size for entry in archive.infolist()))
        claimed = 0
        for entry in archive.infolist():
            with archive.open(entry) as member:
                claimed += _claimed_bytes(member)
            self.check_length(claimed)

    def _check_parquet(self, content: BinaryIO) -> None:
        """Decode the file piece by piece, and stop when it is too much.

        What it says of its size counts encoded pages, where one long text can stand for many cells. So texts
        stay numbers of a dictionary here, and their lengths are added.
        """
        try:
            from pyarrow import parquet
        except ImportError:
            return  # the reader says so
        content.seek(0)
        said = parquet.ParquetFile(content).metadata
        self._check_rows(said.num_rows)
        self.check_length(sum(said.row_group(group).total_byte_size for group in range(said.num_row_groups)))
        columns = [said.schema.column(number) for number in range(said.num_columns)]
        if any(column.max_repetition_level or column.path != column.name for column in columns):
            raise InvalidInput(
                "A column of the data holds lists or records; a table holds numbers and texts."
            )
        self.check_length(said.num_rows * sum(_least_width(column) for column in columns))
        texts = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
        content.seek(0)
        decoded = 0
        for batch in parquet.ParquetFile(content, read_dictionary=texts).iter_batches(_BATCH_ROWS):
            decoded += sum(_decoded_bytes(column) for column in batch.columns)
            self.check_length(decoded)

    def _check_rows(self, rows: int) -> None:
        if not self.min_rows <= rows <= self.max_rows:  # (8)
            raise CertificationRefused(
                "row-count", f"The data has {rows} rows; {self.min_rows} to {self.max_rows} are allowed."
            )

    def _check_columns(self) -> None:
        if not isinstance(self.schema, TableSchema):
            return
        used = {column.name for column in self.schema.columns} | {self.schema.label, self.schema.event}
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
        datasets: dict[int, DatasetPolicy] = {}
        for number, entry in enumerate(read_toml(path, _PolicyFile).datasets, start=1):
            if entry.dt in datasets:
                raise InvalidDocument(str(path), [f"[dataset {number}] type: {entry.dt} is named twice"])
            datasets[entry.dt] = entry.loaded(path.parent)
        return cls(datasets=datasets)

    def of(self, dt: int) -> DatasetPolicy:
        """Return what is demanded of a dataset type. Raises ``CertificationRefused``."""
        if dt not in self.datasets:
            raise CertificationRefused("dataset-type", f"This certifier does not sign dataset type {dt}.")
        return self.datasets[dt]


@dataclass(frozen=True, kw_only=True)
class _DatasetEntry:
    dt: DatasetTypeNumber = field(metadata=called("type"))
    schema: str
    min_rows: Annotated[int, Meta(ge=1, le=MAX_ROWS)] = 1
    max_rows: Annotated[int, Meta(ge=1, le=MAX_ROWS)] = MAX_ROWS
    max_duplicates: Annotated[int, Meta(ge=0, le=MAX_ROWS)] = 0
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)] = DEFAULT_BYTES
    max_certificates: Annotated[int, Meta(ge=1, le=MAX_CERTIFICATES)] = 1
    identifying: Texts = ()
    check: str = ""

    def loaded(self, base: Path) -> DatasetPolicy:
        """Load the schema and look for the check. Raises ``InvalidInput``."""
        if self.check:
            _own_check(self.check)
        return DatasetPolicy(**{**vars(self), "schema": load_schema(base / self.schema)})


@dataclass(frozen=True, kw_only=True)
class _PolicyFile:
    datasets: tuple[_DatasetEntry, ...] = field(metadata=called("dataset"))


@dataclass(frozen=True, kw_only=True)
class _StudyName:
    study: str


@dataclass(frozen=True, kw_only=True)
class _SchemaFile:
    """A schema, or the name of a study that has one; a task file says more, which is not read here."""

    schema: Schema | None = None
    task: _StudyName | None = None

    @staticmethod
    def absent(values: dict[str, Any]) -> dict[str, Any]:
        """Leave out what is about the task; a file with a schema needs no study."""
        if "schema" in values:
            return {"schema": values["schema"]}
        head = values.get("task")
        return {"task": {"study": head["study"]}} if isinstance(head, Mapping) and "study" in head else {}

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what is missing."""
        if self.schema is None and self.task is None:
            yield "schema", "is needed, or a [task] that names a study"


def load_schema(path: Path) -> Schema:
    """Read the ``[schema]`` of a file, or that of the study a task file names. Raises ``InvalidInput``."""
    file = read_toml(path, _SchemaFile)
    return file.schema or study_named(file.task.study if file.task else "").schema()


def _claimed_bytes(member: IO[bytes]) -> int:
    """Return how many bytes an array claims, before room is made for them; a cell counts at least one."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return math.prod(shape) * max(1, dtype.itemsize)


def _least_width(column: Any) -> int:
    """How many bytes a cell of a Parquet column takes at least once it is decoded."""
    return (
        int(column.length)
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        else _WIDTHS[column.physical_type]
    )


def _decoded_bytes(column: Any) -> int:
    """How many bytes a decoded column takes when each cell has its own text."""
    from pyarrow import compute, types

    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = compute.binary_length(column.dictionary).take(column.indices)
    return _WIDTHS["BYTE_ARRAY"] * len(column) + int(compute.sum(lengths).as_py() or 0)


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
