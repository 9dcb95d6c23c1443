"""What all tests share: keys, a certifier and a client; a task and a dataset."""

import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings

from anofel.keys import KeyDirectory, make_insecure_development_keys
from anofel.phase1_setup.certification import Credential
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    MasterSecret,
    Salt,
)
from anofel.studies.dataset import Dataset
from anofel.studies.table import Table, encode_table
from anofel.task import Task, read_task

settings.register_profile("default", deadline=None, max_examples=50)
settings.load_profile("default")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    """One set of development keys for the whole run, also when it has several processes."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    path: Path = shared / "keys"
    with FileLock(shared / "keys.lock"):
        return KeyDirectory.open(path) if path.exists() else make_insecure_development_keys(path)


@dataclass(frozen=True)
class World:
    """A board with certifiers and clients, one of whom is ours."""

    certifier: CertifierSecret
    certifiers: CertifierTree
    clients: ClientTree
    credential: Credential
    salt: Salt


@pytest.fixture
def world() -> World:
    certifier, msk, salt = CertifierSecret.generate(), MasterSecret.generate(), Salt.generate()
    d, dt = DatasetDigest.of_chunks([b"twelve rows"]), DatasetType(7)
    certifiers, clients = CertifierTree(), ClientTree()
    certifiers.append([CertifierSecret.generate().public_key(), certifier.public_key()])
    credential = Credential(msk, d, dt, certifier.public_key(), certifier.certify(d, msk.public_key(), dt))
    strangers = [Commitment(d, MasterSecret.generate(), dt, Salt.generate()) for _ in range(10)]
    clients.append([*strangers[:5], Commitment(d, msk, dt, salt), *strangers[5:]])
    return World(certifier, certifiers, clients, credential, salt)


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
        document[name] |= values
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


@pytest.fixture
def task() -> Task:
    return make_task()


@pytest.fixture
def dataset() -> Dataset:
    return make_dataset(200)
