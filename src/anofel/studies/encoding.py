"""Turn a table into a dataset by the schema (rules 1 to 3 of :mod:`anofel.tasks.schema`).

All problems of a file are named at once: of every column the first lines, and how many more there are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anofel.disk.sections import nearest
from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset
from anofel.studies.table import (
    AnyFile,
    Misfit,
    RowDoesNotFit,
    Table,
    UnevenRows,
    is_missing,
    one_column,
    read_table,
)
from anofel.tasks.schema import (
    TARGET_STEPS,
    CategoryColumn,
    NumberColumn,
    NumberTarget,
    SurvivalTarget,
    TableSchema,
)


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table and the dataset that it encodes to, row by row."""

    table: Table
    dataset: Dataset

    @classmethod
    def of(cls, table: Table, schema: TableSchema) -> "TableRows":
        """Encode a table. Raises ``RowDoesNotFit`` and ``ColumnsDoNotFit``."""
        return cls(table, encode_table(table, schema))

    @classmethod
    def read(cls, path: AnyFile, schema: TableSchema, *, labelled: bool = True) -> "TableRows":
        """Read a file and encode it. Raises ``RowDoesNotFit`` and ``ColumnsDoNotFit``."""
        try:
            table = read_table(path)
        except UnevenRows as uneven:
            if uneven.others is not None:
                with _adding(uneven):
                    _encode(uneven.others, schema, labelled=labelled)
            raise
        return cls(table, _encode(table, schema, labelled=labelled))

    @property
    def labels(self) -> NDArray[np.int32]:
        """The class of each row."""
        return self.dataset.labels

    def take(self, rows: NDArray[np.int64]) -> "TableRows":
        """Select rows, in the order given."""
        return TableRows(self.table.take(rows), self.dataset.take(rows))


class ColumnsDoNotFit(InvalidInput):
    """The columns of a file are not those of the schema; every one is named."""

    code = "columns-do-not-fit"


@contextmanager
def _adding(uneven: UnevenRows) -> Iterator[None]:
    """Say what is wrong with the other rows as well as with those that are too long or too short."""
    try:
        yield
    except ColumnsDoNotFit as error:
        raise ColumnsDoNotFit(f"{error} {uneven}") from None
    except RowDoesNotFit as error:
        raise RowDoesNotFit([*uneven.misfits, *error.misfits]) from None


def encode_table(table: Table, schema: TableSchema) -> Dataset:
    """Encode features and labels. Raises ``RowDoesNotFit`` and ``ColumnsDoNotFit``."""
    return _encode(table, schema, labelled=True)


def encode_unlabelled(table: Table, schema: TableSchema) -> Dataset:
    """Encode rows that are to be predicted: no label is needed, and one that is there is not looked at.

    Every label of the dataset is the first one. Raises ``RowDoesNotFit`` and ``ColumnsDoNotFit``.
    """
    return _encode(table, schema, labelled=False)


def _encode(table: Table, schema: TableSchema, *, labelled: bool) -> Dataset:
    if not len(table):
        raise InvalidInput("There are no rows.")
    if len(table.columns) == 1 and not table.columns.keys() & _known(schema):
        raise ColumnsDoNotFit(one_column(next(iter(table.columns))))
    problems = _column_problems(table, schema, labelled=labelled)
    misfits: list[Misfit] = []
    blocks = [
        _encode_column(_Cells(table, column.name, misfits), column, schema)
        for column in schema.columns
        if column.name in table.columns
    ]
    labels = np.zeros(len(table), dtype=np.int32)
    if labelled and {schema.label, schema.event or schema.label} <= table.columns.keys():
        labels = _encode_answer(_Cells(table, schema.label, misfits), schema)
    if problems:
        text = "; ".join(problems)
        rows = f" {RowDoesNotFit(misfits)}" if misfits else ""
        raise ColumnsDoNotFit(f"{text[0].upper()}{text[1:]}.{rows}")
    if misfits:
        raise RowDoesNotFit(misfits)
    features = np.column_stack(blocks).astype(np.int32).reshape(len(table), len(schema.feature_names))
    return Dataset(features, labels, schema)


def _column_problems(table: Table, schema: TableSchema, *, labelled: bool) -> list[str]:
    """Name what breaks this: every column of a file is a feature, the label, identifying or unused (1).

    The last two go here (2).
    """
    answers = [schema.label, *([schema.event] if schema.event else [])]
    wanted = [column.name for column in schema.columns] + answers * labelled
    known = _known(schema)
    strange = [name for name in table.columns if name not in known]
    problems = [
        f"the schema needs column '{name}', which the file does not have{nearest(name, strange)}"
        for name in wanted
        if name not in table.columns
    ]
    how = "name it as a feature, identifying or unused" if labelled else "leave it out of the file"
    problems += [f"the schema does not know column '{name}'{nearest(name, known)}; {how}" for name in strange]
    return problems


def _known(schema: TableSchema) -> set[str]:
    """Every column that a file may have."""
    answers = {schema.label, schema.event or schema.label}
    return answers | {column.name for column in schema.columns} | {*schema.identifying, *schema.unused}


class _Cells(NamedTuple):
    """One column of a table, and where its problems are noted."""

    table: Table
    name: str
    misfits: list[Misfit]

    @property
    def texts(self) -> Sequence[str]:
        return self.table.columns[self.name]

    def blame(self, index: int, reason: str) -> None:
        self.misfits.append(Misfit(self.table.lines[index], self.name, reason))


def _encode_column(
    cells: _Cells, column: NumberColumn | CategoryColumn, schema: TableSchema
) -> NDArray[np.int64]:
    if isinstance(column, CategoryColumn):
        return _encode_category(cells, column, schema)
    return _encode_number(cells, column, schema)


def _encode_number(cells: _Cells, column: NumberColumn, schema: TableSchema) -> NDArray[np.int64]:
    low, high = float(column.low), float(column.high)
    values = np.zeros(len(cells.texts))
    missing = np.zeros(len(cells.texts), dtype=np.int64)
    for index, cell in enumerate(cells.texts):
        if is_missing(cell):
            if column.missing is None:
                cells.blame(index, "the value is missing")
            else:
                values[index], missing[index] = float(column.missing), 1
            continue
        value = cells.table.number(cell)
        if value is None:
            comma = " (a decimal comma? write a point)" if "," in cell else ""
            cells.blame(index, f"'{_cut(cell)}' is not a number{comma}")
            continue
        if not low <= value <= high:
            if column.outside == "refuse":
                cells.blame(index, f"{cell.strip()} {column.unit} lies outside {column.low} … {column.high}")
            value = min(max(value, low), high)
        values[index] = value
    scaled = (values - float(column.offset)) / float(column.scale)
    numbers = np.rint(np.ldexp(scaled, schema.fraction_bits)).astype(np.int64)
    return (
        np.column_stack([numbers, missing << schema.fraction_bits]) if column.indicator else numbers[:, None]
    )


def _encode_category(cells: _Cells, column: CategoryColumn, schema: TableSchema) -> NDArray[np.int64]:
    index_of = {value: index for index, value in enumerate(column.values)}
    block = np.zeros((len(cells.texts), len(column.values)), dtype=np.int64)
    for index, cell in enumerate(cells.texts):
        value = cell.strip()
        if value not in index_of and is_missing(cell):
            if column.missing is None:
                cells.blame(index, "the value is missing")
                continue
            value = column.missing
        position = index_of.get(value)
        if position is None:
            cells.blame(index, f"'{_cut(value)}' is not among the values{nearest(value, column.values)}")
            continue
        block[index, position] = 1 << schema.fraction_bits
    return block[:, 1:]


def _encode_answer(cells: _Cells, schema: TableSchema) -> NDArray[np.int32]:
    """Encode what is predicted: a class, a step of a number's range, or an interval and its event."""
    target = schema.target
    if isinstance(target, NumberTarget):
        return _encode_target(cells, target)
    if isinstance(target, SurvivalTarget):
        return _encode_survival(cells, target)
    return _encode_classes(cells, schema.label_values, "the label")


def _encode_target(cells: _Cells, target: NumberTarget) -> NDArray[np.int32]:
    low, high = float(target.low), float(target.high)
    values = np.full(len(cells.texts), low)
    for index, value in _numbers(cells, "the label is missing"):
        if not low <= value <= high and target.outside == "refuse":
            cells.blame(index, f"{value:g} {target.unit} lies outside {target.low} … {target.high}")
        values[index] = min(max(value, low), high)
    return np.rint((values - low) / (high - low) * TARGET_STEPS).astype(np.int32)


def _encode_survival(cells: _Cells, target: SurvivalTarget) -> NDArray[np.int32]:
    """Give 2·interval + event; rows followed beyond the last cut did not have the event before it."""
    events = _encode_classes(cells._replace(name=target.event), target.event_values, "the event")
    labels = np.zeros(len(cells.texts), dtype=np.int32)
    for index, value in _numbers(cells, "the time is missing"):
        if value < 0:
            cells.blame(index, f"{value:g} {target.unit} is before the beginning")
            continue
        interval = int(np.searchsorted(target.cuts, value))
        labels[index] = 2 * interval + (int(events[index]) if interval < len(target.cuts) else 0)
    return labels


def _numbers(cells: _Cells, missing: str) -> Iterator[tuple[int, float]]:
    """Read the numbers of a column; what is none is blamed and left out."""
    for index, cell in enumerate(cells.texts):
        value = None if is_missing(cell) else cells.table.number(cell)
        if is_missing(cell):
            cells.blame(index, missing)
        elif value is None:
            cells.blame(index, f"'{_cut(cell)}' is not a number")
        else:
            yield index, value


def _encode_classes(cells: _Cells, values: tuple[str, ...], what: str) -> NDArray[np.int32]:
    index_of = {value: index for index, value in enumerate(values)}
    labels = np.zeros(len(cells.texts), dtype=np.int32)
    for index, cell in enumerate(cells.texts):
        position = index_of.get(cell.strip())
        if position is None and is_missing(cell):
            cells.blame(index, f"{what} is missing")
            continue
        if position is None:
            near = nearest(cell.strip(), values)
            cells.blame(index, f"'{_cut(cell.strip())}' is not a value of {what}{near}")
            continue
        labels[index] = position
    return labels


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 40 else f"{text[:40]}…"
