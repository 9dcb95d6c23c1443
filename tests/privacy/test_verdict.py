"""The verdict in words: one test for each rule."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.cli.privacy_report import render
from anofel.errors import InvalidInput
from anofel.privacy import verdict as module
from anofel.privacy.explain import explain
from anofel.privacy.verdict import verdict
from tests.patients import make_table, make_task


def report(advantage: float, **values: Any) -> dict[str, Any]:
    noise = {"relative_to_signal": values.pop("noise", 0.1)}
    gamma = {"bound": advantage, "exact_for_gaussian": None}
    return {"unit": "record", "expected_clients": 8, "noise": noise, "gamma": gamma} | values


@pytest.mark.parametrize(
    ("right", "word"),
    [(0.5, "strong"), (0.6, "strong"), (0.61, "moderate"), (0.75, "moderate"), (0.76, "weak"), (0.95, "weak"),
     (0.96, "none"), (1.0, "none")],
)  # fmt: skip
def test_the_word_follows_from_the_right_guesses(right: float, word: str) -> None:
    found = verdict(report(round(2 * right - 1, 9)))
    assert found["word"] == word
    assert (found["suggestion"] is None) == (word in ("strong", "moderate"))


def test_the_exact_advantage_counts_where_it_is_known() -> None:
    found = report(0.97)
    found["gamma"]["exact_for_gaussian"] = 0.38
    assert verdict(found)["word"] == "moderate"


def test_nothing_is_proven_of_the_papers_unit() -> None:
    task = make_task(privacy={"unit": "paper", "records_per_client": 14})
    found = explain(task)
    assert found["verdict"]["word"] == "none"
    assert render(found).startswith("Protection: NONE is proven.")


@pytest.mark.parametrize(
    ("values", "is_suggested"),
    [
        ({"unit": "client"}, True),
        ({"unit": "client", "expected_clients": 100}, False),
        ({"unit": "record"}, False),
    ],
)
def test_few_clients_are_told_of_the_unit_record(values: dict[str, Any], is_suggested: bool) -> None:
    assert ('unit = "record"' in verdict(report(0.9, **values))["suggestion"]) is is_suggested


def test_a_strong_client_that_is_drowned_is_told_too() -> None:
    drowned = verdict(report(0.1, unit="client", noise=3.0))
    assert drowned["word"] == "strong"
    assert "louder than all they say" in drowned["suggestion"]


def test_no_release_is_never_suggested() -> None:
    found = explain(make_task(privacy={"noise_multiplier": Decimal("0.5")}), target_epsilon=0.05)
    assert found["to_reach"]["or_releases"] is None
    assert "not even one release" in render(found)
    assert "max_releases = 0" not in render(found)


def test_the_report_begins_with_the_verdict() -> None:
    text = render(explain(make_task()))
    assert re.match(
        r"Protection of one client: (STRONG|MODERATE|WEAK|NONE)\. .* at most \d+ times in 100", text
    )


def test_the_rules_are_in_the_same_words_in_the_page() -> None:
    assert module.__doc__ is not None
    rules = re.findall(r"^\d\. (.+?)(?=^\d\. |\Z)", module.__doc__, re.M | re.S)
    page = " ".join((Path(__file__).parents[2] / "docs" / "privacy.md").read_text().split())
    assert len(rules) == 6
    for number, rule in enumerate(rules, start=1):
        assert f"{number}. {' '.join(rule.split())}" in page


def test_an_attack_plays_with_own_rows(tmp_path: Path) -> None:
    task, rows = tmp_path / "task.json", tmp_path / "rows.csv"
    task.write_bytes(make_task(privacy={"max_releases": 2}).to_bytes())
    rows.write_bytes(make_table(40).to_csv())
    done = CliRunner().invoke(
        app,
        ["privacy", str(task), "--attack", "--rows", str(rows), "--trials", "200"],
        catch_exceptions=False,
    )
    assert "Membership inference on the sums" in done.stdout
    for words, reason in (
        (["--rows", str(rows)], "--rows goes with --attack"),
        (["--attack"], "needs rows of one client"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            CliRunner().invoke(app, ["privacy", str(task), *words], catch_exceptions=False)
