"""The card of a model: what it is, how it was learned, and what its numbers promise.

Markdown for people behind a head of YAML, which tools of model collections read. The one place that writes
it, for the page of a board and for whatever exports elsewhere. Names come from strangers, so every text is
escaped for both. A card says nothing of a single client.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from anofel.models.integer_model import IntegerModel
from anofel.tasks.schema import NumberTarget, SurvivalTarget, TableSchema
from anofel.tasks.task import Task

_UNITS: Final = {
    "client": "whether one client took part at all, with everything that it holds",
    "record": "each single row of a client, not that the client took part",
    "paper": "nothing that is proven: the noise is the paper's own",
}
_MARKED: Final = '\\`*_{}[]<>()#+-.!|&~"'


@dataclass(frozen=True, kw_only=True)
class CardIteration:
    """How one iteration ended."""

    number: int
    outcome: str
    count: int | None
    """Updates in its sum; None if that was not opened."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a board says of a task up to a block."""

    board: str
    genesis: str
    """The hash of genesis, in hexadecimal."""
    height: int
    task_id: str
    owner: str
    """The owner's organisation; empty if it names none."""
    committee: Sequence[str] = ()
    """The members' organisations or names."""
    threshold: int = 0
    releases: int
    """Sums that were opened."""
    epsilon_zero_out: float | None = None
    """For all releases so far, as the owner stated it; None if it did not."""
    epsilon_replace: float | None = None
    iterations: Sequence[CardIteration] = ()
    insecure: Sequence[str] = ()
    """What protects nobody on this board."""


def model_card(
    task: Task, *, digest: str = "", course: Course | None = None, iteration: int | None = None
) -> str:
    """Write the card of a task's model.

    ``iteration`` is the one that it stands after, ``digest`` the SHA-256 of the model file in hexadecimal.
    Without a ``course`` the model comes from no board that anybody can check, and the card says so.
    """
    parts = [_head(task, digest, course), f"# {_text(task.name)}\n"]
    parts += [_intended(task), _promise(task, course), _origin(task, digest, course, iteration)]
    if course is not None and course.iterations:
        parts.append(_iterations(course))
    parts.append(_limits(task, course))
    return "\n".join(parts)


def is_card_of(card: str, digest: str) -> bool:
    """Whether a card is that of the model with this digest."""
    return f'\n  model_sha256: "{digest}"\n' in card.partition("\n---\n")[0] + "\n"


def digest_of(model: IntegerModel) -> str:
    """Return the name of a model on a card: the SHA-256 of its file."""
    return model.digest().hex()


# The head


def _head(task: Task, digest: str, course: Course | None) -> str:
    privacy = task.privacy
    facts: dict[str, Any] = {
        "library_name": "anofel",
        "pipeline_tag": _pipeline(task),
        "tags": ["federated-learning", "differential-privacy", "anofel"],
        "anofel": {
            "task": task.name,
            "task_digest": task.digest().hex(),
            "model_sha256": digest or None,
            "parameters": task.model.parameters,
            "scale_bits": task.model.scale_bits,
            "unit": privacy.unit,
            "delta": str(privacy.delta),
            "epsilon": None if course is None else course.epsilon_zero_out,
            "epsilon_replace": None if course is None else course.epsilon_replace,
            "releases": None if course is None else course.releases,
            "min_clients": privacy.min_clients,
            "max_colluders": privacy.max_colluders,
            "genesis": None if course is None else course.genesis,
            "height": None if course is None else course.height,
        },
    }
    lines = [f"{name}: {_yaml(value)}" for name, value in facts.items() if not isinstance(value, dict)]
    lines += ["anofel:", *(f"  {name}: {_yaml(value)}" for name, value in facts["anofel"].items())]
    return "---\n" + "\n".join(lines) + "\n---\n"


def _yaml(value: Any) -> str:
    """Write a value as JSON, which is YAML too; no text can end its own quotes."""
    return json.dumps(value, ensure_ascii=True)


def _pipeline(task: Task) -> str:
    schema = task.schema
    if not isinstance(schema, TableSchema):
        return "image-classification"
    plain = isinstance(schema.target, NumberTarget | SurvivalTarget)
    return "tabular-regression" if plain else "tabular-classification"


# The sections


def _intended(task: Task) -> str:
    schema = task.schema
    rows = [
        ("What it is", f"a {task.model.kind} model of {task.model.parameters:,} numbers"),
        ("Trained by", task.training.algorithm),
        ("Data", task.study or "rows of the type below"),
        ("Dataset type", str(task.dataset_type) if task.dataset_type else "any that is certified"),
        ("Label", _label(task)),
    ]
    if isinstance(schema, TableSchema):
        rows.append(("Features", f"{len(schema.feature_names)}, in public units"))
    return "## What it does\n\n" + _table(rows)


def _label(task: Task) -> str:
    schema = task.schema
    if isinstance(schema, TableSchema):
        if isinstance(schema.target, NumberTarget):
            return f"{schema.label} in {schema.target.unit}"
        if isinstance(schema.target, SurvivalTarget):
            return f"{schema.label}, the hazard by {schema.target.unit}"
        return f"{schema.label}: {', '.join(schema.label_values)}"
    return ", ".join(schema.label_values)


def _promise(task: Task, course: Course | None) -> str:
    privacy = task.privacy
    rows = [
        ("Protects", _UNITS[privacy.unit]),
        ("δ", str(privacy.delta)),
        ("Updates in a sum", f"at least {privacy.min_clients}, or it stays closed"),
        ("Colluders reckoned with", str(privacy.max_colluders)),
        ("Clipping norm", str(privacy.clipping_norm)),
        ("Noise multiplier", str(privacy.noise_multiplier)),
    ]
    if course is not None:
        rows[1:1] = [
            ("ε so far, says the owner", _epsilon(course.epsilon_zero_out, "one client's update or zeros")),
            ("ε so far, says the owner", _epsilon(course.epsilon_replace, "one client or another")),
            ("Sums opened", f"{course.releases} of at most {privacy.max_releases}"),
        ]
    return "## What it promises\n\n" + _table(rows)


def _epsilon(value: float | None, relation: str) -> str:
    return f"not stated ({relation})" if value is None else f"{value:.3f} ({relation})"


def _origin(task: Task, digest: str, course: Course | None, iteration: int | None) -> str:
    rows = [("Task digest", task.digest().hex())]
    if iteration is not None:
        rows.append(("Stands after iteration", str(iteration)))
    if digest:
        rows.append(("Model file, SHA-256", digest))
    if course is None:
        note = "It comes from no board: nobody can check how it was made.\n"
        return "## Where it comes from\n\n" + _table(rows) + "\n" + note
    rows += [
        ("Board", course.board),
        ("Genesis", course.genesis),
        ("Up to block", str(course.height)),
        ("Task on the board", course.task_id),
        ("Owner", course.owner or "names no organisation"),
        ("Sums opened by", f"{course.threshold} of: {', '.join(course.committee)}"),
    ]
    check = (
        "Every model between is what the task's rule makes of a public sum; `anofel audit` checks the whole "
        "history.\n"
        if task.rule.kind != "owner"
        else "The sums are verified; what the owner made of them is the owner's claim.\n"
    )
    return "## Where it comes from\n\n" + _table(rows) + "\n" + check


def _iterations(course: Course) -> str:
    lines = ["| iteration | outcome | updates |", "|---:|---|---:|"]
    for one in course.iterations:
        lines.append(f"| {one.number} | {_text(one.outcome)} | {'–' if one.count is None else one.count} |")
    return "## How it went\n\n" + "\n".join(lines) + "\n"


def _limits(task: Task, course: Course | None) -> str:
    limits = [
        "It is as good as the data of clients whom nobody knows; certifiers vouch for rows, not for what "
        "they mean.",
        "Noise was added on purpose: single numbers of the model mean little.",
        "It was validated by nobody unless this card says so elsewhere. It is no medical device.",
    ]
    if course is not None:
        limits.append("The owner states ε; an audit compares it with what the task's noise gives.")
        limits += [f"INSECURE: {flaw}." for flaw in course.insecure]
    if task.insecure_unproven_contributions:
        limits.append("INSECURE: contributions are unproven; one client can spoil or poison a sum.")
    return "## Limits\n\n" + "\n".join(f"- {_text(limit)}" for limit in limits) + "\n"


def _table(rows: Sequence[tuple[str, str]]) -> str:
    lines = ["| | |", "|---|---|", *(f"| {_text(name)} | {_text(value)} |" for name, value in rows)]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Escape a text for Markdown, so that a name is shown and never read as markup."""
    one_line = "".join(c if c.isprintable() else " " for c in value)
    return "".join(f"&#{ord(c)};" if c in "<>&" else f"\\{c}" if c in _MARKED else c for c in one_line)
