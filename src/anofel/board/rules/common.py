"""Rules that several kinds of postings share: the posting itself, blobs, owners, members."""

from anofel.board.author import Anonymous, Author, RoleHolder
from anofel.board.rule import Rejected, Rule, require, rule
from anofel.board.seat import Sitting
from anofel.board.state import Committee, State, TaskState
from anofel.ids import TaskId
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
    "blob 3",
    "bad-receipt",
    "Every receipt is signed by a certified storage holder that the board has, or had 1,000 blocks ago.",
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
    known = all(state.validators.holders_at(state.height, number) for number in holders)
    distinct = len(holders) == len(blob.receipts)
    require(known and distinct and len(holders) >= state.validators.quorum_at(state.height), RECEIPTS)
    require(all(receipt.expires >= state.height for receipt in blob.receipts), EXPIRED)
    require(blob.length <= max_length, BLOB_LENGTH, f"It has {blob.length} bytes of at most {max_length}.")


def find_task(state: State, task_id: TaskId) -> TaskState:
    """Return a task. Raises ``Rejected``."""
    require(task_id in state.tasks, TASK_KNOWN)
    return state.tasks[task_id]


def find_own_task(state: State, task_id: TaskId, author: Author) -> TaskState:
    """Return a task of the author. Raises ``Rejected``."""
    task = find_task(state, task_id)
    require(task.owner == holder(author).subject, OWNER, culprit=holder(author).name)
    return task


def open_sitting(
    state: State, bundle: int | None, iteration: int, not_open: Rule, *, culprit: str = ""
) -> Sitting:
    """Return the sitting of a bundle whose open iteration is the given one. Raises ``Rejected``."""
    sitting = Sitting.find(state, bundle)
    if sitting is None or not sitting.is_open or sitting.number != iteration:
        raise Rejected(not_open, culprit=culprit)
    return sitting


def check_member(committee: Committee, member: int, author: Author) -> None:
    """Check that the author is the given member of the committee."""
    members = committee.current.members
    require(
        1 <= member <= len(members) and members[member - 1] == holder(author).subject,
        MEMBER,
        culprit=holder(author).name,
    )
