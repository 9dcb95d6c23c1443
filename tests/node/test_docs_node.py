"""``docs/node.md`` and the code say the same."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from anofel.deploy import scripts
from anofel.node import lanes, signed, wall_clock
from anofel.node.api_blocks import SMALL_POSTING_BYTES
from anofel.node.api_operator import MAX_SUBSCRIBERS
from anofel.node.board_service import NodeFailed
from anofel.node.files import FEWEST_ENGINE_BLOCKS, NodeConfig, read_node
from anofel.node.serve import MAX_CONNECTIONS
from anofel.proofs.keys import KeyDirectory
from anofel.serving import connections
from anofel.serving.listening import FILES_PER_CONNECTION, OTHER_FILES
from anofel.storage.blobs import retention
from anofel.storage.blocks import StoreError

PAGE = (Path(__file__).parents[2] / "docs" / "node.md").read_text()


def sentences(text: str) -> list[str]:
    found = re.findall(r"^(\d\. .+?)(?=^\d\. |^\n|\Z)", text, re.M | re.S)
    return [" ".join(sentence.split()) for sentence in found]


def test_the_rules_of_retention_are_in_the_same_words() -> None:
    section = PAGE.split("## Blobs are kept\n\n")[1].split("\n\n")[0]
    assert len(sentences(section)) == 4
    for documented, coded in zip(sentences(section), sentences(retention.__doc__ or ""), strict=True):
        assert coded.startswith(documented)


def test_the_rules_of_connections_are_in_the_same_words() -> None:
    section = PAGE.split("## Connections\n\n")[1].split("\n\n")
    for documented, module, number in ((section[1], connections, 6), (section[4], lanes, 2)):
        coded = (module.__doc__ or "").split("\n\n")[1]
        assert len(sentences(documented)) == number
        assert sentences(documented) == sentences(coded)
    assert [longest for longest, _ in lanes.LANES[:2]] == [1 << 20, 16 << 20]
    assert "128, 64 and 32 by size" in section[3]
    assert SMALL_POSTING_BYTES == 64 << 10
    assert [most for _, most in lanes.LANES] == [128, 64, 32]


@pytest.mark.parametrize(
    ("module", "heading", "number"), [(signed, "### No silent fork", 4), (wall_clock, "## The clock", 3)]
)
def test_rules_are_in_the_same_words(module: ModuleType, heading: str, number: int) -> None:
    section = PAGE.split(f"{heading}\n\n")[1].split("\n\n")[1]
    coded = (module.__doc__ or "").split("\n\n")[2]
    assert len(sentences(section)) == number
    assert sentences(section) == sentences(coded)


def test_every_setting_is_documented_with_its_default() -> None:
    table = PAGE.split("| name | default | means |")[1].split("\n\n")[0]
    assert re.findall(r"`([a-z0-9_]+)`", table) == list(vars(NodeConfig()))
    assert "300, 2000" in table
    assert NodeConfig().max_blob_bytes == 100 << 30
    assert NodeConfig().max_pending_bytes == 10 << 30
    assert NodeConfig().min_free_bytes == 256 << 20
    assert NodeConfig().receipt_blocks == 600
    assert NodeConfig().engine_blocks == 0
    assert f"keeps, {FEWEST_ENGINE_BLOCKS} or more; 0 for all" in table


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    assert f"at most {MAX_SUBSCRIBERS} listeners" in PAGE
    assert f"At most {MAX_CONNECTIONS} connections" in PAGE


def test_the_first_example_makes_a_board(tmp_path: Path, keys: KeyDirectory) -> None:
    (tmp_path / "keys").symlink_to(keys.path)
    (command,) = re.findall(r"^anofel (node init .+--insecure-development-keys)$", PAGE, re.M)
    subprocess.run([sys.executable, "-m", "anofel", *shlex.split(command)], cwd=tmp_path, check=True)
    assert read_node(tmp_path / "board").genesis.name == "Test"


def test_the_unit_restarts_a_node_that_failed_and_gives_it_files_for_all_connections() -> None:
    unit = scripts.unit("The board", "node run board", serves=True)
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    assert settings["Restart"] == "on-failure"
    prevented = settings["RestartPreventExitStatus"].split()
    assert str(NodeFailed.exit_code) not in prevented
    assert str(StoreError.exit_code) in prevented, "a start that is refused is refused again"
    assert int(settings["LimitNOFILE"]) >= MAX_CONNECTIONS * FILES_PER_CONNECTION + OTHER_FILES
