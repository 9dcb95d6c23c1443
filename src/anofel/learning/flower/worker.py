"""The program that runs a Flower app in the app's own environment, as ``python worker.py``.

It imports nothing of anofel and speaks frames on its standard input and output: four bytes of length
(big-endian), a JSON header, then the bytes of the arrays that ``header["arrays"]`` lists as name, type and
shape. The first order names the app; the answer holds its first model. Each further order trains once.

What the server of the app would send first is caught, and its loop is never run: the model, the settings
of training and the strategy's name and numbers leave through here. What cannot be kept is refused by name.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import struct
import sys
import tempfile
from collections import OrderedDict
from typing import Any

import numpy as np

_MESSAGE_STRATEGIES = "flwr.serverapp.strategy"
_LEGACY_STRATEGIES = "flwr.server.strategy"
_NODES = 1000
"""How many nodes the server of the app is told of; only what it would send all of them is looked at."""
_FLOATS = ("<f2", "<f4", "<f8")
_PEER_MODS = ("secagg_mod", "secaggplus_mod", "fixedclipping_mod", "adaptiveclipping_mod")
_NOISE_MODS = ("LocalDpMod",)
_ROUND = ("server-round", "server_round", "current_round", "round")
"""Names under which a round's number travels; they differ from round to round and mean only that."""
_PLAIN = (bool, int, float, str)
_DIFFERENT = "The strategy sends different things to different nodes; who got what would tell them apart"
_CHANGING = "The settings of training change from round to round; a client learns those of round 1 only"


class NotKept(Exception):
    """The app asks for something whose meaning is not kept."""


class Caught(BaseException):
    """Ends the app's server once it has said what it wants trained."""


# Frames


def read_frame(stream: Any) -> Any:
    """Read a header and its arrays; None at the end."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    header = json.loads(stream.read(struct.unpack(">I", head)[0]))
    arrays = OrderedDict()
    for name, kind, shape in header.pop("arrays"):
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=np.int64))
        data = stream.read(count * dtype.itemsize)
        arrays[name] = np.frombuffer(data, dtype).reshape(shape).copy()
    return header, arrays


def write_frame(stream: Any, header: dict[str, Any], arrays: Any) -> None:
    """Write a header and arrays."""
    ordered = [(name, np.asarray(array, order="C")) for name, array in arrays.items()]
    listed = [[name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in ordered]
    head = json.dumps({**header, "arrays": listed}).encode()
    stream.write(struct.pack(">I", len(head)) + head)
    for _, array in ordered:
        stream.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    stream.flush()


# The two kinds of apps


def make_context(run_config: Any, node_config: Any) -> Any:
    """Make what Flower gives to an app."""
    from flwr.common import Context

    try:
        from flwr.common import RecordDict
    except ImportError:  # before 1.19
        from flwr.common import RecordSet as RecordDict
    return Context(
        run_id=1,
        node_id=1,
        node_config=node_config,
        state=RecordDict(),
        run_config=run_config,
    )


def name_of(strategy: Any, home: str) -> str:
    """Return the class of a strategy if it is exactly one of Flower's, otherwise refuse it."""
    kind = type(strategy)
    if not kind.__module__.startswith(home + "."):
        bases = [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith(home + ".")]
        what = f"a subclass of {bases[0]}" if bases else "a strategy of its own"
        raise NotKept(
            f"The app's strategy '{kind.__name__}' is {what}: what its own methods do with single "
            "updates would be lost, since nobody ever sees one"
        )
    replaced = [name for name in vars(strategy) if callable(getattr(kind, name, None))]
    if replaced:
        raise NotKept(f"The app replaces '{replaced[0]}' of its strategy: what it does there would be lost")
    return kind.__name__


def numbers_of(strategy: Any) -> dict[str, Any]:
    """Return the settings of a strategy that are plain values."""
    return {name: value for name, value in vars(strategy).items() if isinstance(value, _PLAIN)}


def without_round(config: Any) -> dict[str, Any]:
    """Return settings without the number of the round."""
    return {name: value for name, value in config.items() if name not in _ROUND}


class MessageApp:
    """An app of the message API: its server calls ``strategy.start``, its client gets messages."""

    def __init__(self, server: Any, client: Any, run_config: Any) -> None:
        self.client, self.run_config = client, run_config
        self.states: dict[str, Any] = {}
        content, self.about = self._caught(server)
        from flwr.common import ArrayRecord, ConfigRecord

        arrays = [key for key, record in content.items() if isinstance(record, ArrayRecord)]
        configs = [key for key, record in content.items() if isinstance(record, ConfigRecord)]
        if len(arrays) != 1 or len(arrays) + len(configs) != len(content) or len(configs) > 1:
            raise NotKept("The strategy sends more than one model and its settings to a node")
        self.arrays_key = arrays[0]
        self.config_key = configs[0] if configs else None
        self.config = dict(content[configs[0]]) if configs else {}
        record = content[self.arrays_key]
        self.first = OrderedDict((name, array.numpy()) for name, array in record.items())

    def _caught(self, server: Any) -> tuple[Any, dict[str, Any]]:
        from flwr.common import ConfigRecord
        from flwr.serverapp.strategy import Strategy

        seen: dict[str, Any] = {}
        original = Strategy.start

        def start(strategy: Any, *args: Any, **kwargs: Any) -> None:
            bound = inspect.signature(original).bind(strategy, *args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            seen["strategy"] = name_of(strategy, _MESSAGE_STRATEGIES)
            seen["settings"] = numbers_of(strategy)
            seen["rounds"] = given["num_rounds"]
            seen["evaluates"] = given.get("evaluate_fn") is not None
            config = given.get("train_config") or ConfigRecord()
            # Not the loop itself: it would first evaluate on the owner's test data.
            rounds = []
            for number in (2, 1):  # some write the number into the settings that they were given
                sent = strategy.configure_train(number, given["initial_arrays"], config, given["grid"])
                messages = list(sent)
                if len({_fingerprint(message.content) for message in messages}) != 1:
                    raise NotKept(_DIFFERENT)
                rounds.append(without_round(_config_of(messages[0].content)))
            if rounds[0] != rounds[1]:
                raise NotKept(_CHANGING)
            raise Caught(messages[0].content)

        Strategy.start = start
        try:
            server(_grid(), make_context(self.run_config, {}))
        except Caught as caught:
            if caught.args[0] is None:
                raise NotKept(
                    "The app's server sends its messages itself, without a strategy; its loop would be lost"
                ) from None
            return caught.args[0], seen
        finally:
            Strategy.start = original
        raise NotKept("The app's server ended without starting a strategy")

    def train(self, arrays: Any, who: str, node_config: Any) -> tuple[Any, dict[str, Any]]:
        """Let the client train; give its arrays and its metrics."""
        from flwr.common import Array, ArrayRecord, ConfigRecord, Message, RecordDict

        record = ArrayRecord(OrderedDict((name, Array(array)) for name, array in arrays.items()))
        content = RecordDict({self.arrays_key: record})
        if self.config_key:
            content[self.config_key] = ConfigRecord(dict(self.config))
        message = Message(content, dst_node_id=1, message_type="train", group_id="1")
        context = self.states.setdefault(who, make_context(self.run_config, node_config))
        reply = self.client(message, context)
        if reply.has_error():
            raise RuntimeError("the app answered with an error")
        records = list(reply.content.array_records.values())
        if len(records) != 1:
            raise RuntimeError("the answer does not hold one model")
        metrics: dict[str, Any] = {}
        for record in reply.content.metric_records.values():
            metrics.update({key: value for key, value in record.items() if isinstance(value, (int, float))})
        return OrderedDict((name, array.numpy()) for name, array in records[0].items()), metrics


class LegacyApp:
    """An app with ``server_fn`` and ``client_fn``, whose clients are ``NumPyClient`` or ``Client``."""

    def __init__(self, server: Any, client: Any, run_config: Any) -> None:
        self.client, self.run_config = client, run_config
        self.states: dict[str, Any] = {}
        components = server._server_fn(make_context(run_config, {})) if server._server_fn else server
        strategy = getattr(components, "strategy", None) or getattr(components, "_strategy", None)
        config = getattr(components, "config", None) or getattr(components, "_config", None)
        if strategy is None:  # Flower's own default
            from flwr.server.strategy import FedAvg

            strategy = FedAvg()
        own_server = getattr(components, "server", None) or getattr(components, "_server", None)
        if own_server is not None:
            raise NotKept("The app brings a server of its own; its loop would be lost")
        self.about = {
            "strategy": name_of(strategy, _LEGACY_STRATEGIES),
            "settings": numbers_of(strategy),
            "rounds": 1 if config is None else config.num_rounds,
            "evaluates": getattr(strategy, "evaluate_fn", None) is not None,
        }
        self.compat = _compat()
        manager = _Manager()
        first = strategy.initialize_parameters(manager) or self._ask_client()
        rounds = []
        for number in (2, 1):
            instructions = [ins for _, ins in strategy.configure_fit(number, first, manager)]
            configs = [without_round(ins.config) for ins in instructions]
            if any(config != configs[0] for config in configs):
                raise NotKept(_DIFFERENT)
            rounds.append(configs[0])
        if rounds[0] != rounds[1]:
            raise NotKept(_CHANGING)
        self.config = instructions[0].config
        from flwr.common import parameters_to_ndarrays

        self.first = OrderedDict((str(i), array) for i, array in enumerate(parameters_to_ndarrays(first)))

    def _message(self, content: Any, kind: str) -> Any:
        from flwr.common import Message

        return Message(content, dst_node_id=1, message_type=kind, group_id="1")

    def _ask_client(self) -> Any:
        """Ask a client for the first model, as Flower's server does where the strategy has none."""
        from flwr.common import GetParametersIns

        content = self.compat.getparametersins_to_recorddict(GetParametersIns({}))
        reply = self.client(self._message(content, "get_parameters"), make_context(self.run_config, NODE))
        if reply.has_error():
            raise NotKept("Neither the strategy nor a client of the app gives a first model")
        return self.compat.recorddict_to_getparametersres(reply.content, True).parameters

    def train(self, arrays: Any, who: str, node_config: Any) -> tuple[Any, dict[str, Any]]:
        """Let the client train; give its arrays and its metrics."""
        from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays

        given = FitIns(ndarrays_to_parameters(list(arrays.values())), dict(self.config))
        message = self._message(self.compat.fitins_to_recorddict(given, True), "train")
        context = self.states.setdefault(who, make_context(self.run_config, node_config))
        reply = self.client(message, context)
        if reply.has_error():
            raise RuntimeError("the app answered with an error")
        made = self.compat.recorddict_to_fitres(reply.content, True)
        arrays = parameters_to_ndarrays(made.parameters)
        metrics = {"num-examples": made.num_examples}
        return OrderedDict((str(i), array) for i, array in enumerate(arrays)), metrics


class _Manager:
    """What a legacy strategy asks of Flower's list of clients."""

    def num_available(self) -> int:
        return _NODES

    def sample(self, num_clients: int, *_others: Any, **_more: Any) -> list[Any]:
        return [object() for _ in range(num_clients)]


def _grid() -> Any:
    from flwr.common import Message
    from flwr.serverapp import Grid

    class Nobody(Grid):  # type: ignore[misc]
        """Nodes that never answer."""

        def set_run(self, run: Any) -> None:
            pass

        @property
        def run(self) -> Any:
            raise NotImplementedError

        def create_message(
            self, content: Any, message_type: str, dst_node_id: int, group_id: str, ttl: Any = None
        ) -> Any:
            del ttl
            return Message(content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id)

        def get_node_ids(self) -> list[int]:
            return list(range(1, _NODES + 1))

        def push_messages(self, *_given: Any) -> Any:
            raise Caught(None)

        def pull_messages(self, *_given: Any) -> Any:
            raise Caught(None)

        def send_and_receive(self, *_given: Any, **_more: Any) -> Any:
            raise Caught(None)

    return Nobody()


def _compat() -> Any:
    try:
        from flwr.compat.common import recorddict_compat
    except ImportError:
        from flwr.common import recorddict_compat
    return recorddict_compat


def _config_of(content: Any) -> dict[str, Any]:
    from flwr.common import ConfigRecord

    found: dict[str, Any] = {}
    for record in content.values():
        if isinstance(record, ConfigRecord):
            found.update(record)
    return found


def _fingerprint(content: Any) -> Any:
    """Tell contents apart; the strategy gives all nodes the same record, so names and ids are enough."""
    return tuple(sorted((key, id(record)) for key, record in content.items()))


# Limits and the loop


def limit_memory(most: int) -> bool:
    """Let allocations beyond ``most`` bytes fail, where the system can."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold rows
    except (ImportError, AttributeError, ValueError, OSError):
        return False
    return True


def load(order: Any) -> tuple[Any, bool]:
    """Import the app and catch what its server would send first."""
    sys.path.insert(0, order["app"])
    found = {}
    for part, name in order["components"].items():
        module, _, attribute = name.partition(":")
        found[part] = getattr(importlib.import_module(module), attribute)
    try:  # 1.41 and later: who am I, process-wide
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    except ImportError:
        pass
    client, server = found["clientapp"], found["serverapp"]
    mods = [getattr(mod, "__name__", type(mod).__name__) for mod in getattr(client, "_mods", [])]
    for name in mods:
        if name in _PEER_MODS:
            raise NotKept(
                f"The app's client uses '{name}', which needs Flower's server; the committee encrypts and "
                "the task clips instead, so take it out"
            )
        if name in _NOISE_MODS:
            raise NotKept(
                f"The app's client uses '{name}', whose noise no ledger here would count; the task "
                "adds noise of its own and counts ε, so take it out"
            )
    legacy = getattr(client, "_call", None) is not None
    app = (LegacyApp if legacy else MessageApp)(server, client, order["config"])
    if not app.first:
        raise NotKept("The app's model has no arrays")
    for name, array in app.first.items():
        if array.dtype.newbyteorder("<").str not in _FLOATS:
            raise NotKept(
                f"The array '{name}' holds {array.dtype}, and only numbers of 16, 32 or 64 bits with a "
                "fraction have a mean; leave it out of what the app sends"
            )
    return app, legacy


def check(made: Any, first: Any) -> None:
    """Refuse an answer with other arrays than the model's."""
    if list(made) != list(first):
        raise RuntimeError("the answer names other arrays than the model")
    for name, array in made.items():
        if tuple(array.shape) != tuple(first[name].shape):
            raise RuntimeError(f"the array '{name}' has another shape in the answer")


def one_line(error: BaseException) -> str:
    """Say an error's kind and text on one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}{': ' + text[0][:300] if text else ''}"


NODE: dict[str, Any] = {}
"""The node's settings for questions before any training."""


def main() -> None:
    """Answer orders until the input ends."""
    sys.path.pop(0)  # the place of this file
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the app prints must not disturb the answers
    if hasattr(os, "register_at_fork"):  # what the app forks must not keep them open when it is ended
        for at in (orders.fileno(), answers.fileno()):
            os.register_at_fork(after_in_child=lambda at=at: os.dup2(0, at))
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    order, _ = read_frame(orders)
    limited = limit_memory(order["memory"])
    NODE.update(order["node"])
    try:
        app, legacy = load(order)
    except NotKept as error:
        write_frame(answers, {"refused": str(error)}, {})
        return
    except BaseException as error:
        write_frame(answers, {"failed": one_line(error)}, {})
        return
    import flwr

    version = getattr(flwr, "__version__", "")
    if not version:
        from importlib.metadata import version as installed

        version = installed("flwr")
    about = {**app.about, "flwr": version, "legacy": legacy, "memory_limited": limited}
    write_frame(answers, about, app.first)
    kinds = {name: array.dtype for name, array in app.first.items()}
    places: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="rows-") as scratch:
        while True:
            frame = read_frame(orders)
            if frame is None:
                return
            order, arrays = frame
            who = order["who"]
            rows = {name: arrays.pop(name) for name in ("anofel:features", "anofel:labels") if name in arrays}
            if rows:
                places[who] = os.path.join(scratch, f"{who}.npz")
                np.savez(places[who], features=rows["anofel:features"], labels=rows["anofel:labels"])
            try:
                node = {**order["node"], "anofel-rows": places[who]}
                typed = OrderedDict((name, arrays[name].astype(kinds[name])) for name in app.first)
                made, metrics = app.train(typed, who, node)
                check(made, app.first)
                made = OrderedDict((name, np.asarray(array, dtype="<f8")) for name, array in made.items())
                answer: dict[str, Any] = {"examples": int(metrics.get("num-examples", 1))}
            except BaseException as error:
                answer, made = {"failed": one_line(error)}, OrderedDict()
            write_frame(answers, answer, made)


if __name__ == "__main__":
    main()
