"""Which committee is meant: by the name of its key generation, or by the beginning of its id.

A name is no secret and nobody owns it: any members may use it for a run of theirs. So whoever names a
committee also says who its members are (``check_members``), or looks at them before relying on it; and what
fits several committees fits none.
"""

from collections.abc import Sequence
from typing import Final

from anofel.board.state import Committee, KeyRun, State
from anofel.errors import InvalidInput
from anofel.ids import KeyId
from anofel.roles.aggregator.key_ceremony import nonce_of
from anofel.roles.client.trust import Aggregators

_DIGITS: Final = "0123456789abcdef"
_ID_DIGITS: Final = 64
MIN_DIGITS: Final = 8
"""Fewer digits of an id are too easily those of another."""


class NoCommittee(InvalidInput):
    """No committee, or more than one, is meant by a name."""

    code = "no-committee"


def find_committee(state: State, text: str) -> Committee:
    """Return the committee that is meant: by name, by id, or by at least 8 digits of the id.

    Raises ``NoCommittee``, also when several are meant.
    """
    unique = _meant(state, text)
    if len(unique) == 1:
        return unique[0]
    if unique:
        ids = ", ".join(f"{committee.key_id.hex()[:16]}…" for committee in unique)
        raise NoCommittee(f"{len(unique)} committees are called '{text}' ({ids}); give the id of one.")
    known = ", ".join(f"{key_id.hex()[:16]}…" for key_id in state.committees) or "none"
    raise NoCommittee(f"No committee called '{text}' is on the board; there is {known}.")


def is_there(state: State, text: str) -> bool:
    """Whether a committee is meant. Raises ``NoCommittee`` if several are."""
    found = _meant(state, text)
    return bool(found) and find_committee(state, text) is not None


def check_members(state: State, committee: Committee, expected: Sequence[str]) -> None:
    """Refuse a committee with a member that was not expected. Raises ``NoCommittee``."""
    allowed = [Aggregators.parse(words) for words in expected]
    strangers = [
        member.name
        for member in state.members_of(committee.current)
        if not any(some.hold(member) for some in allowed)
    ]
    if strangers:
        raise NoCommittee(f"The committee has members that you did not name: {', '.join(strangers)}.")


def _meant(state: State, text: str) -> list[Committee]:
    found = _by_digits(state, text.lower())
    if len(text) != _ID_DIGITS or not found:  # or a run that is called like an id would block it
        found += _by_name(state, text)
    return list({committee.key_id: committee for committee in found}.values())


def _by_digits(state: State, digits: str) -> list[Committee]:
    if len(digits) < MIN_DIGITS or digits.strip(_DIGITS):
        return []
    if len(digits) == _ID_DIGITS:
        committee = state.committees.get(KeyId(bytes.fromhex(digits)))
        return [] if committee is None else [committee]
    return [found for key_id, found in state.committees.items() if key_id.hex().startswith(digits)]


def _by_name(state: State, name: str) -> list[Committee]:
    """Find committees by the name of the run that made their shares, or their key."""
    if not name:
        return []
    nonce = nonce_of(name)
    return [
        committee
        for committee in state.committees.values()
        if any(run.run.nonce == nonce and run.done and _made(run, committee) for run in state.runs.values())
    ]


def _made(run: KeyRun, committee: Committee) -> bool:
    """Whether a run made a committee's key, or the shares that its members hold."""
    made = any(vote.key_id == committee.key_id for vote in run.votes.values())
    return made or run.run_id == committee.current.run_id
