"""What an audit takes for the height of a board that goes on: a signed header, and no mere claim."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.audit.sources import open_source
from anofel.board.framing import frame
from anofel.board.validators import Eras
from anofel.messages import Block
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import BlockStore
from tests.board.two_histories import Histories, serving

CLAIMED = 9


def bare(block: Block) -> Block:
    return replace(block, postings=())


def test_only_a_signed_header_says_how_high_a_node_stands(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody between the audit and the node would else explain missing payloads by a height."""
    monkeypatch.setattr("anofel.network.transport._pause", lambda *_: 0.0)
    histories = Histories(keys)
    last = bare(histories.honest[-1])
    with serving(histories) as url, open_source(url) as source:
        assert source.height == source.height_now(Eras.of(source.genesis)) == 4
        histories.said["/v1/status"] = json.dumps({"height": CLAIMED}).encode()
        assert source.height_now(Eras.of(source.genesis)) == 4, "no header at all"
        unsigned = replace(last, header=replace(last.header, height=CLAIMED))
        for header in (last, unsigned):
            histories.said["/v1/headers"] = frame(header)
            assert source.height_now(Eras.of(source.genesis)) == 4
        histories.said["/v1/headers"] = frame(histories.resigned(last, height=CLAIMED))  # type: ignore[arg-type]
        assert source.height_now(Eras.of(source.genesis)) == CLAIMED


def test_only_a_signed_header_says_how_high_a_directory_stands(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "board"
    shutil.copytree(history, path)
    with open_source(str(path)) as source:
        store = BlockStore(path, read_only=True)
        last = store.header(store.height)
        store.close()
        assert last is not None
        assert source.height_now(Eras.of(source.genesis)) == source.height == last.height
        ahead = replace(last, height=last.height + 5)
        connection = sqlite3.connect(path / "board.sqlite", isolation_level=None)
        connection.execute(
            "INSERT INTO block VALUES (?, ?, ?)", (ahead.height, b"\x01" * 32, ahead.to_bytes())
        )
        connection.close()
        assert source.height_now(Eras.of(source.genesis)) == source.height
