"""A validator changes the validators of its board: it proposes a change, or signs what another proposed.

What it signs with is its certified key, not the one with which its engine votes.
"""

from dataclasses import dataclass
from typing import Final

from anofel.board.roots import era_digest
from anofel.board.state import State
from anofel.board.validators import OpenChange
from anofel.errors import InvalidInput
from anofel.ids import ChangeId
from anofel.light_client.client import LightClient, OnWait
from anofel.messages import ChainAuthor, ChangeValidators, SignChange, make_posting
from anofel.node.replicated.requests import ValidatorRequest
from anofel.pki.certificates import RoleKey

AHEAD: Final = 600
"""A change begins so many blocks after its proposal, unless somebody says when: others have to sign."""


MIN_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Proposed:
    """A change that is on the board."""

    name: ChangeId
    place: int
    since: int
    decided: bool


def propose_change(
    board: LightClient,
    role: RoleKey,
    *,
    place: int | None,
    request: ValidatorRequest | None,
    since: int | None,
    seconds: float,
    on_wait: OnWait = lambda _what: None,
) -> Proposed:
    """Propose that a request takes a place, or the next free one without a ``place``, or that one is empty.

    Returns when the proposal is on the board. Raises ``InvalidInput``, ``Refused``.
    """
    if place is None and request is None:
        raise InvalidInput("A change names a place to empty, or a request that takes one.")
    board.sync()
    known = board.state.validators
    place = known.eras.next_place if place is None else place
    now = known.eras.last.validators
    power = now[place].power if place in now else min(one.power for one in now.values())
    body = ChangeValidators(
        base=era_digest(known.eras.last),
        place=place,
        entry=None if request is None else request.entry(power),
        since=board.state.height + AHEAD if since is None else since,
    )
    name = body.change_id(board.genesis.hash)
    board.post(make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign))
    board.wait_for(
        lambda state: name in state.validators.open or _is_decided(state, body),
        "the proposal to be on the board",
        seconds=seconds,
        on_wait=on_wait,
    )
    return Proposed(name, place, body.since, _is_decided(board.state, body))


def sign_change(
    board: LightClient,
    role: RoleKey,
    name: ChangeId,
    *,
    seconds: float,
    on_wait: OnWait = lambda _what: None,
) -> Proposed:
    """Sign a change that another validator proposed; returns when the signature is on the board.

    Raises ``InvalidInput``, ``Refused``.
    """
    board.sync()
    found = open_change(board.state, name)
    before = len(found.signed)
    body = SignChange(change=name)
    board.post(make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign))

    def is_there(state: State) -> bool:
        now = state.validators.open.get(name)
        return now is None or len(now.signed) > before

    board.wait_for(is_there, "the signature to be on the board", seconds=seconds, on_wait=on_wait)
    return Proposed(name, found.change.place, found.change.since, _is_decided(board.state, found.change))


def open_change(state: State, name: ChangeId) -> OpenChange:
    """Return a change that can still be signed. Raises ``InvalidInput``."""
    found = state.validators.open.get(name)
    if found is None:
        raise InvalidInput("The board has no such change that waits for signatures; it may be decided.")
    return found


def find_change(state: State, digits: str) -> ChangeId:
    """Find the one open change whose name begins with some digits. Raises ``InvalidInput``."""
    found = [name for name in state.validators.open if name.hex().startswith(digits.lower())]
    if len(digits) < MIN_DIGITS or len(found) != 1:
        raise InvalidInput(f"{len(found)} changes wait for signatures whose names begin with {digits!r}.")
    return found[0]


def _is_decided(state: State, body: ChangeValidators) -> bool:
    last = state.validators.eras.last
    there, wanted = last.validators.get(body.place), body.entry and body.entry.validator
    return last.since == body.since and there == wanted
