"""The one reader for TOML and JSON that people write: a table becomes a frozen dataclass, or is refused.

A field's type says what its key may hold, ``Annotated`` with ``msgspec.Meta`` its bounds; msgspec checks the
value. msgspec alone would stop at the first fault and give no plain words, no bounds for decimals and no hint
for a misspelt key, so this module walks the tables itself:

- every key is known, typed and within bounds, or the file is refused; a misspelt key never means its default;
- all problems are named at once, each with its line, table and key, what was expected, and the nearest known
  word;
- decimals stay decimals: a task means the same number on every machine, and no float is ever hashed.

A class may have ``absent(values)``, which adds what follows for keys that are not there, and ``faults()``,
which yields ``(key, what is wrong)`` for fields that do not fit together; a key of a table inside is written
with dots.
"""

import json
import math
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import Context, Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from anofel.disk.files import read_small_file
from anofel.disk.toml_lines import TomlLines
from anofel.errors import InvalidInput

MAX_DIGITS: Final = 40
"""Of a decimal, before and after the point together: as many as its canonical text may have."""
MAX_PROBLEMS: Final = 20
"""So many are named; a hostile document may hold any number."""
_MAX_SHOWN: Final = 60
_MAX_GUESSED: Final = 40
"""Longer words are not compared with the known ones."""
_EXACT = Context(prec=MAX_DIGITS)
"""What decimals are written with, so that their text does not depend on the context of a thread."""
_VARIANT: Final = "kind"
"""The key that says which of several tables is meant."""

_KEY: Final = "key"
_NOT_SHOWN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Controls, halves of characters, ends of lines and paragraphs."""
_TURNS: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""What turns the direction of the text around it."""
_HEXADECIMAL: Final = "bytes in lower-case hexadecimal"

T = TypeVar("T")


class InvalidDocument(InvalidInput):
    """A file, or a table of one, does not say what it must; every problem is named."""

    code = "invalid-document"

    def __init__(self, name: str, problems: list[str]) -> None:
        shown = problems[:MAX_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        super().__init__(f"{name}: {'; '.join(shown)}.")
        self.problems = tuple(problems)
        """Table, key and what is wrong, one after the other."""


@dataclass(frozen=True)
class Between:
    """Bounds of a decimal, both allowed; msgspec has none for decimals."""

    low: Decimal
    high: Decimal


def between(low: str, high: str) -> Between:
    """Make bounds from texts, so that none passes through a float."""
    return Between(Decimal(low), Decimal(high))


def is_one_line(text: str) -> bool:
    """Whether a text shows as itself: a control character could rewrite what a terminal or a log shows."""
    return not any((unicodedata.category(c) in _NOT_SHOWN and c != "\t") or c in _TURNS for c in text)


def called(key: str) -> dict[str, str]:
    """Say under which key a file has a field, where its name in Python is another."""
    return {_KEY: key}


Texts = Annotated[tuple[str, ...], "different"]
"""A list that names nothing twice."""


def read_toml(path: Path, kind: type[T]) -> T:
    """Read a TOML file. Raises ``InvalidInput`` if it cannot be read, ``InvalidDocument`` for its content."""
    return parse_toml(read_small_file(path), kind, str(path))


def parse_toml(data: bytes | str, kind: type[T], name: str) -> T:
    """Read TOML as the document called ``name``. Raises ``InvalidDocument``."""
    try:
        text = data if isinstance(data, str) else data.decode()
        values = tomllib.loads(text, parse_float=Decimal)
    except UnicodeDecodeError:
        raise InvalidDocument(name, ["it is not TOML (no text in UTF-8)"]) from None
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(name, [_no_toml(error)]) from None
    return read_table(values, kind, name, text)


def parse_json(data: bytes, kind: type[T], name: str) -> T:
    """Read JSON as the document called ``name``. Raises ``InvalidDocument``."""
    return read_table(json_values(data, name), kind, name)


def json_values(data: bytes | str, name: str) -> Any:
    """Read what JSON says; decimals are texts in it, and bytes hexadecimal. Raises ``InvalidDocument``."""
    try:
        return json.loads(data, parse_float=_refuse_float, object_pairs_hook=_each_once)
    except InvalidInput as error:
        raise InvalidDocument(name, [str(error)]) from None
    except (ValueError, RecursionError):
        raise InvalidDocument(name, ["it is not a JSON document"]) from None


def read_table(values: Any, kind: type[T], name: str, toml: str = "") -> T:
    """Read nested tables as the document called ``name``, parsed from TOML. Raises ``InvalidDocument``."""
    problems: list[_PlacedFault] = []
    made = _read_variant(values, _variants(kind) or (kind,), "", problems)
    if problems:
        raise InvalidDocument(name, _in_order(problems, toml))
    return made  # type: ignore[no-any-return]


def read_value(value: Any, kind: Any, name: str) -> Any:
    """Read one value of a type with bounds, such as an option. Raises ``InvalidDocument``."""
    problems: list[_PlacedFault] = []
    made = _read_value(value, kind, "", "it", problems)
    if problems:
        raise InvalidDocument(name, _in_order(problems))
    return made


@dataclass(frozen=True)
class _PlacedFault:
    where: str
    key: str
    """Empty for the table itself."""
    fault: str


def _in_order(problems: list[_PlacedFault], toml: str = "") -> list[str]:
    """Write problems, those of a TOML text with their lines and in their order."""
    lines = TomlLines(toml)
    found = [(lines.find(one.where, one.key), one) for one in problems]
    return [
        f"line {line}: {_at(one.where)}{one.fault}" if line else _at(one.where) + one.fault
        for line, one in sorted(found, key=lambda entry: entry[0] or math.inf)
    ]


class _Unreadable:
    """Stands for a value that has a problem."""


_BAD: Final = _Unreadable()


def _read_table(values: Any, kind: Any, where: str, problems: list[_PlacedFault]) -> Any:
    """Make one dataclass of a table, or append what is wrong with it."""
    if not isinstance(values, Mapping):
        problems.append(_PlacedFault(where, "", f"must be a table, but is {_shown(values)}"))
        return _BAD
    known = _fields_of(kind)
    before = len(problems)
    values = kind.absent(dict(values)) if hasattr(kind, "absent") else values
    for key in sorted(str(key) for key in values.keys() - known.keys()):
        problems.append(_PlacedFault(where, key, f"has the unknown key '{_cut(key)}'{nearest(key, known)}"))
    made = {}
    for key, entry in known.items():
        if key in values:
            made[entry.name] = _read_value(values[key], entry.hint, where, key, problems)
        elif entry.is_needed:
            problems.append(_PlacedFault(where, "", f"needs '{key}', {_words(entry.hint)}"))
    if len(problems) > before:
        return _BAD
    result = kind(**made)
    if hasattr(result, "faults"):
        problems.extend(_fault(known, where, key, fault) for key, fault in result.faults())
    return result if len(problems) == before else _BAD


def _fault(known: dict[str, "_Field"], where: str, key: str, fault: str) -> _PlacedFault:
    table, _, inner = key.rpartition(".")
    if table:
        return _PlacedFault(_inside(where, table), inner, f"{inner}: {fault}")
    if _shape_of(known[key].hint).variants is not None:
        return _PlacedFault(_inside(where, key), "", fault)
    return _PlacedFault(where, key, f"{key}: {fault}")


def _read_value(value: Any, hint: Any, where: str, key: str, problems: list[_PlacedFault]) -> Any:
    """Make a field of its key: a table, a list of tables, or a value that msgspec checks."""
    shape = _shape_of(hint)
    if shape.variants is not None:
        return _read_variant(value, shape.variants, _inside(where, key), problems)
    if shape.item is not None:
        if not isinstance(value, list | tuple) or not value:
            problems.append(
                _PlacedFault(where, key, f"{key} must be a list of tables, but is {_shown(value)}")
            )
            return _BAD
        entries = enumerate(value, start=1)
        return tuple(
            _read_value(entry, shape.item, where, f"{key} {number}", problems) for number, entry in entries
        )
    try:
        return _decimal(value, shape) if shape.kind is Decimal else _plain_value(value, shape)
    except _Misfit as misfit:
        fault = (
            str(misfit)
            or f"must be {_words(shape.hint)}, but is {_shown(value)}{nearest(value, shape.choices)}"
        )
        problems.append(_PlacedFault(where, key, f"{key} {fault}"))
        return _BAD


def _read_variant(value: Any, variants: tuple[Any, ...], where: str, problems: list[_PlacedFault]) -> Any:
    """Read a table of which there are several: its kind says which, or else the first that has a default."""
    if len(variants) == 1 or not isinstance(value, Mapping):
        return _read_table(value, variants[0], where, problems)
    by_kind = {get_args(_fields_of(variant)[_VARIANT].hint)[0]: variant for variant in variants}
    usual = [kind for kind, variant in by_kind.items() if not _fields_of(variant)[_VARIANT].is_needed]
    chosen = value.get(_VARIANT, usual[0] if usual else None)
    if chosen not in tuple(by_kind):
        wanted = _one_of(tuple(by_kind))
        fault = f"{_VARIANT} must be {wanted}, but is {_shown(chosen)}{nearest(chosen, by_kind)}"
        if _VARIANT not in value:
            fault = f"needs '{_VARIANT}', {wanted}"
        problems.append(_PlacedFault(where, _VARIANT, fault))
        return _BAD
    return _read_table(value, by_kind[chosen], where, problems)


class _Misfit(Exception):
    """A value is not what its type says; without words it is just something else."""


def _plain_value(value: Any, shape: "_Shape") -> Any:
    if shape.kind is bytes:
        return _bytes(value)
    try:
        made = msgspec.convert(value, shape.hint)
    except msgspec.ValidationError:
        raise _Misfit from None
    if shape.is_different and len(set(made)) != len(made):
        raise _Misfit("names the same thing twice")
    return made


def _bytes(value: Any) -> bytes:
    """Read lower-case hexadecimal; what stands there instead is not shown, since it may be a secret."""
    try:
        if isinstance(value, str) and (made := bytes.fromhex(value)).hex() == value:
            return made
    except ValueError:
        pass
    raise _Misfit(f"must be {_HEXADECIMAL}")


def _decimal(value: Any, shape: "_Shape") -> Decimal:
    """Refuse floats, what is not finite, too many digits, and what lies outside the bounds."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise _Misfit
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise _Misfit from None
    if not number.is_finite():
        raise _Misfit
    if _num_digits(number) > MAX_DIGITS:  # before anything is computed with it
        raise _Misfit(f"must have at most {MAX_DIGITS} digits")
    if not all(bound.low <= number <= bound.high for bound in shape.bounds):
        raise _Misfit
    return number


# What a class and its types say


@dataclass(frozen=True)
class _Field:
    name: str
    hint: Any
    is_needed: bool


@cache
def _fields_of(kind: Any) -> dict[str, _Field]:
    """What a class says of each key."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.metadata.get(_KEY, field.name): _Field(
            field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING
        )
        for field in fields(kind)
    }


@dataclass(frozen=True)
class _Shape:
    """A type, taken apart once."""

    hint: Any
    """Without None: a file has no word for nothing, it leaves the key out."""
    kind: Any
    """Without its marks."""
    variants: tuple[Any, ...] | None
    """The tables that a key may hold; None if it holds no table."""
    item: Any | None
    """The table that every entry of a list is; None if it is no list of tables."""
    bounds: tuple[Between, ...]
    is_different: bool
    choices: tuple[Any, ...]


@cache
def _shape_of(hint: Any) -> _Shape:
    hint = _without_none(hint)
    kind, marks = _bare(hint), _marks(hint)
    return _Shape(
        hint=hint,
        kind=kind,
        variants=_variants(hint),
        item=_table_item(kind),
        bounds=tuple(mark for mark in marks if isinstance(mark, Between)),
        is_different="different" in marks,
        choices=get_args(kind) if get_origin(kind) is Literal else (),
    )


def _bare(hint: Any) -> Any:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    while isinstance(bare, NewType):
        bare = bare.__supertype__
    return bare


def _marks(hint: Any) -> tuple[Any, ...]:
    return tuple(get_args(hint)[1:]) if get_origin(hint) is Annotated else ()


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _without_none(hint: Any) -> Any:
    if _is_union(hint) and type(None) in get_args(hint):
        return Union[tuple(part for part in get_args(hint) if part is not type(None))]  # noqa: UP007
    return hint


def _variants(hint: Any) -> tuple[Any, ...] | None:
    parts = get_args(hint) if _is_union(hint) else (hint,)
    return parts if all(is_dataclass(part) for part in parts) else None


def _table_item(kind: Any) -> Any | None:
    if get_origin(kind) is tuple and _variants(get_args(kind)[0]) is not None:
        return get_args(kind)[0]
    return None


# Plain words


def _words(hint: Any) -> str:
    """Say what a value must be."""
    shape = _shape_of(hint)
    kind, marks = shape.kind, _marks(shape.hint)
    if kind is Decimal:
        return "a decimal number" + "".join(f" between {one.low:f} and {one.high:f}" for one in shape.bounds)
    if shape.item is not None:
        return "a list of tables"
    if shape.choices:
        return _one_of(shape.choices)
    if _is_union(kind) and shape.variants is None:
        return " or ".join(_words(part) for part in get_args(kind))
    if get_origin(kind) is dict:
        return f"a table whose values are each {_words(get_args(kind)[1])}"
    if get_origin(kind) in (tuple, list):
        return f"a list of {_plural(get_args(kind)[0])}"
    described = [mark.description for mark in marks if isinstance(mark, msgspec.Meta) and mark.description]
    if described:
        return described[0]
    if kind is int:
        return f"an integer{_bounds(marks)}"
    return {bool: "true or false", str: "a text in quotes", bytes: _HEXADECIMAL}.get(kind, "a table")


def _one_of(choices: tuple[Any, ...]) -> str:
    words = ", ".join(str(choice) for choice in choices)
    return f"one of {words}" if len(choices) > 1 else words


def _plural(hint: Any) -> str:
    return f"integers{_bounds(_marks(hint))}" if _bare(hint) is int else "texts"


def _bounds(marks: tuple[Any, ...]) -> str:
    for mark in marks:
        if isinstance(mark, msgspec.Meta) and mark.ge is not None:
            return f" of at least {mark.ge}" if mark.le is None else f" between {mark.ge} and {mark.le}"
    return ""


def _inside(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _at(where: str) -> str:
    return f"[{where}] " if where else ""


def _shown(value: Any) -> str:
    """Write a value as the file has it, and not too much of it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{_cut(value)}'"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, int) and abs(value) >= 1 << 128:
        return "far too large"
    return _cut(str(value)) if isinstance(value, int | Decimal | float) else "something else"


def _cut(text: str) -> str:
    plain_text = "".join(letter for letter in text[:_MAX_SHOWN] if letter.isprintable())
    return plain_text + ("…" if len(text) > _MAX_SHOWN else "")


def nearest(word: Any, known: Iterable[Any]) -> str:
    """Ask whether the nearest known word was meant; nothing if none is near."""
    if not isinstance(word, str) or len(word) > _MAX_GUESSED:
        return ""
    spelt = {str(one).casefold(): str(one) for one in known}
    near = get_close_matches(word.casefold(), spelt, n=1)
    return f" (did you mean '{spelt[near[0]]}'?)" if near else ""


def _no_toml(error: Exception) -> str:
    """Say where a text ceases to be TOML, and why."""
    reason, _, place = str(error).partition("\n")[0].rpartition(" (at line ")
    line = place.partition(",")[0]
    if reason and line.isdecimal():
        return f"line {line}: it is not TOML ({_cut(reason)})"
    return f"it is not TOML ({_cut(str(error)) or type(error).__name__})"


def _refuse_float(text: str) -> Any:
    raise InvalidInput(f"it holds the floating-point number {_cut(text)}, and decimals are written as text")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidInput("it names a key twice")
    return made


# Canonical documents


def _num_digits(number: Decimal) -> int:
    """How many digits a finite decimal has without an exponent, on both sides of the point."""
    _sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits), len(digits) + exponent, -exponent)


def plain(number: Decimal) -> str:
    """Write a decimal in its one canonical way: no exponent, no trailing zeros. Raises ``InvalidInput``."""
    if _num_digits(number) > MAX_DIGITS:
        raise InvalidInput(f"A canonical document holds no decimals of more than {MAX_DIGITS} digits.")
    text = format(number.normalize(_EXACT), "f")
    return "0" if text == "-0" else text


def canonical_json(value: Any) -> bytes:
    """Encode nested mappings, lists, texts, integers and decimals in their one canonical way."""

    def convert(item: Any) -> Any:
        if isinstance(item, Decimal):
            return plain(item)
        if isinstance(item, Mapping):
            return {str(key): convert(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [convert(entry) for entry in item]
        if isinstance(item, float):
            raise InvalidInput("A canonical document holds no floating-point numbers.")
        return item

    text = json.dumps(convert(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()
