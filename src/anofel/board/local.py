"""A board in this process: the same rules, blocks and receipts without a network.

Simulations and tests use it. It is one validator and one storage holder.
"""

from anofel.board.attachments import MemoryAttachments
from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.certificates import RoleKey
from anofel.messages import (
    Blob,
    Block,
    Body,
    ChainAuthor,
    Genesis,
    Posting,
    Receipt,
    Vote,
    make_posting,
    receipt_bytes,
)
from anofel.primitives import MessageSecret
from anofel.proofs import RegistrationVerifier, SubmissionVerifier

RECEIPT_BLOCKS = 64
"""How long an unreferenced blob is promised to stay."""


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
    ) -> None:
        self.attachments = MemoryAttachments()
        verifier = Verifier(genesis.hash, registration, submission, self.attachments)
        self.chain = Chain(State.at_genesis(genesis), verifier)
        self.blocks: list[Block] = []
        self._validator = validator
        self._storage = storage
        self._postings: list[bytes] = []
        self.chain.begin(genesis.time)

    @property
    def state(self) -> State:
        """The state of the block that is being filled."""
        return self.chain.state

    @property
    def genesis_hash(self) -> bytes:
        """The name of the board."""
        return self.state.genesis_hash

    def store(self, data: bytes) -> Blob:
        """Keep a blob and give its receipt."""
        sha256, expires = self.attachments.add(data), self.state.height + RECEIPT_BLOCKS
        signed = receipt_bytes(self.genesis_hash, sha256, len(data), expires)
        receipt = Receipt(holder=0, expires=expires, signature=self._storage.sign(signed))
        return Blob(sha256=sha256, length=len(data), receipts=(receipt,))

    def post(self, posting: Posting) -> Posting:
        """Admit a posting. Raises ``Rejected``."""
        admitted = self.chain.offer(posting.data)
        self._postings.append(posting.data)
        return admitted

    def post_as(self, role: RoleKey, body: Body) -> Posting:
        """Sign a body as a role-holder and admit it. Raises ``Rejected``."""
        return self.post(make_posting(body, ChainAuthor(role.chain), self.genesis_hash, role.sign))

    def next_block(self, time: int | None = None) -> Block:
        """Seal and sign the block, and begin the next one."""
        header = self.chain.seal()
        signature = self._validator.sign(header.vote_bytes(self.genesis_hash))
        commit = (Vote(validator=0, signature=signature),)
        block = Block(header=header, commit=commit, postings=tuple(self._postings))
        self.blocks.append(block)
        self._postings = []
        self.chain.begin(self.state.time if time is None else time)
        return block
