"""Small images that a network can learn in a second, and tasks about them."""

from typing import Any

import numpy as np

from anofel.studies.dataset import Dataset
from anofel.tasks.schema import ImageSchema
from anofel.tasks.task import Task, read_task

SCHEMA = ImageSchema(shape=(28, 28, 1), label_values=tuple("0123456789"))


def make_digits(rows: int, seed: int = 0, schema: ImageSchema = SCHEMA) -> Dataset:
    """Noise with a bright patch whose place tells the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, schema.classes, rows).astype(np.int32)
    images = rng.integers(0, 60, (rows, *schema.shape)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        top, left = 4 + 8 * (label // 4), 2 + 6 * (label % 4)
        image[top : top + 5, left : left + 5] = 255
    return Dataset(images, labels, schema)


def image_task(schema: ImageSchema = SCHEMA, **sections: dict[str, Any]) -> Task:
    """LeNet5 without much noise; some keys of some sections replaced, with another algorithm all of its."""
    document: dict[str, Any] = {
        "task": {"name": "digits"},
        "model": {"kind": "lenet5"},
        "training": {"algorithm": "fedavg", "learning_rate": "0.1", "batch_size": 16},
        "rule": {"lr_num": 1, "lr_den": 1},
        "privacy": {
            "clipping_norm": "10",
            "noise_multiplier": "0.0005",
            "max_releases": 10,
            "min_clients": 4,
            "max_colluders": 2,
        },
        "schema": schema.document(),
    }
    if "algorithm" in sections.get("training", {}):
        document["training"] = {}
    for name, values in sections.items():
        document[name] |= values
    document["schema"] = {key: _listed(value) for key, value in document["schema"].items()}
    return read_task(document)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
