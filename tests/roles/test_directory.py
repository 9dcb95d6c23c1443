"""A role's directory: whole or not at all, one process at a time, no secret in plain sight."""

import os
from pathlib import Path

import pytest

from anofel.disk.files import FileExists
from anofel.disk.keystore import KeyFile, Passphrase, WrongKeyFile
from anofel.errors import InvalidInput
from anofel.roles.directory import RoleBusy, RoleDirectory, RoleError, read_status, unlock_with

GENESIS = bytes(range(32))


@pytest.fixture
def unlock(tmp_path: Path) -> KeyFile:
    return KeyFile.generate(tmp_path / "key")


def make(path: Path, unlock: KeyFile, **changes: object) -> Path:
    values = {
        "role": "owner",
        "board": "http://board.example",
        "genesis_hash": GENESIS,
        "secrets": {"role-key": b"a secret of the role"},
        "settings": {"note": 'quotes " and ümlauts', "rounds": 3, "cover": True, "names": ["a", "b"]},
    }
    RoleDirectory.create(path, unlock, **(values | changes))  # type: ignore[arg-type]
    return path


def test_what_is_made_is_read_again(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock, proxy="socks5h://127.0.0.1:9050")
    with RoleDirectory.open(path, unlock, role="owner") as role:
        assert role.config.genesis_hash == GENESIS
        assert role.config.proxy == "socks5h://127.0.0.1:9050"
        assert role.config.settings == {
            "note": 'quotes " and ümlauts',
            "rounds": 3,
            "cover": True,
            "names": ["a", "b"],
        }
        assert role.secrets["role-key"].reveal() == b"a secret of the role"


def test_only_the_owner_may_look_and_no_secret_is_in_plain_sight(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    assert path.stat().st_mode & 0o777 == 0o700
    assert all(b"a secret of the role" not in file.read_bytes() for file in path.iterdir())


def test_nothing_is_made_over_something_or_from_bad_input(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    with pytest.raises(FileExists):
        make(path, unlock)
    for changes in ({"board": "ftp://x"}, {"proxy": "socks5://x:1"}, {"genesis_hash": b"short"}):
        with pytest.raises(InvalidInput):
            make(tmp_path / "other", unlock, **changes)
        assert not (tmp_path / "other").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["key", "role"]


def test_one_process_plays_a_role(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    with RoleDirectory.open(path, unlock, role="owner"), pytest.raises(RoleBusy):
        RoleDirectory.open(path, unlock, role="owner")
    RoleDirectory.open(path, unlock, role="owner").close()


def test_a_wrong_key_role_or_directory_is_refused(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    with pytest.raises(WrongKeyFile):
        RoleDirectory.open(path, KeyFile.generate(tmp_path / "other"), role="owner")
    with pytest.raises(RoleError, match="role 'owner', not 'client'"):
        RoleDirectory.open(path, unlock, role="client")
    with pytest.raises(RoleError, match="anofel owner init"):
        RoleDirectory.open(tmp_path, unlock, role="owner")
    RoleDirectory.open(path, unlock, role="owner").close()


def test_a_misspelt_key_of_the_file_is_refused(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    with (path / "role.toml").open("a") as file:
        file.write("\n[more]\n")
    with pytest.raises(InvalidInput, match="more"):
        RoleDirectory.open(path, unlock, role="owner")


def test_status_is_read_while_the_role_runs(tmp_path: Path, unlock: KeyFile) -> None:
    path = make(tmp_path / "role", unlock)
    assert read_status(path, role="owner") == {}
    with RoleDirectory.open(path, unlock, role="owner") as role:
        role.keep_status({"height": 7})
        assert read_status(path, role="owner") == {"height": 7}


def test_what_unlocks(tmp_path: Path) -> None:
    made = unlock_with(tmp_path / "key", None, new=True)
    assert isinstance(made, KeyFile)
    assert isinstance(unlock_with(tmp_path / "key", None), KeyFile)
    words = tmp_path / "words"
    words.write_text("correct horse battery\n")
    os.chmod(words, 0o600)
    assert isinstance(unlock_with(None, words), Passphrase)
    with pytest.raises(InvalidInput, match="not both"):
        unlock_with(tmp_path / "key", words)
