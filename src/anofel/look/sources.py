"""Boards to look at: one that is followed and verified from genesis, and one that lies on the disk."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anofel import stopping
from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.board.verification import Verifier
from anofel.errors import AnofelError
from anofel.ids import BlobHash, GenesisHash, PostingId
from anofel.light_client.client import LightClient
from anofel.messages import Block
from anofel.node.files import kept_blob_files
from anofel.node.reader import BlockReader
from anofel.page.facts import BoardFacts, facts_of
from anofel.proofs.keys import read_key_file
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.blobs.files import StoredAttachments
from anofel.storage.blocks import BlockStore
from anofel.storage.replay import replay


class _ReadBoard:
    """What both have: facts of a verified state, and the blocks beside it."""

    own = False
    onion = ""
    _facts: BoardFacts
    _reader: BlockReader

    @property
    def height(self) -> int:
        """The last block that was verified."""
        return self._facts.height

    async def facts(self) -> BoardFacts:
        """Say what the board looks like after its last block."""
        return self._facts

    @property
    def now(self) -> BoardFacts:
        """The same for those who do not wait."""
        return self._facts

    def block(self, height: int) -> Block | None:
        """Return a block."""
        return self._reader.block(height)

    def place_of(self, posting_id: PostingId) -> tuple[int, int] | None:
        """Return height and place of a posting in a block."""
        return self._reader.place_of(posting_id)


class BoardOnDisk(_ReadBoard):
    """The board of a directory, as far as it goes; verified from its last snapshot on (``PageSource``)."""

    live, trouble = False, ""

    def __init__(self, directory: Path, on_block: Callable[[int, int], None]) -> None:
        """Open a directory that may be in use. Raises ``StoreError``, ``InvalidInput``."""
        store = BlockStore(directory, read_only=True)
        try:
            attachments = StoredAttachments(kept_blob_files(directory))
            verifier = Verifier(
                store.genesis.hash,
                RegistrationVerifier.from_bytes(read_key_file(directory / "registration.verification.key")),
                SubmissionVerifier.from_bytes(read_key_file(directory / "submission.verification.key")),
                attachments,
            )
            height = store.height
            chain = replay(store, verifier, lambda block: on_block(block.header.height, height))
        finally:
            store.close()
        self.genesis_hash = chain.genesis.hash
        self._facts = facts_of(chain.state)
        self._reader, self._attachments = BlockReader(directory), attachments

    def blob(self, sha256: BlobHash) -> bytes:
        """Return a blob. Raises ``AttachmentMissing``, ``DamagedBlob``."""
        return self._attachments.read(sha256)

    def start(self) -> None:
        """There is nothing to follow."""

    def close(self) -> None:
        """Let go of the directory."""
        self._reader.close()


class FollowedBoard(_ReadBoard):
    """The board of a node, followed by a light client that believes nothing of it (``PageSource``)."""

    live, trouble = True, ""

    def __init__(self, client: LightClient, tell: Callable[[str], None]) -> None:
        """Begin with what the client verified; ``tell`` hears of trouble on the way."""
        self._client, self._tell = client, tell
        self._over = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="anofel-look", daemon=True)
        self._reader = BlockReader(client.directory)
        self.genesis_hash: GenesisHash = client.genesis.hash
        self._facts = facts_of(client.state)

    def blob(self, sha256: BlobHash) -> bytes:
        """Return a blob, fetched if need be; its bytes are those of its name.

        With a model those of all tasks of its bundle are fetched, in their order: a request for one
        alone would tell the node which study is looked at.
        """
        bundles = {study.bundle for study in self._facts.studies if study.model == sha256.hex()}
        for study in self._facts.studies:
            if study.bundle in bundles and study.model is not None:
                with suppress(AttachmentMissing, DamagedBlob):
                    self._client.attachments.read(BlobHash(bytes.fromhex(study.model)))
        return self._client.attachments.read(sha256)

    def start(self) -> None:
        """Begin to follow."""
        self._follower.start()

    def close(self) -> None:
        """Stop following."""
        self._over.set()
        if self._follower.ident is not None:
            self._follower.join()
        self._reader.close()
        self._client.close()

    def _follow(self) -> None:
        """Take blocks as they come; a node that is away is asked again, one that lies ends it."""
        trouble = ""
        while not self._over.wait(self._client.poll_seconds()):
            try:
                self._client.sync()
                self._facts = facts_of(self._client.state)
                trouble = ""
            except stopping.Stopped:
                return
            except AnofelError as error:
                if str(error) != trouble:
                    trouble = str(error)
                    self._tell(trouble)
                if not _passes(error):
                    self.live, self.trouble = False, trouble
                    return


def _passes(error: AnofelError) -> bool:
    """Whether trying again may help."""
    return error.exit_code == 3
