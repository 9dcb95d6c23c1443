"""A board in one file says the same as its directory, and a file that is none is named."""

from pathlib import Path

import pytest

from anofel.audit.archive import MAGIC, Archive, DamagedArchive
from anofel.audit.auditor import Auditor
from anofel.audit.report import AuditReport
from anofel.audit.sources import open_source
from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.ids import BlobHash
from tests.page.verifier_tools import export, flipped


@pytest.fixture(scope="module")
def archive(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(history, tmp_path_factory.mktemp("archive") / "board.anofel")


def audited(where: Path) -> AuditReport:
    with open_source(str(where)) as source:
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
        )
        auditor.follow(source.blocks)
        return auditor.finish()


@pytest.mark.slow
def test_an_audit_of_the_file_reports_what_an_audit_of_the_directory_does(
    history: Path, archive: Path
) -> None:
    report = audited(archive)
    assert report.ok
    assert report.document() == audited(history).document()


def test_the_file_holds_every_block_and_blob_as_they_are(history: Path, archive: Path) -> None:
    opened = Archive.open(archive)
    with open_source(str(history)) as source:
        assert opened.genesis == source.genesis.to_bytes()
        assert list(opened.blocks()) == [block.to_bytes() for block in source.blocks]
        assert opened.names()
        assert all(opened.read(name) == source.attachments.read(name) for name in opened.names())
    with pytest.raises(AttachmentMissing):
        opened.read(BlobHash(bytes(32)))
    opened.close()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: b"something else" + data, "no archive of a board"),
        (lambda data: data[:-20], "cut short"),
        (lambda data: data[: len(data) // 2], "cut short"),
        (lambda data: flipped(data, len(data) - 1, 0), "its end does not fit"),
        (lambda data: data + b"more", "its end does not fit"),
        (lambda data: MAGIC + b"\x09" + data[17:], "an unknown part"),
        (lambda data: MAGIC + data[-21:-16] + bytes(16), "lacks the genesis"),
    ],
)
def test_a_file_that_is_not_whole_is_named(archive: Path, tmp_path: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "damaged.anofel"
    path.write_bytes(change(archive.read_bytes()))
    with pytest.raises(DamagedArchive, match=sentence):
        Archive.open(path)


def test_a_damaged_blob_is_named(archive: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.anofel"
    data = archive.read_bytes()
    path.write_bytes(flipped(data, len(data) - 100, 3))
    opened = Archive.open(path)
    with pytest.raises(DamagedBlob, match="damaged in the archive"):
        opened.read(opened.names()[-1])
    opened.close()
