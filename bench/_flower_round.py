"""One round of Flower's SecAgg+ over an in-memory grid, in an environment of its own.

Run by ``baselines.py`` with the Python of that environment; it imports nothing of anofel. The workflow and
the client's mod are Flower's own; ``fit`` returns a ready vector, so this is the cost of the protocol alone.

    python _flower_round.py VECTORS.npy SHARES THRESHOLD
"""

import copy
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.compat.common.recorddict_compat import parameters_to_arrayrecord
from flwr.server import LegacyContext, SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

CLIPPING = 8.0
WEIGHT = 1


class Ready(NumPyClient):
    """A client whose update is ready."""

    def __init__(self, vector: np.ndarray) -> None:
        self._vector = vector

    def fit(self, _parameters: Any, _config: Any) -> tuple[list[np.ndarray], int, dict[str, Any]]:
        """Return the vector."""
        return [self._vector], WEIGHT, {}


class MemoryGrid(Grid):
    """Calls the clients in this process and notes their CPU seconds and bytes."""

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self.cpu: dict[int, float] = defaultdict(float)
        self.up: dict[int, int] = defaultdict(int)
        self.down: dict[int, int] = defaultdict(int)
        self.trips = 0
        self._contexts = {
            node: Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})
            for node in self.get_node_ids()
        }
        self._app = ClientApp(client_fn=self._client, mods=[secaggplus_mod])

    def _client(self, context: Context) -> Any:
        return Ready(self._vectors[context.node_id - 1]).to_client()

    def get_node_ids(self) -> Iterable[int]:
        """Name every client."""
        return range(1, len(self._vectors) + 1)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Deliver messages to clients and return their answers."""
        del timeout
        self.trips += 1
        answers = []
        for sent in messages:
            node = sent.metadata.dst_node_id
            TaskIdentity.node_id = node
            self.down[node] += count_bytes(sent)
            message = copy.deepcopy(sent)  # the workflow sends one object to all; a network would not
            start = time.process_time()
            answer = self._app(message, self._contexts[node])
            self.cpu[node] += time.process_time() - start
            self.up[node] += count_bytes(answer)
            answers.append(answer)
        TaskIdentity.node_id = 0
        return answers

    def set_run(self, run: Any) -> None:
        """Do nothing; there is one run."""

    @property
    def run(self) -> Any:
        """Refuse; nothing of it is needed."""
        raise NotImplementedError

    def create_message(self, *_arguments: Any, **_more: Any) -> Message:
        """Refuse; the workflow makes its own messages."""
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Refuse; messages are sent and answered at once."""
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Refuse; messages are sent and answered at once."""
        raise NotImplementedError


def count_bytes(message: Message) -> int:
    """Count the bytes of a message's records; names and framing are left out."""
    total = 0
    for record in message.content.values():
        for value in record.values():
            total += _value_bytes(value)
    return total


def _value_bytes(value: Any) -> int:
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, list):
        return sum(_value_bytes(entry) for entry in value)
    data = getattr(value, "data", None)
    return len(data) if isinstance(data, bytes) else 8


def main() -> None:
    """Run one round and print what it took."""
    vectors = np.load(sys.argv[1])
    shares, threshold = int(sys.argv[2]), int(sys.argv[3])
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 0
    grid, manager = MemoryGrid(vectors), SimpleClientManager()
    for node in grid.get_node_ids():
        manager.register(GridClientProxy(node, grid, 1))
    strategy = FedAvg(fraction_fit=1.0, min_fit_clients=len(vectors), min_available_clients=len(vectors))
    base = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={})
    context = LegacyContext(base, strategy=strategy, client_manager=manager)
    start_model = ndarrays_to_parameters([np.zeros_like(vectors[0])])
    context.state["config"] = ConfigRecord({"current_round": 1})
    context.state["parameters"] = parameters_to_arrayrecord(start_model, True)
    workflow = SecAggPlusWorkflow(
        num_shares=shares, reconstruction_threshold=threshold, clipping_range=CLIPPING, max_weight=WEIGHT
    )
    wall, cpu = time.perf_counter(), time.process_time()
    workflow(grid, context)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    result = next(iter(context.state["parameters"].values())).numpy()
    clients = list(grid.cpu.values())
    print(
        json.dumps(
            {
                "client_cpu": float(np.mean(clients)),
                "server_cpu": cpu - sum(clients),
                "wall": wall,
                "up": float(np.mean(list(grid.up.values()))),
                "down": float(np.mean(list(grid.down.values()))),
                "trips": grid.trips,
                "error": float(np.abs(result - vectors.mean(axis=0)).max()),
            }
        )
    )


if __name__ == "__main__":
    main()
