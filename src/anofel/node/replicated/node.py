"""One validator's state machine: the engine asks, and this answers by the rules of the board.

The committed state rests. Everything happens on forks of it, which cost little:

- *check* says which postings may wait. Its fork fills up with them and begins anew after each block. What
  may take long to verify is verified in a thread of its own, and offered to the engine again when it is done.
- *prepare* and *process* fill a block. An invalid posting makes a validator refuse the proposal whole.
- *finalize* fills the decided block, on the same fork if nothing changed, and *commit* keeps it.

A blob that is missing here never ends a validator: it does not vote for what it could not check, and it
fetches and waits for what others decided.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from anofel.board import snapshot
from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.board.cache import BoundedCache
from anofel.board.chain import Chain
from anofel.board.genesis import check_genesis
from anofel.board.rule import Rejected
from anofel.board.rules.common import BLOCK_FULL
from anofel.board.state import State
from anofel.board.verification import Candidate, Verifier
from anofel.comet.commits import chain_id
from anofel.comet.wire import uvarint
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import BlobHash, PostingId
from anofel.messages import Block, Header, Posting
from anofel.messages.postings import posting_id
from anofel.node.board_node import BoardNode
from anofel.node.files import NodeFiles, read_node
from anofel.node.metrics import Metrics
from anofel.node.outlines import Outlines
from anofel.node.replicated.abci import CheckedTx, Decided, InitChain, Proposal
from anofel.node.replicated.blobs import Holders
from anofel.node.replicated.network import Network, present, read_network
from anofel.node.replicated.slow import SlowChecks, wait
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.serving.rare_log import RareLog
from anofel.storage.blobs import retention
from anofel.storage.blobs.files import StoredAttachments
from anofel.storage.blocks import BlockStore, StoreError
from anofel.storage.replay import last_state

REFUSED: Final = 1
LATER: Final = 2
"""What a check answers beside 0: never, and not yet."""
WAIT_SECONDS: Final = 2.0
"""Between two attempts to get a blob that a decided block needs."""
PROCESS_SECONDS: Final = 1.0
"""How long a vote waits for what is missing or being verified; then it is against the proposal."""
OWED_SECONDS: Final = 30.0
_ANSWERS: Final = 1 << 14
"""Between two attempts to get the blobs of decided blocks that are not here."""

T = TypeVar("T")
log = logging.getLogger("anofel.node")


class BoardBroken(AnofelError):
    """The validators decided a block that breaks the rules: more than a third of them are faulty."""

    code = "board-broken"


class RefusalNote(msgspec.Struct, frozen=True):
    """Why a posting was refused, on its way through the engine."""

    code: str
    detail: str = ""
    culprit: str = ""


@dataclass(slots=True)
class _Filled:
    """A block as it was filled for a proposal."""

    name: tuple[int, int, tuple[bytes, ...]]
    chain: Chain
    refused: Rejected | None
    kept: list[retention.KeptBlob] = field(default_factory=list)
    header: Header | None = None


class ReplicatedNode(BoardNode):
    """The board of one validator; the engine calls ``info`` to ``commit``."""

    def __init__(self, directory: Path, *, on_replay: Callable[[int, int], None] | None = None) -> None:
        """Open a validator's directory and arrive at its last block.

        Raises ``StoreError``, ``BlobError``, ``InvalidInput``: one sentence each.
        """
        self._rare = RareLog(log)
        self.files: NodeFiles = read_node(directory)
        self.genesis, self.config = self.files.genesis, self.files.config
        check_genesis(self.genesis)
        self.network: Network = read_network(directory, self.genesis)
        self.metrics, self.outlines = Metrics(), Outlines()
        self.store = BlockStore(directory, self.genesis)
        try:
            self.blobs = self.open_blobs(self.files)
        except BaseException:
            self.store.close()
            raise
        self.holders = Holders(self.genesis, self.network, self.files.holder, self.blobs, self.max_blob_bytes)
        verifier = Verifier(
            self.genesis.hash,
            RegistrationVerifier.from_bytes(self.files.keys["registration"]),
            SubmissionVerifier.from_bytes(self.files.keys["submission"]),
            StoredAttachments(self.blobs.files),
        )
        self._filled: _Filled | None = None
        self._stopping = threading.Event()
        self._slow = SlowChecks(self._verify)
        self.on_verified: Callable[[bytes], None] = lambda _posting: None
        """Hears of a posting whose verdict is known now, so that it can be offered again."""
        self.on_block: Callable[[int], None] = lambda _height: None
        """Hears of a block that was decided and kept."""
        self._codes: BoundedCache[PostingId, int] = BoundedCache(_ANSWERS)
        try:
            self._committed = self._restore(verifier, on_replay)
        except BaseException:
            self.abandon()
            raise
        self._met = self.state.validators.eras.last
        self.holders.meet(self._met)
        self._begin_checks()

    @property
    def peers(self) -> list[str]:
        """Where the engines of the other validators are, of those that came after genesis too."""
        found = present(self.network, self.state.validators.eras.last, self.files.place)
        return [neighbour.peer for neighbour in found.values()]

    @property
    def state(self) -> State:
        """The state after the last block; it rests."""
        return self._committed.state

    @property
    def height(self) -> int:
        """The last block that is here with its seal; 0 before the first."""
        return self.store.height

    def fork_state(self) -> State:
        """Return a state for another thread, since reading changes a state. The thread of rounds asks."""
        return self._committed.state.fork()

    def _restore(self, verifier: Verifier, on_replay: Callable[[int, int], None] | None) -> Chain:
        """Arrive at the last block that was filled here; each was decided before it was kept."""
        chain, last = Chain(last_state(self.store), verifier), self.store.filled
        first = chain.state.height
        for height in range(first + 1, last + 1):
            header, postings = self.store.header(height), self.store.postings(height)
            if header is None or header.previous != chain.state.tip:
                raise StoreError(f"{self.store.directory} is damaged: block {height} does not fit.")
            self._with_blobs(chain.state, lambda h=header, p=postings: chain.fill_again(h, p))  # type: ignore[misc]
            if on_replay is not None:
                on_replay(height - first, last - first)
        self._since_snapshot = last - first
        header = self.store.header(last)
        if header is not None:
            self.outlines.note(chain.state, header)
        return chain

    def close(self) -> None:
        """Stop in good order: keep a snapshot, so that the next start has nothing to fill again."""
        try:
            if self.state.height and self._since_snapshot:
                self.store.keep_snapshot(self.state.height, snapshot.encode(self.state))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the directory as it is."""
        self.stop_waiting()
        self._slow.close()
        self.holders.close()
        self.blobs.close()
        self.store.close()

    def stop_waiting(self) -> None:
        """End whatever waits for a blob."""
        self._stopping.set()

    # The engine begins

    def info(self) -> tuple[int, bytes]:
        """Return the last block that is kept; the engine plays what came after it again."""
        state = self.state
        return state.height, state.tip if state.height else b""

    def init_chain(self, begun: InitChain) -> bytes:
        """Check that the engine has our genesis, and return its hash. Raises ``InvalidInput``."""
        expected = sorted((validator.key, validator.power) for validator in self.genesis.validators)
        if begun.chain_id != chain_id(self.genesis) or sorted(begun.validators) != expected:
            raise InvalidInput("The engine's genesis is not this board's.")
        return self.genesis.hash

    # Postings that come in, in the thread of checks

    def check(self, offered: list[tuple[bytes, bool]]) -> list[CheckedTx]:
        """Say which postings may wait for a block. Nothing here is slow."""
        answers = self._check(offered)
        for (data, _), answer in zip(offered, answers, strict=True):
            self._codes[posting_id(data)] = answer.code
        return answers

    def may_wait(self, posting: bytes) -> bool:
        """Whether the last answer to the engine was that this posting may wait for a block."""
        return self._codes.found([name := posting_id(posting)]).get(name, LATER) == 0

    def _check(self, offered: list[tuple[bytes, bool]]) -> list[CheckedTx]:
        chain, admitted = self._checking
        chain.state.num_postings = chain.state.num_bytes = 0  # how many may wait is the engine's affair
        postings = [data for data, _ in offered]
        names = [posting_id(data) for data in postings]
        # an engine that was started again forgot what waited, and is offered it once more
        fresh = [place for place, name in enumerate(names) if name not in admitted]
        first = dict(zip(fresh, chain.check_all([postings[place] for place in fresh]), strict=True))
        slow = set()
        for place, found in first.items():
            if isinstance(found, Candidate) and chain.verifier.is_slow(found):
                slow.add(place)
                self._slow.begin(chain.state, found)
        quick = [place for place in fresh if place not in slow]
        try:
            results = chain.admit_all([postings[p] for p in quick], [first[p] for p in quick])
        except (AttachmentMissing, DamagedBlob) as error:
            self._rare.warn("check", f"Postings wait: {error}")
            self._fetch(error.sha256)
            self._begin_checks()  # some of them may be in that fork already
            if len(offered) == 1:
                return [CheckedTx(LATER)]
            return [self._check([one])[0] for one in offered]
        answers = dict.fromkeys(range(len(postings)), CheckedTx())
        answers |= dict.fromkeys(slow, CheckedTx(LATER))
        answers |= dict(zip(quick, map(self._checked, results), strict=True))
        admitted.update(names[place] for place in quick if answers[place].code == 0)
        return list(answers.values())

    def _checked(self, result: Posting | Rejected) -> CheckedTx:
        if isinstance(result, Posting):
            return CheckedTx()
        self.metrics.rejected(result.code)
        code = LATER if result.rule is BLOCK_FULL else REFUSED
        return CheckedTx(code, msgspec.json.encode(RefusalNote(result.code, result.detail, result.culprit)))

    def verification_of(self, posting: bytes) -> "Future[None] | None":
        """Return the verification of a posting that is under way, if there is one."""
        return self._slow.under_way(posting_id(posting))

    def _verify(self, state: State, candidate: Candidate) -> None:
        """Make a verdict; it is kept, and the posting is offered again."""
        try:
            self._with_blobs(state, lambda: self._committed.verifier.confirm(state, [candidate]), attempts=3)
        except Exception as error:  # whatever it is, the posting is only not admitted yet
            self._rare.warn("verify", f"A posting could not be verified now: {error}")
        self.on_verified(candidate.posting.data)

    def _begin_checks(self) -> None:
        chain = self._committed.fork()
        chain.begin(chain.state.time)
        self._checking: tuple[Chain, set[PostingId]] = chain, set()

    # Rounds

    def prepare(self, proposal: Proposal) -> list[bytes]:
        """Propose what is valid now of the postings that wait, in their order."""
        chosen, size = [], 0
        for data in proposal.postings:
            size += 1 + len(uvarint(len(data))) + len(data)
            if size > proposal.max_bytes:
                break
            chosen.append(data)
        chain = self._committed.fork()
        chain.begin(proposal.time)
        checked = zip(chosen, chain.check_all(chosen), strict=True)
        ready = [(data, found) for data, found in checked if not self._must_wait(chain, found)]
        try:
            results = chain.admit_all([data for data, _ in ready], [found for _, found in ready])
        except (AttachmentMissing, DamagedBlob) as error:
            self._rare.warn("prepare", f"An empty block is proposed: {error}")
            self._fetch(error.sha256)
            return []
        taken = tuple(result.data for result in results if isinstance(result, Posting))
        self._filled = _Filled((proposal.height, proposal.time, taken), chain, None)
        return list(taken)

    def _must_wait(self, chain: Chain, found: Candidate | Rejected) -> bool:
        """Whether a posting takes long to verify, here or at those who would have to vote for it."""
        if not isinstance(found, Candidate):
            return False
        return chain.verifier.is_slow(found) or not self._slow.is_ripe(found.posting.id)

    def process(self, proposal: Proposal) -> bool:
        """Vote for a proposal only if every posting in it is valid here and now."""
        end = time.monotonic() + PROCESS_SECONDS
        while True:
            try:
                filled = self._fill(proposal, end)
                break
            except (AttachmentMissing, DamagedBlob) as error:
                self._rare.warn("process", f"Block {proposal.height} is not voted for now: {error}")
                coming = self._fetch(error.sha256, _signers(proposal.postings, error.sha256))
                try:
                    coming.result(max(0.0, end - time.monotonic()))
                except (AttachmentMissing, FutureTimeout):
                    return False
        if filled is None:
            self._rare.warn("slow", f"Block {proposal.height} is not voted for now: it takes long to verify.")
            return False
        if filled.refused is not None:
            self._rare.warn(
                "proposal",
                f"The proposal of {proposal.proposer.hex()[:16]} for block {proposal.height} is refused: "
                f"{filled.refused}",
            )
        return filled.refused is None

    def finalize(self, proposal: Proposal) -> Decided:
        """Fill the decided block; what is missing for it is fetched, however long it takes.

        Raises ``BoardBroken``.
        """
        if proposal.misbehaviour:
            log.warning("Block %d brings evidence of %d faults.", proposal.height, proposal.misbehaviour)
        filled = self._with_blobs(self.state, lambda: self._fill(proposal))
        assert filled is not None  # it waits as long as it takes
        if filled.refused is not None:
            raise BoardBroken(
                f"The validators decided block {proposal.height}, and it breaks a rule: {filled.refused} "
                "This node stops."
            )
        state = filled.chain.state
        if filled.header is None:
            filled.kept = [
                blob
                for data in proposal.postings
                for blob in retention.kept_by(state, Posting.from_bytes(data).body)
            ]
            filled.header = self._with_blobs(state, filled.chain.seal)
        return Decided(state.tip, _updates(state))

    def commit(self) -> int:
        """Keep the decided block, and return the first that the engine still needs; 0 for all.

        Our own blocks stay for ever.
        """
        filled = self._filled
        if filled is None or filled.header is None:
            raise StoreError("The engine commits a block that it did not decide.")
        header, postings = filled.header, filled.name[2]
        self._committed, self._filled = filled.chain, None
        kept = [*filled.kept, *retention.kept_by_exclusion(self.state)]
        owed = self.blobs.promise_all((blob.sha256, blob.until) for blob in kept)
        self._since_snapshot += 1
        due = self._since_snapshot >= self.config.snapshot_blocks and snapshot.is_worth(
            self.state, self._since_snapshot
        )
        block = Block(header=header, commit=(), postings=postings)
        self.store.append(block, snapshot.encode(self.state) if due else None)
        self.outlines.note(self.state, header)
        if due:
            self._since_snapshot = 0
        for data in postings:
            self.metrics.accepted(type(Posting.from_bytes(data).body).__name__, len(data))
        for sha256 in owed:
            self._fetch(sha256, _signers(postings, sha256))
        self._begin_checks()
        if self.state.validators.eras.last != self._met:
            self._met = self.state.validators.eras.last
            self.holders.meet(self._met)
        self.blobs.prune(header.height)
        self.on_block(header.height)
        return self._first_needed()

    def _first_needed(self) -> int:
        """Return the first block that the engine has to keep: none goes whose seal is not here yet."""
        kept = self.config.engine_blocks
        return max(0, min(self.state.height - kept, self.height) + 1) if kept else 0

    def _fill(self, proposal: Proposal, end: float | None = None) -> _Filled | None:
        """Fill a block on a fork of the committed state, once for a proposal; stop at a refusal.

        None if it takes longer to verify than until ``end``; that goes on, for the next round.
        """
        name = (proposal.height, proposal.time, proposal.postings)
        if self._filled is None or self._filled.name != name:
            chain = self._committed.fork()
            if proposal.height != chain.state.height + 1:
                raise StoreError(f"The engine is at block {proposal.height}, not {chain.state.height + 1}.")
            chain.begin(proposal.time)
            first = chain.check_all(proposal.postings)
            if end is not None:
                slow = [c for c in first if isinstance(c, Candidate) and chain.verifier.is_slow(c)]
                begun = [self._slow.begin(chain.state, candidate) for candidate in slow]
                known = wait((one for one in begun if one is not None), max(0.0, end - time.monotonic()))
                if not known or any(chain.verifier.is_slow(candidate) for candidate in slow):
                    return None
            refused = chain.admit_until_refused(proposal.postings, first)
            self._filled = _Filled(name, chain, refused)
        return self._filled

    # Blobs

    def _with_blobs(self, state: State, work: Callable[[], T], attempts: int | None = None) -> T:
        """Do something that reads blobs; those that are missing or damaged are fetched from others first."""
        while True:
            try:
                return work()
            except (AttachmentMissing, DamagedBlob) as error:
                self._rare.warn("missing", f"{error} It is fetched from other validators.")
                if attempts is not None:
                    attempts -= 1
                    if attempts <= 0:
                        raise
                try:
                    self.holders.fetch(error.sha256, state.height + self.config.receipt_blocks).result()
                except (AnofelError, OSError):
                    if self._stopping.wait(WAIT_SECONDS):
                        raise error from None

    def _fetch(self, sha256: BlobHash, signers: Sequence[int] = ()) -> "Future[None]":
        return self.holders.fetch(sha256, self.state.height + self.config.receipt_blocks, signers)

    def fetch_owed(self) -> int:
        """Ask for what decided blocks name and is not here; return how many that are."""
        owed = self.blobs.owed()
        for sha256 in owed:
            self._fetch(sha256)
        return len(owed)


def _signers(postings: Sequence[bytes], sha256: BlobHash) -> list[int]:
    """Return who promised to keep a blob, by the receipts in postings."""
    bodies = (Posting.from_bytes(data).body for data in postings)
    named = (blob for body in bodies for blob in retention.blobs_of(body) if blob.sha256 == sha256)
    return [receipt.holder for blob in named for receipt in blob.receipts]


def _updates(state: State) -> tuple[tuple[bytes, int], ...]:
    """Return what the engine hears of a change of validators: keys with their power, 0 for who goes."""
    announced = state.validators.announced(state.height)
    if announced is None:
        return ()
    before, after = ({one.key: one.power for one in era.values()} for era in announced)
    gone = dict.fromkeys(before.keys() - after.keys(), 0)
    return tuple(sorted((gone | dict(after.items() - before.items())).items()))
