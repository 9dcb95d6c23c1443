"""A mistake of the program's own: a code of its own, with which every role is started again."""

import subprocess
import sys
from pathlib import Path

from anofel.cli import MISTAKE
from anofel.deploy import scripts
from anofel.disk.keystore import KeyFile
from anofel.roles.directory import RoleConfig

MISTAKEN = """
import sys
from anofel.roles.directory import RoleDirectory
from anofel.cli import main

def mistaken(*_arguments, **_named):
    raise ZeroDivisionError("a line that nobody wrote on purpose")

RoleDirectory.open = mistaken
sys.argv = ["anofel", "client", "run", "ward", "--key-file", sys.argv[1]]
main()
"""


def test_a_mistake_ends_a_role_with_its_own_code_and_a_trace(tmp_path: Path) -> None:
    KeyFile.generate(tmp_path / "key")
    config = RoleConfig(role="client", board="http://127.0.0.1:8470", genesis="00" * 32)
    (tmp_path / "ward").mkdir()
    (tmp_path / "ward" / "role.toml").write_bytes(config.to_toml())
    ended = subprocess.run(
        [sys.executable, "-c", MISTAKEN, str(tmp_path / "key")], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == MISTAKE == 70, ended.stderr
    assert "ZeroDivisionError: a line that nobody wrote on purpose" in ended.stderr


def test_every_unit_starts_a_role_again_after_a_mistake() -> None:
    """A client that has been charged must come back and post."""
    unit = scripts.unit("A role", "client run client")
    lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    assert lines["Restart"] == "on-failure"
    assert str(MISTAKE) not in lines["RestartPreventExitStatus"].split()
