"""What a node answers, read and checked for form; nothing here says that it is true."""

from pathlib import Path

import msgspec

from anofel.board.attachments import AttachmentMissing
from anofel.errors import VerificationError
from anofel.messages import Genesis
from anofel.transport import Refused, Transport

MAX_SYNC_BYTES = 64 << 20


class _Status(msgspec.Struct):
    height: int


def remote_height(transport: Transport) -> int:
    """Return the height that a node claims."""
    try:
        return msgspec.json.decode(transport.get("/v1/status"), type=_Status).height
    except msgspec.MsgspecError:
        raise VerificationError("The node's status cannot be read.") from None


def fetch_blob(transport: Transport, genesis: Genesis, sha256: bytes, path: Path) -> None:
    """Fetch a blob into a file, checked against its hash. Raises ``AttachmentMissing``."""
    largest = max(genesis.limits.max_key_bytes, genesis.limits.max_model_bytes)
    try:
        transport.download(f"/v1/blobs/{sha256.hex()}", path, max_bytes=largest, sha256=sha256)
    except Refused as error:
        raise AttachmentMissing(sha256) from error
