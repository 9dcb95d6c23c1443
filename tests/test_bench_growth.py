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


@pytest.mark.slow
def test_following_is_measured_in_both_modes(keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both modes really follow: the submissions are real, and those that are drawn are judged."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setattr(sys, "path", [*sys.path])
    from _following import rows_of_following

    rows = {row.name: row.ours for row in rows_of_following(keys, (4, 1100), posts=4, followed=10)}
    assert rows["4 posts: processor, every posting"] > 0
    assert "1,100 posts: processor, every posting (from 10)" in rows
    drawn, whole = (rows[f"4 posts: processor, {what}"] for what in ("headers: 3 drawn", "every posting"))
    assert drawn > whole / 2, "they are verified, and alone"
    assert (
        rows["1,100 posts: bytes, headers: names"] > rows["4 posts: bytes, headers: names"] + 1096 * 32 / 1024
    )
