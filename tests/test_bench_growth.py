"""The benchmark of growth stays runnable: every row is measured, at a small size."""

import sys
from pathlib import Path

import pytest

from anofel.proofs.keys import KeyDirectory

BENCH = Path(__file__).parents[1] / "bench"


def test_every_row_of_the_growth_table_is_measured(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setattr(sys, "path", [*sys.path])
    import growth

    ended = growth.make_ended(keys.path, tmp_path / "ended", 3)
    clients = growth.make_clients(keys.path, tmp_path / "clients", 8)
    blocks = growth.make_blocks(keys.path, tmp_path / "node", 5)
    for made in (ended, clients, blocks, growth.load(tmp_path / "clients")):
        assert all(value >= 0 for value in made.values())
    with growth.running(tmp_path / "node") as node:
        store = growth.BlockStore(tmp_path / "node", read_only=True)
        name = store.genesis.hash.hex()
        store.close()
        synced = growth.sync(tmp_path / "view", node.url, name)
    assert synced["taken"] >= 5
