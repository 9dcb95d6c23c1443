"""A Flower app as a trainer: its first model, and what one training moves.

Whatever goes wrong in the app is ``FlowerFailed``, which ends in the zero update (D-20); the next training
starts the app again. What a client of the app keeps in its context is lost then.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anofel.learning.flower.isolation import Isolation
from anofel.learning.flower.process import FlowerProcess, NamedArrays
from anofel.learning.flower.settings import AppValue, FlowerApp
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset

NodeOf = Callable[[Dataset], tuple[str, Mapping[str, AppValue]]]
"""Names a client by its rows, and what its ``node_config`` adds."""


def only_node(_dataset: Dataset) -> tuple[str, Mapping[str, AppValue]]:
    """There is one client: this one."""
    return "0", {}


class FlowerTrainer:
    """Trains with a Flower app; the app is started here and ends with this object or its process."""

    def __init__(self, app: FlowerApp, node_of: NodeOf = only_node) -> None:
        """Start the app. Raises ``FlowerRefused``, ``FlowerFailed``."""
        self.app, self._node_of = app, node_of
        self._process = FlowerProcess(app)
        self._first = self._process.first
        self._told: set[str] = set()
        self.about: Mapping[str, Any] = self._process.about
        """The strategy of the app, its settings and rounds, and the version of Flower."""

    @property
    def isolation(self) -> Isolation:
        """What keeps the app to itself."""
        return self._process.isolation

    def initial(self) -> Parameters:
        """Give the first model that the server of the app would send."""
        return {name: np.asarray(array, dtype=np.float64) for name, array in self._first.items()}

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Let the app train one client. Raises ``FlowerFailed``."""
        if not self._process.is_alive:
            self._process.close()
            self._process, self._told = FlowerProcess(self.app), set()
        who, node = self._node_of(dataset)
        sent: NamedArrays = {
            name: np.asarray(parameters[name]).astype(array.dtype) for name, array in self._first.items()
        }
        rows: NamedArrays = {}
        if who not in self._told:
            rows = {"anofel:features": dataset.inputs(), "anofel:labels": dataset.labels.astype(np.float64)}
        made, examples = self._process.train(who, {**dict(self.app.node), **node}, {**rows, **sent})
        self._told.add(who)
        # Against what the app was given, so that the rounding of its type is no part of the update.
        update = {name: made[name].astype(np.float64) - sent[name].astype(np.float64) for name in sent}
        return LocalUpdate(update, examples)

    def close(self) -> None:
        """End the app."""
        self._process.close()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None and os is not None:
            process.close()
