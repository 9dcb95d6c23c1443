"""What is guessed of a file's columns: one test for each rule, and what must not be guessed."""

import random
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.drafts import columns
from anofel.drafts.columns import guess_columns
from anofel.errors import InvalidInput
from anofel.studies.table import RowDoesNotFit, Table, parse_csv

ROWS = 60
PAGE = Path(__file__).parents[2] / "docs" / "train-on-your-data.md"


def table(**cells: list[str]) -> Table:
    label = {"ill": ["no", "yes"] * (ROWS // 2)}
    return Table(cells | label, range(2, ROWS + 2))


def guessed(name: str, cells: list[str]) -> columns.Guess:
    filler = [str(number % 37) for number in range(ROWS)]
    found = guess_columns(table(**{name: cells, "filler": filler}), "ill")
    return next(guess for guess in found.columns if guess.name == name)


def spread(*values: str) -> list[str]:
    return [values[index % len(values)] for index in range(ROWS)]


@pytest.mark.parametrize("name", ["patient_id", "PatientID", "id", "Name", "e-mail", "zip", "subject"])
def test_a_name_that_says_who_is_identifying(name: str) -> None:
    assert guessed(name, spread("1", "2", "3.5", "4", "5", "6", "7")).role == "identifying"


@pytest.mark.parametrize("name", ["width", "hidden", "valid", "ipf"])
def test_a_name_that_only_holds_such_a_word_is_not(name: str) -> None:
    assert guessed(name, spread("1.5", "2.5", "3.5")).role == "number"


def test_texts_that_all_differ_and_running_numbers_are_identifying() -> None:
    assert guessed("code", [f"x{number}" for number in range(ROWS)]).role == "identifying"
    numbers = [str(number) for number in range(1000, 1000 + ROWS)]
    random.Random(1).shuffle(numbers)
    assert guessed("code", numbers).role == "identifying"
    assert guessed("cells", [str(number * 7) for number in range(ROWS)]).role == "number"


@pytest.mark.parametrize("cell", ["2024-03-{:02d}", "{:02d}.03.2024", "{:02d}/03/24", "2024-03-{:02d} 10:15"])
def test_dates_are_named_and_left_out(cell: str) -> None:
    guess = guessed("admitted", [cell.format(1 + number % 28) for number in range(ROWS)])
    assert (guess.role, guess.why[:5]) == ("unused", "dates")


def test_free_text_and_empty_columns_are_named_and_left_out() -> None:
    assert guessed("note", [f"seen by dr {number % 40}" for number in range(ROWS)]).why.startswith(
        "free text"
    )
    assert guessed("site", ["A"] * ROWS).role == "unused"
    assert guessed("empty", [""] * ROWS).role == "unused"


def test_a_known_quantity_has_a_public_range_if_the_file_fits_it() -> None:
    guess = guessed("age", [str(20 + number % 50) for number in range(ROWS)])
    assert guess.is_public
    assert guess.column is not None
    assert (guess.column.low, guess.column.high) == (0, 120)  # type: ignore[union-attr]
    months = guessed("age", [str(20 + 10 * number) for number in range(ROWS)])
    assert not months.is_public


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=8, unique=True, max_size=60)
)
def test_a_range_is_outside_of_all_values_and_shows_none_of_them(values: list[float]) -> None:
    low, high, _unit, is_public = columns._range("quantity", min(values), max(values))
    assert not is_public
    assert low <= Decimal(repr(min(values)))
    assert high >= Decimal(repr(max(values)))
    assert low not in [Decimal(repr(value)) for value in values if value]
    assert high not in [Decimal(repr(value)) for value in values if value]


def test_missing_values_get_an_imputed_one_and_a_feature() -> None:
    guess = guessed("pressure", ["", *[f"{number}.5" for number in range(ROWS - 1)]])
    assert guess.column is not None
    assert guess.column.indicator  # type: ignore[union-attr]
    kind = guessed("ward", spread("", "a", "b"))
    assert kind.column is not None
    assert (kind.column.values, kind.column.missing) == (("a", "b", "unknown"), "unknown")  # type: ignore[union-attr]


def test_a_few_cells_that_are_no_numbers_are_named_with_their_lines() -> None:
    numbers = [f"{number}.5" for number in range(ROWS)]
    guess = guessed("crp", [*numbers[:-6], "<0.5", "abc", "1,5", "9" * 400, "inf", "1e999"])
    assert guess.role == "number"
    assert guess.why.endswith("; no number in lines 56, 57, 58 and more: mend them")
    assert guess.column is not None
    assert guess.column.high <= 100  # type: ignore[union-attr]
    one = guessed("crp", [*numbers[:-2], "", "lost"])
    assert one.why.endswith("; some are missing; no number in line 61: mend or empty them")
    assert guessed("crp", [*numbers[:-7], *["x", "y", "z"] * 2, "x"]).role == "unused", "more than one in ten"


def test_a_column_without_a_name_is_identifying() -> None:
    guess = guessed("", spread("1.5", "2.5", "3.5"))
    assert (guess.role, guess.why.split(",")[0]) == ("identifying", "it has no name")


def test_an_unknown_delimiter_is_named() -> None:
    with pytest.raises(InvalidInput, match="The file has one column, 'age#ill'; cells end in a comma"):
        guess_columns(parse_csv(["age#ill\n", "1#no\n"]), "ill")


def test_rare_values_are_named() -> None:
    assert guessed("ward", [*["rare"] * 2, *["a", "b"] * (ROWS // 2 - 1)]).rare == ("rare",)


def test_few_whole_numbers_are_a_category_in_their_order() -> None:
    guess = guessed("stage", spread("10", "2", "1"))
    assert guess.column is not None
    assert guess.column.values == ("1", "2", "10")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("il", "no column 'il' .did you mean 'ill'"),
        ("name", "60 different values"),
        ("ward", "1 different values"),
    ],
)
def test_a_label_that_cannot_be_one_is_refused(label: str, reason: str) -> None:
    cells = table(name=[f"n{number}" for number in range(ROWS)], ward=["a"] * ROWS)
    with pytest.raises(InvalidInput, match=reason):
        guess_columns(cells, label)


def test_rows_without_a_label_are_all_named() -> None:
    text = "age,ill\n1,no\n2,\n3,yes\n4,NA\n"
    with pytest.raises(RowDoesNotFit) as caught:
        guess_columns(parse_csv(text.splitlines(keepends=True)), "ill")
    assert [misfit.line for misfit in caught.value.misfits] == [3, 5]


def test_a_file_without_features_is_refused() -> None:
    with pytest.raises(InvalidInput, match="No column"):
        guess_columns(table(name=spread("a", "b")), "ill")


def test_the_rules_are_in_the_same_words_in_the_page() -> None:
    assert columns.__doc__ is not None
    rules = re.findall(r"^\d\. (.+?)(?=^\d\. |\Z)", columns.__doc__, re.M | re.S)
    page = " ".join(PAGE.read_text().split())
    assert len(rules) == 5
    for number, rule in enumerate(rules, start=1):
        assert f"{number}. {' '.join(rule.split())}" in page
