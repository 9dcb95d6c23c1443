"""scikit-learn's estimators and NumPy functions as trainers of custom tasks."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn import linear_model, svm
from sklearn.ensemble import RandomForestClassifier

import anofel
from anofel.learning.build import TrainerRefused, trainer_of
from anofel.learning.estimators import EstimatorTrainer
from anofel.learning.functions import array_trainer
from anofel.learning.losses import answers_of
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.trainer import Predictor, RecordTrainer, Trainer
from tests.patients import make_dataset, make_task

CUSTOM = {"model": {"kind": "custom", "parameters": 6}, "training": {"algorithm": "custom"}}
TASK = make_task(**CUSTOM)
NUMBER: dict[str, Any] = {
    "label": "age",
    "column": [{"name": "stage", "kind": "category", "values": ["I", "II", "III"]}],
    "identifying": ["name"],
    "unused": ["note", "ill", "pressure"],
    "target": {"kind": "number", "unit": "years", "low": 0, "high": 120},
}
SURVIVAL = {
    **NUMBER,
    "unused": ["note", "pressure"],
    "target": {
        "kind": "survival",
        "unit": "years",
        "cuts": [30, 60],
        "event": "ill",
        "event_values": ["no", "yes"],
    },
}


def number_schema() -> anofel.Dataset:
    from anofel.studies.encoding import encode_table
    from anofel.tasks.task import read_task
    from tests.patients import DOCUMENT, make_table

    task = read_task(
        {**DOCUMENT, **CUSTOM, "model": {"kind": "custom", "parameters": 3}, "schema": dict(NUMBER)}
    )
    return encode_table(make_table(40), task.schema)


def sgd(**settings: Any) -> linear_model.SGDClassifier:
    return linear_model.SGDClassifier(**{"loss": "log_loss", "random_state": 0, **settings})


def own(name: str) -> str:
    return f"{__name__}:{name}"


def make_sgd(task: anofel.Task) -> Trainer:
    return EstimatorTrainer.for_task(task, sgd)


# Estimators


@pytest.mark.parametrize(
    ("make", "predicts"),
    [
        (sgd, True),
        (lambda: sgd(loss="hinge"), False),
        (lambda: linear_model.LogisticRegression(max_iter=3), True),
        (lambda: linear_model.Perceptron(random_state=0), False),
        (lambda: svm.LinearSVC(), False),
    ],
)
def test_rule_1_coefficients_travel_and_the_model_is_usable(make: Any, predicts: bool) -> None:
    trainer, rows = EstimatorTrainer.for_task(TASK, make, epochs=5), make_dataset(60)
    first = trainer.initial()
    assert {name: array.shape for name, array in first.items()} == {"coef_": (1, 5), "intercept_": (1,)}
    assert not any(array.any() for array in first.values())
    local = trainer.train(first, rows)
    assert local.examples == 60
    model = {name: first[name] + local.update[name] for name in first}
    fitted = trainer.fitted(model)
    scores = rows.inputs() @ model["coef_"][0] + model["intercept_"]
    assert local.update["coef_"].any()
    np.testing.assert_array_equal(fitted.predict(rows.inputs()), scores > 0)
    np.testing.assert_array_equal(fitted.coef_, model["coef_"])
    assert isinstance(trainer, Predictor) == predicts
    assert not isinstance(trainer, RecordTrainer)
    if isinstance(trainer, Predictor):
        np.testing.assert_array_equal(trainer.probabilities(model, rows), fitted.predict_proba(rows.inputs()))


def test_rule_2_partial_fit_goes_on_from_the_posted_model() -> None:
    rows, trainer = make_dataset(50), EstimatorTrainer.for_task(TASK, sgd, epochs=3)
    model = {"coef_": np.full((1, 5), 0.25), "intercept_": np.array([-1.0])}
    update = trainer.train(model, rows).update
    alone = sgd()
    alone.coef_, alone.intercept_ = model["coef_"].copy(), model["intercept_"].copy()
    for _ in range(3):
        alone.partial_fit(rows.inputs(), rows.labels, classes=[0, 1])
    np.testing.assert_array_equal(model["coef_"] + update["coef_"], alone.coef_)
    np.testing.assert_array_equal(model["intercept_"] + update["intercept_"], alone.intercept_)
    np.testing.assert_array_equal(model["coef_"], np.full((1, 5), 0.25))  # what was posted stays as it is


def test_rule_2_warm_start_begins_at_the_posted_model_and_others_afresh() -> None:
    rows = make_dataset(50)
    far = {"coef_": np.full((1, 5), 9.0), "intercept_": np.array([9.0])}

    def ends(make: Any, model: Any) -> Any:
        trainer = EstimatorTrainer.for_task(TASK, make)
        return model["coef_"] + trainer.train(model, rows).update["coef_"]

    def warm() -> Any:
        return linear_model.LogisticRegression(max_iter=1)

    zero = {name: np.zeros_like(array) for name, array in far.items()}
    assert np.abs(ends(warm, far) - ends(warm, zero)).max() > 1
    np.testing.assert_allclose(ends(svm.LinearSVC, far), ends(svm.LinearSVC, zero), atol=1e-6)


def test_rule_3_one_training_leaves_nothing_for_the_next() -> None:
    rows, trainer = make_dataset(50), EstimatorTrainer.for_task(TASK, sgd)
    first, second = (trainer.train(trainer.initial(), rows).update for _ in range(2))
    np.testing.assert_array_equal(first["coef_"], second["coef_"])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sgd(average=True), "SGDClassifier keeps averages"),
        (RandomForestClassifier, "has no coef_ and no intercept_"),
        (dict, "dict is no estimator"),
    ],
)
def test_rule_4_what_has_no_mean_is_refused(make: Any, says: str) -> None:
    with pytest.raises(TrainerRefused, match=says):
        EstimatorTrainer.for_task(TASK, make)


def test_a_client_that_lacks_a_class_trains_with_partial_fit_and_fails_without() -> None:
    task = make_task(**CUSTOM, schema={"label_values": ["no", "yes", "perhaps"]})
    rows = make_dataset(30)
    lacking = anofel.Dataset(rows.features, rows.labels, task.schema)
    assert EstimatorTrainer.for_task(task, sgd).train(
        {"coef_": np.zeros((3, 5)), "intercept_": np.zeros(3)}, lacking
    ).update["coef_"].shape == (3, 5)
    whole = EstimatorTrainer.for_task(task, linear_model.LogisticRegression)
    with pytest.raises(TrainerFailed, match="needs rows of every class; one with partial_fit does not"):
        whole.train(whole.initial(), lacking)


@pytest.mark.parametrize(
    "make",
    [
        lambda: linear_model.SGDRegressor(random_state=0),
        linear_model.LinearRegression,
        linear_model.Ridge,
        lambda: linear_model.ElasticNet(alpha=0.01),
    ],
)
def test_numbers_are_learned_in_their_unit(make: Any) -> None:
    rows = number_schema()
    assert answers_of(rows).max() > 50
    trainer = EstimatorTrainer(make, rows.schema, epochs=20)
    first = trainer.initial()
    update = trainer.train(first, rows).update
    model = {name: first[name] + update[name] for name in first}
    assert isinstance(trainer, Predictor)
    predicted = trainer.probabilities(model, rows)
    assert predicted.shape == (40, 1)
    error = np.abs(predicted[:, 0] - answers_of(rows)).mean()
    assert error < np.abs(answers_of(rows) - answers_of(rows).mean()).mean() * 1.5


def test_tasks_that_an_estimator_cannot_train_are_refused() -> None:
    with pytest.raises(TrainerRefused, match="not by 'fedsgd'"):
        EstimatorTrainer.for_task(make_task(), sgd)
    from anofel.tasks.task import read_task
    from tests.patients import DOCUMENT

    survival = read_task({**DOCUMENT, **CUSTOM, "schema": dict(SURVIVAL)})
    with pytest.raises(TrainerRefused, match="learns survival"):
        EstimatorTrainer.for_task(survival, sgd)


# Functions


@array_trainer({"weight": np.zeros(5), "bias": np.zeros(1)}, predict=lambda _, rows: np.full(len(rows), 0.25))
def moves(arrays: Any, rows: Any, labels: Any) -> Any:
    arrays["weight"] += rows.mean(axis=0)
    arrays["bias"] += labels.mean()
    return arrays


@array_trainer(lambda task: {"weight": np.zeros(task.schema.inputs), "bias": 0})
def forgets(arrays: Any, rows: Any, labels: Any) -> Any:
    arrays["weight"] += 1


@array_trainer({"weight": np.zeros(6)})
def reshapes(arrays: Any, rows: Any, labels: Any) -> Any:
    return {"weight": arrays["weight"][:, None]}


def test_a_function_is_a_trainer_wherever_one_is_named() -> None:
    rows, trainer = make_dataset(20), trainer_of(TASK, own("moves"))
    update = trainer.train({"weight": np.ones(5), "bias": np.ones(1)}, rows).update
    np.testing.assert_allclose(update["weight"], rows.inputs().mean(axis=0))
    np.testing.assert_allclose(update["bias"], rows.labels.mean())
    assert isinstance(trainer, Predictor)
    np.testing.assert_array_equal(trainer.probabilities(trainer.initial(), rows)[0], [0.75, 0.25])
    assert not isinstance(moves(make_task(**CUSTOM)), RecordTrainer)
    assert moves.__name__ == "moves"  # type: ignore[attr-defined]
    assert not isinstance(forgets(TASK), Predictor)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("forgets", "'forgets' must return the arrays that it was given, by their names: bias, weight"),
        ("reshapes", r"'weight' came back with the shape \(6, 1\), not \(6,\)"),
    ],
)
def test_what_a_function_returns_is_checked(name: str, says: str) -> None:
    trainer = trainer_of(TASK, own(name))
    with pytest.raises(TrainerFailed, match=says):
        trainer.train(trainer.initial(), make_dataset(10))


def test_without_rows_nothing_is_trained() -> None:
    nothing = make_dataset(5).take(np.array([], dtype=np.int64))
    for trainer in (moves(TASK), EstimatorTrainer.for_task(TASK, sgd)):
        with pytest.raises(anofel.AnofelError, match="no rows"):
            trainer.train(trainer.initial(), nothing)


# Through a simulation


@pytest.mark.parametrize("trainer", ["trainer", "logistic"])
def test_the_example_trains_from_the_command_line(trainer: str, tmp_path: Path) -> None:
    directory = tmp_path / "example"
    anofel_command("new", str(directory), "--example", "scikit-learn")
    said = anofel_command(
        *("simulate", "task.toml", "--trainer", f"own_estimator:{trainer}", "--made-up-rows", "300"),
        *("--iterations", "2", "--insecure-plain", "--json"),
        cwd=directory,
    )
    assert '"outcome": "summed"' in said
    assert '"accuracy"' in said


def anofel_command(*words: str, cwd: Path | None = None) -> str:
    environment = {"PYTHONPATH": str(cwd)} if cwd else {}
    done = subprocess.run(
        [sys.executable, "-m", "anofel", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
