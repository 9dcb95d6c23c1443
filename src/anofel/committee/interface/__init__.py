"""The one interface of committee encryption; ``lattice`` and ``paillier`` implement it.

The order of calls, by role (AnoFel steps 1.c, 5, 6-8):

1. Members: ``scheme.key_generation().begin(run, member)``, then ``advance`` once per round with
   everybody's messages of that round, until it returns a ``GeneratedKey``.
2. Client: ``scheme.read_key(bytes)``; ``prepare`` while the model trains; what it returns encrypts, once.
3. Board: ``verify_envelopes`` at admission (and the bundles' ballots, see ``anofel.committee.count``).
4. Members: ``check_payloads`` as payloads arrive, ``Accumulator.add``, ``finish``.
5. Members: the count first. ``count.partial_decrypt`` … ``count.combine`` gives a
   ``DecryptedCount``; its ``permit_sum()`` gives a ``SumPermit`` or raises ``TooFewClients``.
6. Members: ``partial_decrypt`` with that permit. Board: ``verify_share``, once per share.
   Anyone: ``combine`` what it returned.

Rules that hold for every implementation:

* What is sent and what is kept are different types. Kept types redact ``repr``.
* ``verify_*`` and ``read_*`` raise; they never return a boolean.
* Nothing above this package asks which scheme it has; ``schemes.by_name`` is the only place that knows.
* Vectors are C-contiguous int64 arrays and cross into native code as one buffer per call.
"""

from anofel.committee.interface.ceremonies import (
    ESTIMATE,
    GeneratedKey,
    HandedOverKey,
    Handover,
    HandoverParty,
    HandoverResult,
    HandoverRun,
    KeyGeneration,
    KeyGenerationRun,
    KeyProgress,
    ObservedKey,
    PostedRounds,
    Report,
    RoundMessage,
    RoundResult,
    SecretHandoverState,
    SecretRoundState,
    check_made,
)
from anofel.committee.interface.contributions import (
    Accumulator,
    Bytes,
    CheckedPayload,
    Contribution,
    EncryptedSum,
    Envelope,
    Int64Vector,
    Prepared,
    SubmittedPayload,
)
from anofel.committee.interface.keys import CommitteeKey, SecretKeyShare
from anofel.committee.interface.scheme import Scheme, check_permit

__all__ = [
    "ESTIMATE",
    "Accumulator",
    "Bytes",
    "CheckedPayload",
    "CommitteeKey",
    "Contribution",
    "EncryptedSum",
    "Envelope",
    "GeneratedKey",
    "HandedOverKey",
    "Handover",
    "HandoverParty",
    "HandoverResult",
    "HandoverRun",
    "Int64Vector",
    "KeyGeneration",
    "KeyGenerationRun",
    "KeyProgress",
    "ObservedKey",
    "PostedRounds",
    "Prepared",
    "Report",
    "RoundMessage",
    "RoundResult",
    "Scheme",
    "SecretHandoverState",
    "SecretKeyShare",
    "SecretRoundState",
    "SubmittedPayload",
    "check_made",
    "check_permit",
]
