import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import AnofelError, InvalidInput
from anofel.privacy.explain import explain
from anofel.privacy.ledger import FloorNotMet
from tests.patients import make_task

SUPPORT2 = str(Path(__file__).parents[1] / "src" / "anofel" / "tasks" / "examples" / "support2.toml")


def run(*arguments):
    result = CliRunner().invoke(app, ["privacy", *arguments])
    if isinstance(result.exception, AnofelError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_explanation_as_json_has_both_relations_and_the_stated_epsilon():
    report = json.loads(run(SUPPORT2, "--json", "--target-epsilon", "0.5"))
    assert report["unit"] == "client"
    assert report["honest"] == 510
    assert 0.89 < report["epsilon"]["zero-out"]["total"] <= 0.9
    assert report["epsilon"]["replace"]["total"] > 1.8
    assert report["epsilon"]["zero-out"]["micro_total"] <= 900_000
    assert 0 < report["gamma"]["exact_for_gaussian"] < report["gamma"]["bound"] < 1
    assert report["slots"]["bits"] == 25
    assert float(report["to_reach"]["noise_multiplier"]) > 22.5
    assert report["to_reach"]["or_releases"] < 30
    counts = {(row["clients"], row["honest"]): row for row in report["counts"]}
    assert not counts[(511, None)]["released"]
    assert counts[(512, 256)]["epsilon"] > counts[(512, 510)]["epsilon"] > counts[(1024, 1022)]["epsilon"]


def test_the_explanation_says_what_one_liar_can_do():
    liars = json.loads(run(SUPPORT2, "--json"))["liars"]
    assert liars["one"] == pytest.approx(2.85 * liars["norm_bound"] / 512)
    assert liars["max_colluders"] == 2 * liars["one"], "two may collude"
    assert 12 < liars["norm_bound"] / 0.25 < 14, "the noise of a client is far above its clipping norm"
    assert explain(make_task(task={"insecure_unproven_contributions": True}))["liars"] is None


def test_the_explanation_says_what_groups_give_and_cost(tmp_path):
    one, text = json.loads(run(SUPPORT2, "--json")), Path(SUPPORT2).read_text()
    assert one["groups"] is None
    path = tmp_path / "groups.toml"
    path.write_text(text.replace("min_clients = 512", "min_clients = 64\nexpected_clients = 512"))
    with path.open("a") as file:
        file.write('\n[groups]\nnumber = 8\ncombine = "trimmed-mean"\ntrim = 2\n')
    many = json.loads(run(str(path), "--json"))
    groups = many["groups"]
    assert (groups["clients"], groups["lying"]) == (64, 2)
    assert groups["clean"] == pytest.approx(8 * (448 / 512) * (447 / 511), rel=1e-12)
    assert many["honest"] == 62, "of each group"
    assert many["epsilon"]["zero-out"]["total"] == pytest.approx(
        one["epsilon"]["zero-out"]["total"], rel=0.01
    )
    louder = many["noise"]["mean_std"] / one["noise"]["mean_std"]
    assert louder == pytest.approx((510 / 62) ** 0.5 * groups["noise_of_the_combination"], rel=0.01)
    assert many["liars"]["one"] == pytest.approx(2.85 * many["liars"]["norm_bound"] / 64)
    assert "Groups: 8 of about 64 clients" in run(str(path))


def test_the_explanation_says_what_a_bound_on_the_mean_leaves_to_liars(tmp_path):
    def bound_of(norm, **task):
        found = explain(make_task(rule={"max_mean_norm": norm}, task={"name": "test"} | task))
        return found["mean_bound"], found["liars"]

    wide, liars = bound_of("1000")
    assert wide["one"] == liars["one"], "a wide bound helps nobody"
    tight, _ = bound_of("0.5")
    assert tight["anybody"] == tight["max_colluders"] == 1.0
    assert tight["in_clipping_norms"] == 1.0
    unproven, liars = bound_of("0.5", insecure_unproven_contributions=True)
    assert liars is None
    assert unproven["anybody"] == 1.0
    assert unproven["one"] is None
    path = tmp_path / "task.toml"
    path.write_text(Path(SUPPORT2).read_text().replace("[rule]", "[rule]\nmax_mean_norm = 0.01"))
    text = run(str(path))
    assert "any number of liars, with or without proofs, moves it by at most 0.02" in text
    assert "almost every mean is shortened" in text
    assert "Bound on the mean" not in run(SUPPORT2)


def test_the_explanation_warns_of_unproven_contributions(tmp_path):
    path = tmp_path / "task.toml"
    text = Path(SUPPORT2).read_text()
    path.write_text(text.replace("[task]", "[task]\ninsecure_unproven_contributions = true"))
    assert "INSECURE, contributions are unproven" in run(str(path))
    assert "one moves the mean of 512 by at most" in run(SUPPORT2)
    assert "paillier committees; a contribution proves no norm" in run(SUPPORT2)


def test_explanation_in_words():
    text = run(SUPPORT2, "--target-epsilon", "0.5")
    for part in (
        "h = 510",
        "zero-out",
        "replace",
        "γ ≤",
        "α =",
        "25 bits",
        "noise_multiplier =",
        "no sum is released",
    ):
        assert part in text


def test_overrides_change_the_answer():
    base = json.loads(run(SUPPORT2, "--json"))["epsilon"]["zero-out"]["total"]
    fewer = json.loads(run(SUPPORT2, "--json", "--releases", "10"))["epsilon"]["zero-out"]["total"]
    looser = json.loads(run(SUPPORT2, "--json", "--delta", "0.0001"))["epsilon"]["zero-out"]["total"]
    more = json.loads(run(SUPPORT2, "--json", "--clients", "1000"))
    assert fewer < base
    assert looser < base
    assert more["honest"] == 998
    assert more["noise"]["relative_to_signal"] < 0.2


def test_plot_is_a_png(tmp_path):
    run(SUPPORT2, "--plot", str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match=r"\.png"):
        run(SUPPORT2, "--plot", str(tmp_path / "p.pdf"))
    with pytest.raises(InvalidInput, match="cannot be written"):
        run(SUPPORT2, "--plot", str(tmp_path / "absent" / "p.png"))


@pytest.mark.parametrize(
    ("floor", "message"),
    [
        (("--max-epsilon", "0.5"), "All 30 iterations cost"),
        (("--min-clients", "1000"), "demands 1000"),
        (("--min-anonymity-set", "600", "--anonymity-set", "512"), "demands 600"),
    ],
)
def test_floors_refuse_with_a_sentence(floor, message):
    with pytest.raises(FloorNotMet, match=message):
        run(SUPPORT2, *floor)
    run(SUPPORT2, "--max-epsilon", "0.9", "--min-clients", "512")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delta", "2"), "must be a decimal number between"),
        (("--delta", "small"), "decimal"),
        (("--clients", "3"), "exceed max_colluders"),
        (("--min-anonymity-set", "9"), "needs --anonymity-set"),
    ],
)
def test_wrong_overrides_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        run(SUPPORT2, *arguments)


def test_paper_unit_is_unproven_wherever_epsilon_is_shown(tmp_path):
    text = Path(SUPPORT2).read_text().replace('unit = "client"', 'unit = "paper"\nrecords_per_client = 14')
    path = tmp_path / "paper.toml"
    path.write_text(text.replace("noise_multiplier = 22.5\n", ""))
    output = run(str(path))
    assert "ε = 0.9 (unproven)" in output
    assert "What this noise gives a whole client (zero-out): ε = " in output
    report = json.loads(run(str(path), "--json"))
    assert report["paper"]["status"] == "unproven"
    assert "epsilon" not in report
    with pytest.raises(InvalidInput, match="proves no ε"):
        run(str(path), "--plot", str(tmp_path / "p.png"))
    with pytest.raises(FloorNotMet, match="unproven"):
        run(str(path), "--max-epsilon", "5")


@pytest.mark.parametrize(
    "privacy",
    [
        {"adaptive": True, "max_posts": 20},
        {"mechanism": "skellam"},
        {"unit": "record", "records_per_client": 50},
        {"relation": "replace"},
    ],
)
def test_every_kind_of_task_is_explained(privacy):
    report = explain(make_task(privacy=privacy), 5.0)
    assert report["epsilon"]["replace"]["total"] > report["epsilon"]["zero-out"]["total"] > 0
    assert report["to_reach"]["noise_multiplier"]


def test_attack_needs_rows(tmp_path):
    document = make_task().to_bytes()
    assert b'"study":""' in document
    path = tmp_path / "own.toml"
    path.write_text(
        """
        [task]
        name = "own"
        [model]
        kind = "logistic"
        [training]
        algorithm = "fedsgd"
        [rule]
        [privacy]
        clipping_norm = 1
        noise_multiplier = 10
        max_releases = 5
        min_clients = 8
        max_colluders = 2
        [schema]
        label = "y"
        label_values = ["0", "1"]
        [[schema.column]]
        name = "x"
        kind = "number"
        unit = "m"
        low = 0
        high = 1
        """
    )
    with pytest.raises(InvalidInput, match="needs rows of one client"):
        run(str(path), "--attack")
