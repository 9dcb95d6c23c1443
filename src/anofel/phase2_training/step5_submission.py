"""Step 5 — a client submits its update (AnoFel §4.3.2; D-01, D-06, D-08, D-10).

``prepare_submission``, while the model trains, since nothing of it depends on the update:

1. The client draws a key for this posting alone and proves that some registered client posts with it.
2. It casts an encrypted bit for every committee of the bundle: 1 for its own, 0 for the others.
3. It makes the masks that hide a vector from everybody but the committee as a whole.
4. For every committee but its own it encrypts zeros, and proves that they are.

``seal_submission``, when the time of the post is near:

5. It encrypts the update for its own committee, and proves it.

``post_submission``:

6. The payloads are stored, with a ticket that shows the membership proof; the posting names them, and the
   fresh key signs it.

The board learns that a registered client posts, and that it had not posted in this iteration.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from anofel.board.interface import BoardView, Holder
from anofel.board.seat import Sitting
from anofel.board.statements import ballot_statement, submission_statement
from anofel.board.tickets import ClientTicket
from anofel.committee.count import TypeOpening
from anofel.committee.interface import Contribution, Int64Vector, Prepared
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, GenesisHash, Nullifier
from anofel.messages import KeyAuthor, Posting, Submission, SubmittedPart, make_posting
from anofel.phase1_setup.step1b_certification import Credential
from anofel.primitives import ClientTree, Commitment, MessageSecret, Salt, Scope, TypeBlinding, TypeCommitment
from anofel.proofs.statements import SubmissionProver, SubmissionStatement, SubmissionWitness


@dataclass(frozen=True, repr=False)
class Membership:
    """What a submission shows to everybody beside its ciphertexts, and the key that signs it (kept)."""

    bundle: int
    iteration: int
    nullifier: Nullifier
    tag: bytes
    type_commitment: bytes
    proof: bytes
    message_secret: MessageSecret

    def __repr__(self) -> str:
        return f"Membership(bundle {self.bundle}, iteration {self.iteration})"

    @property
    def message_key(self) -> bytes:
        """The key of this one posting."""
        return self.message_secret.public_key().to_bytes()

    def statement(self, client_root: bytes, genesis: GenesisHash) -> SubmissionStatement:
        """Return what was proven, as everybody puts it together from the posting and the board."""
        return submission_statement(
            client_root=client_root,
            scope=Scope(genesis, self.bundle, self.iteration),
            nullifier=self.nullifier,
            tag=self.tag,
            type_commitment=self.type_commitment,
            message_key=self.message_key,
        )


def prove_membership(
    credential: Credential,
    *,
    salt: Salt,
    rho: TypeBlinding,
    clients: ClientTree,
    genesis: GenesisHash,
    bundle: int,
    iteration: int,
    prover: SubmissionProver,
) -> Membership:
    """Prove that a registered client posts, once, in this iteration, under a fresh message key.

    ``clients`` is the tree whose root was fixed when the iteration opened (D-07); the salt is that of
    the registration; ρ is fresh for every posting.
    """
    msk, d, dt = credential.msk, credential.d, credential.dt
    secret, scope = MessageSecret.generate(), Scope(genesis, bundle, iteration)
    message_key = secret.public_key()
    nullifier = Nullifier(msk.iteration_nullifier(d, scope).to_bytes())
    tag = msk.tag(message_key.hash()).to_bytes()
    type_commitment = TypeCommitment(dt, rho).to_bytes()
    statement = submission_statement(
        client_root=clients.root().to_bytes(),
        scope=scope,
        nullifier=nullifier,
        tag=tag,
        type_commitment=type_commitment,
        message_key=message_key.to_bytes(),
    )
    path = clients.path(clients.position(Commitment(d, msk, dt, salt)))
    witness = SubmissionWitness(d=d, dt=dt, salt=salt, msk=msk, path=path, rho=rho)
    proof = prover.prove(statement, witness).to_bytes()
    return Membership(bundle, iteration, nullifier, tag, type_commitment, proof, secret)


@dataclass(frozen=True, repr=False)
class PreparedSubmission:
    """Everything of a submission that does not depend on the update (kept; used once)."""

    membership: Membership
    ballot: bytes
    decoys: tuple[Contribution | None, ...]
    """Encrypted zeros for every committee of the bundle but the target's."""
    mask: Prepared | None
    """For the update; None for a cover post."""
    target: int | None
    """The place of the task that is trained; None for a cover post."""

    def __repr__(self) -> str:
        return f"PreparedSubmission({self.membership})"


@dataclass(frozen=True, repr=False)
class SealedSubmission:
    """An encrypted submission, as a client keeps it until it is posted. A retry resends these very bytes."""

    membership: Membership
    ballot: bytes
    envelopes: tuple[bytes, ...]
    payloads: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"SealedSubmission({self.membership})"

    def to_secret_bytes(self) -> bytes:
        """Return everything but the payloads, which are long; the secret of the message key is in it."""
        shown = self.membership
        kept = (
            *(shown.bundle, shown.iteration, shown.nullifier, shown.tag, shown.type_commitment, shown.proof),
            *(shown.message_secret.to_secret_bytes(), self.ballot, self.envelopes),
        )
        return msgspec.msgpack.encode(kept)

    @classmethod
    def from_secret_bytes(cls, data: bytes, payload: Callable[[int], bytes]) -> "SealedSubmission":
        """Put a kept submission together again; ``payload`` gives the one at a place of the bundle."""
        kept = msgspec.msgpack.decode(data, type=_Kept)
        bundle, iteration, nullifier, tag, type_commitment, proof, secret, ballot, envelopes = kept
        membership = Membership(
            bundle=bundle,
            iteration=iteration,
            nullifier=nullifier,
            tag=tag,
            type_commitment=type_commitment,
            proof=proof,
            message_secret=MessageSecret.from_bytes(secret),
        )
        return cls(membership, ballot, envelopes, tuple(payload(place) for place in range(len(envelopes))))


_Kept = tuple[int, int, bytes, bytes, bytes, bytes, bytes, bytes, tuple[bytes, ...]]


def prepare_submission(
    board: BoardView,
    sitting: Sitting,
    credential: Credential,
    *,
    salt: Salt,
    target: int | None,
    prover: SubmissionProver,
) -> PreparedSubmission:
    """Prove membership, cast the ballot, make the mask and the decoys, while the model trains.

    ``target`` is the place of the task that is trained, None for a cover post.
    """
    if not sitting.is_open:
        raise InvalidInput("The bundle has no open iteration.")
    rho = TypeBlinding.generate()
    # (1)
    membership = prove_membership(
        credential,
        salt=salt,
        rho=rho,
        clients=sitting.clients,
        genesis=board.genesis.hash,
        bundle=sitting.bundle.number,
        iteration=sitting.number,
        prover=prover,
    )
    seats = sitting.seats
    contexts = [
        seat.post_context(
            nullifier=membership.nullifier, tag=membership.tag, message_key=membership.message_key
        )
        for seat in seats
    ]
    committees = [board.keys.read(seat.addressee.committee) for seat in seats]
    # (2)
    lines = [(key, seat.addressee.types) for seat, (_, key) in zip(seats, committees, strict=True)]
    statement = ballot_statement(contexts[0], membership.type_commitment, lines)
    opening = TypeOpening(dataset_type=credential.dt.number, blinding=rho.to_secret_bytes())
    cast = statement.cast(target, opening)
    # (3)
    masks = [
        scheme.prepare(key, context, seat.limits, bit)
        for seat, (scheme, key), context, bit in zip(seats, committees, contexts, cast.bits, strict=True)
    ]
    # (4)
    decoys = [
        None if place == target else mask.encrypt(np.zeros(seat.limits.length, dtype=np.int64))
        for place, (seat, mask) in enumerate(zip(seats, masks, strict=True))
    ]
    mask = None if target is None else masks[target]
    return PreparedSubmission(membership, cast.ballot, tuple(decoys), mask, target)


def seal_submission(prepared: PreparedSubmission, update: Int64Vector | None) -> SealedSubmission:
    """Encrypt and prove the update for its committee, beside the zeros for the others (step 5).

    A cover post has no update. The sizes depend on the bundle only.
    """
    mask = prepared.mask
    if (update is None) != (mask is None):
        raise InvalidInput("A submission has an update exactly if it has a target.")
    # (5)
    own = None if mask is None or update is None else mask.encrypt(update)
    parts = [part for decoy in prepared.decoys if (part := own if decoy is None else decoy) is not None]
    envelopes, payloads = (part.envelope.proof for part in parts), (part.payload for part in parts)
    return SealedSubmission(prepared.membership, prepared.ballot, tuple(envelopes), tuple(payloads))


def upload_ticket(sealed: SealedSubmission, genesis: GenesisHash) -> bytes:
    """Show storage holders what the posting will show, so that they keep room for its payloads."""
    shown = sealed.membership
    ticket = ClientTicket(
        bundle=shown.bundle,
        iteration=shown.iteration,
        nullifier=shown.nullifier,
        tag=shown.tag,
        type_commitment=shown.type_commitment,
        proof=shown.proof,
        message_key=shown.message_key,
        payloads=tuple(
            (BlobHash(hashlib.sha256(payload).digest()), len(payload)) for payload in sealed.payloads
        ),
    )
    return replace(ticket, signature=shown.message_secret.sign(ticket.signed_bytes(genesis))).to_bytes()


def post_submission(board: Holder, sealed: SealedSubmission) -> Posting:
    """Store the payloads and sign; the posting is ready to be sent."""
    # (6)
    shown, ticket = sealed.membership, upload_ticket(sealed, board.genesis.hash)
    blobs = [board.upload(payload, ticket=ticket) for payload in sealed.payloads]
    body = Submission(
        bundle=shown.bundle,
        iteration=shown.iteration,
        nullifier=shown.nullifier,
        tag=shown.tag,
        type_commitment=shown.type_commitment,
        proof=shown.proof,
        ballot=sealed.ballot,
        contributions=tuple(
            SubmittedPart(envelope=envelope, payload=blob)
            for envelope, blob in zip(sealed.envelopes, blobs, strict=True)
        ),
    )
    return make_posting(body, KeyAuthor(shown.message_key), board.genesis.hash, shown.message_secret.sign)
