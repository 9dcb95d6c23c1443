import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel import cli
from anofel.errors import AnofelError, InvalidInput
from anofel.learning.certified import dataset_digest
from anofel.studies.fetch import StudyNotFetched
from anofel.studies.table import RowDoesNotFit
from tests.patients import make_dataset, make_table

TASK = """
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
label = "ill"
label_values = ["no", "yes"]
identifying = ["name"]
unused = ["note"]
[[schema.column]]
name = "age"
kind = "number"
unit = "years"
low = 0
high = 120
offset = 50
scale = 25
[[schema.column]]
name = "pressure"
kind = "number"
unit = "mmHg"
low = 20
high = 250
missing = 120
indicator = true
outside = "clip"
offset = 120
scale = 40
[[schema.column]]
name = "stage"
kind = "category"
values = ["I", "II", "III"]
missing = "I"
"""


def run(*arguments):
    result = CliRunner().invoke(cli.app, ["study", *arguments])
    if isinstance(result.exception, AnofelError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path / "cache"))


def test_list_names_every_study():
    names = [entry["name"] for entry in json.loads(run("list", "--json"))]
    tables, images = ["support2", "nwtco", "ecg5000"], ["mnist", "fashion-mnist", "cifar-10", "tiny-imagenet"]
    assert names == [*tables, *images]
    assert "not fetched" in run("list")


def test_unknown_study_is_refused():
    with pytest.raises(InvalidInput, match="known are support2"):
        run("fetch", "imagenet")


def write(tmp_path: Path, change=lambda text: text) -> tuple[str, str]:
    table = make_table(20)
    rows = zip(*table.columns.values(), strict=True)
    text = "\n".join([",".join(table.columns), *(",".join(row) for row in rows)]) + "\n"
    (tmp_path / "rows.csv").write_text(change(text))
    (tmp_path / "task.toml").write_text(TASK)
    return str(tmp_path / "task.toml"), str(tmp_path / "rows.csv")


def test_check_shows_the_digest_that_gets_certified(tmp_path):
    report = json.loads(run("check", *write(tmp_path), "--json"))
    assert report == {"rows": 20, "features": 5, "digest": dataset_digest(make_dataset(20)).to_bytes().hex()}
    assert report["digest"] in run("check", *write(tmp_path))


def test_check_points_at_the_row_that_does_not_fit(tmp_path):
    with pytest.raises(RowDoesNotFit, match="Line 2, column 'stage'"):
        run("check", *write(tmp_path, lambda text: re.sub(",I+,", ",IV,", text, count=1)))


def test_split_deals_rows_out_to_clients(tmp_path):
    task, rows = write(tmp_path)
    words = ("split", task, "--file", rows, "--clients", "3", "--out")
    report = json.loads(run(*words, str(tmp_path / "a"), "--json"))
    assert report["rows"] == {"client-1.csv": 6, "client-2.csv": 5, "client-3.csv": 5, "test.csv": 4}
    assert json.loads(run("check", task, str(tmp_path / "a" / "client-1.csv"), "--json"))["rows"] == 6
    assert f"{tmp_path / 'b' / 'test.csv'}: 4 rows" in run(*words, str(tmp_path / "b"))


def test_split_takes_the_rows_of_a_study(tmp_path):
    task, _ = write(tmp_path)
    named = TASK.replace('name = "own"', 'name = "own"\nstudy = "nwtco"').partition("[schema]")[0]
    Path(task).write_text(named)
    with pytest.raises(StudyNotFetched, match="anofel study fetch nwtco"):
        run("split", task, "--clients", "3", "--out", str(tmp_path / "a"))


def test_a_mistake_is_one_sentence_and_no_stack_trace(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["anofel", "study", "check", "absent.toml", "rows.csv"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("anofel: absent.toml cannot be read")
    assert "Traceback" not in error
