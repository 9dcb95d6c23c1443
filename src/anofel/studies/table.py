"""Read users' own tables: CSV, Parquet, NumPy.

Rules for CSV, in the same words in ``docs/studies.md``:

1. The delimiter is the one of comma, semicolon, tab and bar that the first line holds most often.
2. Where the delimiter is no comma and no number has a point, a comma in a number is its decimal comma, unless
   all such numbers could be thousands; then the file is refused.
3. A file without rows is refused.
4. A quotation mark that opens a cell closes it; one that is not closed is named with the line where its row
   begins.
"""

import csv
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput

_MISSING = frozenset({"", "na", "nan", "null", "none", "<na>", "nat"})
_SHEETS: Final = (".xlsx", ".xls", ".ods")
_DELIMITERS: Final = (",", ";", "\t", "|")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_POINT: Final = re.compile(r"[+-]?\d*\.\d+")
_NOT_CLOSED: Final = "a quotation mark is opened and not closed"
_SHOWN: Final = 20
_SHOWN_PER_COLUMN: Final = 3
_SHOWN_OF_NAME: Final = 40


class Misfit(NamedTuple):
    """One cell that breaks the schema, or one row that is not like the first line."""

    line: int
    column: str
    reason: str


class RowDoesNotFit(InvalidInput):
    """Rows break the schema; says line, column and reason of each, and not the same a hundred times."""

    code = "row-does-not-fit"

    def __init__(self, misfits: Sequence[Misfit]) -> None:
        shown, seen = [], Counter[str]()
        for misfit in misfits:
            seen[misfit.column] += 1
            if seen[misfit.column] <= _SHOWN_PER_COLUMN:
                shown.append(f"line {misfit.line}, column '{misfit.column}': {misfit.reason}")
        if len(shown) > _SHOWN:
            shown = [*shown[:_SHOWN], f"and {len(shown) - _SHOWN} more"]
        shown += [
            f"{more:,} more line{'s' * (more > 1)} of column '{name}'"
            for name, count in seen.items()
            if (more := count - _SHOWN_PER_COLUMN) > 0
        ][:_SHOWN]
        super().__init__(f"L{'; '.join(shown)[1:]}.")
        self.misfits = tuple(misfits)
        """All of them, in the order of columns and lines."""


class UnevenRows(RowDoesNotFit):
    """Rows of a file have more or fewer cells than its first line; ``others`` is the table without them."""

    def __init__(self, misfits: Sequence[Misfit], others: "Table | None") -> None:
        super().__init__(misfits)
        self.others = others


@dataclass(frozen=True, eq=False, repr=False)
class MemoryFile:
    """A file that is in memory only: data that is shown to us and must not reach the disk."""

    name: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return Path(self.name).suffix

    def __str__(self) -> str:
        return self.name


AnyFile = Path | MemoryFile


def opened(file: AnyFile) -> BinaryIO:
    """Open a file for reading bytes."""
    return io.BytesIO(file.data) if isinstance(file, MemoryFile) else file.open("rb")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text as they stand in a file, and the line where each row stands (or its number, from 1)."""

    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    decimal: str = "."
    """What stands before the fraction of a number."""

    def number(self, cell: str) -> float | None:
        """Read a cell as a finite number; None if it is none."""
        try:
            value = float(cell.replace(",", ".") if self.decimal == "," else cell)
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        return f"Table(<{len(self)} rows, redacted>)"

    def take(self, rows: NDArray[np.int64]) -> "Table":
        """Select rows, in the order given; they are numbered anew."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return Table(columns, range(1, len(rows) + 1), self.decimal)

    def to_csv(self) -> bytes:
        """Write it as CSV, with the names of the columns in the first line."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=";" if self.decimal == "," else ",")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue().encode()


def read_table(path: AnyFile) -> Table:
    """Read a table by its file ending: ``.csv``, ``.parquet`` or ``.npz`` (one array per column)."""
    if isinstance(path, Path) and not path.is_file():
        raise InvalidInput(f"There is no file '{path}'.")
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        hint = "; save the sheet as CSV" if path.suffix.lower() in _SHEETS else ""
        raise InvalidInput(f"'{path.name}' must end in {', '.join(readers)}{hint}.")
    return reader(path)


def _read_csv(path: AnyFile) -> Table:
    try:
        with io.TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as file:
            return parse_csv(file)
    except UnicodeDecodeError:
        line = _line_without_text(path)
        raise InvalidInput(f"'{path.name}' is not UTF-8 text (line {line}); save it as UTF-8.") from None


def _line_without_text(path: AnyFile) -> int:
    """Find the first line that is not UTF-8."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def parse_csv(lines: Iterable[str]) -> Table:
    """Parse CSV text whose first line names the columns. Raises ``InvalidInput`` and ``UnevenRows``."""
    text = iter(lines)
    first = next(text, "")
    if not first.strip():
        raise InvalidInput(f"The {'first line' if first else 'file'} is empty; it must name the columns.")
    delimiter = max(_DELIMITERS, key=first.count)  # (1); the first of equals
    rows = _numbered(csv.reader(chain([first], text), delimiter=delimiter, strict=True))
    header = [name.strip() for name in next(rows)[1]]
    if twice := [f"'{name}'" for name, times in Counter(header).items() if times > 1]:
        raise InvalidInput(f"The first line must name every column once; it repeats {', '.join(twice)}.")
    body, line_numbers, misfits = [], [], []
    for line, row in rows:
        if row and len(row) != len(header):
            column = header[min(len(row), len(header) - 1)]
            reason = f"the row has {len(row)} cells where the header has {len(header)}"
            misfits.append(Misfit(line, column, reason))
        elif row:
            body.append(row)
            line_numbers.append(line)
    if misfits and not body:
        raise UnevenRows(misfits, None)
    if not body:  # (3)
        raise InvalidInput("The file names columns and has no rows.")
    columns = dict(zip(header, zip(*body, strict=True), strict=True))
    table = Table(columns, line_numbers, "." if delimiter == "," else _decimal_of(columns))
    if misfits:
        raise UnevenRows(misfits, table)
    return table


def _numbered(rows: Any) -> Iterator[tuple[int, list[str]]]:
    """Give every row of a reader with the line where it ends. Raises ``InvalidInput`` (4)."""
    begins = 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            reason = _NOT_CLOSED if rows.line_num > begins or "end of data" in str(error) else str(error)
            raise InvalidInput(f"Line {begins} is not CSV: {reason}.") from None
        if row is None:
            return
        yield rows.line_num, row
        begins = rows.line_num + 1


def _decimal_of(columns: Mapping[str, Sequence[str]]) -> str:
    """Say what stands before the fraction of the numbers in a file whose delimiter is no comma (2)."""
    cells = [cell.strip() for texts in columns.values() for cell in texts]
    with_comma = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell)]
    if not with_comma or any(_POINT.fullmatch(cell) for cell in cells):
        return "."
    if all(_THOUSANDS.fullmatch(cell) for cell in with_comma):
        raise InvalidInput(
            f"The comma in '{with_comma[0]}' may stand before a fraction or between thousands; "
            "write numbers with a point and without commas between thousands."
        )
    return ","


def _read_parquet(path: AnyFile) -> Table:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput("Parquet files need the extra: pip install 'anofel[parquet]'.") from None
    try:
        with opened(path) as file:
            table = parquet.ParquetFile(file).read()
    except (OSError, ValueError):
        raise InvalidInput(f"'{path.name}' is not a Parquet file, or a damaged one.") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise InvalidInput(f"'{path.name}' must name every column once.")
    columns = {
        name: [as_text(cell) for cell in table.column(name).to_pylist()] for name in table.column_names
    }
    return Table(columns, range(1, table.num_rows + 1))


def _read_npz(path: AnyFile) -> Table:
    arrays = read_arrays(path)
    lengths = {array.shape for array in arrays.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        raise InvalidInput(f"'{path.name}' must hold one-dimensional arrays of one length, one per column.")
    columns = {name: [as_text(cell) for cell in array.tolist()] for name, array in arrays.items()}
    return Table(columns, range(1, next(iter(lengths))[0] + 1))


def read_arrays(path: AnyFile) -> dict[str, NDArray[Any]]:
    """Read the arrays of a NumPy archive, none of which may be a pickle. Raises ``InvalidInput``."""
    try:
        with opened(path) as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, TypeError, AttributeError, BadZipFile, zlib.error):
        raise InvalidInput(f"'{path.name}' is not a NumPy archive (.npz) without pickles.") from None


def one_column(name: str) -> str:
    """Say that a file whose first line is one name has a delimiter that is not known."""
    shown = name if len(name) <= _SHOWN_OF_NAME else f"{name[:_SHOWN_OF_NAME]}…"
    return f"The file has one column, '{shown}'; cells end in a comma, semicolon, tab or bar."


def as_text(cell: Any) -> str:
    """Write a cell as a text file would have it; nothing, if it is missing."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in _MISSING
