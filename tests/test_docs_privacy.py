"""The task file in the documentation is a task; the schema is a schema."""

import re
import tomllib
from decimal import Decimal
from pathlib import Path

import numpy as np

from anofel.disk.sections import read_table
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.tasks.schema import Schema, TableSchema
from anofel.tasks.task import Task, read_task
from tests.test_cli_study import write

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page):
    text = (DOCS / page).read_text()
    return [
        tomllib.loads(block, parse_float=Decimal)
        for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    ]


def test_documented_task_is_the_example():
    document, metrics = blocks("task-file.md")
    task = read_task(document)
    assert task.privacy.honest == 510
    assert task.digest() == Task.example("support2").digest()
    measured = read_task({**document, **metrics})
    assert measured.metric_slots == ("accuracy", "loss")


def test_documented_rule_of_an_owner_makes_models():
    program = re.search(r"```python\n(.*?)```", (DOCS / "owner.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(program.group(1), names)
    model = IntegerModel(Layout(("w",), ((2,),)), 16, np.array([10, 20], np.int64))
    made = names["half_step"](model, np.array([8, -8], np.int64), 2)
    assert made.values.tolist() == [12, 18]


def test_documented_program_runs(tmp_path, monkeypatch):
    write(tmp_path)
    (tmp_path / "rows.csv").rename(tmp_path / "patients.csv")
    monkeypatch.chdir(tmp_path)
    program = re.search(r"```python\n(.*?)```", (DOCS / "training.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(program.group(1), names)
    assert names["update"].dtype == "int64"


def test_documented_schema_can_be_read():
    document, *_ = blocks("studies.md")
    schema = read_table(document["schema"], Schema, "schema")
    assert isinstance(schema, TableSchema)
    assert schema.feature_names == ("alb", "alb missing", "ca = yes", "ca = metastatic")
