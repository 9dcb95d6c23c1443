"""Write a task file for a file of rows, with comments that teach.

The task is logistic regression for a few hospitals: the unit is ``record``, since few clients cannot have
the unit ``client`` and a useful model, and the noise is what a target ε asks for.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from anofel.disk.sections import plain
from anofel.drafts.columns import Guess, Guesses
from anofel.errors import InvalidInput
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.tasks.confirmations import CONFIRM
from anofel.tasks.schema import CategoryColumn, NumberColumn, NumberTarget
from anofel.tasks.task import parse_task

_LEARNING_RATE: Final = 3
_CLIPPING_NORM: Final = 2
_SCALE_BITS: Final = 12
"""As in a simulated study: fine beside the noise, and sums of many clients fit the schemes."""
_HEAD_ROOM: Final = 2
"""A hospital may have so many times the mean number of rows."""


@dataclass(frozen=True, kw_only=True)
class DraftSettings:
    """What a file of rows does not say."""

    name: str
    clients: int = 8
    releases: int = 20
    target_epsilon: float = 2.0

    def __post_init__(self) -> None:
        if self.clients < 4:
            raise InvalidInput("A task needs at least 4 clients: sums of 3 of them, one of whom may collude.")

    @property
    def min_clients(self) -> int:
        """Three quarters must post, so that a sum is opened although some are away."""
        return max(3, self.clients - self.clients // 4)


def draft_task(guesses: Guesses, settings: DraftSettings) -> str:
    """Write the task file. Raises ``InvalidInput``."""
    text = _text(guesses, settings, Decimal(1))
    task = parse_task(text, settings.name)
    noise = noise_multiplier(Plan.of(task), settings.target_epsilon, task.privacy.relation)
    return _text(guesses, settings, noise)


def _text(guesses: Guesses, settings: DraftSettings, noise: Decimal) -> str:
    return "\n".join([*_head(guesses, settings, noise), *draft_schema(guesses)]) + "\n"


def _head(guesses: Guesses, settings: DraftSettings, noise: Decimal) -> Iterator[str]:
    mean = max(1, guesses.rows // settings.clients)
    most = _round_up(mean * _HEAD_ROOM)
    yield f"""\
# A draft of anofel new. A task is published: everybody reads it, and ε does not cover it.
# So nothing in it may come from patients' rows. Every value whose line says "{CONFIRM}"
# was guessed from your file: replace it by one of public knowledge (units, physiology, a published
# protocol), then delete the comment. All keys are described in docs/task-file.md.

[task]
name = {quoted(settings.name)}

[model]
kind = "logistic"       # or "mlp" with hidden = [16]: more parameters, more noise
scale_bits = {_SCALE_BITS}

[training]
algorithm = "fedsgd"    # one gradient in each iteration, as the unit "record" needs

[rule]                  # the model moves by lr_num/lr_den times the mean of the clients' sums:
lr_num = {_LEARNING_RATE}              # the learning rate,
lr_den = {mean}   # divided by the rows of a hospital; {CONFIRM}

[privacy]
unit = "record"         # one patient is protected; "client" protects a whole hospital, if there are hundreds
relation = "zero-out"   # ε compares a world with the patient's row and one without it
clipping_norm = {_CLIPPING_NORM}       # the most that one row can move a sum
delta = 0.00001
# ε = {settings.target_epsilon:g} after all releases; anofel privacy says what that means
noise_multiplier = {noise}
max_releases = {settings.releases}       # the board never opens more sums than this
expected_clients = {settings.clients}   # hospitals that take part
min_clients = {settings.min_clients}        # no sum of fewer is opened
max_colluders = 1       # so many of them may be hostile, and pool what they know
records_per_client = {most}   # the most rows of a hospital; {CONFIRM}

# What the columns mean. Rows that do not fit are refused with line and reason.
"""


def draft_schema(guesses: Guesses) -> Iterator[str]:
    """Write the schema, line by line."""
    yield "[schema]"
    yield f"label = {quoted(guesses.label)}"
    if guesses.target is None:
        yield f"label_values = {_listed(guesses.label_values)}   # {CONFIRM}"
    for role, what in (
        ("identifying", "removed before anything else happens"),
        ("unused", "not looked at"),
    ):
        group = guesses.of(role)
        if group:
            yield f"# {what}:"
            yield from (f"#   {_comment(guess.name or 'a nameless column')}: {guess.why}" for guess in group)
        yield f"{role} = {_listed(tuple(guess.name for guess in group))}"
    if guesses.target is not None:
        yield from _target(guesses.target)
    for guess in guesses.columns:
        if guess.column is not None:
            yield ""
            yield from _column(guess, guess.column)


def _target(target: NumberTarget) -> Iterator[str]:
    yield ""
    yield "[schema.target]         # a number is predicted, not a class"
    yield 'kind = "number"'
    yield f"unit = {quoted(target.unit)}   # which?"
    yield f"low = {plain(target.low)}   # {CONFIRM}"
    yield f"high = {plain(target.high)}   # {CONFIRM}"
    yield 'outside = "clip"   # a value outside becomes the bound; "refuse" refuses the row'
    yield "# The model gives (value − offset) / scale. Errors beyond scale count by their size, smaller ones"
    yield "# by their square. Both follow from low and high: change them together."
    yield f"offset = {plain(target.offset)}   # {CONFIRM}"
    yield f"scale = {plain(target.scale)}   # {CONFIRM}"


def _column(guess: Guess, column: NumberColumn | CategoryColumn) -> Iterator[str]:
    yield "[[schema.column]]"
    yield f"name = {quoted(column.name)}"
    yield f'kind = "{column.kind}"'
    yield from _category(guess, column) if isinstance(column, CategoryColumn) else _number(guess, column)


def _category(guess: Guess, column: CategoryColumn) -> Iterator[str]:
    if guess.rare:
        rare = _comment(", ".join(guess.rare))
        yield f"# Seen in few rows: {rare}. Keep them only if they are on a public list."
    yield f"values = {_listed(column.values)}   # {CONFIRM}; the first is the reference"
    if column.missing is not None:
        yield f"missing = {quoted(column.missing)}"


def _number(guess: Guess, column: NumberColumn) -> Iterator[str]:
    known = "a usual range of people, not from your file" if guess.is_public else CONFIRM
    unit = "" if guess.is_public else "   # which?"
    also = "" if guess.is_public else f"; {CONFIRM}"  # it tells the range, whatever low and high become
    yield f"unit = {quoted(column.unit)}{unit}"
    yield f"low = {plain(column.low)}   # {known}"
    yield f"high = {plain(column.high)}   # {known}"
    yield 'outside = "clip"   # a value outside becomes the bound; "refuse" refuses the row'
    if column.missing is not None:
        middle = f"stands for a missing value: the middle of the range{also}"
        yield f"missing = {plain(column.missing)}   # {middle}"
        yield "indicator = true   # one more feature: was it missing?"
    yield f"offset = {plain(column.offset)}   # the middle too; the feature is (value − offset) / scale{also}"
    yield f"scale = {plain(column.scale)}   # a quarter of the range{also}"


def _round_up(number: int) -> int:
    """Round up to two digits, so that the number of rows does not show."""
    power = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // power) * power


def quoted(text: str) -> str:
    """Write a text as TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(quoted(text) for text in texts)}]"


def _comment(text: str) -> str:
    """Keep a comment on its line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
