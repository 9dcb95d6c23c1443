"""``anofel new``: a draft is a task that fits its file; examples come with the package."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.disk.files import FileExists
from anofel.errors import InvalidInput
from anofel.privacy.plan import Plan
from anofel.studies.load import load_file
from anofel.tasks.confirmations import CONFIRM, Unconfirmed, unconfirmed, unconfirmed_warning
from anofel.tasks.example_files import EXAMPLES, example_text
from anofel.tasks.schema import NumberTarget, TableSchema
from anofel.tasks.task import Task
from tests.patients import make_table


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_bytes(make_table(300).to_csv())
    return path


def new(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["new", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_the_draft_is_a_task_that_fits_its_file(patients: Path, tmp_path: Path) -> None:
    made = new(str(tmp_path / "wards"), "--from", str(patients), "--label", "ill", "--clients", "10")
    task = Task.load(str(made["task"]))
    assert task.name == "wards"
    assert len(load_file(patients, task.schema)) == 300
    assert task.privacy.expected_clients == 10
    assert 1.99 < Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") <= 2
    assert {entry["name"]: entry["is"] for entry in made["columns"]} == {  # type: ignore[union-attr]
        "name": "identifying",
        "age": "number",
        "pressure": "number",
        "stage": "category",
        "note": "unused",
        "ill": "label",
    }


def test_a_label_with_many_numbers_becomes_a_target(patients: Path, tmp_path: Path) -> None:
    made = new(str(tmp_path / "wards"), "--from", str(patients), "--label", "age")
    task = Task.load(str(made["task"]))
    assert isinstance(task.schema, TableSchema)
    assert isinstance(task.schema.target, NumberTarget)
    assert task.schema.target.low < task.schema.target.high
    rows = load_file(patients, task.schema)
    assert len(rows) == 300
    assert len(np.unique(rows.labels)) > 20
    assert "low = " in "\n".join(
        line for line in (tmp_path / "wards" / "task.toml").read_text().splitlines() if "confirm" in line
    )


def test_what_to_type_next_can_be_typed(patients: Path, tmp_path: Path) -> None:
    """Also where the name of the study has a space."""
    for words in (["--from", str(patients), "--label", "ill"], ["--example", "small"]):
        study = tmp_path / f"my study of {len(words)}"
        said = CliRunner().invoke(app, ["new", str(study), *words], catch_exceptions=False).stdout
        (line,) = [line for line in said.splitlines() if line.startswith("Next: ")]
        assert shlex.split(line) == ["Next:", "anofel", "privacy", str(study / "task.toml")]


def test_every_value_from_the_file_is_marked_and_said(patients: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["new", str(tmp_path / "wards"), "--from", str(patients), "--label", "ill"],
        catch_exceptions=False,
    )
    task = tmp_path / "wards" / "task.toml"
    marks = unconfirmed(task)
    assert f"{marks} values were taken from your rows" in result.stderr
    assert str(marks) in unconfirmed_warning(task)
    lines = task.read_text().splitlines()
    for start in ("label_values", "lr_den", "records_per_client", "values"):
        assert all("confirm" in line for line in lines if line.startswith(f"{start} = "))
    task.write_text(task.read_text().replace("confirm: public constant", "confirmed"))
    assert unconfirmed_warning(task) == ""


def test_every_number_that_tells_the_files_range_is_marked(tmp_path: Path) -> None:
    """Whoever replaces low and high and leaves offset and scale would publish the old ones with them."""
    rows = [f"{number * 37 % 911},{number % 2},{number * 1.7:.1f}" for number in range(60)]
    path = tmp_path / "rows.csv"
    path.write_text("marker,ill,days\n" + "\n".join([*rows, ",1,3.5"]))
    for label in ("ill", "days"):
        made = new(str(tmp_path / label), "--from", str(path), "--label", label)
        text = Path(str(made["task"])).read_text().partition("[schema]")[2]
        told = [line for line in text.splitlines() if re.match(r"(low|high|missing|offset|scale) = ", line)]
        assert len(told) == 9, "one of the two columns has missing cells"
        assert [line for line in told if CONFIRM not in line] == []


def test_names_that_break_toml_are_written_safely(tmp_path: Path) -> None:
    rows = [f'{number % 9 + 0.5},"{"a" if number % 3 else "b"}",{number % 2}' for number in range(40)]
    path = tmp_path / "odd.csv"
    path.write_text('"a ""b"" \\ # [x]","wä\tr]d",ill\n' + "\n".join(rows))
    made = new(str(tmp_path / "odd"), "--from", str(path), "--label", "ill")
    load_file(path, Task.load(str(made["task"])).schema)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_copied(name: str, tmp_path: Path) -> None:
    made = new(str(tmp_path / name), "--example", name)
    assert Task.load(tmp_path / name / "task.toml") == Task.example(name)
    assert (tmp_path / name / "task.toml").read_text() == example_text(name)
    assert len(made["files"]) == (2 if Task.example(name).model.kind == "custom" else 1)  # type: ignore[arg-type]


def test_every_task_file_of_the_package_is_an_example() -> None:
    folder = Path(__file__).parents[2] / "src" / "anofel" / "tasks" / "examples"
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted(EXAMPLES)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "Give --from"),
        (["--from", "x.csv", "--example", "small"], "not both"),
        (["--from", "x.csv"], "needs --label"),
        (["--from", "x.csv", "--label", "ill"], "no file 'x.csv'"),
        (["--example", "smal"], "no example 'smal' .did you mean 'small'"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=reason):
        CliRunner().invoke(app, ["new", str(tmp_path / "s"), *arguments], catch_exceptions=False)
    assert not (tmp_path / "s").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(FileExists):
        CliRunner().invoke(app, ["new", str(tmp_path), "--example", "small"], catch_exceptions=False)


def test_whoever_uses_a_draft_hears_what_is_not_confirmed(patients: Path, tmp_path: Path) -> None:
    made = str(new(str(tmp_path / "wards"), "--from", str(patients), "--label", "ill")["task"])
    for words in (
        ["privacy", made],
        ["simulate", made, "--rows", str(patients), "--iterations", "1", "--insecure-plain"],
    ):
        said = CliRunner().invoke(app, words).stderr
        assert "are marked 'confirm: public constant'" in " ".join(said.split()), words
    words = ["owner", "announce", str(tmp_path / "nobody"), made, "--committee", "00" * 32]
    assert isinstance(CliRunner().invoke(app, words).exception, Unconfirmed)
