"""The rules of admission, one module for each group of postings.

``check`` reads the state, raises ``Rejected`` or returns what verification must confirm; ``apply``
changes the state and cannot fail. The order of checks is: length, decoding, signature, duplicates and
state (``check``), proofs (the claim).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anofel import messages
from anofel._core.messages import kinds
from anofel.board.author import Author
from anofel.board.claims import Claim
from anofel.board.rules import certifiers, committees, registrations, submissions, sums, tasks, validators
from anofel.board.state import State
from anofel.ids import PostingId
from anofel.pki.certificates import Purpose

KIB = 1 << 10


@dataclass(frozen=True, slots=True)
class Handler:
    """How the board treats one kind of posting."""

    check: Callable[[State, Any, Author], Claim]
    apply: Callable[[State, Any, Author, PostingId], None]
    max_bytes: int
    """The longest posting of this kind, certificates included."""
    purposes: tuple[Purpose, ...] = ()
    """What the author is certified for; clients present no certificate."""


_OWNER = (Purpose.OWNER,)
_AGGREGATOR = (Purpose.AGGREGATOR,)
_VALIDATOR = (Purpose.VALIDATOR,)

HANDLERS: dict[type, Handler] = {
    messages.CertifierKeyOffer: Handler(
        certifiers.check_key, certifiers.apply_key, 20 * KIB, (Purpose.CERTIFIER,)
    ),
    messages.RevokeCertifier: Handler(
        certifiers.check_revocation,
        certifiers.apply_revocation,
        20 * KIB,
        (Purpose.CERTIFIER, Purpose.OPERATOR),
    ),
    messages.Registration: Handler(registrations.check, registrations.apply, KIB),
    messages.DkgRound: Handler(committees.check_round, committees.apply_round, 20 * KIB, _AGGREGATOR),
    messages.CommitteeKeyVote: Handler(committees.check_key, committees.apply_key, 20 * KIB, _AGGREGATOR),
    messages.TaskAnnouncement: Handler(tasks.check_task, tasks.apply_task, 84 * KIB, _OWNER),
    messages.Model: Handler(tasks.check_model, tasks.apply_model, 20 * KIB, _OWNER),
    messages.RejectModel: Handler(tasks.check_rejection, tasks.apply_rejection, 20 * KIB, _OWNER),
    messages.Submission: Handler(submissions.check, submissions.apply, 96 * KIB),
    messages.Aggregate: Handler(sums.check_aggregate, sums.apply_aggregate, 640 * KIB, _AGGREGATOR),
    messages.CountShare: Handler(sums.check_count_share, sums.apply_count_share, 56 * KIB, _AGGREGATOR),
    messages.SumShare: Handler(sums.check_sum_share, sums.apply_sum_share, 64 * KIB, _AGGREGATOR),
    messages.EndIteration: Handler(tasks.check_end_iteration, tasks.apply_end_iteration, 20 * KIB, _OWNER),
    messages.EndTask: Handler(tasks.check_end_task, tasks.apply_end_task, 20 * KIB, _OWNER),
    messages.PrivacyLedger: Handler(tasks.check_ledger, tasks.apply_ledger, 20 * KIB, _OWNER),
    messages.ChangeValidators: Handler(
        validators.check_change, validators.apply_change, 52 * KIB, _VALIDATOR
    ),
    messages.SignChange: Handler(
        validators.check_signature, validators.apply_signature, 20 * KIB, _VALIDATOR
    ),
}

_LIMITS = {
    number: handler.max_bytes
    for number, name, _ in kinds()
    for body, handler in HANDLERS.items()
    if body.__name__ == name
}
_KIND_OFFSET = 1

MAX_POSTING_BYTES = max(handler.max_bytes for handler in HANDLERS.values())


def handler_of(body: object) -> Handler:
    """Return how a posting with this body is treated."""
    return HANDLERS[type(body)]


def max_bytes_of(data: bytes) -> int:
    """Return how long a posting may be, by its kind and before it is decoded."""
    kind = data[_KIND_OFFSET] if len(data) > _KIND_OFFSET else 0
    return _LIMITS.get(kind, MAX_POSTING_BYTES)
