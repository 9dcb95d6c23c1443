"""Postings of aggregators that make a committee's key (step 1.c)."""

import hashlib
from dataclasses import dataclass

from anofel.messages.blobs import Blob
from anofel.messages.signing import on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover(View):
    """A change of members under the same key."""

    key_id: bytes
    dealers: tuple[int, ...]
    """The members of the old committee who deal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(View):
    """One run of key generation."""

    nonce: bytes
    scheme: int
    threshold: int
    members: tuple[bytes, ...]
    handover: Handover | None

    def run_id(self, genesis: bytes) -> bytes:
        """The name of this run on a board."""
        return hashlib.sha256(on_board(b"anofel/1/run", genesis, self.to_bytes())).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class DkgRound(View):
    """One message of a run."""

    run_id: bytes
    round: int
    sender: int
    run: Run | None
    """The run itself, in the posting that opens it."""
    body: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitteeKey(View):
    """A member says which key a run made."""

    run_id: bytes
    member: int
    key_id: bytes
    shares_id: bytes
    transcript: bytes
    key: Blob
