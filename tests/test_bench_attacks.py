"""The bench of attacks, on a few made-up patients: what the columns mean, resuming, and the page."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

import _attack_report as report  # noqa: E402
import _attack_runs as runs  # noqa: E402
import attacks  # noqa: E402

from anofel.learning.build import trainer_of  # noqa: E402
from anofel.learning.splits import iid  # noqa: E402
from anofel.models.rules import rule_of  # noqa: E402
from anofel.privacy.plan import Plan  # noqa: E402
from anofel.tasks.task import GroupsSpec  # noqa: E402
from tests.patients import make_dataset, make_task  # noqa: E402

CLIENTS = 12


@pytest.fixture
def setting() -> runs.Setting:
    task = make_task(privacy={"min_clients": CLIENTS, "max_releases": 3, "noise_multiplier": "0.05"})
    return runs.Setting(
        study="patients",
        task=task,
        clients=CLIENTS,
        iterations=3,
        groups=GroupsSpec(number=3),
        group_clients=4,
        noise=False,
        trigger=(0,),
        trigger_value=2,
        target=1,
        measure="area under the curve",
        remark="Made-up patients.",
    )


@pytest.fixture
def game(setting: runs.Setting) -> runs.Game:
    return runs.Game(setting, iid(make_dataset(240), CLIENTS, 0), make_dataset(200, seed=1))


@pytest.mark.parametrize("attack", runs.ATTACKS)
def test_a_liar_sends_no_more_than_a_proof_lets_pass(game: runs.Game, attack: str) -> None:
    task = game.setting.task
    plan, trainer = Plan.of(task), trainer_of(task)
    model = rule_of(task).initial(trainer.initial(), task.model.scale_bits)
    most = runs.most_of_a_liar(game.setting)
    free, bounded = (
        np.linalg.norm(game._lie(attack, plan, model, game.clients[0], proven=proven).astype(float))
        for proven in (False, True)
    )
    assert bounded <= most + plan.dimension**0.5
    if "00" in attack:
        assert free > most, "otherwise the column shows nothing"


def test_defences_add_up(setting: runs.Setting) -> None:
    none, proof, clipping, groups = (runs.defended(setting, defence) for defence in runs.DEFENCES)
    assert none == proof
    assert (clipping.rule.max_mean_norm, clipping.groups) == (none.privacy.clipping_norm, None)
    assert (groups.rule.max_mean_norm, groups.groups) == (none.privacy.clipping_norm, setting.groups)
    assert groups.privacy.min_clients == 4


def test_more_liars_include_fewer(game: runs.Game) -> None:
    few, many = game.liars(0.05), game.liars(0.5)
    assert (len(few), len(many)) == (1, 6)
    assert few < many


def test_each_defence_leaves_less_to_a_reversed_update(game: runs.Game) -> None:
    scores = [game.play(defence, "sign flip ×10", 0.2).score for defence in runs.DEFENCES]
    honest = game.play("none", "", 0.0).score
    assert scores[0] < 0.5 < honest, "two of twelve liars turn the model around"
    assert scores[3] > scores[0], "and groups hold them"


def test_marked_rows_have_the_trigger(game: runs.Game) -> None:
    rows = make_dataset(5)
    marked = runs.with_trigger(rows, game.setting)
    assert (marked.inputs()[:, 0] == 2).all()
    np.testing.assert_array_equal(marked.inputs()[:, 1:], rows.inputs()[:, 1:])


def test_a_stopped_sweep_goes_on(
    setting: runs.Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[tuple[str, str, float]] = []

    class Counting:
        def play(self, *key: object) -> runs.Outcome:
            played.append(key)  # type: ignore[arg-type]
            if len(played) == 3:
                raise KeyboardInterrupt
            return runs.Outcome(0.5, 0.1, 0, 0)

    monkeypatch.setattr(attacks, "game_of", lambda _setting: Counting())
    monkeypatch.setattr(report, "plot", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        attacks.sweep(setting, tmp_path)
    result = attacks.sweep(setting, tmp_path)
    expected = len(runs.DEFENCES) * (1 + len(runs.ATTACKS) * len(runs.SHARES))
    assert len(result["runs"]) == expected
    assert len(played) == expected + 1, "only the one that was stopped is played twice"
    attacks.sweep(replace(setting, iterations=4), tmp_path)
    assert len(played) == 2 * expected + 1, "another setting begins anew"


def test_the_page_shows_every_run(tmp_path: Path) -> None:
    runs_of = [{"defence": d, "attack": a, "share": s} for d, a, s in attacks.runs()]
    values = {"score": 0.75, "backdoor": 0.25, "lost": 2, "shortened": 0}
    result = {
        "study": "patients",
        "measure": "accuracy",
        "remark": "Made up.",
        "iterations": 3,
        "clients": CLIENTS,
        "groups": 3,
        "command": "python bench/attacks.py",
        "machine": attacks.machine(),
        "runs": [run | values for run in runs_of],
    }
    report.write(result, tmp_path / "patients.json")
    assert json.loads((tmp_path / "patients.json").read_text()) == result
    assert (tmp_path / "patients.png").read_bytes().startswith(b"\x89PNG")
    report.write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.count("| 0.750 †2 |") + page.count("0.750 (0.25) †2") >= len(runs.ATTACKS)
    assert "Not complete" not in page


def test_the_page_is_the_one_of_the_results(tmp_path: Path) -> None:
    report.write_page(page=tmp_path / "attacks.md")
    assert (tmp_path / "attacks.md").read_text() == report.PAGE.read_text()
