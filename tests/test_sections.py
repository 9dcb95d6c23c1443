"""The one reader for what people write."""

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from anofel.disk.sections import (
    MAX_PROBLEMS,
    InvalidDocument,
    Texts,
    between,
    called,
    nearest,
    parse_json,
    parse_toml,
    read_table,
    read_toml,
    read_value,
)
from anofel.errors import InvalidInput
from anofel.tasks.task import Task, read_task
from tests.patients import DOCUMENT


@dataclass(frozen=True, kw_only=True)
class Disc:
    kind: Literal["disc"] = "disc"
    radius: Annotated[Decimal, between("0.5", "10")]


@dataclass(frozen=True, kw_only=True)
class Box:
    kind: Literal["box"] = "box"
    sides: tuple[Annotated[int, Meta(ge=1, le=9)], ...]


@dataclass(frozen=True, kw_only=True)
class Inner:
    name: str
    count: Annotated[int, Meta(ge=1, le=4)] = 2

    def faults(self) -> Any:
        if self.name == "same":
            yield "name", "is taken"


@dataclass(frozen=True, kw_only=True)
class Outer:
    number: Annotated[int, Meta(ge=1)]
    is_open: bool = False
    colour: Literal["red", "green"] = "red"
    names: Texts = ()
    free: dict[str, str | int] = field(default_factory=dict)
    one: Inner | None = None
    many: tuple[Inner, ...] = field(default=(), metadata=called("inner"))
    shape: Disc | Box | None = None


def problems(**values: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidDocument) as caught:
        read_table({"number": 1, **values}, Outer, "file")
    assert caught.value.code == "invalid-document"
    assert str(caught.value).startswith("file: ")
    return caught.value.problems


def test_a_whole_document() -> None:
    made = parse_toml(
        'number = 7\nis_open = true\ncolour = "green"\nnames = ["a", "b"]\nfree = {x = 1, y = "z"}\n'
        '[one]\nname = "x"\n[[inner]]\nname = "y"\ncount = 3\n[shape]\nkind = "box"\nsides = [1, 2]\n',
        Outer,
        "file",
    )
    assert made == Outer(
        number=7,
        is_open=True,
        colour="green",
        names=("a", "b"),
        free={"x": 1, "y": "z"},
        one=Inner(name="x"),
        many=(Inner(name="y", count=3),),
        shape=Box(sides=(1, 2)),
    )


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"number": 0}, "number must be an integer of at least 1, but is 0"),
        ({"number": True}, "number must be an integer of at least 1, but is true"),
        ({"number": "1"}, "number must be an integer of at least 1, but is '1'"),
        ({"number": -(10**5000)}, "number must be an integer of at least 1, but is far too large"),
        ({"is_open": 1}, "is_open must be true or false, but is 1"),
        ({"colour": "gren"}, "colour must be one of red, green, but is 'gren' (did you mean 'green'?)"),
        ({"colour": ["red"]}, "colour must be one of red, green, but is a list"),
        ({"color": "red"}, "has the unknown key 'color' (did you mean 'colour'?)"),
        ({"weather": 1}, "has the unknown key 'weather'"),
        ({"names": ["a", "a"]}, "names names the same thing twice"),
        ({"names": ["a", 1]}, "names must be a list of texts, but is a list"),
        (
            {"free": {"x": []}},
            "free must be a table whose values are each a text in quotes or an integer, but is a table",
        ),
        ({"one": 3}, "[one] must be a table, but is 3"),
        ({"one": {}}, "[one] needs 'name', a text in quotes"),
        ({"one": {"name": "same"}}, "[one] name: is taken"),
        ({"inner": {"name": "x"}}, "inner must be a list of tables, but is a table"),
        ({"inner": []}, "inner must be a list of tables, but is an empty list"),
        ({"inner": [{"name": "x"}, {"name": 1}]}, "[inner 2] name must be a text in quotes, but is 1"),
        (
            {"shape": {"kind": "bax"}},
            "[shape] kind must be one of disc, box, but is 'bax' (did you mean 'box'?)",
        ),
        ({"shape": {"kind": ["box"]}}, "[shape] kind must be one of disc, box, but is a list"),
        (
            {"shape": {"radius": "11"}},
            "[shape] radius must be a decimal number between 0.5 and 10, but is '11'",
        ),
        (
            {"shape": {"radius": 1.5}},
            "[shape] radius must be a decimal number between 0.5 and 10, but is 1.5",
        ),
        ({"shape": {"radius": "1." + "1" * 40}}, "[shape] radius must have at most 40 digits"),
        (
            {"shape": {"kind": "box", "sides": [10]}},
            "[shape] sides must be a list of integers between 1 and 9, but is a list",
        ),
    ],
)
def test_each_problem_has_its_words(values: dict[str, Any], problem: str) -> None:
    assert problems(**values) == (problem,)


def test_a_needed_variant_is_asked_for() -> None:
    column = {"name": "x", "unit": "m", "low": 0, "high": 1}
    with pytest.raises(InvalidDocument, match=r"\[schema.column 1\] needs 'kind', one of number, category"):
        read_task({**DOCUMENT, "schema": {**DOCUMENT["schema"], "column": [column]}})


def test_all_problems_are_named_at_once() -> None:
    assert problems(number=-1, colour="blue", one={"count": 9, "nam": "x"}) == (
        "number must be an integer of at least 1, but is -1",
        "colour must be one of red, green, but is 'blue'",
        "[one] has the unknown key 'nam' (did you mean 'name'?)",
        "[one] needs 'name', a text in quotes",
        "[one] count must be an integer between 1 and 4, but is 9",
    )


def test_a_hostile_document_gets_a_short_answer() -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_table({"x" * 50_000 + str(n): "y" * 50_000 for n in range(200)}, Outer, "file")
    assert len(caught.value.problems) == 201
    assert f"and {201 - MAX_PROBLEMS} more" in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert problems(number="\x1b[2J\n") == ("number must be an integer of at least 1, but is '[2J'",)


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[" * 5000, b"\xff"])
def test_what_is_not_toml_is_said(text: str | bytes) -> None:
    with pytest.raises(InvalidDocument, match=r"file: (line 1: )?it is not TOML"):
        parse_toml(text, Outer, "file")


def test_the_line_of_a_mistake_in_toml_is_said() -> None:
    with pytest.raises(InvalidDocument) as caught:
        parse_toml("[good]\nnumber = 3\n[bad\n", Outer, "file")
    assert str(caught.value) == (
        "file: line 3: it is not TOML (Expected ']' at the end of a table declaration)."
    )


def test_a_word_is_near_whatever_its_case() -> None:
    assert nearest("AGE", ["age", "stage"]) == " (did you mean 'age'?)"
    assert nearest("crp", ["CRP", "age"]) == " (did you mean 'CRP'?)"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not a JSON document"),
        (b"\xff", "not a JSON document"),
        (b"[" * 100_000, "not a JSON document"),
        (b"[]", "must be a table"),
        (b'{"number": 1.5}', "floating-point number 1.5"),
        (b'{"number": NaN}', "must be an integer"),
        (b'{"number": 1, "number": 2}', "names a key twice"),
    ],
)
def test_json_is_read_as_strictly(data: bytes, words: str) -> None:
    with pytest.raises(InvalidDocument, match=words):
        parse_json(data, Outer, "file")


def test_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    with pytest.raises(InvalidInput, match=r"some\.toml cannot be read"):
        read_toml(path, Outer)
    path.write_text("nmber = 1\n")
    with pytest.raises(
        InvalidDocument, match=r"some\.toml: line 1: has the unknown key 'nmber' \(did you mean 'number'"
    ):
        read_toml(path, Outer)
    path.write_bytes(b"#" * (1 << 21))
    with pytest.raises(InvalidInput, match="larger than"):
        read_toml(path, Outer)


def test_one_value() -> None:
    assert read_value("0.25", Annotated[Decimal, between("0", "1")], "--share") == Decimal("0.25")
    with pytest.raises(
        InvalidDocument, match="--share: it must be a decimal number between 0 and 1, but is '2'"
    ):
        read_value("2", Annotated[Decimal, between("0", "1")], "--share")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats() | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([(table, key) for table, values in DOCUMENT.items() for key in values])


@given(KEYS, JSON)
def test_whatever_stands_at_a_key_there_is_a_task_or_a_named_error(
    place: tuple[str, str], value: Any
) -> None:
    table, key = place
    try:
        task = read_task({**DOCUMENT, table: {**DOCUMENT[table], key: value}})
    except InvalidInput:
        return
    assert Task.from_bytes(task.to_bytes()) == task


def test_every_problem_of_a_toml_file_names_its_line() -> None:
    text = """# a comment with number = 3
number = 0
names = [
    "x = [",  # no key
    "a",
    "a",
]
free = { "q" = "[one]" }

[one]
name = "x"
"count" = 9

[[inner]]
name = "y"

[[inner]]
colour = 1
[shape]
radius = '''
count = 2
'''
"""
    with pytest.raises(InvalidDocument) as caught:
        parse_toml(text, Outer, "file")
    assert caught.value.problems == (
        "line 2: number must be an integer of at least 1, but is 0",
        "line 3: names names the same thing twice",
        "line 12: [one] count must be an integer between 1 and 4, but is 9",
        "line 17: [inner 2] needs 'name', a text in quotes",
        "line 18: [inner 2] has the unknown key 'colour'",
        "line 20: [shape] radius must be a decimal number between 0.5 and 10, but is 'count = 2'",
    )


def test_what_stands_in_a_line_with_others_is_named_by_that_line() -> None:
    text = 'number = 1\ninner = [\n  { name = "x" },\n  { name = 1 },\n]\none.count = 9\n'
    with pytest.raises(InvalidDocument) as caught:
        parse_toml(text, Outer, "file")
    assert caught.value.problems == (
        "line 2: [inner 2] name must be a text in quotes, but is 1",
        "line 6: [one] needs 'name', a text in quotes",
        "line 6: [one] count must be an integer between 1 and 4, but is 9",
    )


def test_a_list_under_an_unknown_name_and_a_table_without_a_line_are_found() -> None:
    with pytest.raises(InvalidDocument) as caught:
        parse_toml('number = 1\n\n[[inners]]\nname = "x"\n[one.parts]\na = 1\n', Outer, "file")
    assert caught.value.problems == (
        "line 3: has the unknown key 'inners' (did you mean 'inner'?)",
        "line 5: [one] has the unknown key 'parts'",
        "line 5: [one] needs 'name', a text in quotes",
    )
