"""ONNX: another program computes our own numbers, preprocessing included."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.learning.classifier import Classifier
from anofel.learning.onnx_export import CannotExport, to_onnx
from anofel.learning.own_trainer import OwnTrainer
from anofel.studies.encoding import encode_unlabelled
from anofel.studies.table import Table, is_missing
from anofel.tasks.task import Task
from tests.learning.test_classifier import trained
from tests.patients import make_table, make_task

TASKS = {
    "logistic": make_task(),
    "mlp": make_task(model={"kind": "mlp", "hidden": [5, 3]}),
    "three classes": make_task(schema={"label_values": ["no", "yes", "perhaps"]}),
}


def run_graph(data: bytes, table: Table) -> tuple[np.ndarray, list[str]]:
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    feed = {}
    for given in session.get_inputs():
        cells = table.columns[given.name]
        if given.type == "tensor(double)":
            column = np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
        else:
            column = np.array(cells, dtype=object)
        feed[given.name] = column.reshape(-1, 1)
    probabilities, labels = session.run(["probabilities", "label"], feed)
    return probabilities, labels.tolist()


@pytest.mark.parametrize("name", TASKS)
def test_the_graph_computes_what_we_compute(name: str) -> None:
    task = TASKS[name]
    classifier, table = Classifier(trained(task), task), make_table(200)
    probabilities, labels = run_graph(to_onnx(classifier), table)
    ours = classifier.predict_proba(encode_unlabelled(table, task.schema))  # type: ignore[arg-type]
    assert np.abs(probabilities - ours).max() < 1e-12
    assert labels == [task.schema.label_values[index] for index in ours.argmax(axis=1)]


@pytest.mark.parametrize(("column", "cell"), [("age", "121"), ("age", ""), ("stage", "IV")])
def test_a_row_that_we_refuse_has_no_probabilities(column: str, cell: str) -> None:
    task, table = make_task(), make_table(3)
    cells = [cell, *table.columns[column][1:]]
    probabilities, _ = run_graph(
        to_onnx(Classifier(trained(task), task)), Table({**table.columns, column: cells}, table.lines)
    )
    assert np.isnan(probabilities[0]).all()
    assert np.isfinite(probabilities[1:]).all()


def test_the_same_model_has_the_same_file() -> None:
    task = make_task()
    assert to_onnx(Classifier(trained(task), task)) == to_onnx(Classifier(trained(task), task))


def test_a_trainer_of_ones_own_cannot_be_exported() -> None:
    task = make_task()
    inner = Classifier(trained(task), task)
    own = Classifier(inner.model, task, OwnTrainer("mine:trainer", inner.predictor))  # type: ignore[arg-type]
    with pytest.raises(CannotExport, match="no graph to export"):
        to_onnx(own)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--format", "onnx"], "needs --task"),
        (["--format", "pickle"], "no format 'pickle'"),
        (["--format", "onnx", "--task", "TASK", "--double"], "--double is for safetensors"),
    ],
)
def test_wrong_usage_is_one_sentence(options: list[str], reason: str, tmp_path: Path) -> None:
    task = make_task()
    (tmp_path / "m.model").write_bytes(trained(task).to_bytes())
    with pytest.raises(InvalidInput, match=reason):
        CliRunner().invoke(
            app,
            ["model", "export", str(tmp_path / "m.model"), "--out", str(tmp_path / "m.onnx"), *options],
            catch_exceptions=False,
        )


def test_export_writes_the_graph(tmp_path: Path) -> None:
    task = make_task()
    (tmp_path / "m.model").write_bytes(trained(task).to_bytes())
    (tmp_path / "task.json").write_bytes(task.to_bytes())
    options = ["--format", "onnx", "--task", str(tmp_path / "task.json"), "--out", str(tmp_path / "m.onnx")]
    done = CliRunner().invoke(app, ["model", "export", str(tmp_path / "m.model"), *options])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m.onnx").read_bytes() == to_onnx(
        Classifier(trained(task), Task.from_bytes(task.to_bytes()))
    )
