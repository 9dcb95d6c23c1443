"""The heavy checks: signatures, certificates, receipts, proofs, shares; each posting once.

``Verifier.authenticate`` establishes the author, ``Verifier.confirm`` the claims of a batch. Proofs of
one kind are verified together with fresh randomness. Verdicts are kept by posting and by everything else
they depend on, so that nothing is verified twice. Threads may share a verifier.
"""

import hashlib
import sys
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
    RegistrationClaim,
    SubmissionClaim,
    SumClaim,
    SumShareClaim,
)
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.openings import Openings
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
from anofel.board.state import State
from anofel.board.statements import ballot_statement, registration_item, submission_item
from anofel.committee.context import PostContext
from anofel.committee.count import bit_of, verify_ballots
from anofel.committee.errors import BallotRefused, EnvelopeRefused
from anofel.committee.interface import Envelope
from anofel.errors import (
    AnofelError,
    InvalidInput,
    InvalidProof,
    InvalidSignature,
    MalformedMessage,
    PeerUnreachable,
)
from anofel.ids import GenesisHash
from anofel.messages import Blob, ChainAuthor, Posting, Receipt, receipt_bytes
from anofel.models.integer_model import IntegerModel, ModelOverflow
from anofel.pki.certificates import CertificateRefused, Identity, Purpose, verify_chain
from anofel.primitives import (
    CertifierKey,
    MessageKey,
    Possession,
)
from anofel.proofs.statements import (
    RegistrationVerifier,
    SubmissionVerifier,
)

MAX_RECEIPTS = 1 << 16
"""How many postings are remembered whose receipts were checked; the oldest go first."""
MAX_VERDICT_BYTES = 32 << 20
MAX_CHAIN_BYTES = 32 << 20
"""What kept verdicts and certificates may take: their authors choose names and reasons up to a certificate's
length, and a chain is kept for each block time."""
_ENTRY_BYTES = 256
_KEY_BYTES = 2048
"""What an entry takes beside its text, rounded up: two hashes and objects; a public key of OpenSSL."""


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

    @property
    def culprit(self) -> str:
        """Who is named if the claim is false; nobody, if the author is a client."""
        return self.author.name if isinstance(self.author, RoleHolder) else ""


class Verifier:
    """Verifies postings for one board."""

    def __init__(
        self,
        genesis_hash: GenesisHash,
        registration: RegistrationVerifier,
        submission: SubmissionVerifier,
        attachments: Attachments,
        keys: CommitteeKeys | None = None,
    ) -> None:
        """``keys``: who reads and checks committee keys, if not as usual."""
        self._genesis_hash = genesis_hash
        self.registration = registration
        self.submission = submission
        self._attachments = attachments
        self._verdicts: BoundedCache[bytes, Rejected | None] = BoundedCache(MAX_VERDICT_BYTES, _verdict_bytes)
        self._receipts: BoundedCache[bytes, None] = BoundedCache(MAX_RECEIPTS)
        self._chains: BoundedCache[bytes, Identity] = BoundedCache(MAX_CHAIN_BYTES, _identity_bytes)
        self.keys = CommitteeKeys(attachments) if keys is None else keys
        self.openings = Openings(attachments, self.keys)

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
        roots, time = state.genesis.roots, state.time
        return self._chains.get_or(name.digest(), lambda: verify_chain(chain, roots, purpose, time))

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

    def is_slow(self, candidate: Candidate) -> bool:
        """Whether the verdict may take long: it is not kept, and needs blobs or shares."""
        proof = candidate.claim.proof
        quick = (RegistrationClaim, SubmissionClaim, PossessionClaim)
        return proof is not None and not isinstance(proof, quick) and candidate.key not in self._verdicts

    def _confirm_proofs(self, candidates: Sequence[Candidate]) -> dict[bytes, Rejected | None]:
        verdicts = self._verdicts.found(c.key for c in candidates)
        fresh = [c for c in candidates if c.key not in verdicts]
        if not fresh:
            return verdicts
        verdicts |= dict.fromkeys((c.key for c in fresh), None)
        self._confirm_registrations(fresh, verdicts)
        self._confirm_submissions(fresh, verdicts)
        for candidate in fresh:
            if verdicts[candidate.key] is None:
                verdicts[candidate.key] = _verdict(partial(self._check_single, candidate))
            self._verdicts[candidate.key] = verdicts[candidate.key]
        return verdicts

    def _check_receipts(self, state: State, candidate: Candidate) -> None:
        """Check that receipts are signed, once, and their holders certified, at each block's time."""
        era = state.validators.eras.at(state.height).since  # between changes the holders' keys are the same
        name = candidate.posting.id + era.to_bytes(8, "little")
        known = name in self._receipts
        for blob in candidate.claim.blobs:
            for receipt in blob.receipts:
                self._check_receipt(state, blob, receipt, known=known)
        if candidate.claim.blobs and not known:
            self._receipts[name] = None

    def _check_receipt(self, state: State, blob: Blob, receipt: Receipt, *, known: bool) -> None:
        """Check a receipt against the certificates of who may sign for its place.

        While there are two, for a change is young, it is not enough to know that one of them signed.
        """
        refusal = ""
        message = receipt_bytes(self._genesis_hash, blob.sha256, blob.length, receipt.expires)
        chains = state.validators.holders_at(state.height, receipt.holder)
        for chain in chains:
            try:
                holder = self._verified_chain(state, chain, Purpose.STORAGE)
                if not known or len(chains) > 1:
                    holder.verify(message, receipt.signature)
                return
            except (CertificateRefused, InvalidSignature, InvalidInput) as error:
                refusal = refusal or str(error)
        raise Rejected(BAD_RECEIPT, refusal)

    def _confirm_registrations(
        self, candidates: Sequence[Candidate], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        items, keys = [], []
        for candidate in candidates:
            proof = candidate.claim.proof
            if isinstance(proof, RegistrationClaim):
                try:
                    items.append(registration_item(proof, self._genesis_hash))
                    keys.append(candidate.key)
                except (InvalidInput, InvalidProof) as error:
                    verdicts[candidate.key] = Rejected(registrations.PROOF, str(error))
        self._batch(self.registration.verify_batch, items, keys, verdicts, Rejected(registrations.PROOF))

    def _confirm_submissions(
        self, candidates: Sequence[Candidate], verdicts: dict[bytes, Rejected | None]
    ) -> None:
        items, keys, claims = [], [], []
        for candidate in candidates:
            proof = candidate.claim.proof
            if isinstance(proof, SubmissionClaim):
                try:
                    items.append(submission_item(proof))
                    keys.append(candidate.key)
                    claims.append(proof)
                except (InvalidInput, InvalidProof) as error:
                    verdicts[candidate.key] = Rejected(submissions.PROOF, str(error))
        self._batch(self.submission.verify_batch, items, keys, verdicts, Rejected(submissions.PROOF))
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
                    bit=bit_of(claim.body.ballot, place),
                )
                groups.setdefault(addressee, []).append((key, claim.contexts[place], envelope))
        for addressee, items in groups.items():
            scheme, committee_key = self.keys.read(addressee.committee)
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
                _, committee = self.keys.read(addressee.committee)
                lines.append((committee, addressee.types))
            try:
                statement = ballot_statement(claim.contexts[0], claim.body.type_commitment, lines)
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

    def _check_single(self, candidate: Candidate) -> None:
        proof, culprit = candidate.claim.proof, candidate.culprit
        if isinstance(proof, PossessionClaim):
            self._check_possession(proof)
        elif isinstance(proof, KeyClaim):
            self._check_key(proof, culprit)
        elif isinstance(proof, ModelClaim):
            self._check_model(proof)
        elif isinstance(proof, SumClaim):
            _under(sums.SUM, lambda: self.openings.check_sum(proof))
        elif isinstance(proof, CountShareClaim):
            _under(sums.COUNT_SHARE, lambda: self.openings.check_count_share(proof), culprit)
        elif isinstance(proof, SumShareClaim):
            _under(sums.SUM_SHARE, lambda: self.openings.check_sum_share(proof), culprit)

    def _check_possession(self, claim: PossessionClaim) -> None:
        try:
            key = CertifierKey.from_bytes(claim.key)
            possession = Possession.from_bytes(claim.possession)
            key.verify_possession(self._genesis_hash, claim.holder, possession)
        except (InvalidSignature, InvalidInput) as error:
            raise Rejected(certifiers.POSSESSION, str(error)) from None

    def _check_key(self, claim: KeyClaim, culprit: str) -> None:
        _under(committees.KEY, lambda: self.keys.check_key(claim), culprit)
        _under(committees.MADE, lambda: self.keys.check_made(claim), culprit)

    def _check_model(self, claim: ModelClaim) -> None:
        try:
            model = IntegerModel.from_bytes(self._attachments.read(claim.sha256))
        except ModelOverflow as error:
            raise Rejected(tasks.MAGNITUDE, str(error)) from None
        except InvalidInput as error:
            raise Rejected(tasks.SHAPE, str(error)) from None
        require(model.layout.size == claim.length, tasks.SHAPE, "It has another number of parameters.")
        require(model.scale_bits == claim.scale_bits, tasks.SHAPE, "It has another scale.")
        companions = model.companions == claim.companions
        require(companions, tasks.SHAPE, "It does not carry the vectors that the task's rule keeps.")


def _verdict_bytes(verdict: Rejected | None) -> int:
    """Estimate what a kept verdict takes; its sentence repeats the detail."""
    if verdict is None:
        return _ENTRY_BYTES
    return 2 * _ENTRY_BYTES + 2 * sys.getsizeof(verdict.detail) + sys.getsizeof(verdict.culprit)


def _identity_bytes(identity: Identity) -> int:
    return _KEY_BYTES + _ENTRY_BYTES + sys.getsizeof(identity.name)


def _verdict(check: Callable[[], None]) -> Rejected | None:
    try:
        check()
    except Rejected as rejected:
        return rejected.again()  # without the frames of the check, which a cache would keep
    return None


def _under(rule: Rule, check: Callable[[], object], culprit: str = "") -> None:
    """Turn a failed check into the rejection of its rule; a blob that is away is not its author's fault."""
    try:
        check()
    except (Rejected, AttachmentMissing, DamagedBlob, PeerUnreachable):
        raise
    except AnofelError as error:
        raise Rejected(rule, str(error), culprit) from None
