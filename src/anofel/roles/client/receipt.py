"""A participant's receipt: which postings are hers, for her own eyes and the verifier page.

Nothing of it was kept: the key store and the names of the turns give the nullifiers again, and no node is
asked. Whoever sees a receipt knows that its owner took part, in which iterations, and that all these
postings are of one client. It proves nothing to others: anybody can write down nullifiers of the board.
"""

from anofel.disk.sections import canonical_json
from anofel.primitives import Epoch, Scope
from anofel.roles.client.files import JOURNAL, credential
from anofel.roles.client.journal import Journal
from anofel.roles.directory import RoleDirectory

FORMAT = "anofel receipt 1"
_SALT = "salt/"


def receipt_of(directory: RoleDirectory) -> bytes:
    """Make the receipt of a client. Raises ``NotCertified``."""
    made, genesis = credential(directory.secrets), directory.config.genesis_hash
    epochs = sorted(int(name.removeprefix(_SALT)) for name in directory.secrets if name.startswith(_SALT))
    turns = Journal(directory.path / JOURNAL).turns()
    return canonical_json(
        {
            "format": FORMAT,
            "genesis": genesis.hex(),
            "registrations": [
                made.msk.registration_nullifier(made.d, Epoch(genesis, epoch)).to_bytes().hex()
                for epoch in epochs
            ],
            "submissions": [
                made.msk.iteration_nullifier(made.d, Scope(genesis, turn.bundle, turn.iteration))
                .to_bytes()
                .hex()
                for turn in turns
                if turn.accepted
            ],
        }
    )
