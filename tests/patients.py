"""A task and a table of patients that several tests need."""

from copy import deepcopy
from typing import Any

import numpy as np

from anofel.studies.dataset import Dataset
from anofel.studies.encoding import encode_table
from anofel.studies.table import Table
from anofel.tasks.task import Task, read_task

DOCUMENT: dict[str, Any] = {
    "task": {"name": "test"},
    "model": {"kind": "logistic"},
    "training": {"algorithm": "fedsgd"},
    "rule": {"lr_num": 1, "lr_den": 1},
    "privacy": {
        "clipping_norm": "0.5",
        "noise_multiplier": "4",
        "max_releases": 10,
        "min_clients": 8,
        "max_colluders": 2,
    },
    "schema": {
        "label": "ill",
        "label_values": ["no", "yes"],
        "identifying": ["name"],
        "unused": ["note"],
        "column": [
            {
                "name": "age",
                "kind": "number",
                "unit": "years",
                "low": 0,
                "high": 120,
                "offset": 50,
                "scale": 25,
            },
            {
                "name": "pressure",
                "kind": "number",
                "unit": "mmHg",
                "low": 20,
                "high": 250,
                "missing": 120,
                "indicator": True,
                "outside": "clip",
                "offset": 120,
                "scale": 40,
            },
            {"name": "stage", "kind": "category", "values": ["I", "II", "III"], "missing": "I"},
        ],
    },
}


def make_task(**sections: dict[str, Any]) -> Task:
    """The common task with some keys of some sections replaced."""
    document = deepcopy(DOCUMENT)
    for name, values in sections.items():
        document.setdefault(name, {}).update(values)
    return read_task(document)


def make_table(rows: int, seed: int = 0) -> Table:
    """A table of patients whose risk grows with age and stage."""
    rng = np.random.default_rng(seed)
    age, stage = rng.integers(20, 90, rows), rng.integers(0, 3, rows)
    risk = 1 / (1 + np.exp(-(age - 55) / 15 - stage + 1))
    ill = rng.random(rows) < risk
    return Table(
        {
            "name": [f"Patient {number}" for number in range(rows)],
            "age": [str(value) for value in age],
            "pressure": ["" if rng.random() < 0.1 else str(value) for value in rng.integers(80, 180, rows)],
            "stage": [("I", "II", "III")[value] for value in stage],
            "note": [""] * rows,
            "ill": ["yes" if value else "no" for value in ill],
        },
        range(1, rows + 1),
    )


def make_dataset(rows: int, seed: int = 0) -> Dataset:
    """The table, encoded by the common schema."""
    return encode_table(make_table(rows, seed), make_task().schema)
