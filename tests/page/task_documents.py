"""Tasks with one thing changed, to compare two readers of them."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from anofel.disk.sections import canonical_json
from anofel.errors import InvalidInput
from anofel.tasks.example_files import EXAMPLES
from anofel.tasks.task import Task, read_task

WORDS = """
0 1 -1 -0 0.5 0.50 .5 00 1e3 +1 0.000001 0.0000001 0.1 0.2 0.001 0.999 0.9999 127 1000 1001 1000000 1000001
-1000000000000 1000000000001 fedsgd fedavg custom sgd adam client record paper replace owner median clip
integer-mean integer-adam integer-yogi trimmed-mean logistic mlp lenet5 resnet20-gn squeezenet-gn table image
number category survival scattering shift bfloat16
"""
VALUES: tuple[Any, ...] = (
    *WORDS.split(),
    *(0, 1, 2, 3, 7, 8, 32, 33, 64, 127, -1, 4096, 65535, 65536, 2**20, 2**20 + 1, 2**30, 2**32 - 1, 2**32),
    *(2**32 + 1, 2**53 - 1, 2**53, 2**62, 2**62 + 1, 10**30, True, False, None, [], {}, [1], [1, 2, 3]),
    *("", "a", "a\tb", "a\x01", "a\u2028", "a\u202e", "ä" * 128, "ä" * 129, "ab" * 32, "AB" * 32),
    *("0." + "0" * 39 + "1", "0." + "0" * 38 + "1", [8, 8, 3], ["a", "b"], ["a", "a"], ["b"], ["accuracy"]),
    *(["loss", "accuracy"], ["accuracy", "loss"], ["a", "b", "c"]),
)
KEYS = """
groups weights metrics schedule max_mean_norm second_momentum floor proven_ranges app missing target transform
max_steps proximal augment precision new insecure_unproven_contributions __proto__
"""
_PRIVACY = {
    "clipping_norm": "0.5", "noise_multiplier": 4, "max_releases": 10, "min_clients": 4, "max_colluders": 1,
    "expected_clients": 16,
}  # fmt: skip
_IMAGE = {"kind": "image", "shape": [32, 32, 3], "label_values": ["a", "b", "c"]}
_COLUMN = {"kind": "number", "name": "age", "unit": "years", "low": 0, "high": 100, "scale": 100}
_WARD = {"kind": "category", "name": "ward", "values": ["a", "b", "c"], "missing": "b"}
_SURVIVAL = {
    "kind": "survival", "unit": "days", "event": "dead", "event_values": ["no", "yes"], "cuts": [30, 90],
}  # fmt: skip
MORE: tuple[dict[str, Any], ...] = (
    {
        "model": {"kind": "lenet5"},
        "schema": _IMAGE,
        "training": {"algorithm": "fedavg", "learning_rate": "0.1"},
    },
    {"model": {"kind": "resnet20-gn"}, "schema": _IMAGE, "rule": {"kind": "integer-adam"}},
    {"model": {"kind": "squeezenet-gn"}, "schema": _IMAGE, "groups": {"number": 3}},
    {
        "model": {"kind": "logistic"},
        "schema": {**_IMAGE, "transform": "scattering"},
        "weights": {"most": 100},
    },
    {
        "model": {"kind": "mlp", "hidden": [8, 4]},
        "schema": {"column": [_COLUMN], "label": "time", "target": _SURVIVAL},
        "weights": {"most": 7, "share": "0.3"},
        "rule": {"schedule": [{"iteration": 2, "lr_num": 3}, {"iteration": 9, "lr_num": 1, "lr_den": 2}]},
    },
    {
        "model": {"kind": "logistic"},
        "schema": {
            "column": [
                _COLUMN,
                {"kind": "category", "name": "ward", "values": ["a", "b", "c"], "missing": "b"},
            ],
            "label": "days",
            "target": {"kind": "number", "unit": "days", "low": 0, "high": 50},
        },
        "groups": {"number": 4, "combine": "trimmed-mean", "trim": 1},
    },
    {
        "model": {"kind": "custom", "parameters": 5},
        "training": {"algorithm": "custom"},
        "schema": {"column": [_COLUMN], "label": "ill", "label_values": ["no", "yes"], "app": "ab" * 32},
        "metrics": {"names": ["accuracy", "loss"], "proven_ranges": True},
        "weights": {"most": 1},
    },
)


def tasks() -> list[Task]:
    """Give every example, and tasks with what no example has."""
    made = [Task.example(name) for name in EXAMPLES]
    for tables in MORE:
        document = {
            "task": {"name": "one"},
            "training": {"algorithm": "fedsgd"},
            "rule": {},
            "privacy": _PRIVACY,
        }
        made.append(read_task(document | tables))
    return made


def changed(number: int, seed: int) -> list[tuple[bytes, bool]]:
    """Draw changed tasks, each with whether the package reads it; about half of them are read."""
    generator = random.Random(seed)
    documents = [json.loads(task.to_bytes()) for task in tasks()]
    found: dict[bool, list[tuple[bytes, bool]]] = {
        True: [(canonical_json(document), True) for document in documents],
        False: [],
    }
    while min(map(len, found.values())) < number // 2:
        document = copy.deepcopy(generator.choice(documents))
        for _ in range(generator.choice((1, 1, 2))):
            table, key = generator.choice(list(_places(document)))
            if generator.random() < 0.1:
                del table[key]
            elif generator.random() < 0.15 and isinstance(table, dict):
                table[generator.choice(KEYS.split())] = copy.deepcopy(generator.choice(VALUES))
            else:
                table[key] = copy.deepcopy(generator.choice(VALUES))
        data = canonical_json(document)
        is_read = _is_read(data)
        if len(found[is_read]) < number // 2:
            found[is_read].append((data, is_read))
    return found[True] + found[False]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in items:
        yield value, key
        yield from _places(entry)


def _is_read(data: bytes) -> bool:
    try:
        Task.from_bytes(data)
    except InvalidInput:
        return False
    return True
