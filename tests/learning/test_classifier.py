"""A trained model predicts files, data frames and arrays; scikit-learn takes it as a fitted classifier."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.classifier import Classifier, NotThisTasksModel
from anofel.learning.evaluate import evaluate_on
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.studies.encoding import ColumnsDoNotFit
from anofel.studies.table import RowDoesNotFit
from anofel.tasks.task import Task
from tests.patients import make_dataset, make_table, make_task
from tests.plain_path import iterate


def trained(task: Task) -> IntegerModel:
    """A model that has moved, without noise to speak of."""
    model = rule_of(task).initial(trainer_of(task).initial(), task.model.scale_bits)
    rng = np.random.default_rng(3)
    return IntegerModel(model.layout, model.scale_bits, rng.integers(-90_000, 90_000, model.layout.size))


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    task = make_task()
    return Classifier(trained(task), task)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(make_table(120).to_csv()))


def test_frame_array_and_dataset_give_the_same_probabilities(
    classifier: Classifier, frame: pd.DataFrame
) -> None:
    by_dataset = classifier.predict_proba(make_dataset(120))
    assert by_dataset.shape == (120, 2)
    assert np.allclose(by_dataset.sum(axis=1), 1)
    assert np.array_equal(classifier.predict_proba(frame), by_dataset)
    without = frame[["stage", "pressure", "age"]]  # neither the label nor the order nor who it is
    assert np.array_equal(classifier.predict_proba(without), by_dataset)
    array = frame[list(classifier.feature_names_in_)].to_numpy()
    assert np.array_equal(classifier.predict_proba(array), by_dataset)


def test_scikit_learn_takes_it_as_a_fitted_classifier(classifier: Classifier, frame: pd.DataFrame) -> None:
    check_is_fitted(classifier)
    assert is_classifier(classifier)
    assert list(classifier.classes_) == ["no", "yes"]
    measured = evaluate_on(classifier.task, make_dataset(120))(classifier.model)
    assert classifier.score(frame, frame["ill"]) == measured["accuracy"]
    scores = classifier.predict_proba(frame)[:, 1]
    assert roc_auc_score(frame["ill"] == "yes", scores) == pytest.approx(measured["auc"])
    calibrated = CalibratedClassifierCV(FrozenEstimator(classifier)).fit(frame, frame["ill"])
    assert calibrated.predict_proba(frame).shape == (120, 2)
    again = clone(classifier)
    assert np.array_equal(again.predict_proba(frame), classifier.predict_proba(frame)), "nothing is unlearned"
    with pytest.raises(InvalidInput, match="not fitted again"):
        classifier.fit(frame, frame["ill"])


def test_labels_that_are_whole_numbers_are_numbers() -> None:
    task = make_task(schema={"label_values": ["0", "1"]})
    assert Classifier(trained(task), task).classes_.tolist() == [0, 1]
    task = make_task(schema={"label_values": ["00", "1"]})
    assert Classifier(trained(task), task).classes_.tolist() == ["00", "1"]


def test_rows_that_do_not_fit_are_refused(classifier: Classifier, frame: pd.DataFrame) -> None:
    with pytest.raises(ColumnsDoNotFit, match="needs column 'age'"):
        classifier.predict_proba(frame.drop(columns="age"))
    with pytest.raises(RowDoesNotFit, match="Line 1, column 'age': 500 years lies outside"):
        classifier.predict_proba(frame.assign(age=500))
    with pytest.raises(InvalidInput, match="3 columns of the schema"):
        classifier.predict_proba(np.zeros((4, 5)))
    with pytest.raises(InvalidInput, match="must name every column once; they repeat 'age'"):
        classifier.predict_proba(pd.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(InvalidInput, match="There are no rows"):
        classifier.predict_proba(frame.iloc[:0])
    with pytest.raises(InvalidInput, match="'rows.csv' names a file and is no rows; predict_file"):
        classifier.predict_proba("rows.csv")
    with pytest.raises(InvalidInput, match="make a data frame of it"):
        classifier.predict_proba({"age": [50]})


def test_the_model_of_another_task_is_refused(classifier: Classifier) -> None:
    other = make_task(model={"kind": "mlp", "hidden": [3]})
    with pytest.raises(NotThisTasksModel, match="other tensors"):
        Classifier(classifier.model, other)


def test_a_model_that_was_trained_tells_patients_apart() -> None:
    task = make_task()
    clients = [make_dataset(200, seed) for seed in range(task.privacy.min_clients)]
    *_, (model, _) = iterate(task, clients, 3)
    frame = pd.read_csv(io.BytesIO(make_table(300, 99).to_csv()))
    scores = Classifier(model, task).predict_proba(frame)[:, 1]
    assert np.isfinite(scores).all()


# The command line


@pytest.fixture
def files(tmp_path: Path, classifier: Classifier) -> dict[str, str]:
    (tmp_path / "wards.model").write_bytes(classifier.model.to_bytes())
    (tmp_path / "task.json").write_bytes(classifier.task.to_bytes())
    table = make_table(30)
    (tmp_path / "rows.csv").write_bytes(table.to_csv())
    columns = {name: cells for name, cells in table.columns.items() if name != "ill"}
    (tmp_path / "new.csv").write_bytes(type(table)(columns, table.lines).to_csv())
    return {path.name: str(path) for path in tmp_path.iterdir()}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_predict_writes_probabilities_of_rows_without_a_label(
    files: dict[str, str], classifier: Classifier, tmp_path: Path
) -> None:
    options = (files["wards.model"], "--task", files["task.json"], "--rows", files["new.csv"])
    rows = list(csv.DictReader(io.StringIO(run("predict", *options))))
    expected = classifier.predict_proba(make_dataset(30))
    assert [int(row["line"]) for row in rows] == list(range(2, 32))
    assert np.allclose([float(row["probability yes"]) for row in rows], expected[:, 1], atol=1e-6)
    assert [row["predicted"] for row in rows] == [["no", "yes"][row.argmax()] for row in expected]
    by_name, lines = classifier.predict_file(files["new.csv"])
    assert np.array_equal(by_name, expected)
    assert lines == list(range(2, 32))
    out = tmp_path / "predictions.csv"
    run("predict", *options, "--out", str(out))
    assert list(csv.DictReader(io.StringIO(out.read_text()))) == rows
    assert out.stat().st_mode & 0o077 == 0
    assert len(json.loads(run("predict", *options, "--json"))["rows"]) == 30


def test_evaluate_measures_as_a_simulation_does(files: dict[str, str], classifier: Classifier) -> None:
    options = (files["wards.model"], "--task", files["task.json"], "--rows", files["rows.csv"])
    measured = evaluate_on(classifier.task, make_dataset(30))(classifier.model)
    assert json.loads(run("evaluate", *options, "--json")) == {"rows": 30, **measured}
    assert "ε does not cover them" in run("evaluate", *options)


def test_show_names_features_and_classes(files: dict[str, str], classifier: Classifier) -> None:
    shown = json.loads(run("model", "show", files["wards.model"], "--task", files["task.json"], "--json"))
    assert shown["classes"] == "no, yes"
    assert [entry["feature"] for entry in shown["features"]] == list(classifier.task.schema.feature_names)  # type: ignore[union-attr]
    weights = classifier.model.parameters()["layer0.weight"][0]
    assert [entry["weight for yes"] for entry in shown["features"]] == [round(float(w), 4) for w in weights]
