"""What every node of a board does, whoever makes the blocks: it keeps blobs, and promises to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anofel.board.state import Phase, State
from anofel.ids import BlobHash, PostingId, SharesId, TaskId
from anofel.messages import Blob, Genesis, Receipt, receipt_bytes
from anofel.node.files import BLOBS, NodeConfig, NodeFiles, blob_files
from anofel.node.metrics import Metrics
from anofel.node.outlines import Outlines
from anofel.node.transient import is_transient
from anofel.storage.blobs import retention
from anofel.storage.blobs.errors import disk_errors
from anofel.storage.blobs.store import BlobStore


@dataclass(frozen=True, slots=True)
class AcceptedPosting:
    """The answer to an accepted posting; the same when it is sent again."""

    posting_id: PostingId
    height: int | None
    """The block that holds it, or will; None if validators have yet to decide it."""
    again: bool
    """Whether the posting had been accepted before."""


class BoardNode:
    """The board of one directory."""

    files: NodeFiles
    genesis: Genesis
    config: NodeConfig
    metrics: Metrics
    blobs: BlobStore
    outlines: Outlines

    @property
    def state(self) -> State:
        """The newest state of this node."""
        raise NotImplementedError

    @property
    def height(self) -> int:
        """The last block that is shown; 0 before the first."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop in good order."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Let go of the directory as it is; the next start recovers."""
        raise NotImplementedError

    # Blobs

    @staticmethod
    def open_blobs(files: NodeFiles) -> BlobStore:
        """Open the blobs of a node; half of what may be pending is for uploads with a ticket."""
        directory, config = files.directory / BLOBS, files.config
        with disk_errors(directory):
            place = blob_files(files)
        pending = config.max_pending_bytes
        return BlobStore(
            directory, config.max_blob_bytes, pending, config.min_free_bytes, pending // 2, place
        )

    @property
    def max_blob_bytes(self) -> int:
        """The longest blob that a posting can name."""
        limits = self.genesis.limits
        return max(limits.max_key_bytes, limits.max_model_bytes)

    def is_readable(self, sha256: BlobHash) -> bool:
        """Whether a blob is there with the bytes that its name says. Any thread may ask."""
        try:
            return self.blobs.is_sound(sha256)
        except OSError as error:
            return is_transient(error)

    def receipt(self, sha256: BlobHash, length: int, expires: int) -> Receipt:
        """Sign the promise to keep a blob that is on the disk up to a height."""
        signed = receipt_bytes(self.genesis.hash, sha256, length, expires)
        return Receipt(holder=self.files.holder, expires=expires, signature=self.files.storage.sign(signed))

    def with_receipt(self, blob: Blob, expires: int) -> Blob:
        """Return a blob that is on the disk up to a height with this node's receipt."""
        return replace(blob, receipts=(self.receipt(blob.sha256, blob.length, expires), *blob.receipts))

    def _keep(self, kept: Sequence[retention.KeptBlob]) -> None:
        self.blobs.pin_all((blob.sha256, blob.until) for blob in kept)


def committee_keys(state: State) -> set[SharesId]:
    """Return the names of the key files that verification may need: not those of bundles that ended."""

    def is_over(task_id: TaskId) -> bool:
        task = state.tasks[task_id]
        return task.ended and (task.bundle is None or state.bundles[task.bundle].phase is Phase.ENDED)

    return {
        shares.shares_id
        for committee in state.committees.values()
        if committee.task is None or not is_over(committee.task)
        for shares in (committee.current, committee.pending)
        if shares is not None
    }
