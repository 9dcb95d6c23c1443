"""Step 5 — a client submits its update (AnoFel §4.3.2; D-01, D-06, D-08, D-10).

1. ``prepare_submission`` proves membership, casts the ballot and makes the masks. Nothing of it depends
   on the update, so it runs while the model trains.
2. ``seal_submission`` encrypts the update for its committee and zeros for the others.
3. ``post_submission`` signs it, once the payloads are stored.

The board learns that a registered client posts, and that it had not posted in this iteration.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anofel.board.claims import CommitteeRef
from anofel.board.rules.common import addressee_of, iteration_context
from anofel.board.state import Bundle, Phase, State
from anofel.committee.context import PostContext
from anofel.committee.count import BallotStatement, BundleCommittee, TypeOpening
from anofel.committee.interface import CommitteeKey, Int64Vector, Prepared, Scheme
from anofel.errors import InvalidInput
from anofel.messages import Blob, Contribution, KeyAuthor, Posting, Submission, make_posting
from anofel.phase1_setup.certification import Credential
from anofel.primitives import (
    ClientTree,
    Commitment,
    IterationNullifier,
    MessageKey,
    MessageSecret,
    Root,
    Salt,
    Scope,
    Tag,
    TypeBlinding,
    TypeCommitment,
)
from anofel.proofs import SubmissionProof, SubmissionProver, SubmissionStatement, SubmissionWitness


@dataclass(frozen=True)
class MembershipContent:
    """What a submission shows to everybody beside its ciphertexts; its message key signs it."""

    client_root: Root
    nullifier: IterationNullifier
    tag: Tag
    message_key: MessageKey
    scope: Scope
    type_commitment: TypeCommitment
    proof: SubmissionProof

    def statement(self) -> SubmissionStatement:
        """The public inputs; a is computed here from the message key, never taken from the wire."""
        return SubmissionStatement(
            client_root=self.client_root,
            nullifier=self.nullifier,
            tag=self.tag,
            a=self.message_key.hash(),
            scope=self.scope,
            type_commitment=self.type_commitment,
        )


def prove_membership(
    credential: Credential,
    *,
    salt: Salt,
    message_secret: MessageSecret,
    rho: TypeBlinding,
    clients: ClientTree,
    scope: Scope,
    prover: SubmissionProver,
) -> MembershipContent:
    """Prove that a registered client posts, once, in this iteration.

    ``clients`` is the tree whose root was fixed when the iteration opened (D-07); the salt is that of
    the registration; message secret and ρ are fresh for every posting.
    """
    msk, d, dt = credential.msk, credential.d, credential.dt
    message_key = message_secret.public_key()
    a = message_key.hash()
    nullifier = msk.iteration_nullifier(d, scope)
    type_commitment = TypeCommitment(dt, rho)
    statement = SubmissionStatement(
        client_root=clients.root(),
        nullifier=nullifier,
        tag=msk.tag(a),
        a=a,
        scope=scope,
        type_commitment=type_commitment,
    )
    path = clients.path(clients.position(Commitment(d, msk, dt, salt)))
    witness = SubmissionWitness(d=d, dt=dt, salt=salt, msk=msk, path=path, rho=rho)
    return MembershipContent(
        client_root=clients.root(),
        nullifier=nullifier,
        tag=msk.tag(a),
        message_key=message_key,
        scope=scope,
        type_commitment=type_commitment,
        proof=prover.prove(statement, witness),
    )


@dataclass(frozen=True, repr=False)
class PreparedSubmission:
    """Everything of a submission that does not depend on the update (kept; used once)."""

    bundle: int
    iteration: int
    membership: MembershipContent
    message_secret: MessageSecret
    ballot: bytes
    schemes: tuple[Scheme, ...]
    prepared: tuple[Prepared, ...]
    target: int | None
    lengths: tuple[int, ...]

    def __repr__(self) -> str:
        return f"PreparedSubmission(bundle {self.bundle}, iteration {self.iteration})"


@dataclass(frozen=True)
class SealedSubmission:
    """An encrypted submission; its payloads are stored first, then it is signed with their receipts.

    A retry resends these very bytes.
    """

    prepared: PreparedSubmission
    envelopes: tuple[bytes, ...]
    payloads: tuple[bytes, ...]


def prepare_submission(
    state: State,
    bundle: Bundle,
    credential: Credential,
    *,
    salt: Salt,
    target: int | None,
    prover: SubmissionProver,
    key_of: Callable[[CommitteeRef], tuple[Scheme, CommitteeKey]],
) -> PreparedSubmission:
    """Prove membership, cast the ballot and make the masks, while the model trains.

    ``target`` is the position of the task that is trained, None for a cover post. The client tree is the
    one that was fixed when the iteration opened.
    """
    current = bundle.current
    if current is None or bundle.phase is not Phase.OPEN:
        raise InvalidInput("The bundle has no open iteration.")
    message_secret, rho = MessageSecret.generate(), TypeBlinding.generate()
    membership = prove_membership(
        credential,
        salt=salt,
        message_secret=message_secret,
        rho=rho,
        clients=state.client_trees[current.epoch].at_size(current.num_clients),
        scope=state.scope(bundle),
        prover=prover,
    )
    lines, schemes, prepared, lengths, contexts = [], [], [], [], []
    for name in bundle.tasks:
        task = state.tasks[name]
        addressee = addressee_of(state, task)
        scheme, key = key_of(addressee.committee)
        context = PostContext(
            iteration=iteration_context(state, bundle, task),
            nullifier=membership.nullifier.to_bytes(),
            tag=membership.tag.to_bytes(),
            pk_sig=membership.message_key.to_bytes(),
        )
        contexts.append(context)
        schemes.append(scheme)
        prepared.append(scheme.prepare(key, context, addressee.limits))
        lengths.append(addressee.limits.length)
        lines.append(
            BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=addressee.types)
        )
    statement = BallotStatement(contexts[0], membership.type_commitment.to_bytes(), lines)
    opening = TypeOpening(dataset_type=credential.dt.number, blinding=rho.to_secret_bytes())
    return PreparedSubmission(
        bundle=bundle.number,
        iteration=bundle.iterations,
        membership=membership,
        message_secret=message_secret,
        ballot=statement.cast(target, opening),
        schemes=tuple(schemes),
        prepared=tuple(prepared),
        target=target,
        lengths=tuple(lengths),
    )


def seal_submission(prepared: PreparedSubmission, update: Int64Vector | None) -> SealedSubmission:
    """Encrypt the update for its committee and zeros for the others (step 5).

    A cover post has no update. The sizes depend on the bundle only.
    """
    if (update is None) != (prepared.target is None):
        raise InvalidInput("A submission has an update exactly if it has a target.")
    envelopes, payloads = [], []
    for position, (scheme, ready) in enumerate(zip(prepared.schemes, prepared.prepared, strict=True)):
        values = np.zeros(prepared.lengths[position], dtype=np.int64)
        if update is not None and position == prepared.target:
            values = update
        contribution = scheme.encrypt(ready, values)
        envelopes.append(contribution.envelope.proof)
        payloads.append(contribution.payload)
    return SealedSubmission(prepared, tuple(envelopes), tuple(payloads))


def post_submission(sealed: SealedSubmission, blobs: Sequence[Blob], *, genesis: bytes) -> Posting:
    """Sign the submission, once its payloads are stored."""
    prepared, membership = sealed.prepared, sealed.prepared.membership
    body = Submission(
        bundle=prepared.bundle,
        iteration=prepared.iteration,
        nullifier=membership.nullifier.to_bytes(),
        tag=membership.tag.to_bytes(),
        type_commitment=membership.type_commitment.to_bytes(),
        proof=membership.proof.to_bytes(),
        ballot=prepared.ballot,
        contributions=tuple(
            Contribution(envelope=envelope, payload=blob)
            for envelope, blob in zip(sealed.envelopes, blobs, strict=True)
        ),
    )
    author = KeyAuthor(membership.message_key.to_bytes())
    return make_posting(body, author, genesis, prepared.message_secret.sign)
