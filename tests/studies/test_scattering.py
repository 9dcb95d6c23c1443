"""The scattering transform against kymatio's coefficients, and how a schema carries it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.trainer import Predictor, RecordTrainer
from anofel.studies.dataset import Dataset
from anofel.studies.load import _described
from anofel.studies.scattering import coefficients, scattered
from anofel.tasks.schema import ImageSchema, schema_digest
from anofel.tasks.task import Task
from tests.pytorch.digits import SCHEMA, image_task, make_digits

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scattering.json").read_text())
TRANSFORMED = replace(SCHEMA, transform="scattering")
RECORDS = {"unit": "record", "clipping_norm": "0.1", "noise_multiplier": "1", "records_per_client": 100}


def scattering_task() -> Task:
    task = image_task(
        TRANSFORMED, model={"kind": "logistic"}, training={"algorithm": "fedsgd"}, privacy=RECORDS
    )
    assert isinstance(task.schema, ImageSchema)
    return task


def test_coefficients_are_those_of_kymatio() -> None:
    image = np.array(VECTORS["image"], np.float32)[None] / 256
    ours, theirs = coefficients(image)[0], np.array(VECTORS["coefficients"])
    assert ours.shape == theirs.shape
    for layer in (slice(0, 1), slice(1, 17), slice(17, 81)):
        distance = np.linalg.norm(ours[layer] - theirs[layer])
        assert distance < 0.01 * np.linalg.norm(theirs[layer])


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (9, 15, 2)])
def test_a_row_has_as_many_features_as_the_schema_says(shape: tuple[int, ...]) -> None:
    schema = ImageSchema(shape=shape, label_values=("a", "b"), transform="scattering")
    images = np.random.default_rng(0).integers(0, 256, (70, *shape)).astype(np.uint8)
    found = scattered(images)
    assert found.shape == (70, schema.inputs)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found, axis=1).max() <= 1.0001
    np.testing.assert_allclose(found[3:4], scattered(images[3:4]), atol=1e-6)


def test_a_blank_image_has_features_in_the_group_of_its_brightness_only() -> None:
    found = scattered(np.full((1, 28, 28, 1), 200, np.uint8)).reshape(27, 3 * 49)
    assert np.abs(found[0]).max() > 0.01
    assert np.abs(found[1:]).max() < 0.001


def test_a_transform_is_done_once_for_rows_that_are_taken() -> None:
    rows = replace(make_digits(20), schema=TRANSFORMED)
    kept = rows.transformed()
    chosen = np.array([5, 1, 5])
    assert kept.take(chosen)._transformed is not None
    np.testing.assert_allclose(kept.take(chosen).inputs(), rows.take(chosen).inputs(), atol=1e-7)
    assert make_digits(3).transformed()._transformed is None


def test_a_linear_model_on_it_trains_record_by_record() -> None:
    task = scattering_task()
    assert task.model.parameters == 10 * (81 * 49 + 1)
    trainer, rows = trainer_of(task), replace(make_digits(60), schema=TRANSFORMED)
    assert isinstance(trainer, RecordTrainer)
    model, rows = dict(trainer.initial()), rows.transformed()
    for _ in range(10):
        update = trainer.train_records(model, rows, 10.0, 1.0).update
        model = {name: model[name] + array for name, array in update.items()}
    assert isinstance(trainer, Predictor)
    assert (trainer.probabilities(model, rows).argmax(axis=1) == rows.labels).mean() > 0.9


def test_the_encoding_names_a_transform_only_where_there_is_one() -> None:
    assert "transform" not in SCHEMA.document()
    assert TRANSFORMED.document()["transform"] == "scattering"
    assert schema_digest(SCHEMA) != schema_digest(TRANSFORMED)
    task = scattering_task()
    assert Task.from_bytes(task.to_bytes()) == task


def test_a_network_takes_images_as_they_are() -> None:
    with pytest.raises(InvalidInput, match="transform must be none"):
        image_task(TRANSFORMED)


def test_small_images_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 8 pixels"):
        image_task(replace(TRANSFORMED, shape=(7, 28, 1)), model={"kind": "logistic"})


def test_the_rows_of_a_study_take_the_schema_of_the_task() -> None:
    rows: Dataset = make_digits(3)
    assert _described(rows, TRANSFORMED).schema is TRANSFORMED
    with pytest.raises(InvalidInput, match="shape or labels differ"):
        _described(rows, replace(TRANSFORMED, shape=(28, 28, 3)))
