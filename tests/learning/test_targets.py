"""Numbers and survival as targets: encoding, losses against finite differences, measures, predictions."""

import csv
import io
import math
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.classifier import Classifier
from anofel.learning.dense import DenseNetwork
from anofel.learning.evaluate import evaluate_on
from anofel.learning.losses import ClippedSquare, Hazard, Logistic, likelihoods, loss_of
from anofel.learning.metrics import concordance
from anofel.models.rules import first_model
from anofel.privacy.plan import Plan
from anofel.simulation.rows import made_up_rows
from anofel.studies.encoding import encode_table, encode_unlabelled
from anofel.studies.table import RowDoesNotFit, Table
from anofel.tasks.schema import NumberColumn, NumberTarget, SurvivalTarget, TableSchema
from anofel.tasks.task import Task, read_task
from tests.plain_path import iterate

LENGTH = NumberTarget(kind="number", unit="days", low=Decimal(0), high=Decimal(100), scale=Decimal(10))
TIME = SurvivalTarget(
    kind="survival", unit="days", event="died", event_values=("no", "yes"), cuts=(30, 90, 365)
)
SURVIVING = 1 - 1 / (1 + math.exp(2.2))
"""An interval, before anything was learned."""
LISTS = ("label_values", "identifying", "unused")
FEATURE = NumberColumn(kind="number", name="x", unit="", low=Decimal(-4), high=Decimal(4), outside="clip")


def schema_of(target: NumberTarget | SurvivalTarget) -> TableSchema:
    return TableSchema(columns=(FEATURE,), label="stay", target=target)


def task_of(target: NumberTarget | SurvivalTarget, **training: object) -> Task:
    document = schema_of(target).document()
    return read_task(
        {
            "task": {"name": "stay"},
            "model": {"kind": "logistic"},
            "training": {"algorithm": "fedsgd"} | training,
            "rule": {"lr_num": 2},
            "privacy": {
                "clipping_norm": 5,
                "noise_multiplier": "0.0005",
                "max_releases": 60,
                "min_clients": 3,
                "max_colluders": 1,
            },
            "schema": document
            | {key: list(document[key]) for key in ("label_values", "identifying", "unused")},
        }
    )


def table(**columns: list[str]) -> Table:
    rows = len(next(iter(columns.values())))
    return Table(columns, range(1, rows + 1))


def test_a_number_is_a_step_of_its_range() -> None:
    found = encode_table(table(x=["0"] * 3, stay=["0", "50", "100"]), schema_of(LENGTH))
    assert found.labels.tolist() == [0, 32768, 65535]


@pytest.mark.parametrize(
    ("cell", "reason"), [("101", "lies outside"), ("", "missing"), ("long", "not a number")]
)
def test_a_number_that_cannot_be_one_is_refused(cell: str, reason: str) -> None:
    with pytest.raises(RowDoesNotFit, match=reason):
        encode_table(table(x=["0"], stay=[cell]), schema_of(LENGTH))


def test_a_time_is_an_interval_and_its_event() -> None:
    times = ["0", "30", "31", "90", "365", "366", "10", "400"]
    events = ["yes", "yes", "yes", "no", "yes", "yes", "no", "no"]
    found = encode_table(table(x=["0"] * 8, stay=times, died=events), schema_of(TIME))
    assert found.labels.tolist() == [1, 1, 3, 2, 5, 6, 0, 6]
    assert found.schema.classes == 7


@pytest.mark.parametrize(
    ("time", "event", "reason"),
    [
        ("-1", "no", "before the beginning"),
        ("", "no", "missing"),
        ("3", "perhaps", "not a value of the event"),
    ],
)
def test_a_time_that_cannot_be_one_is_refused(time: str, event: str, reason: str) -> None:
    with pytest.raises(RowDoesNotFit, match=reason):
        encode_table(table(x=["0"], stay=[time], died=[event]), schema_of(TIME))


def test_rows_to_predict_need_neither_time_nor_event() -> None:
    assert len(encode_unlabelled(table(x=["1", "2"]), schema_of(TIME))) == 2


@pytest.mark.parametrize("loss", [Logistic(2), Logistic(4), ClippedSquare(LENGTH), Hazard(TIME)])
def test_gradients_agree_with_finite_differences(loss: Logistic | ClippedSquare | Hazard) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, {1: 2, 4: 4, 3: 7}[loss.outputs], 20)
    if isinstance(loss, ClippedSquare):
        labels = rng.integers(0, 65536, 20)
    outputs, step = rng.normal(0, 3, (20, loss.outputs)), 1e-6
    found = loss.gradient(outputs, labels)
    for column in range(loss.outputs):
        moved = np.zeros_like(outputs)
        moved[:, column] = step
        slope = (loss.losses(outputs + moved, labels) - loss.losses(outputs - moved, labels)) / (2 * step)
        np.testing.assert_allclose(found[:, column], slope, atol=1e-6)


def test_the_pull_of_a_wild_number_is_bounded() -> None:
    assert np.abs(ClippedSquare(LENGTH).gradient(np.full((1, 1), 1e9), np.array([0]))).max() == 1


def test_a_survival_loss_is_the_likelihood_of_what_was_seen() -> None:
    loss, outputs = Hazard(TIME), np.array([[0.3, -0.2, 1.0]])
    hazard = 1 / (1 + np.exp(-outputs[0]))
    expected = {
        1: hazard[0],
        3: (1 - hazard[0]) * hazard[1],
        5: (1 - hazard[0]) * (1 - hazard[1]) * hazard[2],
        0: 1.0,
        2: 1 - hazard[0],
        6: np.prod(1 - hazard),
    }
    for label, probability in expected.items():
        found = np.exp(-loss.losses(outputs, np.array([label])))
        np.testing.assert_allclose(found, probability)
        np.testing.assert_allclose(likelihoods(loss.predictions(outputs), np.array([label])), probability)


def test_concordance_counts_pairs() -> None:
    rng = np.random.default_rng(3)
    times, events = rng.integers(0, 5, 40), rng.random(40) < 0.6
    scores = rng.integers(0, 6, 40).astype(float)
    pairs = agreeing = 0.0
    for one, two in [*combinations(range(40), 2), *((b, a) for a, b in combinations(range(40), 2))]:
        if events[one] and (times[one] < times[two] or (times[one] == times[two] and not events[two])):
            pairs += 1
            agreeing += (scores[one] > scores[two]) + (scores[one] == scores[two]) / 2
    assert concordance(scores, times, events) == pytest.approx(agreeing / pairs)
    with pytest.raises(InvalidInput, match="two rows"):
        concordance(scores, times, np.zeros(40, bool))


@pytest.mark.parametrize(("target", "measure", "better"), [(LENGTH, "rmse", 0.6), (TIME, "concordance", 1.3)])
@pytest.mark.parametrize("unit", ["client", "record"])
def test_models_of_both_learn(
    target: NumberTarget | SurvivalTarget, measure: str, better: float, unit: str
) -> None:
    from dataclasses import replace

    task = task_of(target)
    if unit == "record":
        privacy = replace(
            task.privacy, unit="record", records_per_client=60, noise_multiplier=Decimal("0.01")
        )
        task = replace(task, privacy=privacy, rule=replace(task.rule, lr_num=1, lr_den=40))
    rows = made_up_rows(task.schema, 240)
    clients = [rows.take(np.arange(start, 240, 4)) for start in range(4)]
    measured = evaluate_on(task, rows)
    first = measured(first_model(task, trainer_of(task).initial()))[measure]
    *_, (model, _) = iterate(task, clients, 60)
    last = measured(model)[measure]
    assert last < better * first if measure == "rmse" else last > better * first


def test_a_task_with_a_target_has_one_encoding() -> None:
    for target in (LENGTH, TIME):
        task = task_of(target)
        assert Task.from_bytes(task.to_bytes()) == task
        assert task.model.parameters == 1 + loss_of(task.schema).outputs, "one weight, and biases"
    assert "target" not in TableSchema(columns=(FEATURE,), label="y", label_values=("a", "b")).document()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cuts": (30, 30)}, "must be in order"),
        ({"event_values": ("no", "yes", "perhaps")}, "must name two values"),
        ({"event": "x"}, "both a feature and the event"),
    ],
)
def test_a_survival_target_that_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    from dataclasses import replace

    with pytest.raises(InvalidInput, match=message):
        task_of(replace(TIME, **change))  # type: ignore[arg-type]


def test_metric_slots_need_classes() -> None:
    document = task_of(TIME).document() | {"metrics": {"names": ["loss"]}}
    schema = document["schema"]
    schema |= {key: list(schema[key]) for key in LISTS}
    schema["target"] |= {"event_values": ["no", "yes"], "cuts": [30, 90, 365]}
    document["model"] = {"kind": "logistic"}
    document["rule"] = {"lr_num": 2}
    with pytest.raises(InvalidInput, match="metric slots measure classes"):
        read_task(document)


@pytest.mark.parametrize("target", [LENGTH, TIME])
def test_the_commands_know_them(target: NumberTarget | SurvivalTarget, tmp_path: Path) -> None:
    task = task_of(target)
    files = {
        "task.json": task.to_bytes(),
        "m.model": first_model(task, trainer_of(task).initial()).to_bytes(),
    }
    files["rows.csv"] = b"x,stay,died\n1,40,yes\n-1,10,no\n0,300,yes\n"
    if target is LENGTH:
        files["rows.csv"] = b"x,stay\n1,40\n-1,10\n0,90\n"
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    common = [str(tmp_path / "m.model"), "--task", str(tmp_path / "task.json")]
    rows = ["--rows", str(tmp_path / "rows.csv")]
    done = CliRunner().invoke(app, ["predict", *common, *rows])
    assert done.exit_code == 0, done.output
    first = next(csv.DictReader(io.StringIO(done.stdout)))
    if target is LENGTH:
        assert (first["predicted"], first["unit"]) == ("0.000000", "days")
    else:
        assert first["survival to 90 days"] == f"{SURVIVING**2:.6f}"
    done = CliRunner().invoke(app, ["evaluate", *common, *rows])
    assert ("rmse" if target is LENGTH else "concordance") in done.output
    done = CliRunner().invoke(app, ["model", "show", *common])
    assert ("stay in days" if target is LENGTH else "hazard up to 90 days") in done.output


def test_a_classifier_gives_numbers_and_expected_survival() -> None:
    for target, expected in ((LENGTH, 0.0), (TIME, SURVIVING + SURVIVING**2 + SURVIVING**3)):
        task = task_of(target)
        classifier = Classifier(first_model(task, trainer_of(task).initial()), task)
        assert classifier.predict(np.array([["1"]], dtype=object)).tolist() == pytest.approx(
            [expected], abs=1e-5
        )
        with pytest.raises(InvalidInput, match="no class"):
            classifier.score(np.array([["1"]], dtype=object), [0])


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_clipped_survival_gradients_equal_the_loop_over_rows(hidden: tuple[int, ...]) -> None:
    network, rng = DenseNetwork(3, hidden=hidden, loss=Hazard(TIME)), np.random.default_rng(5)
    parameters = {name: rng.normal(size=array.shape) for name, array in network.initial().items()}
    assert parameters[f"layer{len(hidden)}.weight"].shape[0] == 1
    inputs, labels = rng.normal(size=(12, 3)), rng.integers(0, 7, 12)
    total = network.clipped_gradient_sum(parameters, inputs, labels, 0.7)
    expected = {name: np.zeros_like(array) for name, array in parameters.items()}
    for row in range(12):
        one = network.gradient(parameters, inputs[row : row + 1], labels[row : row + 1])
        norm = np.sqrt(sum((array**2).sum() for array in one.values()))
        for name, array in one.items():
            expected[name] += array * min(1.0, 0.7 / max(norm, 1e-300))
    for name, array in expected.items():
        np.testing.assert_allclose(total[name], array, atol=1e-12)
    step, gradient = 1e-6, network.gradient(parameters, inputs, labels)
    for name, array in parameters.items():
        for place in np.ndindex(array.shape):
            moved = {key: value.copy() for key, value in parameters.items()}
            moved[name][place] += step
            above = network.mean_loss(moved, inputs, labels)
            moved[name][place] -= 2 * step
            slope = (above - network.mean_loss(moved, inputs, labels)) / (2 * step)
            assert gradient[name][place] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("name", ["support2-stay", "nwtco-survival"])
def test_the_examples_keep_to_nine_tenths(name: str) -> None:
    task = Task.example(name)
    assert 0.89 < Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") <= 0.9


def test_survival_starts_at_a_hazard_of_a_tenth_whatever_the_rows() -> None:
    for hidden in ((), (4,)):
        network = DenseNetwork(3, hidden=hidden, loss=Hazard(TIME))
        surviving = network.probabilities(network.initial(), np.ones((1, 3)))
        np.testing.assert_allclose(surviving[0], np.cumprod([0.9] * 3), atol=1e-3)


def test_a_dense_network_without_a_loss_is_for_classes() -> None:
    assert isinstance(DenseNetwork(features=2).objective, Logistic)
