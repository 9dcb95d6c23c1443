"""The parent's end of a worker that runs a Flower app: frames of arrays, bounded in size and time."""

import json
import math
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from anofel.children import Child
from anofel.learning.flower.isolation import Isolation, environment, isolation_of
from anofel.learning.flower.settings import FlowerApp, FlowerRefused
from anofel.learning.own_trainer import TrainerFailed
from anofel.tasks.task import MAX_PARAMETERS

NamedArrays = dict[str, NDArray[Any]]
START_SECONDS: Final = 240
"""How long an app may take until it has said what it trains; importing PyTorch alone takes seconds."""
_MAX_HEADER: Final = 1 << 22
_KINDS: Final = ("<f2", "<f4", "<f8")
_WORKER: Final = Path(__file__).with_name("worker.py")


class FlowerFailed(TrainerFailed):
    """A Flower app crashed, took too long, or answered nonsense; its update is the zero update."""

    code = "flower-failed"


def isolation_here(app: FlowerApp) -> Isolation:
    """Say how an app would be started. Raises ``FlowerRefused`` if its network cannot be closed."""
    return isolation_of(app, _WORKER)


class FlowerProcess:
    """A running app; after a failure it is dead, and another one is started."""

    def __init__(self, app: FlowerApp) -> None:
        """Start the app and read its first model. Raises ``FlowerRefused``, ``FlowerFailed``."""
        self._app = app
        app.check_digest()
        manifest = app.manifest()
        self.isolation = isolation_here(app)
        self._scratch = tempfile.TemporaryDirectory(prefix="anofel-app-", ignore_cleanup_errors=True)
        variables = environment()
        if not self.isolation.has_own_files:
            variables["TMPDIR"] = self._scratch.name
        try:
            self._child = Child(
                [*self.isolation.prefix, app.python, str(_WORKER)],
                own_group=False,  # it ends with the training that it is part of
                quiet=True,  # it may print rows
                directory=app.directory,
                environment=variables,
            )
        except OSError as error:
            self._scratch.cleanup()
            raise FlowerRefused(f"'{app.python}' cannot be started: {error.strerror or error}.") from None
        order = {
            "app": app.directory,
            "components": manifest.components,
            "config": manifest.config,
            "node": dict(app.node),
            "memory": app.gigabytes << 30,
        }
        try:
            self.about, self.first = self._converse(order, {}, START_SECONDS, None)
            if "refused" in self.about:
                raise FlowerRefused(f"The Flower app '{app.name}' is not taken. {self.about['refused']}.")
        except BaseException:
            self.close()
            raise

    def train(self, who: str, node: Mapping[str, Any], arrays: NamedArrays) -> tuple[NamedArrays, int]:
        """Let a client train; give its arrays and how many examples it says. Raises ``FlowerFailed``."""
        head, made = self._converse({"who": who, "node": dict(node)}, arrays, self._app.seconds, self.first)
        examples = head.get("examples")
        return made, examples if isinstance(examples, int) else 1

    @property
    def is_alive(self) -> bool:
        """Whether the app still runs."""
        return self._child.is_alive

    def close(self) -> None:
        """End the app, and where it has a namespace of its own, all that it started."""
        self._child.close()
        self._scratch.cleanup()

    def _converse(
        self, order: Mapping[str, Any], arrays: NamedArrays, seconds: int, like: NamedArrays | None
    ) -> tuple[dict[str, Any], NamedArrays]:
        """Write an order and read the answer; a timer ends an app that takes too long."""
        with self._child.within(seconds) as late:
            try:
                _write(self._child.orders, order, arrays)
                head, made = _read(self._child.answers, like)
            except (OSError, ValueError, TypeError, KeyError) as error:
                self.close()
                if late.is_set():
                    raise self._failed(f"took longer than {seconds} seconds") from None
                if isinstance(error, _Ended | OSError):
                    raise self._failed(f"ended with the code {self._child.returncode}") from None
                raise self._failed("answered nonsense") from None
        if "failed" in head:
            raise self._failed(f"failed: {head['failed']}")
        return head, made

    def _failed(self, what: str) -> FlowerFailed:
        return FlowerFailed(f"The Flower app '{self._app.name}' {what}.")


class _Ended(ValueError):
    """The app's pipe ended."""


def _write(stream: IO[bytes], header: Mapping[str, Any], arrays: NamedArrays) -> None:
    ordered = [(name, np.asarray(array, order="C")) for name, array in arrays.items()]
    listed = [(name, array.dtype.newbyteorder("<").str, array.shape) for name, array in ordered]
    head = json.dumps({**header, "arrays": listed}).encode()
    stream.write(struct.pack(">I", len(head)) + head)
    for _, array in ordered:
        stream.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    stream.flush()


def _read(stream: IO[bytes], like: NamedArrays | None) -> tuple[dict[str, Any], NamedArrays]:
    """Read a frame; its arrays are those of ``like``, or a first model of a size that is possible."""
    length = int(struct.unpack(">I", _exactly(stream, 4))[0])
    if length > _MAX_HEADER:
        raise ValueError("header")
    head = json.loads(_exactly(stream, length))
    if not isinstance(head, dict) or not isinstance(head.get("arrays"), list):
        raise ValueError("header")
    listed = head.pop("arrays")
    if (
        like is not None
        and listed
        and [(name, tuple(shape)) for name, _, shape in listed]
        != [(name, array.shape) for name, array in like.items()]
    ):
        raise ValueError("arrays")
    if sum(math.prod(shape) for _, _, shape in listed) > MAX_PARAMETERS:
        raise ValueError("arrays")
    arrays: NamedArrays = {}
    for name, kind, shape in listed:
        if (
            kind not in _KINDS
            or not isinstance(name, str)
            or not all(type(n) is int and n >= 0 for n in shape)
        ):
            raise ValueError("arrays")
        dtype = np.dtype(kind)
        arrays[name] = np.frombuffer(_exactly(stream, math.prod(shape) * dtype.itemsize), dtype).reshape(
            shape
        )
    return head, arrays


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise _Ended("the end")
    return data
