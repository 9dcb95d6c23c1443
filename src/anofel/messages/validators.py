"""Postings by which the validators of a replicated board change themselves."""

import hashlib
from dataclasses import dataclass

from anofel.ids import ChangeId, GenesisHash
from anofel.messages.genesis import Validator
from anofel.messages.signing import on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class NewValidator(View):
    """A validator that comes, with the storage role that it runs and where it is reached."""

    validator: Validator
    holder: tuple[bytes, ...]
    """The certificates of its storage role."""
    name: str
    peer: str
    """Where its engine is reached, ID@HOST:PORT."""
    url: str
    """Where its node answers over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeValidators(View):
    """A change of validators is proposed; who proposes it signs it."""

    base: bytes
    """Names the validators that it changes."""
    place: int
    """Whose place it changes; the next free one if a validator is added."""
    entry: NewValidator | None
    """Who takes the place; none if it becomes empty."""
    since: int
    """The height of the first block that the changed validators make."""

    def change_id(self, genesis: GenesisHash) -> ChangeId:
        """The name of this change on a board."""
        named = on_board(b"anofel/1/validator-change", genesis, self.to_bytes())
        return ChangeId(hashlib.sha256(named).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class SignChange(View):
    """A validator signs a change that another one proposed."""

    change: ChangeId
