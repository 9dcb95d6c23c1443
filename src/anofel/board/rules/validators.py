"""The validators of a replicated board change themselves: one proposes, two thirds sign, a height comes."""

from anofel.board.author import Author
from anofel.board.claims import Claim
from anofel.board.engines import Engine
from anofel.board.roots import era_digest
from anofel.board.rule import Rejected, present, require, rule
from anofel.board.rules.common import holder
from anofel.board.state import State
from anofel.board.validators import MAX_PLACES, MAX_PRESENT, NOTICE, SAFE, Era
from anofel.errors import InvalidInput, InvalidSignature
from anofel.ids import PostingId
from anofel.messages import ChangeValidators, NewValidator, SignChange, binding_bytes
from anofel.pki.certificates import CertificateRefused, Purpose, subject_and_name, verify_chain

MAX_AHEAD = 100_000
"""How many blocks a change may be ahead of its proposal; an unsigned one lapses by then."""

ENGINE = rule("validator 1", "validators-fixed", "The board's engine is one whose validators change.")
VALIDATOR = rule("validator 2", "not-a-validator", "The author is a validator of the board now.")
WAITING = rule("change 1", "change-waits", "No change is decided that has not begun.")
BASE = rule("change 2", "validators-moved", "A change names the validators that there are now.")
SINCE = rule(
    "change 3",
    "change-height",
    "A change begins 2 to 100,000 blocks after the block that has its proposal.",
)
KNOWN = rule("change 4", "change-proposed", "A change is proposed once.")
PLACE = rule(
    "change 5",
    "wrong-place",
    "A change empties or fills the place of a validator, or fills the first place that nobody had.",
)
FLOOR = rule(
    "change 6",
    "too-few-validators",
    "A change leaves four validators, or as many as genesis has if they are fewer.",
)
FULL = rule("change 7", "too-many-validators", "There are no more than 16 validators, and 256 places.")
CERTIFIED = rule(
    "change 8",
    "validator-not-certified",
    "Who comes is a certified validator with a certified storage role, at the block's time, and signed its "
    "Ed25519 key for this board.",
)
KEY_USED = rule("change 9", "validator-key-used", "Who comes votes with a key that never voted here.")
PRESENT = rule(
    "change 10",
    "validator-present",
    "Who comes is no validator in another place, and its storage role is no other's.",
)
POWER = rule(
    "change 11",
    "validator-power",
    "Who takes a place has its power, and who is added the least power that there is.",
)

OPEN = rule("signing 1", "change-unknown", "The change is proposed, and has not lapsed.")
ONCE = rule("signing 2", "change-signed", "A validator signs a change once; proposing it is signing it.")


def check_change(state: State, body: ChangeValidators, author: Author) -> Claim:
    """Check a proposal."""
    name = holder(author).name
    _own_place(state, author)
    known, now = state.validators, state.validators.eras.last
    require(known.scheduled(state.height) is None, WAITING, culprit=name)
    require(body.base == era_digest(now), BASE, culprit=name)
    require(state.height + NOTICE <= body.since <= state.height + MAX_AHEAD, SINCE, culprit=name)
    require(body.change_id(state.genesis_hash) not in known.open, KNOWN, culprit=name)
    added = body.place == known.eras.next_place and body.entry is not None
    require(body.place in now.validators or added, PLACE, culprit=name)
    left = len(now.validators) - (body.entry is None) + added
    require(left >= min(SAFE, len(state.genesis.validators)), FLOOR, culprit=name)
    require(left <= MAX_PRESENT and body.place < MAX_PLACES, FULL, culprit=name)
    if body.entry is not None:
        _check_entry(state, now, body.place, body.entry, name)
    return Claim()


def _check_entry(state: State, now: Era, place: int, entry: NewValidator, name: str) -> None:
    """Check who comes."""
    genesis, validator = state.genesis, entry.validator
    try:
        identity = verify_chain(validator.chain, genesis.roots, Purpose.VALIDATOR, state.time)
        storage = verify_chain(entry.holder, genesis.roots, Purpose.STORAGE, state.time)
        identity.verify(binding_bytes(genesis.nonce, validator.key), validator.binding or b"")
    except (CertificateRefused, InvalidSignature, InvalidInput) as error:
        raise Rejected(CERTIFIED, str(error), name) from None
    require(not state.validators.eras.is_used(validator.key), KEY_USED, culprit=name)
    others = [one.chain for number, one in now.validators.items() if number != place]
    held = [chain for number, chain in now.holders.items() if number != place]
    subjects = {subject_and_name(chain[0])[0] for chain in others}
    storages = {subject_and_name(chain[0])[0] for chain in held}
    require(identity.subject not in subjects and storage.subject not in storages, PRESENT, culprit=name)
    least = min(one.power for one in now.validators.values())
    power = now.validators[place].power if place in now.validators else least
    require(validator.power == power, POWER, culprit=name)


def apply_change(state: State, body: ChangeValidators, author: Author, _posting_id: PostingId) -> None:
    """Note the proposal with its first signature."""
    state.validators.propose(body.change_id(state.genesis_hash), body, _own_place(state, author))


def check_signature(state: State, body: SignChange, author: Author) -> Claim:
    """Check that a validator signs a change that can still be decided."""
    name = holder(author).name
    own = _own_place(state, author)
    one = present(state.validators.open.get(body.change), OPEN, culprit=name)
    require(own not in one.signed, ONCE, culprit=name)
    return Claim()


def apply_signature(state: State, body: SignChange, author: Author, _posting_id: PostingId) -> None:
    """Note the signature; with enough of them the change is decided."""
    state.validators.sign(body.change, _own_place(state, author))


def _own_place(state: State, author: Author) -> int:
    """Return the place of the author. Raises ``Rejected``."""
    require(state.genesis.engine == Engine.COMETBFT, ENGINE, culprit=holder(author).name)
    subject = holder(author).subject
    now = state.validators.eras.at(state.height).validators
    places = [place for place, one in now.items() if subject_and_name(one.chain[0])[0] == subject]
    require(bool(places), VALIDATOR, culprit=holder(author).name)
    return places[0]
