"""Step 1.b, second half — a client registers anonymously (AnoFel §4.3.1).

1. The client draws a key for this posting alone; the tag binds the posting to the client's own key.
2. It commits to its dataset under its master key.
3. The nullifier is the same for the dataset and the key in this epoch, so they are registered once.
4. It proves that a listed certifier signed what is committed to, and signs the posting with the fresh key.

The board learns that somebody with a certificate of some certifier registered a dataset that was
not registered in this epoch before. Nothing else.
"""

from anofel.board.state import State
from anofel.board.statements import registration_statement
from anofel.ids import GenesisHash
from anofel.messages import KeyAuthor, Posting, Registration, make_posting
from anofel.phase1_setup.step1b_certification import Credential
from anofel.primitives import CertifierTree, Commitment, Epoch, MessageSecret, Salt
from anofel.proofs.statements import RegistrationProver, RegistrationWitness


def register(state: State, credential: Credential, *, salt: Salt, prover: RegistrationProver) -> Posting:
    """Make the posting that registers a certified dataset in the board's epoch; the client keeps the salt.

    A fresh message key signs it. Raises ``InvalidSignature`` if the certificate is not good, and
    ``InvalidInput`` if its certifier is not on the board.
    """
    return make_registration(
        credential,
        salt=salt,
        certifiers=state.certifier_tree,
        genesis=state.genesis_hash,
        epoch=state.epoch,
        message_secret=MessageSecret.generate(),
        prover=prover,
    )


def make_registration(
    credential: Credential,
    *,
    salt: Salt,
    certifiers: CertifierTree,
    genesis: GenesisHash,
    epoch: int,
    message_secret: MessageSecret,
    prover: RegistrationProver,
) -> Posting:
    """Make a registration under a root of certifiers; salt and message secret are fresh."""
    credential.verify()
    msk, d, dt = credential.msk, credential.d, credential.dt
    message_key = message_secret.public_key()
    shown = {
        "certifier_root": certifiers.root().to_bytes(),
        "tag": msk.tag(message_key.hash()).to_bytes(),  # (1)
        "commitment": Commitment(d, msk, dt, salt).to_bytes(),  # (2)
        "nullifier": msk.registration_nullifier(d, Epoch(genesis, epoch)).to_bytes(),  # (3)
    }
    statement = registration_statement(
        genesis=genesis, epoch=epoch, message_key=message_key.to_bytes(), **shown
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
    # (4)
    body = Registration(epoch=epoch, proof=prover.prove(statement, witness).to_bytes(), **shown)
    return make_posting(body, KeyAuthor(message_key.to_bytes()), genesis, message_secret.sign)
