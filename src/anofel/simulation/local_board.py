"""A board in this process: the same rules, blocks and receipts without a network.

Simulations and tests use it. It is one validator and one storage holder. It lives in memory, or in a
directory (``LocalDirectory``) that an audit reads.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from anofel.board.attachments import MemoryAttachments
from anofel.board.chain import Chain
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.interface import OnBlock
from anofel.board.openings import Openings
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.ids import BlobHash, GenesisHash
from anofel.messages import (
    Blob,
    Block,
    Body,
    ChainAuthor,
    Genesis,
    Header,
    Posting,
    Receipt,
    Vote,
    make_posting,
    receipt_bytes,
)
from anofel.pki.certificates import RoleKey
from anofel.primitives import MessageSecret
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blobs import retention
from anofel.storage.blocks import BlockStore, write_genesis

OnSealed = Callable[[Header], None]
RECEIPT_BLOCKS = 64
"""How long an unreferenced blob is promised to stay."""


class LocalDirectory:
    """The directory of a local board: blocks, blobs and verification keys, where an audit looks for them."""

    def __init__(self, directory: Path, genesis: Genesis, keys: Mapping[str, bytes]) -> None:
        """Make the directory; ``keys`` are the verification keys by the names of their statements.

        Raises ``StoreError`` if it holds another board.
        """
        self.store = BlockStore(directory, genesis)
        self.blobs = DirectoryAttachments(directory / "blobs")
        write_genesis(directory, genesis)
        for name, data in keys.items():
            (directory / f"{name}.verification.key").write_bytes(data)


class LocalBoard:
    """Fills and signs blocks, and keeps them."""

    def __init__(
        self,
        genesis: Genesis,
        *,
        validator: MessageSecret,
        storage: RoleKey,
        registration: RegistrationVerifier,
        submission: SubmissionVerifier,
        directory: LocalDirectory | None = None,
        prune: bool = False,
    ) -> None:
        """``prune``: remove payloads when their time is over, as a node does; a sum is then not recomputable.

        Without a directory the blocks stay in ``blocks``.
        """
        self.attachments: MemoryAttachments | DirectoryAttachments = (
            MemoryAttachments() if directory is None else directory.blobs
        )
        verifier = Verifier(genesis.hash, registration, submission, self.attachments)
        self.chain = Chain(State.at_genesis(genesis), verifier)
        self.blocks: list[Block] = []
        self._validator = validator
        self._storage = storage
        self._postings: list[bytes] = []
        self._shown = 0
        self._store = None if directory is None else directory.store
        self._prune = prune
        self._until: dict[BlobHash, int] = {}
        self.chain.begin(genesis.time)

    @property
    def state(self) -> State:
        """The state of the block that is being filled."""
        return self.chain.state

    @property
    def genesis(self) -> Genesis:
        """How the board began."""
        return self.state.genesis

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        return self.chain.verifier.keys

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        return self.chain.verifier.openings

    @property
    def genesis_hash(self) -> GenesisHash:
        """The name of the board."""
        return self.state.genesis_hash

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:  # noqa: ARG002
        """Keep a blob and give its receipt; there are no strangers, so nobody needs a ticket."""
        data = data if isinstance(data, bytes) else data.read_bytes()
        sha256, expires = self.attachments.add(data), self.state.height + RECEIPT_BLOCKS
        signed = receipt_bytes(self.genesis_hash, sha256, len(data), expires)
        receipt = Receipt(holder=0, expires=expires, signature=self._storage.sign(signed))
        return Blob(sha256=sha256, length=len(data), receipts=(receipt,))

    def post(self, posting: Posting) -> Posting:
        """Admit a posting. Raises ``Rejected``."""
        return self.post_many([posting])[0]

    def post_many(self, postings: Sequence[Posting]) -> list[Posting]:
        """Admit postings in their order; their proofs are verified together.

        Raises the first ``Rejected``; the postings that are not refused are admitted even then.
        """
        results = self.chain.offer_many([posting.data for posting in postings])
        admitted = [result for result in results if isinstance(result, Posting)]
        for posting in admitted:
            self._postings.append(posting.data)
            self._note_lifetimes(posting)
        for result in results:
            if isinstance(result, Rejected):
                raise result
        return admitted

    def post_as(self, role: RoleKey, body: Body) -> Posting:
        """Sign a body as a role-holder and admit it. Raises ``Rejected``."""
        return self.post(make_posting(body, ChainAuthor(role.chain), self.genesis_hash, role.sign))

    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Show the blocks that were sealed since the last time; the state knows them already."""
        before, self._shown = self._shown, self.state.height - 1
        if on_block is not None:
            sealed = self.blocks[before:] if self._store is None else self._store.blocks(before + 1)
            for block in sealed:
                on_block(block)
        return self._shown - before

    def next_block(self, time: int | None = None, *, on_sealed: OnSealed | None = None) -> Block:
        """Seal and sign the block, and begin the next one; ``on_sealed`` sees the state in between."""
        header = self.chain.seal()
        if on_sealed is not None:
            on_sealed(header)
        signature = self._validator.sign(header.vote_bytes(self.genesis_hash))
        commit = (Vote(validator=0, signature=signature),)
        block = Block(header=header, commit=commit, postings=tuple(self._postings))
        if self._store is None:
            self.blocks.append(block)
        else:
            self._store.append(block)
        self._postings = []
        self._remove_expired()
        self.chain.begin(self.state.time if time is None else time)
        return block

    def close(self) -> None:
        """Let go of the directory."""
        if self._store is not None:
            self._store.close()

    def _note_lifetimes(self, posting: Posting) -> None:
        if self._prune:
            kept = retention.kept_by(self.state, posting.body)
            self._until |= {blob.sha256: blob.until for blob in kept if blob.until is not None}

    def _remove_expired(self) -> None:
        if not self._until:
            return
        for blob in retention.kept_by_exclusion(self.state):
            self._until.pop(blob.sha256, None)
        for name in [name for name, until in self._until.items() if until < self.state.height]:
            self.attachments.remove(name)
            del self._until[name]
