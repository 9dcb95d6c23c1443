"""Step 1.b, second half — a client registers anonymously (AnoFel §4.3.1).

The board learns that somebody with a certificate of some certifier registered a dataset that was
not registered in this epoch before. Nothing else.
"""

from dataclasses import dataclass

from anofel.errors import InvalidInput
from anofel.messages import KeyAuthor, Posting, Registration, make_posting
from anofel.phase1_setup.certification import Credential
from anofel.primitives import (
    CertifierTree,
    Commitment,
    Epoch,
    MessageKey,
    MessageSecret,
    RegistrationNullifier,
    Root,
    Salt,
    Tag,
)
from anofel.proofs import RegistrationProof, RegistrationProver, RegistrationStatement, RegistrationWitness


@dataclass(frozen=True)
class RegistrationContent:
    """What a registration shows to everybody; its message key signs it as a posting."""

    certifier_root: Root
    commitment: Commitment
    nullifier: RegistrationNullifier
    epoch: Epoch
    tag: Tag
    message_key: MessageKey
    proof: RegistrationProof

    def statement(self) -> RegistrationStatement:
        """The public inputs; a is computed here from the message key, never taken from the wire."""
        return RegistrationStatement(
            certifier_root=self.certifier_root,
            commitment=self.commitment,
            nullifier=self.nullifier,
            epoch=self.epoch,
            tag=self.tag,
            a=self.message_key.hash(),
        )


def register(
    credential: Credential,
    *,
    salt: Salt,
    message_secret: MessageSecret,
    certifiers: CertifierTree,
    epoch: Epoch,
    prover: RegistrationProver,
) -> RegistrationContent:
    """Register a certified dataset. Salt and message secret are fresh; the client keeps the salt.

    Raises ``InvalidSignature`` if the certificate is not good, and ``InvalidInput`` if its certifier is not
    in the tree.
    """
    credential.verify()
    msk, d, dt = credential.msk, credential.d, credential.dt
    message_key = message_secret.public_key()
    a = message_key.hash()
    commitment = Commitment(d, msk, dt, salt)
    nullifier = msk.registration_nullifier(d, epoch)
    statement = RegistrationStatement(
        certifier_root=certifiers.root(),
        commitment=commitment,
        nullifier=nullifier,
        epoch=epoch,
        tag=msk.tag(a),
        a=a,
    )
    witness = RegistrationWitness(
        d=d,
        dt=dt,
        salt=salt,
        msk=msk,
        certifier=credential.certifier,
        certificate=credential.certificate,
        path=certifiers.path(certifiers.position(credential.certifier)),
    )
    return RegistrationContent(
        certifier_root=certifiers.root(),
        commitment=commitment,
        nullifier=nullifier,
        epoch=epoch,
        tag=msk.tag(a),
        message_key=message_key,
        proof=prover.prove(statement, witness),
    )


def post_registration(
    content: RegistrationContent, message_secret: MessageSecret, *, genesis: bytes, epoch: int
) -> Posting:
    """Sign a registration for a board; ``epoch`` is the number behind the content's epoch."""
    if content.epoch != Epoch(genesis, epoch):
        raise InvalidInput("The registration was made for another board or epoch.")
    body = Registration(
        certifier_root=content.certifier_root.to_bytes(),
        commitment=content.commitment.to_bytes(),
        nullifier=content.nullifier.to_bytes(),
        epoch=epoch,
        tag=content.tag.to_bytes(),
        proof=content.proof.to_bytes(),
    )
    author = KeyAuthor(content.message_key.to_bytes())
    return make_posting(body, author, genesis, message_secret.sign)
