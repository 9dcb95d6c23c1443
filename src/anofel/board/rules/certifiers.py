"""Step 1.a — certifiers offer their keys; and their revocation (AnoFel §4.3.1)."""

from anofel.board.author import Author
from anofel.board.claims import Claim, PossessionClaim
from anofel.board.rule import present, require, rule
from anofel.board.rules.common import holder
from anofel.board.state import CertifierState, State
from anofel.messages import CertifierKeyOffer, RevokeCertifier
from anofel.pki.certificates import Purpose
from anofel.primitives import CertifierKey, CertifierTree, ClientTree

HAS_KEY = rule("certifier 1", "certifier-has-key", "A certifier has one key in force at a time.")
KEY_KNOWN = rule("certifier 2", "certifier-key-known", "A certifier key is posted once, and never again.")
FULL = rule("certifier 3", "certifiers-full", "The tree of certifiers has room.")
POSSESSION = rule(
    "certifier 4",
    "bad-possession",
    "The certifier shows that it knows the key's secret, for this board and its own certificate.",
)

UNKNOWN = rule("revocation 1", "certifier-unknown", "The certifier key is in force.")
NOT_HOLDER = rule("revocation 2", "not-the-holder", "The author holds the key, or is an operator.")
NEW_EPOCH = rule("revocation 3", "epoch-needs-operator", "Only an operator starts a new epoch.")


def check_key(state: State, body: CertifierKeyOffer, author: Author) -> Claim:
    """Check a certifier's key."""
    subject = holder(author).subject
    in_force = any(c.holder == subject and c.in_force for c in state.certifiers.values())
    require(not in_force, HAS_KEY, culprit=holder(author).name)
    require(body.key not in state.certifiers, KEY_KNOWN, culprit=holder(author).name)
    require(len(state.certifier_tree) < CertifierTree.CAPACITY, FULL)
    return Claim(proof=PossessionClaim(body.key, body.possession, subject))


def apply_key(state: State, body: CertifierKeyOffer, author: Author, _posting_id: bytes) -> None:
    """Add the key to the tree; its root is known from the end of the block."""
    position = len(state.certifier_tree)
    state.certifier_tree.append([CertifierKey.from_bytes(body.key)])
    state.certifiers[body.key] = CertifierState(body.key, holder(author).subject, position)


def check_revocation(state: State, body: RevokeCertifier, author: Author) -> Claim:
    """Check a revocation."""
    identity = holder(author).identity
    known = present(state.certifiers.get(body.key), UNKNOWN)
    require(known.in_force, UNKNOWN)
    is_operator = identity.purpose is Purpose.OPERATOR
    require(is_operator or known.holder == identity.subject, NOT_HOLDER, culprit=identity.name)
    require(is_operator or not body.new_epoch, NEW_EPOCH, culprit=identity.name)
    return Claim()


def apply_revocation(state: State, body: RevokeCertifier, _author: Author, _posting_id: bytes) -> None:
    """Zero the leaf and empty the window of roots; a new epoch starts with an empty client tree."""
    certifier = state.certifiers[body.key]
    certifier.in_force = False
    state.certifier_tree.zero(certifier.position)
    state.certifier_roots.clear()
    if body.new_epoch:
        state.epoch += 1
        state.client_trees[state.epoch] = ClientTree()
        state.registered.clear()
        state.newcomers.clear()
