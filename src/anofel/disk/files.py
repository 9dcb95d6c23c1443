"""Small files and directories of them: whole or not at all, new ones never over something that is there."""

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from anofel.disk.portable import sync_directory
from anofel.errors import AnofelError, InvalidInput

T = TypeVar("T")
_MAY_PASS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class DiskFailed(AnofelError):
    """The disk is full or broken: nothing that a user typed, and it may pass, so a role is started again."""

    code = "disk-failed"
    exit_code = 4


class FileExists(InvalidInput):
    """Something is at the path already, and nothing is overwritten."""

    code = "file-exists"


@dataclass(frozen=True)
class Secret:
    """Contents that only the owner of the file may read."""

    data: bytes

    def __repr__(self) -> str:
        return "Secret(<redacted>)"


def write_new_directory(path: Path, files: Mapping[str, bytes | Secret], *, mode: int = 0o755) -> None:
    """Write all files into a new directory that appears at once; names may hold directories.

    Raises FileExists, InvalidInput, DiskFailed.
    """
    _refuse_existing(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            for name, content in files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                _write(partial / name, content)
                sync_directory((partial / name).parent)
            partial.chmod(mode)
            sync_directory(partial)
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        sync_directory(path.parent)
    except OSError as error:
        raise _failure(f"{path} cannot be made", error) from error


def write_new_file(path: Path, content: bytes | Secret) -> None:
    """Write one file that appears whole. Raises FileExists, InvalidInput, DiskFailed."""
    with _appearing(path) as partial:
        _write(partial, content)


@contextmanager
def new_large_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file piece by piece; it appears whole. Raises FileExists, InvalidInput, DiskFailed."""
    with _appearing(path) as partial, partial.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """Let a file that is written under another name appear whole, where nothing is."""
    _refuse_existing(path)
    partial = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        try:
            yield partial
            os.link(partial, path)  # unlike a rename, it never replaces what appeared meanwhile
        finally:
            partial.unlink(missing_ok=True)
        sync_directory(path.parent)
    except FileExistsError:
        _refuse_existing(path)
        raise
    except OSError as error:
        raise _failure(f"{path} cannot be written", error) from error


def replace_file(path: Path, content: bytes | Secret) -> None:
    """Write a file in place of the one that may be there; a crash leaves the old or the new one, whole.

    Raises InvalidInput, DiskFailed.
    """
    partial = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        try:
            _write(partial, content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as error:
        raise _failure(f"{path} cannot be written", error) from error


def _failure(what: str, error: OSError) -> AnofelError:
    kind = DiskFailed if error.errno in _MAY_PASS else InvalidInput
    return kind(f"{what}: {error.strerror or error}.")


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise FileExists(f"{path} exists already; it is not overwritten.")


def _write(path: Path, content: bytes | Secret) -> None:
    data, mode = (content.data, 0o600) if isinstance(content, Secret) else (content, 0o644)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def read_each(paths: Iterable[Path], read: Callable[[Path], T]) -> list[T]:
    """Read several files. Raises ``InvalidInput`` that names all of them that cannot be used."""
    made, refused = [], []
    for path in paths:
        try:
            made.append(read(path))
        except InvalidInput as error:
            refused.append((path, error))
        except OSError as error:
            refused.append((path, InvalidInput(f"It cannot be read: {error.strerror or error}.")))
    if not refused:
        return made
    sentences = [str(error) if str(path) in str(error) else f"{path}: {error}" for path, error in refused]
    all_refused = InvalidInput(" ".join(sentences))
    codes = {error.code for _, error in refused}
    all_refused.code = codes.pop() if len(codes) == 1 else InvalidInput.code
    raise all_refused


def read_small_file(path: Path, max_bytes: int = 1 << 20) -> bytes:
    """Read a file whose size is bounded. Raises InvalidInput."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > max_bytes:
        raise InvalidInput(f"{path} is larger than {max_bytes} bytes.")
    return data
