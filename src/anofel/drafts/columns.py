"""Guess what the columns of a file are.

Rules (the same words in ``docs/train-on-your-data.md``):

1. A column whose name says who somebody is, or whose cells are all different texts or a running number, is
   proposed as identifying.
2. Dates, free text, and columns with one value or none are named and left out.
3. A range is a known public one of a quantity of that name, if the file fits it, or else the file's own
   rounded outwards. What comes from the file is marked: confirm: public constant.
4. The label has 2 to 20 values, or is a number with more of them, and no cell without one.
5. A column of numbers but for one cell in ten at most is a number; the lines of the other cells are named.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from anofel.disk.sections import nearest
from anofel.errors import InvalidInput
from anofel.studies.table import Misfit, RowDoesNotFit, Table, is_missing, one_column
from anofel.tasks.schema import CategoryColumn, NumberColumn, NumberTarget

MAX_CATEGORIES: Final = 20
_FEW_NUMBERS: Final = 6
"""Whole numbers with so few values are taken for names of kinds, such as a stage."""
_MIN_ROWS: Final = 20
"""With fewer rows, all cells may differ by chance."""
_RARE: Final = 5
"""A value of fewer rows may point at somebody."""
_ODD: Final = 10
"""One cell in so many may be no number in a column of numbers."""
_NAMED: Final = 3
"""So many lines are named."""
UNKNOWN: Final = "unknown"

_WHO: Final = re.compile(
    r"(^|[^a-z])(id|ids|identifier|name|surname|firstname|lastname|mrn|ssn|nhs|email|e-mail|mail|phone|mobile|fax|"
    r"address|street|zip|zipcode|postcode|postal|patient|patientid|subject|insurance|passport|initials|ip)($|[^a-z])"
)
_DATES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?",
        r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})( \d{1,2}:\d{2}(:\d{2})?)?",
        r"\d{4}/\d{1,2}/\d{1,2}",
    )
)
_PUBLIC: Final = {
    "age": (0, 120, "years"),
    "bmi": (10, 80, "kg/m2"),
    "height": (30, 250, "cm"),
    "weight": (0, 300, "kg"),
    "heart_rate": (0, 300, "beats per minute"),
    "hr": (0, 300, "beats per minute"),
    "pulse": (0, 300, "beats per minute"),
    "temp": (25, 45, "degrees Celsius"),
    "temperature": (25, 45, "degrees Celsius"),
    "sbp": (0, 300, "mmHg"),
    "dbp": (0, 200, "mmHg"),
    "blood_pressure": (0, 300, "mmHg"),
    "resp": (0, 100, "breaths per minute"),
    "sodium": (100, 200, "mmol/L"),
    "ph": (6, 8, "pH"),
    "glucose": (0, 1000, "mg/dL"),
    "albumin": (0, 10, "g/dL"),
    "creatinine": (0, 30, "mg/dL"),
}
"""Ranges that hold for people, from no file."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What a column may be."""

    name: str
    role: str
    """``number``, ``category``, ``label``, ``identifying`` or ``unused``."""
    why: str
    column: NumberColumn | CategoryColumn | None = None
    is_public: bool = False
    """Whether the range comes from public knowledge, not from the file."""
    rare: tuple[str, ...] = ()
    """Values of so few rows that a published list of them may point at somebody."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """What the columns of a file may be, and how many rows it has."""

    columns: tuple[Guess, ...]
    label: str
    label_values: tuple[str, ...]
    rows: int
    target: NumberTarget | None = None
    """The range of a label that is a number; it has no values then."""

    def of(self, *roles: str) -> list[Guess]:
        """Select the columns of some roles."""
        return [guess for guess in self.columns if guess.role in roles]


def guess_columns(table: Table, label: str) -> Guesses:
    """Guess what every column is. Raises ``InvalidInput`` for a label that cannot be one (4)."""
    target = _number_target(table, label)
    values = () if target is not None else _label_values(table, label)
    predicted = "a number" if target is not None else ", ".join(values)
    columns = tuple(
        Guess(name=name, role="label", why=f"what is predicted: {predicted}")
        if name == label
        else _guess(table, name)
        for name in table.columns
    )
    guesses = Guesses(columns=columns, label=label, label_values=values, rows=len(table), target=target)
    if not guesses.of("number", "category"):
        raise InvalidInput(
            "No column of the file can be a feature; see what a schema needs in docs/studies.md."
        )
    return guesses


def _number_target(table: Table, label: str) -> NumberTarget | None:
    """Take a label with more different numbers than a model has classes for a number that is predicted."""
    cells = table.columns.get(label, ())
    numbers = [table.number(cell) for cell in cells]
    found = [number for number in numbers if number is not None]
    if len(found) < len(cells) or len(set(found)) <= MAX_CATEGORIES:
        return None
    low, high, unit, _ = _range(label, min(found), max(found))
    middle = (low + high) / 2
    scale = (high - low) / 4
    return NumberTarget(
        kind="number", unit=unit, low=low, high=high, outside="clip", offset=middle, scale=scale
    )


def _label_values(table: Table, label: str) -> tuple[str, ...]:
    if label not in table.columns and len(table.columns) == 1:
        raise InvalidInput(one_column(next(iter(table.columns))))
    if label not in table.columns:
        raise InvalidInput(
            f"The file has no column '{label}'{nearest(label, table.columns)}; "
            f"it has {', '.join(table.columns)}."
        )
    cells = table.columns[label]
    misfits = [
        Misfit(table.lines[index], label, "the label is missing; remove the row or fill it in")
        for index, cell in enumerate(cells)
        if is_missing(cell)
    ]
    if misfits:
        raise RowDoesNotFit(misfits)
    values = _ordered({cell.strip() for cell in cells})
    if not 2 <= len(values) <= MAX_CATEGORIES:
        raise InvalidInput(
            f"The label '{label}' has {len(values):,} different values; a model predicts one of "
            f"2 to {MAX_CATEGORIES} classes, so divide its range into classes first."
        )
    return values


def _guess(table: Table, name: str) -> Guess:
    cells = [cell.strip() for cell in table.columns[name] if not is_missing(cell)]
    has_missing = len(cells) < len(table)
    counts = Counter(cells)
    if len(counts) < 2:
        return Guess(name=name, role="unused", why="one value or none: nothing to learn from")  # (2)
    if not name:
        return Guess(name=name, role="identifying", why="it has no name, as numbers of rows often have none")
    if _says_who(name):
        return Guess(name=name, role="identifying", why="its name says who somebody is")  # (1)
    if all(any(pattern.fullmatch(cell) for pattern in _DATES) for cell in counts):
        return Guess(
            name=name, role="unused", why="dates: make a number of them first, such as an age or days"
        )
    numbers = {cell: number for cell in counts if (number := table.number(cell)) is not None}
    odd = sum(counts[cell] for cell in counts.keys() - numbers.keys())
    if not odd:
        return _guess_number(name, cells, counts, list(numbers.values()), has_missing=has_missing)
    if odd * _ODD <= len(cells) and len(numbers) > _FEW_NUMBERS:  # (5)
        guess = _guess_number(name, cells, counts, list(numbers.values()), has_missing=has_missing)
        mend = "mend or empty them" if has_missing else "mend them"
        return replace(guess, why=f"{guess.why}; {_odd_cells(table, name, odd)}: {mend}")
    if len(counts) == len(cells) >= _MIN_ROWS:
        return Guess(name=name, role="identifying", why="every row has a text of its own")
    if len(counts) > MAX_CATEGORIES or len(counts) * 3 > len(cells):
        return Guess(name=name, role="unused", why="free text, or a code of many values")
    return _category(name, counts, has_missing=has_missing)


def _odd_cells(table: Table, name: str, number: int) -> str:
    lines = [
        str(line)
        for line, cell in zip(table.lines, table.columns[name], strict=True)
        if not is_missing(cell) and table.number(cell) is None
    ]
    where = ", ".join(lines[:_NAMED]) + (" and more" if number > _NAMED else "")
    return f"no number in line{'s' * (number > 1)} {where}"


def _says_who(name: str) -> bool:
    """Whether a name such as ``patient_id`` or ``PatientID`` says who somebody is."""
    return _WHO.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) is not None


def _guess_number(
    name: str, cells: Sequence[str], counts: Counter[str], numbers: list[float], *, has_missing: bool
) -> Guess:
    whole = all(number.is_integer() for number in numbers)
    if whole and len(counts) == len(cells) >= _MIN_ROWS and max(numbers) - min(numbers) == len(counts) - 1:
        return Guess(name=name, role="identifying", why="a running number: every row has its own")  # (1)
    if len(counts) == 2 or (whole and len(counts) <= _FEW_NUMBERS):
        return _category(name, counts, has_missing=has_missing)
    low, high, unit, is_public = _range(name, min(numbers), max(numbers))
    middle = (low + high) / 2
    column = NumberColumn(
        kind="number",
        name=name,
        unit=unit,
        low=low,
        high=high,
        outside="clip",
        missing=middle if has_missing else None,
        indicator=has_missing,
        offset=middle,
        scale=(high - low) / 4,
    )
    origin = "a public range" if is_public else "the file's range, rounded outwards"
    missing = "; some are missing" if has_missing else ""
    return Guess(
        name=name,
        role="number",
        why=f"{_plain(low)} … {_plain(high)}, {origin}{missing}",
        column=column,
        is_public=is_public,
    )


def _category(name: str, counts: Counter[str], *, has_missing: bool) -> Guess:
    values = _ordered(counts)
    rare = tuple(value for value in values if counts[value] < _RARE)
    if has_missing:
        values = (*values, UNKNOWN) if UNKNOWN not in values else values
    column = CategoryColumn(
        kind="category", name=name, values=values, missing=UNKNOWN if has_missing else None
    )
    missing = f"; missing ones become '{UNKNOWN}'" if has_missing else ""
    why = f"{len(values)} values{missing}"
    return Guess(name=name, role="category", why=why, column=column, rare=rare)


def _ordered(values: set[str] | Counter[str]) -> tuple[str, ...]:
    """Sort values, numbers by their size."""

    def key(value: str) -> tuple[bool, float, str]:
        try:
            return False, float(value), value
        except ValueError:
            return True, 0.0, value

    return tuple(sorted(values, key=key))


def _range(name: str, low: float, high: float) -> tuple[Decimal, Decimal, str, bool]:
    """Give a range, its unit, and whether it is a known public one (3)."""
    known = _PUBLIC.get(re.sub(r"[^a-z]+", "_", name.lower()).strip("_"))
    if known is not None and known[0] <= low and high <= known[1]:
        return Decimal(known[0]), Decimal(known[1]), known[2], True
    step = _step(Decimal(repr(high)) - Decimal(repr(low)))
    lowest = _rounded(Decimal(repr(low)), step, ROUND_FLOOR)
    highest = _rounded(Decimal(repr(high)), step, ROUND_CEILING)
    if Decimal(0) < lowest <= highest / 2:
        lowest = Decimal(0)
    return lowest, highest, "?", False


def _step(width: Decimal) -> Decimal:
    """Give the coarsest of 1, 2 and 5 times a power of ten that is at most a quarter of the width."""
    power = Decimal(10) ** (width / 4).adjusted()
    return max(factor * power for factor in (1, 2, 5) if factor * power <= width / 4)


def _rounded(value: Decimal, step: Decimal, how: str) -> Decimal:
    """Round outwards, and one step farther where the value is a bound itself."""
    steps = (value / step).to_integral_value(how)
    if steps * step == value and value != 0:
        steps += 1 if how == ROUND_CEILING else -1
    return steps * step


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")
