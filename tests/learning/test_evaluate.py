"""Measures of a model against numbers worked out by hand."""

import numpy as np

from anofel.learning.build import trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from tests.patients import make_dataset, make_task


def test_a_model_of_zeros_knows_nothing() -> None:
    task, rows = make_task(), make_dataset(80)
    model = rule_of(task).initial(trainer_of(task).initial(), task.model.scale_bits)
    found = evaluate_on(task, rows)(model)
    assert np.isclose(found["loss"], np.log(2))
    assert found["auc"] == 0.5
    assert np.isclose(found["accuracy"], (rows.labels == 0).mean())  # ties go to the first class


def test_a_model_that_looks_at_age_beats_one_that_does_not() -> None:
    task, rows = make_task(), make_dataset(400)
    parameters = dict(trainer_of(task).initial())
    weight = np.zeros_like(parameters["layer0.weight"])
    weight[0, 0] = 1.0  # age is the first column, and risk grows with it
    model = IntegerModel.from_parameters(
        {**parameters, "layer0.weight": weight}, task.model.scale_bits, companions=int(task.rule.momentum > 0)
    )
    found = evaluate_on(task, rows)(model)
    age, ill = rows.inputs()[:, 0], rows.labels == 1
    pairs = age[ill][:, None] - age[~ill][None, :]
    assert np.isclose(found["auc"], ((pairs > 0) + 0.5 * (pairs == 0)).mean())
    assert found["auc"] > 0.6


def test_rows_of_one_class_have_no_area() -> None:
    task, rows = make_task(), make_dataset(60)
    model = rule_of(task).initial(trainer_of(task).initial(), task.model.scale_bits)
    healthy = rows.take(np.flatnonzero(rows.labels == 0))
    assert set(evaluate_on(task, healthy)(model)) == {"loss", "accuracy"}
