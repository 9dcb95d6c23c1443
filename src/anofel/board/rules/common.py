"""Rules that several kinds of postings share: the posting itself, blobs, owners, members."""

from anofel.board.author import Anonymous, Author, RoleHolder
from anofel.board.claims import Addressee, CommitteeRef
from anofel.board.rule import require, rule
from anofel.board.state import Bundle, Committee, Iteration, Position, State, TaskState
from anofel.committee.context import AgreedSet, IterationContext, TaskLimits
from anofel.committee.count import CIPHERTEXT_LENGTH
from anofel.committee.schemes import NAMES
from anofel.messages import Blob

TOO_LONG = rule("posting 1", "posting-too-long", "A posting is not longer than its kind allows.")
MALFORMED = rule("posting 2", "malformed-posting", "A posting is in its one canonical encoding.")
SIGNATURE = rule("posting 3", "bad-signature", "The author signed the posting for this board.")
CHAIN = rule(
    "posting 4",
    "author-not-certified",
    "The author's certificate leads to a root of genesis, is valid at the block's time and has the "
    "purpose that the kind needs.",
)
BLOCK_FULL = rule("posting 5", "block-full", "The block has room for the posting.")

RECEIPTS = rule("blob 1", "too-few-receipts", "A blob has receipts of enough different storage holders.")
EXPIRED = rule("blob 2", "receipt-expired", "No receipt has expired at the block's height.")
BAD_RECEIPT = rule(
    "blob 3", "bad-receipt", "Every receipt is signed by a certified storage holder of genesis."
)
BLOB_LENGTH = rule("blob 4", "blob-too-long", "A blob is not longer than its kind allows.")

TASK_KNOWN = rule("task 1", "task-unknown", "The task is on the board.")
OWNER = rule("task 2", "not-the-owner", "The author announced the task.")
MEMBER = rule(
    "member 1", "not-a-member", "The author is the member that it says it is, in the task's committee."
)


def holder(author: Author) -> RoleHolder:
    """Return a role-holder; the kinds' authors are fixed by the encoding."""
    assert isinstance(author, RoleHolder)
    return author


def client(author: Author) -> Anonymous:
    """Return a client; the kinds' authors are fixed by the encoding."""
    assert isinstance(author, Anonymous)
    return author


def check_blob(state: State, blob: Blob, max_length: int) -> None:
    """Check what the state says about a blob's receipts; their signatures are part of the claim."""
    holders = {receipt.holder for receipt in blob.receipts}
    known = all(number < len(state.genesis.holders) for number in holders)
    distinct = len(holders) == len(blob.receipts)
    require(known and distinct and len(holders) >= state.genesis.quorum, RECEIPTS)
    require(all(receipt.expires >= state.height for receipt in blob.receipts), EXPIRED)
    require(blob.length <= max_length, BLOB_LENGTH, f"It has {blob.length} bytes of at most {max_length}.")


def find_task(state: State, task_id: bytes) -> TaskState:
    """Return a task. Raises ``Rejected``."""
    require(task_id in state.tasks, TASK_KNOWN)
    return state.tasks[task_id]


def find_own_task(state: State, task_id: bytes, author: Author) -> TaskState:
    """Return a task of the author. Raises ``Rejected``."""
    task = find_task(state, task_id)
    require(task.owner == holder(author).subject, OWNER, culprit=holder(author).name)
    return task


def find_position(state: State, task: TaskState) -> tuple[Bundle, Iteration, Position] | None:
    """Return where a task stands in its bundle's current iteration, if there is one."""
    if task.bundle is None:
        return None
    bundle = state.bundles[task.bundle]
    if bundle.current is None:
        return None
    return bundle, bundle.current, bundle.current.positions[task.position]


def check_member(committee: Committee, member: int, author: Author) -> None:
    """Check that the author is the given member of the committee."""
    members = committee.current.members
    require(
        1 <= member <= len(members) and members[member - 1] == holder(author).subject,
        MEMBER,
        culprit=holder(author).name,
    )


def limits_of(task: TaskState) -> TaskLimits:
    """Return what the task promises about its vectors."""
    posted = task.task
    return TaskLimits(
        length=posted.length,
        bound=posted.bound,
        max_posts=posted.max_posts,
        min_clients=posted.min_clients,
    )


def addressee_of(state: State, task: TaskState, position: Position | None = None) -> Addressee:
    """Return the committee of a task as claims name it; for a position, with the shares that open it."""
    committee = state.committee_of(task)
    shares = position.shares if position is not None and position.shares is not None else committee.current
    reference = CommitteeRef(committee.key_id, committee.scheme, shares.shares_id)
    return Addressee(reference, task.task_id, limits_of(task), task.task.types)


def iteration_context(state: State, bundle: Bundle, task: TaskState) -> IterationContext:
    """Return what ciphertexts and proofs of a task's iteration are bound to."""
    return IterationContext(
        genesis=state.genesis_hash,
        task=task.task_id,
        iteration=bundle.iterations,
        scope=state.scope(bundle).to_bytes(),
        position=task.position,
    )


def agreed_set(state: State, bundle: Bundle, task: TaskState) -> AgreedSet:
    """Return the agreed set of a position that is aggregated."""
    assert bundle.current is not None
    agreed = bundle.current.positions[task.position].agreed
    assert agreed is not None
    return AgreedSet(
        iteration=iteration_context(state, bundle, task),
        key_id=task.task.key_id,
        close_hash=bundle.current.close_hash,
        set_digest=agreed.set_digest,
        sum_digest=agreed.sum_digest,
        num_posts=agreed.num_posts,
        min_clients=task.task.min_clients,
    )


def counted_bits(iteration: Iteration, position: int) -> tuple[tuple[bytes, bytes], ...]:
    """Return nullifier and encrypted bit of every post in the agreed set of a position."""
    agreed = iteration.positions[position].agreed
    assert agreed is not None
    excluded = {nullifier for nullifier, _ in agreed.excluded}
    start = position * CIPHERTEXT_LENGTH
    return tuple(
        (nullifier, post.ballot[start : start + CIPHERTEXT_LENGTH])
        for nullifier, post in iteration.submissions.items()
        if nullifier not in excluded
    )


def scheme_name(number: int) -> str:
    """Return the name of a scheme by its number in messages."""
    return NAMES[number]
