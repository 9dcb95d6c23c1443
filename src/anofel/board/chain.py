"""Blocks: the one place where postings, the state machine and headers meet.

A node fills blocks (``offer``, ``seal``); a light client and an audit follow them (``follow``). All run
the same rules, so equal histories give equal headers.
"""

from collections.abc import Callable, Sequence

from anofel.board import block_end, roots
from anofel.board.engines import InvalidCommit, check_postings, check_vouched, covers_roots
from anofel.board.genesis import check_keys
from anofel.board.log import merkle_root
from anofel.board.rule import Rejected, require
from anofel.board.rules import handler_of
from anofel.board.rules.common import BLOCK_FULL
from anofel.board.state import State
from anofel.board.validators import Eras
from anofel.board.verification import Candidate, Verifier
from anofel.errors import InvalidInput, VerificationError
from anofel.messages import Block, Genesis, Header, Posting

RULE_VERSION = 1
"""Changes with the rules; genesis and every header name it."""


class InvalidBlock(VerificationError):
    """A block does not follow from the blocks before it; names the height, and the posting if it is one."""

    code = "invalid-block"

    def __init__(
        self,
        height: int,
        reason: str,
        *,
        posting: int | None = None,
        rejected: Rejected | None = None,
        signed: bool = True,
    ) -> None:
        where = f"Block {height}" if posting is None else f"Posting {posting} of block {height}"
        super().__init__(f"{where}: {reason}")
        self.height = height
        self.posting = posting
        self.rejected = rejected
        self.signed = signed
        """Whether what is wrong is something that validators sign, if they signed this block."""


class Chain:
    """The board of one party, up to the block that is being filled."""

    def __init__(self, state: State, verifier: Verifier) -> None:
        if state.genesis.rules != RULE_VERSION:
            raise InvalidInput(
                f"The board follows rules {state.genesis.rules}; this program knows rules {RULE_VERSION}."
            )
        check_keys(state.genesis, verifier.registration, verifier.submission)
        self.state = state
        self.verifier = verifier
        self._ids: list[bytes] = []

    @property
    def genesis(self) -> Genesis:
        """The board's genesis."""
        return self.state.genesis

    def fork(self) -> "Chain":
        """Return a chain that goes on by itself, as long as this one rests; both share what was verified."""
        made = Chain(self.state.fork(), self.verifier)
        made._ids = self._ids.copy()
        return made

    # Filling a block

    def begin(self, time: int) -> None:
        """Start the next block with its time; times never decrease."""
        block_end.begin_block(self.state, max(time, self.state.time))
        self._ids = []

    def offer(self, data: bytes) -> Posting:
        """Admit one posting to the block. Raises ``Rejected`` and then nothing has changed."""
        result = self.offer_many([data])[0]
        if isinstance(result, Rejected):
            raise result
        return result

    def offer_many(self, offered: Sequence[bytes]) -> list[Posting | Rejected]:
        """Admit postings in their order, exactly as one by one; proofs are verified together.

        A posting that builds on an earlier one of the list is not yet a candidate when the batch is
        verified; it is verified alone when its turn comes.
        """
        return self.admit_all(offered, self.check_all(offered))

    def admit_all(
        self, offered: Sequence[bytes], first: Sequence[Candidate | Rejected]
    ) -> list[Posting | Rejected]:
        """Admit postings that were checked against this very state (``check_all``)."""
        self.verifier.confirm(self.state, [c for c in first if isinstance(c, Candidate)])
        num_before = self.state.num_postings
        results: list[Posting | Rejected] = []
        for data, tried in zip(offered, first, strict=True):
            same_state = self.state.num_postings == num_before
            results.append(tried if same_state and isinstance(tried, Rejected) else self._turn(data, tried))
        return results

    def admit_until_refused(
        self, offered: Sequence[bytes], first: Sequence[Candidate | Rejected]
    ) -> Rejected | None:
        """Admit postings that were checked against this very state; stop at a refusal and return it."""
        self.verifier.confirm(self.state, [c for c in first if isinstance(c, Candidate)])
        for data, tried in zip(offered, first, strict=True):
            result = self._turn(data, tried)
            if isinstance(result, Rejected):
                return result
        return None

    def check_all(self, offered: Sequence[bytes]) -> list[Candidate | Rejected]:
        """Say of each posting what must be verified before it can be admitted, if the state admits it."""
        results: list[Candidate | Rejected] = []
        for data in offered:
            try:
                results.append(self._candidate(data))
            except Rejected as rejected:
                results.append(rejected.again())
        return results

    def _turn(self, data: bytes, tried: Candidate | Rejected) -> Posting | Rejected:
        """Admit a posting now: the state may have changed since it was tried."""
        try:
            candidate = tried if isinstance(tried, Candidate) else self._candidate(data)
            self._admit(candidate)
        except Rejected as rejected:
            return rejected.again()
        return candidate.posting

    def _candidate(self, data: bytes) -> Candidate:
        posting = self.verifier.open_posting(data)
        self._check_room(posting)
        author = self.verifier.authenticate(self.state, posting)
        claim = handler_of(posting.body).check(self.state, posting.body, author)
        return Candidate(posting, author, claim)

    def _check_room(self, posting: Posting) -> None:
        state, limits = self.state, self.state.genesis.limits
        require(state.num_postings < limits.max_postings, BLOCK_FULL)
        require(state.num_bytes + len(posting.data) <= limits.max_block_bytes, BLOCK_FULL)

    def _admit(self, candidate: Candidate) -> None:
        posting, handler = candidate.posting, handler_of(candidate.posting.body)
        self._check_room(posting)
        claim = handler.check(self.state, posting.body, candidate.author)
        verdict = self.verifier.confirm(self.state, [Candidate(posting, candidate.author, claim)])[0]
        if verdict is not None:
            raise verdict.again()
        handler.apply(self.state, posting.body, candidate.author, posting.id)
        self.state.num_postings += 1
        self.state.num_bytes += len(posting.data)
        self._ids.append(posting.id)

    def seal(self) -> Header:
        """End the block and return its header."""
        results, openings = block_end.Results(), self.verifier.openings
        for seat in block_end.counts_due(self.state):
            results.counts[seat.task_id] = tuple(count.value for count in openings.counts(seat))
        for seat in block_end.sums_due(self.state):
            opened = openings.open_sum(seat)
            results.sums[seat.task_id] = None if opened is None else opened.result
        block_end.end_block(self.state, results)
        state = self.state
        header = Header(
            height=state.height,
            time=state.time,
            previous=state.tip,
            postings=merkle_root(self._ids),
            certifiers=roots.certifiers(state),
            clients=roots.clients(state),
            nullifiers=roots.nullifiers(state),
            committees=roots.committees(state),
            tasks=roots.tasks(state),
            bundles=roots.bundles(state),
            epoch=state.epoch,
            rules=RULE_VERSION,
        )
        state.tip = header.hash(state.genesis_hash)
        return header

    # Following blocks

    def follow(self, block: Block, *, on_posting: Callable[[Posting], None] | None = None) -> bytes:
        """Verify a block completely and take it; return its hash.

        Raises ``InvalidBlock``. A block whose postings or roots are refused has been half taken by then:
        go on from the last snapshot.
        """
        header, state = block.header, self.state
        height = state.height + 1
        if header.height != height:
            raise InvalidBlock(height, f"the header says height {header.height}.")
        if header.previous != state.tip:
            raise InvalidBlock(height, "it does not follow the block before it.")
        if header.time < state.time:
            raise InvalidBlock(height, "its time is before that of the block before it.")
        verify_signed(state.genesis, state.validators.eras, block)
        return self.fill_again(header, block.postings, on_posting=on_posting)

    def fill_again(
        self,
        header: Header,
        postings: Sequence[bytes],
        *,
        on_posting: Callable[[Posting], None] | None = None,
    ) -> bytes:
        """Take a block whose place and signatures are known to be right; return its hash.

        A validator takes its own blocks so, which it decided before their seals were there.
        Raises ``InvalidBlock``, as ``follow`` does.
        """
        state, height = self.state, self.state.height + 1
        self.begin(header.time)
        for index, result in enumerate(self.offer_many(postings)):
            if isinstance(result, Rejected):
                raise InvalidBlock(height, str(result), posting=index, rejected=result)
            if on_posting is not None:
                on_posting(result)
        sealed = self.seal()
        if sealed != header:
            where = _first_difference(sealed, header)
            signed = covers_roots(state.genesis)
            raise InvalidBlock(height, f"its header states another {where}.", signed=signed)
        return state.tip


def verify_commit(genesis: Genesis, validators: Eras, block: Block) -> None:
    """Check that the validators of its height vouch for a block's header (``engines``).

    Raises ``InvalidBlock``.
    """
    try:
        check_vouched(genesis, validators, block)
    except InvalidCommit as error:
        raise InvalidBlock(block.header.height, str(error)) from None


def verify_signed(genesis: Genesis, validators: Eras, block: Block) -> None:
    """Check that the board's validators vouch for a block and its postings. Raises ``InvalidBlock``."""
    verify_commit(genesis, validators, block)
    try:
        check_postings(block)
    except InvalidCommit as error:
        raise InvalidBlock(block.header.height, str(error)) from None


def _first_difference(ours: Header, theirs: Header) -> str:
    names = (
        "postings",
        "certifiers",
        "clients",
        "nullifiers",
        "committees",
        "tasks",
        "bundles",
        "epoch",
        "rules",
    )
    differing = [name for name in names if getattr(ours, name) != getattr(theirs, name)]
    return {"postings": "root of postings"}.get(differing[0], f"root of {differing[0]}")
