"""The heavy checks: signatures, certificates, receipts, proofs, shares; each posting once.

``Verifier.authenticate`` establishes the author, ``Verifier.confirm`` the claims of a batch. Proofs of
one kind are verified together with fresh randomness. Verdicts are kept by posting and by everything else
they depend on, so that nothing is verified twice.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.author import Anonymous, Author, RoleHolder
from anofel.board.cache import BoundedCache
from anofel.board.claims import (
    Addressee,
    Claim,
    CountShareClaim,
    KeyClaim,
    ModelClaim,
    PossessionClaim,
    Proof,
    RegistrationClaim,
    SubmissionClaim,
    SumClaim,
    SumShareClaim,
)
from anofel.board.rule import Rejected, Rule, require
from anofel.board.rules import (
    certifiers,
    committees,
    handler_of,
    max_bytes_of,
    registrations,
    submissions,
    sums,
    tasks,
)
from anofel.board.rules.common import BAD_RECEIPT, CHAIN, MALFORMED, SIGNATURE, TOO_LONG
from anofel.board.shares import ShareDesk
from anofel.board.state import State
from anofel.certificates import CertificateRefused, Identity, Purpose, verify_chain
from anofel.committee.context import PostContext
from anofel.committee.count import BallotStatement, BundleCommittee, verify_ballots
from anofel.committee.errors import BallotRefused, EnvelopeRefused
from anofel.committee.interface import Envelope
from anofel.errors import AnofelError, InvalidInput, InvalidProof, InvalidSignature, MalformedMessage
from anofel.learning.integer_model import IntegerModel
from anofel.messages import ChainAuthor, Posting, receipt_bytes
from anofel.primitives import (
    CertifierKey,
    Commitment,
    Epoch,
    IterationNullifier,
    MessageKey,
    Possession,
    RegistrationNullifier,
    Root,
    Tag,
    TypeCommitment,
)
from anofel.proofs import (
    RegistrationProof,
    RegistrationStatement,
    RegistrationVerifier,
    SubmissionProof,
    SubmissionStatement,
    SubmissionVerifier,
)

MAX_VERDICTS = 1 << 16
"""How many verdicts are kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A posting whose author is established, with the claim that the state makes of it."""

    posting: Posting
    author: Author
    claim: Claim
    key: bytes = field(init=False)
    """What the verdict is kept under: the posting and everything else it depends on."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.posting.id + hashlib.sha256(self.claim.context).digest())


class Verifier:
    """Verifies postings for one board."""

    def __init__(
        self,
        genesis_hash: bytes,
        registration: RegistrationVerifier,
        submission: SubmissionVerifier,
        attachments: Attachments,
    ) -> None:
        self._genesis_hash = genesis_hash
        self._registration = registration
        self._submission = submission
        self._attachments = attachments
        self._verdicts: BoundedCache[bytes, Rejected | None] = BoundedCache(MAX_VERDICTS)
        self._receipts: BoundedCache[tuple[bytes, int], None] = BoundedCache(MAX_VERDICTS)
        self._chains: BoundedCache[bytes, Identity] = BoundedCache(MAX_VERDICTS)
        self.shares = ShareDesk(attachments)

    # Authors

    def open_posting(self, data: bytes) -> Posting:
        """Decode a posting, if it is not too long. Raises ``Rejected``."""
        limit = max_bytes_of(data)
        require(len(data) <= limit, TOO_LONG, f"It has {len(data)} bytes of at most {limit}.")
        try:
            return Posting.from_bytes(data)
        except MalformedMessage as error:
            raise Rejected(MALFORMED, str(error)) from None

    def authenticate(self, state: State, posting: Posting) -> Author:
        """Establish the author of a posting. Raises ``Rejected``."""
        signed = posting.signed_bytes(self._genesis_hash)
        if not isinstance(posting.author, ChainAuthor):
            try:
                MessageKey.from_bytes(posting.author.message_key).verify(signed, posting.signature)
            except (InvalidSignature, InvalidInput):
                raise Rejected(SIGNATURE) from None
            return Anonymous(posting.author.message_key)
        identity = self._identity(state, posting.author.chain, handler_of(posting.body).purposes)
        try:
            identity.verify(signed, posting.signature)
        except InvalidSignature:
            raise Rejected(SIGNATURE, culprit=identity.name) from None
        return RoleHolder(identity)

    def _identity(self, state: State, chain: Sequence[bytes], purposes: Sequence[Purpose]) -> Identity:
        refusal = ""
        for purpose in purposes:
            try:
                return self._verified_chain(state, chain, purpose)
            except (CertificateRefused, InvalidInput) as error:  # the latter: a time beyond the calendar
                refusal = refusal or str(error)
        raise Rejected(CHAIN, refusal)

    def _verified_chain(self, state: State, chain: Sequence[bytes], purpose: Purpose) -> Identity:
        """Verify a chain once per block time: role-holders post often, blocks share their time."""
        name = hashlib.sha256(b"".join(hashlib.sha256(entry).digest() for entry in chain))
        name.update(f"{purpose.name}{state.time}".encode())
        key = name.digest()
        if key not in self._chains:
            roots = state.genesis.roots
            self._chains[key] = verify_chain(chain, roots, purpose, state.time)
        return self._chains[key]

    # Claims

    def confirm(self, state: State, candidates: Sequence[Candidate]) -> list[Rejected | None]:
        """Return the verdict of every candidate: None, or why it is refused."""
        kept = [_verdict(partial(self._check_receipts, state, candidate)) for candidate in candidates]
        stored = [c for c, refusal in zip(candidates, kept, strict=True) if refusal is None]
        proven = self._confirm_proofs(stored)
        return [
            proven[candidate.key] if refusal is None else refusal
            for candidate, refusal in zip(candidates, kept, strict=True)
        ]

    def _confirm_proofs(self, candidates: Sequence[Candidate]) -> dict[bytes, Rejected | None]:
        verdicts = {c.key: self._verdicts[c.key] for c in candidates if c.key in self._verdicts}
        fresh = [c for c in candidates if c.key not in verdicts]
        if not fresh:
            return verdicts
        verdicts |= dict.fromkeys((c.key for c in fresh), None)
        self._confirm_registrations(fresh, verdicts)
        self._confirm_submissions(fresh, verdicts)
        for candidate in fresh:
            if verdicts[candidate.key] is None:
                verdicts[candidate.key] = _verdict(partial(self._check_single, candidate.claim.proof))
            self._verdicts[candidate.key] = verdicts[candidate.key]
        return verdicts

    def _check_receipts(self, state: State, candidate: Candidate) -> None:
        """Check receipts once for a block's time: a holder's certificate may end before the next."""
        key = (candidate.posting.id, state.time)
        if key in self._receipts:
            return
        for blob in candidate.claim.blobs:
            for receipt in blob.receipts:
                chain = state.genesis.holders[receipt.holder]
                signed = receipt_bytes(self._genesis_hash, blob.sha256, blob.length, receipt.expires)
                try:
                    holder = self._verified_chain(state, chain, Purpose.STORAGE)
                    holder.verify(signed, receipt.signature)
                except (CertificateRefused, InvalidSignature, InvalidInput) as error:
                    raise Rejected(BAD_RECEIPT, str(error)) from None
        if candidate.claim.blobs:
            self._receipts[key] = None

    def _confirm_registrations(
        self, candidates: Sequence[Candidate], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        items, keys = [], []
        for candidate in candidates:
            proof = candidate.claim.proof
            if isinstance(proof, RegistrationClaim):
                try:
                    items.append(self._registration_item(proof))
                    keys.append(candidate.key)
                except (InvalidInput, InvalidProof) as error:
                    verdicts[candidate.key] = Rejected(registrations.PROOF, str(error))
        self._batch(self._registration.verify_batch, items, keys, verdicts, Rejected(registrations.PROOF))

    def _confirm_submissions(
        self, candidates: Sequence[Candidate], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        items, keys, claims = [], [], []
        for candidate in candidates:
            proof = candidate.claim.proof
            if isinstance(proof, SubmissionClaim):
                try:
                    items.append(_submission_item(proof))
                    keys.append(candidate.key)
                    claims.append(proof)
                except (InvalidInput, InvalidProof) as error:
                    verdicts[candidate.key] = Rejected(submissions.PROOF, str(error))
        self._batch(self._submission.verify_batch, items, keys, verdicts, Rejected(submissions.PROOF))
        valid = [(key, claim) for key, claim in zip(keys, claims, strict=True) if verdicts[key] is None]
        self._confirm_envelopes(valid, verdicts)
        self._confirm_ballots([(key, claim) for key, claim in valid if verdicts[key] is None], verdicts)

    def _confirm_envelopes(
        self, claims: Sequence[tuple[bytes, SubmissionClaim]], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        """Check the envelopes for each committee together."""
        groups: dict[Addressee, list[tuple[bytes, PostContext, Envelope]]] = {}
        for key, claim in claims:
            for place, addressee in enumerate(claim.addressees):
                entry = claim.body.contributions[place]
                envelope = Envelope(
                    proof=entry.envelope,
                    payload_length=entry.payload.length,
                    payload_sha256=entry.payload.sha256,
                )
                groups.setdefault(addressee, []).append((key, claim.contexts[place], envelope))
        for addressee, items in groups.items():
            scheme, committee_key = self.shares.key_of(addressee.committee)
            pairs = [(context, envelope) for _, context, envelope in items]
            try:
                scheme.verify_envelopes(committee_key, addressee.limits, pairs)
            except EnvelopeRefused as error:
                for index, reason in error.reasons.items():
                    verdicts[items[index][0]] = Rejected(submissions.ENVELOPE, reason)

    def _confirm_ballots(
        self, claims: Sequence[tuple[bytes, SubmissionClaim]], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        items, keys = [], []
        for key, claim in claims:
            lines = []
            for addressee in claim.addressees:
                _, committee = self.shares.key_of(addressee.committee)
                lines.append(
                    BundleCommittee(
                        key_id=committee.key_id,
                        count_key=committee.count_key,
                        accepted_types=addressee.types,
                    )
                )
            try:
                statement = BallotStatement(claim.contexts[0], claim.body.type_commitment, lines)
            except BallotRefused as error:
                verdicts[key] = Rejected(submissions.BALLOT, str(error))
                continue
            items.append((statement, claim.body.ballot))
            keys.append(key)
        try:
            verify_ballots(items)
        except BallotRefused as error:
            for index, reason in error.reasons.items():
                verdicts[keys[index]] = Rejected(submissions.BALLOT, reason)

    @staticmethod
    def _batch(
        verify: Callable[..., None],
        items: Sequence[object],
        keys: Sequence[bytes],
        verdicts: dict[bytes, Rejected | None],
        refusal: Rejected,
    ) -> None:
        if not items:
            return
        try:
            verify(items)
        except InvalidProof as error:
            for index in error.indices if error.indices is not None else range(len(keys)):
                verdicts[keys[index]] = refusal

    def _registration_item(self, claim: RegistrationClaim) -> tuple[RegistrationStatement, RegistrationProof]:
        body = claim.body
        statement = RegistrationStatement(
            certifier_root=Root.from_bytes(body.certifier_root),
            commitment=Commitment.from_bytes(body.commitment),
            nullifier=RegistrationNullifier.from_bytes(body.nullifier),
            epoch=Epoch(self._genesis_hash, body.epoch),
            tag=Tag.from_bytes(body.tag),
            a=MessageKey.from_bytes(claim.message_key).hash(),
        )
        return statement, RegistrationProof.from_bytes(body.proof)

    def _check_single(self, proof: Proof | None) -> None:
        if isinstance(proof, PossessionClaim):
            self._check_possession(proof)
        elif isinstance(proof, KeyClaim):
            self._check_key(proof)
        elif isinstance(proof, ModelClaim):
            self._check_model(proof)
        elif isinstance(proof, SumClaim):
            _under(sums.SUM, lambda: self.shares.check_sum(proof))
        elif isinstance(proof, CountShareClaim):
            _under(sums.COUNT_SHARE, lambda: self.shares.check_count_share(proof), proof.author)
        elif isinstance(proof, SumShareClaim):
            _under(sums.SUM_SHARE, lambda: self.shares.check_sum_share(proof), proof.author)

    def _check_possession(self, claim: PossessionClaim) -> None:
        try:
            key = CertifierKey.from_bytes(claim.key)
            possession = Possession.from_bytes(claim.possession)
            key.verify_possession(self._genesis_hash, claim.holder, possession)
        except (InvalidSignature, InvalidInput) as error:
            raise Rejected(certifiers.POSSESSION, str(error)) from None

    def _check_key(self, claim: KeyClaim) -> None:
        _under(committees.KEY, lambda: self.shares.check_key(claim))

    def _check_model(self, claim: ModelClaim) -> None:
        try:
            model = IntegerModel.from_bytes(self._attachments.read(claim.sha256))
        except InvalidInput as error:
            raise Rejected(tasks.SHAPE, str(error)) from None
        require(model.layout.size == claim.length, tasks.SHAPE, "It has another number of parameters.")
        require(model.scale_bits == claim.scale_bits, tasks.SHAPE, "It has another scale.")
        momentum = model.velocity is not None
        require(momentum == claim.momentum, tasks.SHAPE, "A velocity goes with momentum.")


def _verdict(check: Callable[[], None]) -> Rejected | None:
    try:
        check()
    except Rejected as rejected:
        return rejected.again()  # without the frames of the check, which a cache would keep
    return None


def _under(rule: Rule, check: Callable[[], object], culprit: str = "") -> None:
    """Turn a failed check into the rejection of its rule; a lost blob is not its author's fault."""
    try:
        check()
    except (Rejected, AttachmentMissing, DamagedBlob):
        raise
    except AnofelError as error:
        raise Rejected(rule, str(error), culprit) from None


def _submission_item(claim: SubmissionClaim) -> tuple[SubmissionStatement, SubmissionProof]:
    body = claim.body
    statement = SubmissionStatement(
        client_root=Root.from_bytes(claim.client_root),
        nullifier=IterationNullifier.from_bytes(body.nullifier),
        tag=Tag.from_bytes(body.tag),
        a=MessageKey.from_bytes(claim.message_key).hash(),
        scope=claim.scope,
        type_commitment=TypeCommitment.from_bytes(body.type_commitment),
    )
    return statement, SubmissionProof.from_bytes(body.proof)
