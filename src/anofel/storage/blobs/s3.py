"""Blobs in object storage that speaks S3. Needs the extra ``anofel[s3]``.

1. A blob is put only if nothing is there under its name; what is there already is read and hashed before it
   is believed, and overwritten if it is something else.
2. What is sent is hashed once more before it goes, and the store is told the SHA-256 that it has to receive.
3. What is read back is a range, in pieces; who reads a whole blob checks its hash.
4. Nothing is kept in a bucket under any other name than ``<prefix>/<board>/<holder>/<hash>``, so that boards
   and holders may share one.
5. Keys for the store come from the environment, never from a file of the node, and stand in no message.
"""

import contextlib
import hashlib
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from anofel.disk.files import read_small_file
from anofel.errors import InvalidInput
from anofel.ids import BlobHash
from anofel.storage.blobs.files import PlaceUnreachable

CONNECT_SECONDS: Final = 5
SILENCE_SECONDS: Final = 10
"""Without a byte, after which a request is given up."""
REQUEST_SECONDS: Final = 300
TRIES_SECONDS: Final = 20
"""For how long a request that failed is begun again."""
TRIES: Final = 3
REMOVED_AT_ONCE: Final = 1000
"""What S3 takes in one request."""
_PIECE: Final = 1 << 20
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_ENDPOINT: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_REASONS: Final = (
    ("http://169.254.", "no keys are in the environment, and this machine has no role"),
    ("NoSuchBucket", "there is no such bucket"),
    ("SignatureDoesNotMatch", "its secret key is another one"),
    ("InvalidAccessKeyId", "it does not know the access key"),
    ("AccessDenied", "it does not allow that"),
    ("BadDigest", "other bytes arrived than were sent"),
)
_STATUS: Final = re.compile(r"status code: ([0-9]{3})")


@dataclass(frozen=True, kw_only=True)
class S3Config:
    """The table ``[s3]`` of ``node.toml``."""

    bucket: str
    region: str = "us-east-1"
    endpoint: str = ""
    """The address of a store that is not Amazon's."""
    prefix: str = ""
    """What the names of objects begin with."""
    ca_file: str = ""
    """The authority that vouches for the endpoint, in PEM; without it those that the machine trusts."""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what cannot be used."""
        if not _BUCKET.fullmatch(self.bucket):
            yield "bucket", "must be 3 to 63 lower-case letters, digits, dots and hyphens"
        if self.endpoint and not _ENDPOINT.fullmatch(self.endpoint):
            yield "endpoint", "must be an address, https://… or http://…, without keys"
        if self.prefix and (not _PREFIX.fullmatch(self.prefix) or {".", ".."} & set(self.prefix.split("/"))):
            yield "prefix", "must be names of letters, digits, dots, hyphens and underscores, with / between"


def s3_name(config: S3Config, board: bytes, holder: int) -> str:
    """Say where a holder of a board has its objects (rule 4)."""
    parts = (config.bucket, config.prefix, board.hex(), str(holder))
    return "s3://" + "/".join(part for part in parts if part)


class S3Files:
    """One holder's blobs as objects (``anofel.storage.blobs.files.BlobFiles``)."""

    is_remote = True

    def __init__(self, config: S3Config, name: str) -> None:
        """``name``: as ``s3_name`` gives it. Look once whether the bucket answers.

        Raises ``InvalidInput``, ``PlaceUnreachable``.
        """
        bucket = f"s3://{config.bucket}/"
        if not name.startswith(bucket):
            raise InvalidInput(f"Blobs are kept in {name}, and not in the bucket {config.bucket}.")
        self.name = name
        self._store = _open(config, name.removeprefix(bucket))
        self._obstore = _obstore()
        with self._answers():
            next(iter(self._obstore.list(self._store, chunk_size=1)), None)

    def keep(self, sha256: BlobHash, whole: Path) -> None:
        """Put a blob if it is not there, and remove its file (rules 1 and 2)."""
        with self._answers():
            try:
                self._put(sha256, whole, "create")
            except self._obstore.exceptions.AlreadyExistsError:
                if self.digest(sha256) != sha256:
                    self._put(sha256, whole, "overwrite")
        whole.unlink(missing_ok=True)

    def replace(self, sha256: BlobHash, sound: Path) -> None:
        """Overwrite what is damaged."""
        with self._answers():
            self._put(sha256, sound, "overwrite")
        sound.unlink(missing_ok=True)

    def open(self, sha256: BlobHash, start: int, length: int) -> "_Stream":
        """Begin to read a range."""
        if not length:
            return _Stream(self, iter(()))
        options = {"range": (start, start + length)}
        with self._answers():
            found = self._obstore.get(self._store, sha256.hex(), options=options)
            return _Stream(self, iter(found.stream(min_chunk_size=_PIECE)))

    def read(self, sha256: BlobHash) -> bytes:
        """Return all bytes of a blob, unchecked."""
        with self._answers():
            return bytes(self._obstore.get(self._store, sha256.hex()).bytes())

    def digest(self, sha256: BlobHash) -> bytes:
        """Return the hash of an object, as it is read."""
        digest = hashlib.sha256()
        with self._answers():
            for piece in self._obstore.get(self._store, sha256.hex()).stream(min_chunk_size=_PIECE):
                digest.update(piece)
        return digest.digest()

    def remove(self, names: Sequence[BlobHash]) -> None:
        """Remove objects, many with one request."""
        for first in range(0, len(names), REMOVED_AT_ONCE):
            part = [sha256.hex() for sha256 in names[first : first + REMOVED_AT_ONCE]]
            with self._answers():
                self._obstore.delete(self._store, part)

    def _put(self, sha256: BlobHash, path: Path, mode: Any) -> None:
        with path.open("rb") as file:
            if path.stat().st_size == 0:  # nothing can be mapped of it
                self._obstore.put(self._store, sha256.hex(), b"", mode=mode)
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
                if hashlib.sha256(data).digest() != sha256:
                    raise OSError(None, f"{path.name} is damaged on the disk")
                self._obstore.put(self._store, sha256.hex(), data, mode=mode, use_multipart=False)

    @contextlib.contextmanager
    def _answers(self) -> Iterator[None]:
        """Turn what the store says into one sentence without anything of a request in it (rule 5)."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise PlaceUnreachable(f"{self.name}: there is no such bucket") from None
            raise FileNotFoundError(f"{self.name} does not hold it") from None
        except self._obstore.exceptions.BaseError as error:
            raise PlaceUnreachable(f"{self.name}: {_reason(str(error))}") from None


class _Stream:
    """A range of an object, in pieces."""

    def __init__(self, files: S3Files, pieces: "Iterator[Any]") -> None:
        self._files, self._pieces, self._left = files, pieces, memoryview(b"")

    def read(self, size: int, /) -> bytes:
        """Return some of the next bytes."""
        if not self._left:
            with self._files._answers():
                self._left = memoryview(next(self._pieces, b""))
        piece, self._left = bytes(self._left[:size]), self._left[size:]
        return piece

    def close(self) -> None:
        """End the request."""
        self._pieces, self._left = iter(()), memoryview(b"")


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise InvalidInput("Blobs in S3 need the extra: pip install 'anofel[s3]'.") from None
    return obstore


def _open(config: S3Config, prefix: str) -> Any:
    options: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "read_timeout": timedelta(seconds=SILENCE_SECONDS),
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "allow_http": config.endpoint.startswith("http://"),
    }
    if config.ca_file:
        options["root_certificate"] = read_small_file(Path(config.ca_file))
    return _obstore().store.S3Store(
        config.bucket,
        prefix=prefix,
        region=config.region,
        checksum_algorithm="SHA256",
        client_options=options,
        retry_config={"max_retries": TRIES, "retry_timeout": timedelta(seconds=TRIES_SECONDS)},
        **({"endpoint": config.endpoint} if config.endpoint else {}),
    )


def _reason(text: str) -> str:
    """Say in a few words why a request failed; the store's own text may hold anything."""
    for word, reason in _REASONS:
        if word in text:
            return reason
    status = _STATUS.search(text)
    return f"it answers with status {status[1]}" if status else "it does not answer"
