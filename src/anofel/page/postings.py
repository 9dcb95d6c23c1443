"""A posting field by field, with the rules it passed and its step in the paper."""

import json
from dataclasses import dataclass, fields

from anofel.board.rule import RULES
from anofel.board.rules import HANDLERS
from anofel.disk.sections import json_values
from anofel.messages import Blob, ChainAuthor, Posting, TaskAnnouncement
from anofel.messages.view import View
from anofel.page.words import STEPS
from anofel.pki.certificates import subject_and_name

_GROUPS = {
    "CertifierKeyOffer": ("certifier",),
    "RevokeCertifier": ("revocation",),
    "Registration": ("registration",),
    "DkgRound": ("blob", "run"),
    "CommitteeKeyVote": ("blob", "committee"),
    "TaskAnnouncement": ("announcement",),
    "Model": ("blob", "task", "model"),
    "RejectModel": ("task", "rejection"),
    "Submission": ("blob", "submission"),
    "Aggregate": ("blob", "task", "member", "aggregate"),
    "CountShare": ("task", "member", "count"),
    "SumShare": ("blob", "task", "member", "sum"),
    "EndIteration": ("task", "ending"),
    "EndTask": ("task", "ending"),
    "PrivacyLedger": ("task", "ledger"),
    "ChangeValidators": ("validator", "change"),
    "SignChange": ("validator", "signing"),
}
"""The groups of rules that a kind must pass, after those for every posting."""
MAX_SHOWN = 64
"""Longer bytes are shown by their beginning and their length."""


@dataclass(frozen=True, kw_only=True)
class FieldFacts:
    """A field of a posting; those of parts have a dotted name."""

    name: str
    value: str
    blob: str | None = None
    """SHA-256 of a blob that the board keeps."""


@dataclass(frozen=True, kw_only=True)
class RuleFacts:
    """A rule that a posting passed."""

    number: str
    code: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PostingFacts:
    """A posting of a block."""

    id: str
    height: int
    place: int
    kind: str
    step: str
    words: str
    author: str
    """The subject of its certificate, or the key that a client made for this posting alone."""
    num_bytes: int
    fields: tuple[FieldFacts, ...]
    rules: tuple[RuleFacts, ...]


def posting_facts(posting: Posting, height: int, place: int) -> PostingFacts:
    """Say what stands in a posting."""
    kind = type(posting.body).__name__
    step, words, _ = STEPS[kind]
    return PostingFacts(
        id=posting.id.hex(),
        height=height,
        place=place,
        kind=kind,
        step=step,
        words=words,
        author=author_of(posting),
        num_bytes=len(posting.data),
        fields=tuple(_fields(posting.body)),
        rules=tuple(rules_of(kind)),
    )


def author_of(posting: Posting) -> str:
    """Name who posted: a role-holder by its certificate, a client by a key that nobody saw before."""
    if isinstance(posting.author, ChainAuthor):
        return subject_and_name(posting.author.chain[0])[1]
    return f"a client, by a key of its own for this posting: {posting.author.message_key.hex()}"


def rules_of(kind: str) -> list[RuleFacts]:
    """Return the rules that every posting of a kind has passed."""
    groups = ("posting", *_GROUPS[kind])
    return [
        RuleFacts(number=rule.number, code=rule.code, sentence=rule.sentence)
        for group in groups
        for rule in RULES.values()
        if rule.number.rsplit(" ", 1)[0] == group
    ]


def _fields(view: View, prefix: str = "") -> list[FieldFacts]:
    found: list[FieldFacts] = []
    for field in fields(view):
        name, value = prefix + field.name, getattr(view, field.name)
        if isinstance(view, TaskAnnouncement) and field.name == "document":
            found.append(FieldFacts(name=name, value=json.dumps(json_values(value, "A task"), indent=1)))
        elif isinstance(value, tuple):
            parts = [part for at, one in enumerate(value, start=1) for part in _parts(f"{name} {at}", one)]
            found += parts or [FieldFacts(name=name, value="none")]
        else:
            found += _parts(name, value)
    return found


def _parts(name: str, value: object) -> list[FieldFacts]:
    if isinstance(value, Blob):
        return [FieldFacts(name=name, value=f"{value.length:,} bytes", blob=value.sha256.hex())]
    return (
        _fields(value, f"{name}.") if isinstance(value, View) else [FieldFacts(name=name, value=_text(value))]
    )


def _text(value: object) -> str:
    if isinstance(value, bytes):
        if len(value) <= MAX_SHOWN:
            return value.hex() or "empty"
        return f"{value[:MAX_SHOWN].hex()}… ({len(value):,} bytes)"
    return "none" if value is None else f"{value}"


_UNKNOWN = {body.__name__ for body in HANDLERS} ^ _GROUPS.keys()
if _UNKNOWN or _GROUPS.keys() != STEPS.keys():
    raise AssertionError(f"The page does not know every kind of posting: {_UNKNOWN}.")
