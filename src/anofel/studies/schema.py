"""What the columns of a study mean, in public constants.

A schema never holds a statistic of private data: ranges, imputed values, offsets and scales are
chosen from public knowledge (units, physiology, the study's published protocol) before anyone
looks at a client's rows. Rules (the same words in ``docs/studies.md``):

1. Every column of a file is a feature, the label, identifying or unused; anything else is refused.
2. Identifying columns are removed before anything is encoded, and are never a feature or the label.
3. A number outside its range, a missing value without an imputed one, or an unknown category is
   refused with line, column and reason, unless the column says ``outside = "clip"``.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from anofel.errors import InvalidInput
from anofel.sections import Section, canonical_json

_SCHEMA_DOMAIN = b"anofel.schema.v1\0"
_LIMIT = "1000000000000"


@dataclass(frozen=True, kw_only=True)
class NumberColumn:
    """A measured quantity; its feature is (value − offset) / scale."""

    name: str
    unit: str
    low: Decimal
    high: Decimal
    outside: str
    missing: Decimal | None
    indicator: bool
    """Whether a second feature says that the value was missing."""
    offset: Decimal
    scale: Decimal

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features this column becomes."""
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)


@dataclass(frozen=True, kw_only=True)
class CategoryColumn:
    """A choice between named values; one feature for each value after the first, which is the reference."""

    name: str
    values: tuple[str, ...]
    missing: str | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features this column becomes."""
        return tuple(f"{self.name} = {value}" for value in self.values[1:])


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of a table and how they become features."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    label: str
    label_values: tuple[str, ...]
    identifying: tuple[str, ...]
    unused: tuple[str, ...]
    fraction_bits: int
    """Features are integers at scale 2^fraction_bits, so that what is trained on has exact bytes."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """All features in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one row of features."""
        return (len(self.feature_names),)

    @property
    def classes(self) -> int:
        """How many values the label takes."""
        return len(self.label_values)

    def document(self) -> dict[str, Any]:
        """Write the schema as nested tables, as in a task file."""
        return {
            "kind": "table",
            "label": self.label,
            "label_values": self.label_values,
            "identifying": self.identifying,
            "unused": self.unused,
            "fraction_bits": self.fraction_bits,
            "column": [_column_document(column) for column in self.columns],
        }


@dataclass(frozen=True, kw_only=True)
class ImageSchema:
    """Images of one shape, 8 bits per sample; the feature of a sample is value / 256."""

    shape: tuple[int, ...]
    label_values: tuple[str, ...]

    fraction_bits: int = 8

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one image."""
        return self.shape

    @property
    def classes(self) -> int:
        """How many values the label takes."""
        return len(self.label_values)

    def document(self) -> dict[str, Any]:
        """Write the schema as nested tables, as in a task file."""
        return {"kind": "image", "shape": self.shape, "label_values": self.label_values}


Schema = TableSchema | ImageSchema


def schema_digest(schema: Schema) -> bytes:
    """SHA-256 of the canonical schema; part of every dataset's bytes."""
    return hashlib.sha256(_SCHEMA_DOMAIN + canonical_json(schema.document())).digest()


def read_schema(section: Section) -> Schema:
    """Read the ``[schema]`` table of a task file or of a study."""
    if section.text("kind", ("table", "image"), "table") == "image":
        image = ImageSchema(
            shape=section.integers("shape", 1, 4096), label_values=section.texts("label_values")
        )
        section.finish()
        if len(image.shape) != 3:
            raise section.fail("shape", "must be height, width and channels")
        _check_labels(section, image.label_values)
        return image
    schema = TableSchema(
        columns=tuple(_read_column(column) for column in section.tables("column")),
        label=section.text("label"),
        label_values=section.texts("label_values"),
        identifying=section.texts("identifying", ()),
        unused=section.texts("unused", ()),
        fraction_bits=section.integer("fraction_bits", 8, 24, 16),
    )
    section.finish()
    _check_labels(section, schema.label_values)
    _check_roles(schema)
    return schema


def _check_labels(section: Section, values: tuple[str, ...]) -> None:
    if len(values) < 2:
        raise section.fail("label_values", "must name at least two values")


def _check_roles(schema: TableSchema) -> None:
    """Give each column one role; an identifying column can be nothing else (rules 1 and 2)."""
    names = [column.name for column in schema.columns]
    roles: dict[str, str] = {}
    for role, group in (
        ("identifying", schema.identifying),
        ("a feature", names),
        ("the label", [schema.label]),
        ("unused", schema.unused),
    ):
        for name in group:
            if name in roles:
                raise InvalidInput(f"The schema calls column '{name}' both {roles[name]} and {role}.")
            roles[name] = role


def _read_column(section: Section) -> NumberColumn | CategoryColumn:
    name = section.text("name")
    if section.text("kind", ("number", "category")) == "category":
        category = CategoryColumn(
            name=name,
            values=section.texts("values"),
            missing=section.text("missing") if "missing" in section else None,
        )
        section.finish()
        if len(category.values) < 2:
            raise section.fail("values", "must name at least two values")
        if category.missing is not None and category.missing not in category.values:
            raise section.fail("missing", "must be one of the values")
        return category
    low = section.decimal("low", f"-{_LIMIT}", _LIMIT)
    high = section.decimal("high", f"-{_LIMIT}", _LIMIT)
    number = NumberColumn(
        name=name,
        unit=section.text("unit"),
        low=low,
        high=high,
        outside=section.text("outside", ("refuse", "clip"), "refuse"),
        missing=section.decimal("missing", str(low), str(high)) if "missing" in section else None,
        indicator=section.boolean("indicator", False),
        offset=section.decimal("offset", f"-{_LIMIT}", _LIMIT, "0"),
        scale=section.decimal("scale", "0.000000001", _LIMIT, "1"),
    )
    section.finish()
    if low >= high:
        raise section.fail("low", "must be below 'high'")
    if max(abs(low - number.offset), abs(high - number.offset)) / number.scale > 127:
        raise section.fail("scale", "lets a feature grow beyond 127; scale the column closer to one")
    return number


def _column_document(column: NumberColumn | CategoryColumn) -> Mapping[str, Any]:
    if isinstance(column, CategoryColumn):
        optional: dict[str, Any] = {} if column.missing is None else {"missing": column.missing}
        return {"name": column.name, "kind": "category", "values": column.values, **optional}
    optional = {} if column.missing is None else {"missing": column.missing}
    return {
        "name": column.name,
        "kind": "number",
        "unit": column.unit,
        "low": column.low,
        "high": column.high,
        "outside": column.outside,
        "indicator": column.indicator,
        "offset": column.offset,
        "scale": column.scale,
        **optional,
    }
