"""Flower's own server loop over an app, in its environment: ``python own_loop.py APP CLIENTS OUT CONFIG``.

Its nodes are in this process and answer in order; nothing of the strategy or its loop is replaced.
"""

import importlib
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
from flwr.common import Code, Context, FitRes, Message, RecordDict, Status


def context(config, node, state=None):
    return Context(run_id=1, node_id=1, node_config=node, state=state or RecordDict(), run_config=config)


def main() -> None:
    directory, clients, out, overrides = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        sys.argv[3],
        json.loads(sys.argv[4]),
    )
    sys.path[0] = str(directory)
    app = tomllib.loads((directory / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    config = {**app["config"], **overrides}
    parts = {}
    for part, name in app["components"].items():
        module, _, attribute = name.partition(":")
        parts[part] = getattr(importlib.import_module(module), attribute)
    try:
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    except ImportError:
        pass
    contexts = [
        context(config, {"partition-id": place, "num-partitions": clients}) for place in range(clients)
    ]
    if parts["clientapp"]._call is not None:
        arrays = legacy_loop(parts, config, contexts)
    else:
        arrays = message_loop(parts, config, contexts)
    np.savez(out, **arrays)


def message_loop(parts, config, contexts):
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Strategy

    class Nodes(Grid):
        def set_run(self, run):
            pass

        @property
        def run(self):
            raise NotImplementedError

        def create_message(self, *_given, **_more):
            raise NotImplementedError

        def get_node_ids(self):
            return list(range(1, len(contexts) + 1))

        def push_messages(self, messages):
            raise NotImplementedError

        def pull_messages(self, message_ids):
            raise NotImplementedError

        def send_and_receive(self, messages, *, timeout=None):
            answers = []
            for message in messages:
                if message.metadata.message_type != "train":
                    continue  # the apps of the tests evaluate nothing
                node = message.metadata.dst_node_id
                copied = Message(message.content, dst_node_id=node, message_type="train", group_id="1")
                answers.append(parts["clientapp"](copied, contexts[node - 1]))
            return answers

    results, original = [], Strategy.start

    def start(self, *args, **kwargs):
        results.append(original(self, *args, **kwargs))
        return results[-1]

    Strategy.start = start
    parts["serverapp"](Nodes(), context(config, {}))
    return {name: array.numpy() for name, array in results[0].arrays.items()}


def legacy_loop(parts, config, contexts):
    from flwr.common import parameters_to_ndarrays
    from flwr.server import Server, SimpleClientManager
    from flwr.server.client_proxy import ClientProxy

    try:
        from flwr.compat.common import recorddict_compat as compat
    except ImportError:
        from flwr.common import recorddict_compat as compat

    class Node(ClientProxy):
        def fit(self, ins, timeout, group_id):
            content = compat.fitins_to_recorddict(ins, keep_input=True)
            message = Message(content, dst_node_id=1, message_type="train", group_id="1")
            reply = parts["clientapp"](message, contexts[int(self.cid)])
            made = compat.recorddict_to_fitres(reply.content, keep_input=True)
            return FitRes(Status(Code.OK, ""), made.parameters, made.num_examples, made.metrics)

        def get_properties(self, ins, timeout, group_id):
            raise NotImplementedError

        get_parameters = evaluate = reconnect = get_properties

    components = parts["serverapp"]._server_fn(context(config, {}))
    manager = SimpleClientManager()
    for place in range(len(contexts)):
        manager.register(Node(str(place)))
    server = Server(client_manager=manager, strategy=components.strategy)
    server.fit(num_rounds=components.config.num_rounds, timeout=None)
    return {str(place): array for place, array in enumerate(parameters_to_ndarrays(server.parameters))}


main()
