"""Step 5 for ``lattice``: prepare while the model trains, encrypt afterwards; and the checks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anofel._core import lattice as core
from anofel._core.count import CastBit
from anofel.committee.accumulation import PostPayload
from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.committee.errors import (
    DoesNotFit,
    EnvelopeRefused,
    InvalidContext,
    PayloadRefused,
    VectorRefused,
)
from anofel.committee.interface import Bytes, Contribution, Envelope, Int64Vector, SubmittedPayload
from anofel.committee.kept import Kept
from anofel.committee.lattice.key import LatticeKey
from anofel.committee.refusal import reason_of, reasons_of, refuse_batch, refusing
from anofel.ids import BlobHash


@dataclass(frozen=True)
class LatticePrepared(Kept):
    """Masks, wrapped secret and proof for one post (kept; used once)."""

    context: PostContext
    sealed: core.PreparedMask = field(repr=False)
    bit: bytes = b""
    """The encrypted bit that the contribution proof is bound to."""

    def encrypt(self, values: Int64Vector) -> Contribution:
        """Encode, mask and switch the update, and prove it."""
        if values.dtype != np.int64 or values.ndim != 1:
            raise VectorRefused(f"An update is a flat vector of int64, not {values.ndim}-d {values.dtype}.")
        with refusing(VectorRefused):
            payload = self.sealed.seal(np.ascontiguousarray(values))
        envelope = Envelope(
            proof=self.sealed.envelope,
            payload_length=len(payload),
            payload_sha256=BlobHash(hashlib.sha256(payload).digest()),
            bit=self.bit,
        )
        return Contribution(envelope, payload)


@dataclass(frozen=True)
class LatticePayload(PostPayload):
    """A parsed payload whose proof holds."""

    checked: core.Checked = field(repr=False)


def codec(limits: TaskLimits) -> core.Codec:
    """Return the widths of a task's vectors. Raises ``DoesNotFit`` with the numbers."""
    proven = None
    if limits.norm_bound is not None:
        proven = (limits.norm_bound, limits.max_liars, [*limits.ranges])
    with refusing(DoesNotFit):
        return core.Codec(limits.length, limits.bound, limits.max_posts, proven)


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


def core_iteration(key: LatticeKey, where: IterationContext) -> core.MaskContext:
    """Return the iteration for the core."""
    with refusing(InvalidContext):
        return core.MaskContext(
            genesis=where.genesis, task=where.task, iteration=where.iteration, key_id=key.key_id
        )


def prepare(
    key: LatticeKey, context: PostContext, limits: TaskLimits, bit: CastBit | None
) -> LatticePrepared:
    """Draw s, e and r; make the masks, R, C and the proof of knowledge."""
    widths, post = codec(limits), core_post(key, context)
    with refusing(InvalidContext):
        sealed = core.PreparedMask(widths, post, key.keys, bit)
    return LatticePrepared(context, sealed, b"" if bit is None else bit.ciphertext)


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
    refused: dict[int, str] = {}
    proofs: list[tuple[core.Post, bytes]] = []
    places: list[int] = []
    for index, (context, envelope) in enumerate(items):
        try:
            _check_declared(expected, envelope)
        except EnvelopeRefused as error:
            refused[index] = str(error)
        else:
            places.append(index)
            proofs.append((core_post(key, context), envelope.proof))
    found = reasons_of(core.refused_envelopes(proofs))
    refused |= {places[place]: reason for place, reason in found.items()}
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
    """Check and parse a payload. Raises ``PayloadRefused``."""
    verdict = check_payloads(key, limits, [SubmittedPayload(context, envelope, payload)])[0]
    if isinstance(verdict, PayloadRefused):
        raise verdict
    return verdict


def check_payloads(
    key: LatticeKey, limits: TaskLimits, items: Sequence[SubmittedPayload]
) -> list[LatticePayload | PayloadRefused]:
    """Check and parse payloads of one iteration; the proofs are checked as one, with random weights.

    1. Length and hash are as declared.
    2. Every C_j is canonical.
    3. The contribution proof holds for the post, the envelope and the ballot's bit, unless the task
       does without.
    """
    verdicts: dict[int, LatticePayload | PayloadRefused] = {}
    lines: list[core.SubmittedContribution] = []
    places: list[int] = []
    for place, item in enumerate(items):
        fault = _fault_of_bytes(item.envelope, item.payload)
        if fault:
            verdicts[place] = PayloadRefused(fault)  # (1)
            continue
        places.append(place)
        lines.append(
            core.SubmittedContribution(
                post=core_post(key, item.context),
                envelope=item.envelope.proof,
                bit=item.envelope.bit,
                payload=bytes(item.payload),
            )
        )
    checked = core.check_payloads(codec(limits), key.keys, lines)  # (2), (3)
    for place, verdict in zip(places, checked, strict=True):
        if isinstance(verdict, core.Checked):
            verdicts[place] = LatticePayload(items[place].context, key.key_id, limits, verdict)
        else:
            verdicts[place] = PayloadRefused(reason_of(verdict))
    return [verdicts[place] for place in range(len(items))]


def _fault_of_bytes(envelope: Envelope, payload: Bytes) -> str:
    if len(payload) != envelope.payload_length:
        return f"The payload has {len(payload)} bytes; its envelope declares {envelope.payload_length}."
    if hashlib.sha256(payload).digest() != envelope.payload_sha256:
        return "The payload's hash is not the one its envelope declares."
    return ""
