"""Step 5 — a client submits its update (AnoFel §4.3.2): the part that proves membership.

No public input depends on the update, so all of this is made while the model trains. The board
learns that a registered client posts, and that it had not posted in this iteration.
"""

from dataclasses import dataclass

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
