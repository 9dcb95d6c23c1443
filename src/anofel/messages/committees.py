"""Postings of aggregators that make a committee's key (step 1.c)."""

import hashlib
from dataclasses import dataclass

from anofel.ids import GenesisHash, KeyId, RunId, SharesId, Subject
from anofel.messages.blobs import Blob
from anofel.messages.signing import on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverTerms(View):
    """A change of members under the same key."""

    key_id: KeyId
    dealers: tuple[int, ...]
    """The members of the old committee who deal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(View):
    """One run of key generation."""

    nonce: bytes
    scheme: int
    threshold: int
    members: tuple[Subject, ...]
    handover: HandoverTerms | None

    def run_id(self, genesis: GenesisHash) -> RunId:
        """The name of this run on a board."""
        return RunId(hashlib.sha256(on_board(b"anofel/1/run", genesis, self.to_bytes())).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class DkgRound(View):
    """One message of a run."""

    run_id: RunId
    round: int
    sender: int
    run: Run | None
    """The run itself, in the posting that opens it."""
    body: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitteeKeyVote(View):
    """A member says which key a run made."""

    run_id: RunId
    member: int
    key_id: KeyId
    shares_id: SharesId
    transcript: bytes
    key: Blob
