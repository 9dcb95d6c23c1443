"""``anofel node``: what it makes, and one clear sentence for everything in its way."""

import io
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from anofel.cli import main
from anofel.node.embedded import EmbeddedNode
from anofel.node.files import NodeConfig, read_node
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import TestAuthority, write_role
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import StoreError, read_genesis
from tests.node.certificate import write_tls_files
from tests.node.support import make_board, running

NOBODY = 65_534


@dataclass
class Result:
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str


def anofel(*arguments: object) -> Result:
    """Run a command in this process: starting Python costs more than all of it."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    argv = ["anofel", "node", *map(str, arguments)]
    with redirect_stdout(out), redirect_stderr(errors), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", argv)
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Result(code, out.getvalue(), errors.getvalue())


def refused(result: Result, words: str, code: int = 1) -> None:
    """Exactly one sentence, after warnings, and no traceback."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("anofel: ")
    assert words in last


@pytest.fixture
def directory(tmp_path: Path, keys: KeyDirectory) -> Path:
    return make_board(tmp_path / "node", keys).directory


def test_init_makes_a_whole_directory_that_runs(tmp_path: Path, keys: KeyDirectory) -> None:
    node = tmp_path / "node"
    insecure = ("--insecure-test-ca", tmp_path / "ca", "--insecure-development-keys")
    numbers = ("--interval", "0.2", "--size-class", "500:4", "--size-class", "900:16", "--train", "7")
    more = ("--post-from", "2", "--bundle-size", "3", "--grace", "9")
    result = anofel(
        "init", node, "--name", "Études", "--keys", keys.path, *insecure, *numbers, *more, "--json"
    )
    assert result.returncode == 0, result.stderr
    made = json.loads(result.stdout)
    genesis = read_genesis(node / "genesis.bin")
    year = datetime.now(UTC).date() + timedelta(days=365)
    assert abs(date.fromisoformat(made["receipts_until"]) - year) <= timedelta(days=1)
    assert made["genesis"] == genesis.hash.hex()
    assert made["insecure"] == genesis.insecure == "test certificate authority, development proof keys"
    assert (genesis.name, genesis.interval_ms, genesis.bundle_size) == ("Études", 200, 3)
    assert [(c.max_length, c.max_posts, c.train, c.post_from) for c in genesis.classes] == [
        (500, 4, 7, 2),
        (900, 16, 7, 2),
    ]
    assert genesis.limits.grace == 9
    for secret in ("node.key", "storage.key"):
        assert stat.S_IMODE((node / secret).stat().st_mode) == 0o600
    assert read_node(node).config == NodeConfig()
    assert "INSECURE" in result.stderr
    opened = EmbeddedNode(node)
    opened.seal()
    opened.close()
    status = anofel("status", node, "--json")
    assert json.loads(status.stdout)["height"] == 1


def test_init_with_real_roots_is_not_marked_insecure_for_them(tmp_path: Path, keys: KeyDirectory) -> None:
    """The roots of a test authority are refused without their flag; any other root is taken."""
    authority = TestAuthority.create()
    authority.save(tmp_path / "ca")
    write_role(tmp_path / "storage", authority.issue(Purpose.STORAGE, "Storage"))
    files = ("--root", tmp_path / "ca" / "root.pem")
    files += ("--storage-certificate", tmp_path / "storage" / "certificate.pem")
    files += ("--storage-key", tmp_path / "storage" / "key.pem")
    common = ("init", tmp_path / "node", "--name", "x", "--keys", keys.path, *files)
    refused(anofel(*common, "--insecure-development-keys"), "TEST authority")
    refused(anofel(*common, "--insecure-test-ca", tmp_path / "ca"), "--insecure-development-keys")
    assert not (tmp_path / "node").exists()
    result = anofel(*common, "--insecure-test-ca", tmp_path / "ca", "--insecure-development-keys")
    assert result.returncode == 0, result.stderr
    assert len(read_genesis(tmp_path / "node" / "genesis.bin").roots) == 1


def test_init_refuses_what_cannot_be_used(tmp_path: Path, keys: KeyDirectory, directory: Path) -> None:
    common = ("--name", "x", "--keys", keys.path)
    insecure = ("--insecure-test-ca", tmp_path / "ca", "--insecure-development-keys")
    refused(anofel("init", directory, *common, *insecure), "exists already")
    refused(anofel("init", tmp_path / "n", *common, "--insecure-development-keys"), "--root")
    refused(anofel("init", tmp_path / "n", "--name", "x", "--keys", tmp_path, *insecure), "keys.json")
    wrong = TestAuthority.create().issue(Purpose.OWNER, "Not storage")
    write_role(tmp_path / "owner", wrong)
    files = ("--storage-certificate", tmp_path / "owner" / "certificate.pem")
    files += ("--storage-key", tmp_path / "owner" / "key.pem")
    refused(anofel("init", tmp_path / "n", *common, *insecure, *files), "storage holder")
    late = ("--post-from", "300", "--train", "300")
    refused(anofel("init", tmp_path / "n", *common, *insecure, *late), "posting begins before")
    refused(anofel("init", tmp_path / "n", *common, *insecure, "--size-class", "many"), "LENGTH:POSTS")
    assert anofel("init", tmp_path / "n", *common, *insecure, "--max-postings", "65536").returncode == 2
    assert not (tmp_path / "n").exists()


def test_a_directory_that_is_no_node_is_refused(tmp_path: Path) -> None:
    refused(anofel("run", tmp_path), "not the directory of a node")
    refused(anofel("status", tmp_path), "not the directory of a node")


def test_status_says_times_and_sizes_as_people_do(directory: Path) -> None:
    shown, found = (
        anofel("status", directory).stdout,
        json.loads(anofel("status", directory, "--json").stdout),
    )
    rows = dict(line.strip().rsplit("  ", 1) for line in shown.splitlines()[1:] if "  " in line.strip())
    said = {name.strip(): value for name, value in rows.items()}
    assert said["last block"] == f"{datetime.fromtimestamp(found['time'], UTC):%Y-%m-%d %H:%M:%S} UTC"
    assert said["a block every"] == f"{found['interval_ms'] / 1000:g} s"
    assert said["board"].endswith(" MB")
    assert not {"interval ms", "time", "True", "None"} & {*said, *said.values()}


def test_a_port_in_use_and_a_second_node_are_refused(directory: Path) -> None:
    with running(directory) as node:
        port = node.url.rsplit(":", 1)[1]
        refused(anofel("run", directory, "--port", port), f"port {port}")
        refused(anofel("run", directory, "--port", "0"), "Another process is using")
        status = anofel("status", node.url, "--json")
        assert json.loads(status.stdout)["interval_ms"] == 100
        assert json.loads(anofel("status", directory, "--json").stdout)["name"] == "test"
        assert node.stop()[0] == 0


def test_a_node_that_does_not_answer_is_exit_code_three() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    result = anofel("status", f"http://127.0.0.1:{port}")
    refused(result, f"127.0.0.1:{port}", code=3)


def test_an_address_of_another_machine_is_refused(directory: Path) -> None:
    refused(anofel("run", directory, "--host", "192.0.2.1", "--port", "0"), "cannot listen")
    refused(anofel("run", directory, "--host", "no such host", "--port", "0"), "no address to listen on")


def test_a_genesis_of_another_board_is_refused(tmp_path: Path, keys: KeyDirectory, directory: Path) -> None:
    EmbeddedNode(directory).close()
    other = make_board(tmp_path / "other", keys).directory
    shutil.copy(other / "genesis.bin", directory / "genesis.bin")
    refused(
        anofel("run", directory, "--port", "0"), "node.key is not the key that signs this board's headers"
    )
    for name in ("node.key", "storage.pem", "storage.key"):
        shutil.copy(other / name, directory / name)
    refused(anofel("run", directory, "--port", "0"), "holds the board")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda d: (d / "submission.verification.key").unlink(),
            "submission.verification.key cannot be read",
        ),
        (
            lambda d: shutil.copy(d / "registration.verification.key", d / "submission.verification.key"),
            "not the submission verification key that genesis pins",
        ),
        (lambda d: (d / "node.key").chmod(0o644), "must belong to you alone"),
        (lambda d: (d / "node.key").write_bytes(b"short"), "is not the key of a node"),
        (lambda d: (d / "storage.key").unlink(), "storage.key cannot be read"),
        (
            lambda d: (d / "node.toml").write_text("receipt_blocks = 0"),
            "receipt_blocks must be an integer of at least 1, but is 0",
        ),
        (lambda d: (d / "node.toml").write_text("receipt_block = 1"), "did you mean 'receipt_blocks'"),
        (lambda d: (d / "node.toml").write_text("= = ="), "node.toml: line 1: it is not TOML"),
        (lambda d: (d / "board.sqlite").write_bytes(b"not a database" * 99), "is not a board's file"),
        (lambda d: (d / "genesis.bin").write_bytes(b"\1"), "Genesis"),
    ],
)
def test_missing_and_wrong_files_are_refused(directory: Path, damage, words: str) -> None:  # type: ignore[no-untyped-def]
    damage(directory)
    refused(anofel("run", directory, "--port", "0"), words)


@contextmanager
def without_rights() -> Iterator[None]:
    """Nobody's rights for a moment if we are root, who may write anywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_directory_that_is_read_only_is_refused(keys: KeyDirectory) -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        directory = make_board(Path(parent) / "node", keys).directory
        if os.geteuid() == 0:
            for secret in ("node.key", "storage.key"):
                os.chown(directory / secret, NOBODY, NOBODY)
        directory.chmod(0o555)
        with without_rights(), pytest.raises(StoreError, match="cannot be used: Permission denied"):
            EmbeddedNode(directory)
        directory.chmod(0o755)


def test_tls_files_are_checked_before_anything_listens(directory: Path, tmp_path: Path) -> None:
    certificate, key = write_tls_files(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = write_tls_files(tmp_path / "other")
    run = ("run", directory, "--port", "0")
    refused(
        anofel(*run, "--tls-certificate", certificate, "--tls-key", other), "not a certificate and its key"
    )
    refused(anofel(*run, "--tls-certificate", certificate, "--tls-key", tmp_path / "no"), "no cannot be read")
    half = anofel(*run, "--tls-certificate", certificate)
    assert (half.returncode, "go together" in half.stderr) == (2, True)
    assert key.exists()


@pytest.mark.parametrize("command", ["init", "run", "status"])
def test_help_has_an_example(command: str) -> None:
    result = anofel(command, "--help")
    assert result.returncode == 0
    assert "Example: anofel node" in result.stdout
