"""Step 5 for ``lattice``: prepare while the model trains, encrypt afterwards; and the checks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anofel._core import committee as core
from anofel.committee.accumulation import PostPayload
from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.committee.errors import (
    DoesNotFit,
    EnvelopeRefused,
    InvalidContext,
    PayloadRefused,
    PreparationUsed,
    VectorRefused,
)
from anofel.committee.interface import Bytes, Contribution, Envelope, Int64Vector
from anofel.committee.kept import Kept
from anofel.committee.lattice.key import LatticeKey
from anofel.committee.refusal import refuse_batch, refusing


@dataclass(frozen=True)
class LatticePrepared(Kept):
    """Masks, wrapped secret and proof for one post (kept; used once)."""

    context: PostContext
    sealed: core.Prepared = field(repr=False)


@dataclass(frozen=True)
class LatticePayload(PostPayload):
    """A parsed payload."""

    checked: core.Checked = field(repr=False)


def codec(limits: TaskLimits) -> core.Codec:
    """Return the widths of a task's vectors. Raises ``DoesNotFit`` with the numbers."""
    return widths(limits.length, limits.bound, limits.max_posts)


def widths(length: int, bound: int, max_posts: int) -> core.Codec:
    """Return the widths of vectors. Raises ``DoesNotFit`` with the numbers."""
    with refusing(DoesNotFit):
        return core.Codec(length, bound, max_posts)


def core_post(key: LatticeKey, context: PostContext) -> core.Post:
    """Return the post for the core."""
    where = context.iteration
    with refusing(InvalidContext):
        return core.Post(
            genesis=where.genesis,
            task=where.task,
            iteration=where.iteration,
            key_id=key.key_id,
            position=where.position,
            scope=where.scope,
            nullifier=context.nullifier,
            tag=context.tag,
            pk_sig=context.pk_sig,
        )


def core_iteration(key: LatticeKey, iteration: IterationContext) -> core.Post:
    """Return the iteration for the core; the fields of a post stay zero and are not used."""
    nothing = bytes(32)
    return core_post(key, PostContext(iteration=iteration, nullifier=nothing, tag=nothing, pk_sig=nothing))


def prepare(key: LatticeKey, context: PostContext, limits: TaskLimits) -> LatticePrepared:
    """Draw s, e and r; make the masks, R, C and the proof of knowledge."""
    return LatticePrepared(context, core.Prepared(codec(limits), core_post(key, context), key.keys))


def encrypt(prepared: LatticePrepared, values: Int64Vector) -> Contribution:
    """Encode, mask and switch the update; consume the preparation."""
    if values.dtype != np.int64 or values.ndim != 1:
        raise VectorRefused(f"An update is a flat vector of int64, not {values.ndim}-d {values.dtype}.")
    with refusing(VectorRefused):
        payload = prepared.sealed.seal(np.ascontiguousarray(values))
    if payload is None:
        raise PreparationUsed("This preparation has been used; a retry resends the stored bytes.")
    envelope = Envelope(
        proof=prepared.sealed.envelope,
        payload_length=len(payload),
        payload_sha256=hashlib.sha256(payload).digest(),
    )
    return Contribution(envelope, payload)


def verify_envelope(key: LatticeKey, context: PostContext, limits: TaskLimits, envelope: Envelope) -> None:
    """Check an envelope.

    1. The declared length is that of every payload of the task.
    2. The declared hash has 32 bytes.
    3. R, T and z are canonical and R is not neutral.
    4. z·G = T + e·R: the proof of plaintext knowledge, bound to the post.
    """
    _check_declared(codec(limits).payload_bytes, envelope)  # (1), (2)
    with refusing(EnvelopeRefused):  # (3), (4)
        core.verify_envelope(core_post(key, context), envelope.proof)


def verify_envelopes(
    key: LatticeKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
) -> None:
    """Check many envelopes; the equations (4) are checked as one, with random weights."""
    expected = codec(limits).payload_bytes
    refused: list[tuple[int, str]] = []
    proofs: list[tuple[core.Post, bytes]] = []
    places: list[int] = []
    for index, (context, envelope) in enumerate(items):
        try:
            _check_declared(expected, envelope)
        except EnvelopeRefused as error:
            refused.append((index, str(error)))
        else:
            places.append(index)
            proofs.append((core_post(key, context), envelope.proof))
    refused += [(places[place], sentence) for place, sentence in core.refused_envelopes(proofs)]
    refuse_batch(EnvelopeRefused, len(items), refused)


def _check_declared(expected: int, envelope: Envelope) -> None:
    if envelope.payload_length != expected:
        raise EnvelopeRefused(
            f"The declared payload has {envelope.payload_length} bytes instead of {expected}."
        )
    if len(envelope.payload_sha256) != hashlib.sha256().digest_size:
        raise EnvelopeRefused("The declared hash of the payload does not have 32 bytes.")


def verify_payload(
    key: LatticeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
) -> LatticePayload:
    """Check and parse a payload: length and hash as declared, every C_j canonical."""
    if len(payload) != envelope.payload_length:
        raise PayloadRefused(
            f"The payload has {len(payload)} bytes; its envelope declares {envelope.payload_length}."
        )
    if hashlib.sha256(payload).digest() != envelope.payload_sha256:
        raise PayloadRefused("The payload's hash is not the one its envelope declares.")
    with refusing(PayloadRefused):
        checked = core.Checked(codec(limits), envelope.proof, payload)
    return LatticePayload(context, key.key_id, limits, checked)
