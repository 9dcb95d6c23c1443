"""``anofel aggregator`` and ``anofel owner``: one clear sentence for everything in the way."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anofel.disk.keystore import KeyFile
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import write_role
from anofel.proofs.keys import KeyDirectory
from anofel.roles.directory import RoleDirectory
from tests.node.support import SECONDS, BoardOfTest, make_board, running
from tests.roles.support import write_task


def anofel(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anofel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


def refused(result: subprocess.CompletedProcess[str], words: str, code: int = 1) -> None:
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("anofel: ")
    assert words in last


@pytest.fixture
def board(keys: KeyDirectory, tmp_path: Path) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def init(board: BoardOfTest, role: str, path: Path, url: str, purpose: Purpose | None = None):  # type: ignore[no-untyped-def]
    now, folder = int(time.time()), path.with_name(f"{path.name}-certificate")
    write_role(folder, board.authority.issue(purpose or Purpose(role), path.name, now - 3600, now + 3600))
    return anofel(
        role, "init", path, "--board", url, "--genesis", board.directory / "genesis.bin", "--certificate",
        folder / "certificate.pem", "--key", folder / "key.pem", "--key-file", path.with_suffix(".key"),
        "--json",
    )  # fmt: skip


@pytest.mark.parametrize("role", ["aggregator", "owner"])
def test_init_makes_a_directory_once_and_for_its_role(board: BoardOfTest, tmp_path: Path, role: str) -> None:
    path = tmp_path / "role"
    made = init(board, role, path, "http://127.0.0.1:1")
    assert made.returncode == 0, made.stderr
    assert len(bytes.fromhex(json.loads(made.stdout)["subject"])) == 32
    again = anofel(
        role, "init", path, "--board", "http://x", "--genesis", "00" * 32, "--certificate", "x", "--key", "x"
    )
    refused(again, "exists already")
    refused(init(board, role, tmp_path / "other", "http://x", Purpose.STORAGE), f"for the role {role}")
    assert not (tmp_path / "other").exists()
    status = anofel(role, "status", path, "--json")
    assert json.loads(status.stdout) == {}
    refused(anofel(role, "status", tmp_path), f"anofel {role} init")


def test_what_is_in_the_way_of_a_role_is_said(board: BoardOfTest, tmp_path: Path) -> None:
    path, key = tmp_path / "owner", tmp_path / "owner.key"
    init(board, "owner", path, "http://127.0.0.1:1")
    with RoleDirectory.open(path, KeyFile(key), role="owner"):
        refused(anofel("owner", "run", path, "--key-file", key), "Another process")
    refused(anofel("owner", "run", path, "--key-file", key), "cannot be reached", code=3)
    refused(anofel("aggregator", "run", path, "--key-file", key), "role 'owner', not 'aggregator'")


def test_an_owner_is_refused_before_anything_is_sent(board: BoardOfTest, tmp_path: Path) -> None:
    with running(board.directory) as node:
        path, unlock = tmp_path / "owner", ("--key-file", tmp_path / "owner.key")
        init(board, "owner", path, node.url)
        refused(anofel("owner", "run", path, *unlock), "anofel owner announce")
        write_task(tmp_path / "task.toml")
        announce = ("owner", "announce", path, tmp_path / "task.toml", "--committee")
        refused(anofel(*announce, "ab" * 32, "--wait", "2", *unlock), "in vain", code=3)
        assert anofel(*announce, "ab" * 32, "--check", *unlock).returncode == 1
        assert not (path / "outbox").exists()  # the directory still serves another task
        write_task(tmp_path / "task.toml", rule={"kind": "owner"})
        refused(anofel(*announce, "ab" * 32, *unlock), "name it with --rule")
        own = ("--rule", "tests.roles.own_rule:missing")
        refused(anofel(*announce, "ab" * 32, *own, *unlock), "cannot be imported")


def test_key_generation_waits_for_the_others_and_ends(board: BoardOfTest, tmp_path: Path) -> None:
    with running(board.directory) as node:
        path, unlock = tmp_path / "member", ("--key-file", tmp_path / "member.key")
        subject = json.loads(init(board, "aggregator", path, node.url).stdout)["subject"]
        keygen = ("aggregator", "keygen", path, "--name", "first", "--wait", "3", *unlock)
        others = ("--member", "11" * 32, "--member", "22" * 32)
        refused(anofel(*keygen, *others, "--threshold", "2"), "not among the members")
        refused(anofel(*keygen, *others, "--threshold", "2", "--scheme", "none"), "no scheme")
        refused(anofel(*keygen, *others, "--threshold", "2", "--member", "none.pem"), "none.pem")
        result = anofel(*keygen, *others, "--member", subject, "--threshold", "2")
        refused(result, "in vain", code=3)
        command = [sys.executable, "-m", "anofel", *keygen[:5], *unlock, *others, "--member", subject]
        running_ = subprocess.Popen(
            [*map(str, command), "--threshold", "2"],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert running_.stderr is not None
        assert "Waiting for" in running_.stderr.readline()
        running_.terminate()
        _, errors = running_.communicate(timeout=SECONDS)
        assert "Stopped in good order" in errors
        assert running_.returncode == 1, "a run that was stopped is not done"
