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
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import resources
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from anofel.disk.sections import Texts, between, called, canonical_json, is_one_line, parse_toml
from anofel.errors import InvalidInput

_SCHEMA_DOMAIN = b"anofel.schema.v1\0"
_LIMIT: Final = "1000000000000"

SCATTERING_CHANNELS: Final = 81
"""Of each channel of an image: itself, 16 moduli of the first layer, 64 of the second."""
SCATTERING_STRIDE: Final = 4
"""Pixels from one coefficient to the next."""

Measured = Annotated[Decimal, between(f"-{_LIMIT}", _LIMIT)]


CONTROLS: Final = "has a text with a control character, which could rewrite what a terminal or a log shows"


def _faults_of_texts(key: str, *texts: str) -> Iterator[tuple[str, str]]:
    if not all(map(is_one_line, texts)):
        yield key, CONTROLS


@dataclass(frozen=True, kw_only=True)
class NumberColumn:
    """A measured quantity; its feature is (value − offset) / scale."""

    kind: Literal["number"]
    name: str
    unit: str
    low: Measured
    high: Measured
    outside: Literal["refuse", "clip"] = "refuse"
    missing: Measured | None = None
    indicator: bool = False
    """Whether a second feature says that the value was missing."""
    offset: Measured = Decimal(0)
    scale: Annotated[Decimal, between("0.000000001", _LIMIT)] = Decimal(1)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        yield from _faults_of_texts("name", self.name, self.unit)
        if self.low >= self.high:
            yield "low", "must be below 'high'"
        if self.missing is not None and not self.low <= self.missing <= self.high:
            yield "missing", f"must lie between 'low' and 'high', but is {self.missing}"
        if max(abs(self.low - self.offset), abs(self.high - self.offset)) / self.scale > 127:
            yield "scale", "lets a feature grow beyond 127; scale the column closer to one"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features this column becomes."""
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)


@dataclass(frozen=True, kw_only=True)
class CategoryColumn:
    """A choice between named values; one feature for each value after the first, which is the reference."""

    kind: Literal["category"]
    name: str
    values: Texts
    missing: str | None = None

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        yield from _faults_of_texts("values", self.name, *self.values)
        if len(self.values) < 2:
            yield "values", "must name at least two values"
        if self.missing is not None and self.missing not in self.values:
            yield "missing", "must be one of the values"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features this column becomes."""
        return tuple(f"{self.name} = {value}" for value in self.values[1:])


TARGET_STEPS: Final = (1 << 16) - 1
"""A number that is predicted is certified as one of so many steps of its range."""
MAX_INTERVALS: Final = 64


@dataclass(frozen=True, kw_only=True)
class NumberTarget:
    """What is predicted is a number; a model's output is (number − offset) / scale."""

    kind: Literal["number"]
    unit: str
    low: Measured
    high: Measured
    outside: Literal["refuse", "clip"] = "refuse"
    offset: Measured = Decimal(0)
    scale: Annotated[Decimal, between("0.000000001", _LIMIT)] = Decimal(1)
    """Errors up to it count by their square, larger ones by their size."""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        yield from _faults_of_texts("unit", self.unit)
        if self.low >= self.high:
            yield "low", "must be below 'high'"

    @property
    def codes(self) -> int:
        """How many labels there are."""
        return TARGET_STEPS + 1


@dataclass(frozen=True, kw_only=True)
class SurvivalTarget:
    """What is predicted is when an event happens; the label's column holds the time until it, or seen so far.

    Times are certified by public intervals: up to the first cut, up to the second, and so on.
    """

    kind: Literal["survival"]
    unit: str
    event: str
    """The column that says whether the event happened then, or the row was only followed until then."""
    event_values: Texts
    """What it holds: first 'not seen', then 'happened'."""
    cuts: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=1_000_000_000)], ...], Meta(min_length=1, max_length=MAX_INTERVALS)
    ]
    """The ends of the intervals, in whole units."""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        yield from _faults_of_texts("unit", self.unit, self.event, *self.event_values)
        if len(self.event_values) != 2:
            yield "event_values", "must name two values: not seen, and happened"
        if any(later <= earlier for earlier, later in pairwise(self.cuts)):
            yield "cuts", "must be in order, each later than the one before"

    @property
    def codes(self) -> int:
        """How many labels there are: 2·interval, and one more if the event happened in it."""
        return 2 * len(self.cuts) + 1


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of a table and how they become features."""

    kind: Literal["table"] = "table"
    columns: tuple[NumberColumn | CategoryColumn, ...] = field(metadata=called("column"))
    label: str
    label_values: Texts = ()
    target: NumberTarget | SurvivalTarget | None = None
    """What is predicted, where it is not a class."""
    identifying: Texts = ()
    unused: Texts = ()
    fraction_bits: Annotated[int, Meta(ge=8, le=24)] = 16
    """Features are integers at scale 2^fraction_bits, so that what is trained on has exact bytes."""
    app: str = ""
    """The digest of the only Flower app that trains on such rows; empty for any trainer."""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Give each column one role; an identifying column can be nothing else (rules 1 and 2)."""
        yield from _faults_of_app(self.app)
        yield from _faults_of_texts("label", self.label, *self.label_values)
        yield from _faults_of_texts("unused", *self.identifying, *self.unused)
        if self.target is None and len(self.label_values) < 2:
            yield "label_values", "must name at least two values"
        if self.target is not None and self.label_values:
            yield "label_values", "belongs to classes, and the target is none"
        roles: dict[str, str] = {}
        for key, role, group in (
            ("identifying", "identifying", self.identifying),
            ("column", "a feature", [column.name for column in self.columns]),
            ("label", "the label", [self.label]),
            ("target", "the event", [self.event] if self.event else []),
            ("unused", "unused", self.unused),
        ):
            for name in group:
                if name in roles:
                    yield key, f"calls column '{name}' both {roles[name]} and {role}"
                roles.setdefault(name, role)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """All features in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one row of features."""
        return (len(self.feature_names),)

    @property
    def inputs(self) -> int:
        """How many numbers a dense network gets of a row."""
        return len(self.feature_names)

    @property
    def event(self) -> str:
        """The column of events; empty unless the target is survival."""
        return self.target.event if isinstance(self.target, SurvivalTarget) else ""

    @property
    def classes(self) -> int:
        """How many values the label takes."""
        return len(self.label_values) if self.target is None else self.target.codes

    @property
    def outputs(self) -> int:
        """How many outputs a dense network has."""
        if isinstance(self.target, SurvivalTarget):
            return len(self.target.cuts)
        return 1 if self.target is not None else outputs_of_classes(self.classes)

    @property
    def scores(self) -> int:
        """How many weights a feature has: one for each output; survival has one for all intervals."""
        return 1 if isinstance(self.target, SurvivalTarget) else self.outputs

    def document(self) -> dict[str, Any]:
        """Write the schema as nested tables, as in a task file."""
        values = {
            key: value for key, value in vars(self).items() if key != "target" and (key, value) != ("app", "")
        }
        if self.target is not None:
            values["target"] = dict(vars(self.target))
        return {"column": [_given(column) for column in values.pop("columns")], **values}


@dataclass(frozen=True, kw_only=True)
class ImageSchema:
    """Images of one shape, 8 bits per sample; the feature of a sample is value / 256."""

    kind: Literal["image"] = "image"
    shape: tuple[Annotated[int, Meta(ge=1, le=4096)], ...]
    label_values: Texts
    transform: Literal["none", "scattering"] = "none"
    """A public transform of the images, which a dense network learns from instead."""
    app: str = ""
    """The digest of the only Flower app that trains on such images; empty for any trainer."""

    fraction_bits: ClassVar[int] = 8

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        yield from _faults_of_app(self.app)
        if len(self.shape) != 3:
            yield "shape", "must be height, width and channels"
        elif self.transform == "scattering" and min(self.shape[:2]) < 2 * SCATTERING_STRIDE:
            yield "transform", f"needs images of at least {2 * SCATTERING_STRIDE} pixels on each side"
        yield from _faults_of_texts("label_values", *self.label_values)
        if len(self.label_values) < 2:
            yield "label_values", "must name at least two values"

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one image."""
        return self.shape

    @property
    def inputs(self) -> int:
        """How many numbers a dense network gets of an image."""
        if self.transform == "none":
            return math.prod(self.shape)
        height, width, channels = self.shape
        return channels * SCATTERING_CHANNELS * math.prod(scattering_shape(height, width))

    @property
    def classes(self) -> int:
        """How many values the label takes."""
        return len(self.label_values)

    @property
    def outputs(self) -> int:
        """How many outputs a dense network has."""
        return outputs_of_classes(self.classes)

    @property
    def scores(self) -> int:
        """How many weights a feature has: one for each output."""
        return self.outputs

    def document(self) -> dict[str, Any]:
        """Write the schema as nested tables, as in a task file, without what it does not have."""
        absent = (("transform", "none"), ("app", ""))
        return {key: value for key, value in vars(self).items() if (key, value) not in absent}


def _faults_of_app(app: str) -> Iterator[tuple[str, str]]:
    if app and (len(app) != 64 or not set(app) <= set("0123456789abcdef")):
        yield "app", "must be a digest of 64 hexadecimal digits, as anofel new --flower-app writes it"


def outputs_of_classes(classes: int) -> int:
    """Say how many outputs tell classes apart: one is enough for two."""
    return 1 if classes == 2 else classes


def scattering_shape(height: int, width: int) -> tuple[int, int]:
    """Give the shape of the maps of a scattering transform."""
    return -(-height // SCATTERING_STRIDE), -(-width // SCATTERING_STRIDE)


Schema = TableSchema | ImageSchema


def schema_digest(schema: Schema) -> bytes:
    """SHA-256 of the canonical schema; part of every dataset's bytes."""
    return hashlib.sha256(_SCHEMA_DOMAIN + canonical_json(schema.document())).digest()


def _given(column: NumberColumn | CategoryColumn) -> dict[str, Any]:
    """Write a column without the keys that its file leaves out."""
    return {name: value for name, value in vars(column).items() if value is not None}


# The public schemas of the studies that anofel knows; a task file may name such a study

_DIGITS: Final = tuple("0123456789")
_TABLES: Final = ("breast-cancer", "diabetes", "nwtco", "support2")
_IMAGES: Final = {
    "mnist": ImageSchema(shape=(28, 28, 1), label_values=_DIGITS),
    "fashion-mnist": ImageSchema(shape=(28, 28, 1), label_values=_DIGITS),
    "cifar-10": ImageSchema(shape=(32, 32, 3), label_values=_DIGITS),
    "tiny-imagenet": ImageSchema(shape=(64, 64, 3), label_values=tuple(str(label) for label in range(200))),
}
BEAT_LABEL: Final = "beat"
BEAT_COLUMNS: Final = tuple(f"sample {number}" for number in range(1, 141))
_HEARTBEATS: Final = TableSchema(
    columns=tuple(
        NumberColumn(
            kind="number",
            name=name,
            unit="standard deviations of the beat",
            low=Decimal(-10),
            high=Decimal(10),
            outside="clip",
            scale=Decimal(10),
        )
        for name in BEAT_COLUMNS
    ),
    label=BEAT_LABEL,
    label_values=("1", "2", "3", "4", "5"),
)
_SIGNALS: Final = {"ecg5000": _HEARTBEATS}
STUDY_NAMES: Final = (*_TABLES, *_SIGNALS, *_IMAGES)


def known_schema(study: str) -> Schema:
    """Give the public schema of a study. Raises ``InvalidInput``."""
    if study in _IMAGES:
        return _IMAGES[study]
    if study in _SIGNALS:
        return _SIGNALS[study]
    return parse_toml(table_schema_text(study), TableSchema, f"The schema of {study}")


def table_schema_text(study: str) -> str:
    """Give the schema of a table as the TOML that people read. Raises ``InvalidInput``."""
    if study not in _TABLES:
        raise InvalidInput(f"There is no study '{study}'; known are {', '.join(STUDY_NAMES)}.")
    return resources.files("anofel.tasks").joinpath(f"schemas/{study}.toml").read_text("utf-8")
