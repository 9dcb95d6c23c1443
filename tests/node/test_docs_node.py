"""``docs/node.md`` and the code say the same."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from anofel.board.blobs import retention
from anofel.board.node.api_operator import MAX_SUBSCRIBERS
from anofel.board.node.files import NodeConfig, read_node
from anofel.board.node.serve import MAX_CONNECTIONS
from anofel.keys import KeyDirectory

PAGE = (Path(__file__).parents[2] / "docs" / "node.md").read_text()


def sentences(text: str) -> list[str]:
    found = re.findall(r"^(\d\. .+?)(?=^\d\. |^\n|\Z)", text, re.M | re.S)
    return [" ".join(sentence.split()) for sentence in found]


def test_the_rules_of_retention_are_in_the_same_words() -> None:
    section = PAGE.split("## Blobs are kept\n\n")[1].split("\n\n")[0]
    assert len(sentences(section)) == 4
    for documented, coded in zip(sentences(section), sentences(retention.__doc__ or ""), strict=True):
        assert coded.startswith(documented)


def test_every_setting_is_documented_with_its_default() -> None:
    table = PAGE.split("| name | default | means |")[1].split("\n\n")[0]
    assert re.findall(r"`([a-z_]+)`", table) == list(NodeConfig.__struct_fields__)
    assert "300, 2000" in table
    assert NodeConfig().max_blob_bytes == 100 << 30
    assert NodeConfig().max_pending_bytes == 10 << 30
    assert NodeConfig().min_free_bytes == 256 << 20
    assert NodeConfig().receipt_blocks == 600


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    assert f"at most {MAX_SUBSCRIBERS} listeners" in PAGE
    assert f"at {MAX_CONNECTIONS} connections" in PAGE


def test_the_first_example_makes_a_board(tmp_path: Path, keys: KeyDirectory) -> None:
    (tmp_path / "keys").symlink_to(keys.path)
    (command,) = re.findall(r"^anofel (node init .+--insecure-development-keys)$", PAGE, re.M)
    subprocess.run([sys.executable, "-m", "anofel", *shlex.split(command)], cwd=tmp_path, check=True)
    assert read_node(tmp_path / "board").genesis.name == "Test"
