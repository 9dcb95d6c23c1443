"""Write a task file for a Flower app: its model and strategy, and the schema of the rows that are certified.

The unit is ``client``: the app trains on all rows at once, so nothing bounds what a single one does.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from anofel.disk.sections import plain
from anofel.drafts.columns import Guesses
from anofel.drafts.task_text import DraftSettings, draft_schema, quoted
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.mechanisms import MIN_LOCAL_SIGMA
from anofel.privacy.plan import Plan
from anofel.tasks.confirmations import CONFIRM
from anofel.tasks.task import RuleSpec, parse_task

_SCALE_BITS: Final = 16
_MAX_SCALE_BITS: Final = 32


@dataclass(frozen=True, kw_only=True)
class FlowerDraft:
    """What an app says of itself."""

    digest: str
    about: Mapping[str, Any]
    rule: RuleSpec
    parameters: int
    clipping_norm: Decimal = Decimal(1)


def fitting_scale_bits(deviation: float, clients: int) -> int:
    """Choose a scale at which a client's share of the noise is many steps wide, so that it stays Gaussian."""
    finer = math.ceil(math.log2(MIN_LOCAL_SIGMA * math.sqrt(clients) / deviation)) + 1
    return min(max(_SCALE_BITS, finer), _MAX_SCALE_BITS)


def draft_flower_task(guesses: Guesses, settings: DraftSettings, app: FlowerDraft) -> str:
    """Write the task file. Raises ``InvalidInput``."""
    task = parse_task(_text(guesses, settings, app, Decimal(1), _SCALE_BITS), settings.name)
    noise = noise_multiplier(Plan.of(task), settings.target_epsilon, task.privacy.relation)
    bits = fitting_scale_bits(float(noise * app.clipping_norm), settings.clients)
    return _text(guesses, settings, app, noise, bits)


def _text(
    guesses: Guesses, settings: DraftSettings, app: FlowerDraft, noise: Decimal, scale_bits: int
) -> str:
    parts = [*_head(settings, app, noise, scale_bits), *_schema(guesses, app)]
    return "\n".join(parts) + "\n"


def _schema(guesses: Guesses, app: FlowerDraft) -> Iterator[str]:
    head, *rest = draft_schema(guesses)
    yield head
    yield f"app = {quoted(app.digest)}   # no other app trains on such rows"
    yield from rest


def _head(settings: DraftSettings, app: FlowerDraft, noise: Decimal, scale_bits: int) -> Iterator[str]:
    yield f"""\
# A draft of anofel new for a Flower app ({app.about["strategy"]}). A task is published: everybody reads it,
# and ε does not cover it. So nothing in it may come from patients' rows. Every value whose line says
# "{CONFIRM}" was guessed from your file: replace it by one of public
# knowledge, then delete the comment. All keys are described in docs/task-file.md.

[task]
name = {quoted(settings.name)}

[model]
kind = "custom"
parameters = {app.parameters}
scale_bits = {scale_bits}

[training]
algorithm = "custom"    # the app's

[rule]                  # what the app's strategy does, in integers"""
    rule = app.rule.document()
    schedule = rule.pop("schedule", ())
    for key, value in rule.items():
        yield f"{key} = {_plain(value)}"
    for change in schedule:
        yield "[[rule.schedule]]"
        yield from (f"{key} = {value}" for key, value in change.items())
    yield f"""
[privacy]
unit = "client"         # everything of one hospital is protected
relation = "zero-out"   # ε compares a world with the hospital and one without it
clipping_norm = {plain(app.clipping_norm)}       # the longest update of a hospital; longer ones are shortened
delta = 0.00001
# ε = {settings.target_epsilon:g} after all releases; anofel privacy says what that means
noise_multiplier = {noise}
max_releases = {settings.releases}       # the board never opens more sums than this
expected_clients = {settings.clients}   # hospitals that take part
min_clients = {settings.min_clients}        # no sum of fewer is opened
max_colluders = 1       # so many of them may be hostile, and pool what they know

# What the columns of the certified rows mean. Rows that do not fit are refused with line and reason.
"""


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return plain(value)
    return quoted(value) if isinstance(value, str) else str(value)
