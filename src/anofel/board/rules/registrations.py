"""Step 1.b — clients register anonymously (AnoFel §4.3.1; D-02, D-07)."""

from anofel.board.author import Author
from anofel.board.claims import Claim, RegistrationClaim
from anofel.board.rule import require, rule
from anofel.board.rules.common import client
from anofel.board.state import State
from anofel.messages import Registration
from anofel.primitives import ClientTree

EPOCH = rule("registration 1", "wrong-epoch", "The epoch is the current one.")
ROOT = rule(
    "registration 2", "unknown-certifier-root", "The certifier root is one of the recent roots of the board."
)
SPENT = rule("registration 3", "registration-spent", "The registration nullifier is new in this epoch.")
FULL = rule("registration 4", "clients-full", "The tree of clients has room.")
PROOF = rule("registration 5", "bad-registration-proof", "The registration proof is valid.")


def check(state: State, body: Registration, author: Author) -> Claim:
    """Check a registration."""
    require(body.epoch == state.epoch, EPOCH)
    require(body.nullifier not in state.registered, SPENT)
    require(body.certifier_root in state.certifier_roots, ROOT)
    require(len(state.clients) + len(state.newcomers) < ClientTree.CAPACITY, FULL)
    return Claim(proof=RegistrationClaim(body, client(author).message_key))


def apply(state: State, body: Registration, _author: Author, _posting_id: bytes) -> None:
    """Take the commitment; the newcomers of a block enter the tree together at its end (``block_end``)."""
    state.newcomers.append(body.commitment)
    state.registered.add(body.nullifier)
    state.nullifiers.append(body.nullifier)
