"""The bench of games without its boards: what is played next, going on, and the page."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from anofel.games.adversaries.catalogue import CATALOGUE
from anofel.games.play import Score

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import _games_page
import games


def score(plays: int, wins: int, name: str = "post-time", weakened: str = "") -> Score:
    return Score(name, weakened, "anon", 0.5, plays=plays, wins=wins)


def test_counts_add_up_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results" / games.FILE
    for _ in range(2):
        record = games.Record(path)
        record.add(score(10, 4))
        record.write()
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["plays"], row["wins"], row["verdict"]) == (20, 8, "within the bound")
    assert 0 < row["low"] < 0.4 < row["high"] < 1


def test_the_least_played_comes_next_and_equal_strategies_share_plays(tmp_path: Path) -> None:
    options = argparse.Namespace(plays=30, weakened=1, chunk=8)
    record = games.Record(tmp_path / games.FILE)
    left = games.jobs(record, CATALOGUE, options)
    together = [group for _, group, weakened, _ in left if not weakened]
    assert sum(map(len, together)) == len(CATALOGUE)
    assert len(together) == len({found.strategy for found in CATALOGUE})
    assert {plays for *_, plays in left} == {8}
    for found in CATALOGUE:
        for weakened in ("", *found.weakened):
            done = Score(
                found.name, weakened, found.game, 0.5, plays=30 if weakened == "" else found.decisive
            )
            record.add(done)
    assert games.jobs(record, CATALOGUE, options) == []
    record.rows["anon", "post-time", ""]["plays"] = 25
    ((fewest, group, weakened, plays),) = games.jobs(record, CATALOGUE, options)
    assert (fewest, [found.name for found in group], weakened, plays) == (25, ["post-time"], "", 5)


def test_the_page_has_every_adversary_and_bold_for_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = games.Record(tmp_path / games.FILE)
    record.add(score(100, 53))
    record.add(score(20, 20, weakened="post-when-ready"))
    record.add(score(20, 20, name="task-counts"))
    record.write()
    page = tmp_path / "games.md"
    page.write_text(f"before\n{_games_page.BEGIN}\nSTALE\n{_games_page.END}\nafter\n")
    monkeypatch.setattr(_games_page, "RESULTS", tmp_path)
    monkeypatch.setattr(_games_page, "PAGE", page)
    _games_page.write_page()
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "STALE" not in text
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert {found.name for found in CATALOGUE} <= set(lines)
    assert "`post-when-ready` 20 of 20" in lines["post-time"]
    assert "53 of 100" in lines["post-time"]
    assert "**" not in lines["post-time"]
    assert "**20 of 20" in lines["task-counts"]
    assert "not played" in lines["nullifier"]


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    found = json.loads((_games_page.RESULTS / games.FILE).read_text())
    shown = _games_page.PAGE.read_text().partition(_games_page.BEGIN)[2].partition(_games_page.END)[0]
    assert shown.strip() == _games_page.tables(found)
