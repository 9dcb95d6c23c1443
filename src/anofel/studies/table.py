"""Read users' own tables (CSV, Parquet, NumPy) and turn them into a dataset by the schema."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset
from anofel.studies.schema import CategoryColumn, NumberColumn, TableSchema

_MISSING = frozenset({"", "na", "nan", "null", "none"})


class RowDoesNotFit(InvalidInput):
    """A row breaks the schema; says line, column and reason."""

    code = "row-does-not-fit"

    def __init__(self, line: int, column: str, reason: str) -> None:
        super().__init__(f"Line {line}, column '{column}': {reason}.")
        self.line = line
        self.column = column
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text as they stand in a file, and the line where each row stands (or its number, from 1)."""

    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        return f"Table(<{len(self)} rows, redacted>)"

    def take(self, rows: NDArray[np.int64]) -> "Table":
        """Select rows, in the order given; they are numbered anew."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return Table(columns, range(1, len(rows) + 1))

    def to_csv(self) -> bytes:
        """Write it as CSV, with the names of the columns in the first line."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue().encode()


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table and the dataset that it encodes to, row by row."""

    table: Table
    dataset: Dataset

    @classmethod
    def of(cls, table: Table, schema: TableSchema) -> "TableRows":
        """Encode a table. Raises ``RowDoesNotFit``."""
        return cls(table, encode_table(table, schema))

    @property
    def labels(self) -> NDArray[np.int32]:
        """The class of each row."""
        return self.dataset.labels

    def take(self, rows: NDArray[np.int64]) -> "TableRows":
        """Select rows, in the order given."""
        return TableRows(self.table.take(rows), self.dataset.take(rows))


def read_table(path: Path) -> Table:
    """Read a table by its file ending: ``.csv``, ``.parquet`` or ``.npz`` (one array per column)."""
    if not path.is_file():
        raise InvalidInput(f"There is no file '{path}'.")
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(f"'{path.name}' must end in {', '.join(readers)}.")
    return reader(path)


def _read_csv(path: Path) -> Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return parse_csv(file)
    except UnicodeDecodeError:
        raise InvalidInput(f"'{path.name}' is not UTF-8 text.") from None


def parse_csv(lines: Iterable[str]) -> Table:
    """Parse CSV text whose first line names the columns."""
    rows = csv.reader(lines)
    header = [name.strip() for name in next(rows, [])]
    if not header or len(set(header)) != len(header):
        raise InvalidInput("The first line must name every column once.")
    body, line_numbers = [], []
    for row in rows:
        if len(row) != len(header):
            raise RowDoesNotFit(
                rows.line_num,
                header[min(len(row), len(header) - 1)],
                f"the row has {len(row)} cells where the header has {len(header)}",
            )
        body.append(row)
        line_numbers.append(rows.line_num)
    cells = list(zip(*body, strict=True)) or [()] * len(header)
    return Table(dict(zip(header, cells, strict=True)), line_numbers)


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput("Parquet files need the extra: pip install 'anofel[parquet]'.") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"'{path.name}' is not a Parquet file: {error}.") from None
    columns = {
        name: [_as_text(cell) for cell in table.column(name).to_pylist()] for name in table.column_names
    }
    return Table(columns, range(1, table.num_rows + 1))


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"'{path.name}' is not a NumPy archive without pickles: {error}.") from None
    lengths = {array.shape for array in arrays.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        raise InvalidInput(f"'{path.name}' must hold one-dimensional arrays of one length, one per column.")
    columns = {name: [_as_text(cell) for cell in array.tolist()] for name, array in arrays.items()}
    return Table(columns, range(1, next(iter(lengths))[0] + 1))


def _as_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def encode_table(table: Table, schema: TableSchema) -> Dataset:
    """Apply the schema to a table (rules 1 to 3 of :mod:`anofel.studies.schema`)."""
    columns = _remove_identifying(table, schema)
    blocks = []
    for column in schema.columns:
        cells = columns[column.name]
        if isinstance(column, CategoryColumn):
            blocks.append(_encode_category(cells, column, schema, table.lines))
        else:
            blocks.append(_encode_number(cells, column, schema, table.lines))
    features = np.column_stack(blocks).astype(np.int32).reshape(len(table), len(schema.feature_names))
    return Dataset(features, _encode_label(columns[schema.label], schema, table.lines), schema)


def _remove_identifying(table: Table, schema: TableSchema) -> dict[str, Sequence[str]]:
    wanted = {column.name for column in schema.columns} | {schema.label}
    for name in sorted(wanted - table.columns.keys()):
        raise InvalidInput(f"The schema needs column '{name}', which the file does not have.")
    for name in sorted(table.columns.keys() - wanted - set(schema.identifying) - set(schema.unused)):
        raise InvalidInput(
            f"The schema does not know column '{name}'; name it as a feature, identifying or unused."
        )
    return {name: cells for name, cells in table.columns.items() if name in wanted}


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _encode_number(
    cells: Sequence[str], column: NumberColumn, schema: TableSchema, lines: Sequence[int]
) -> NDArray[np.int64]:
    low, high = float(column.low), float(column.high)
    values = np.empty(len(cells))
    missing = np.zeros(len(cells), dtype=np.int64)
    for index, cell in enumerate(cells):
        if _is_missing(cell):
            if column.missing is None:
                raise RowDoesNotFit(lines[index], column.name, "the value is missing")
            values[index], missing[index] = float(column.missing), 1
            continue
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise RowDoesNotFit(lines[index], column.name, f"'{cell.strip()}' is not a number")
        if not low <= value <= high:
            if column.outside == "refuse":
                raise RowDoesNotFit(
                    lines[index],
                    column.name,
                    f"{cell.strip()} {column.unit} lies outside {column.low} … {column.high}",
                )
            value = min(max(value, low), high)
        values[index] = value
    scaled = (values - float(column.offset)) / float(column.scale)
    numbers = np.rint(np.ldexp(scaled, schema.fraction_bits)).astype(np.int64)
    return (
        np.column_stack([numbers, missing << schema.fraction_bits]) if column.indicator else numbers[:, None]
    )


def _encode_category(
    cells: Sequence[str], column: CategoryColumn, schema: TableSchema, lines: Sequence[int]
) -> NDArray[np.int64]:
    index_of = {value: index for index, value in enumerate(column.values)}
    block = np.zeros((len(cells), len(column.values)), dtype=np.int64)
    for index, cell in enumerate(cells):
        value = cell.strip()
        if value not in index_of and _is_missing(cell):
            if column.missing is None:
                raise RowDoesNotFit(lines[index], column.name, "the value is missing")
            value = column.missing
        if value not in index_of:
            raise RowDoesNotFit(lines[index], column.name, f"'{value}' is not among the values")
        block[index, index_of[value]] = 1 << schema.fraction_bits
    return block[:, 1:]


def _encode_label(cells: Sequence[str], schema: TableSchema, lines: Sequence[int]) -> NDArray[np.int32]:
    index_of = {value: index for index, value in enumerate(schema.label_values)}
    labels = np.empty(len(cells), dtype=np.int32)
    for index, cell in enumerate(cells):
        position = index_of.get(cell.strip())
        if position is None:
            raise RowDoesNotFit(lines[index], schema.label, f"'{cell.strip()}' is not a value of the label")
        labels[index] = position
    return labels
