"""The model is integers: int64 at scale 2^f, named tensors in one canonical file (steps 1.d and 8′).

The file, all integers little-endian:

=====================  ==========================================================
16 bytes               ``anofel.model.1`` and two zero bytes
u8                     f, the scale bits
u8                     how many vectors of the rule the file carries: 0, 1 (a velocity) or 2
u32                    number of tensors
for each tensor        u16 length and UTF-8 name, u8 dimensions, u32 each
int64 each             parameters, tensor after tensor, row by row
int64 each             the velocity in the same order, if it carries one
int64 each             the second moment in the same order, if it carries that too
=====================  ==========================================================

Names are sorted as bytes and unique, so a model has exactly one file; a file that is not the
canonical one of its content is refused. This module needs only NumPy and the Rust core.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anofel._core import update_rule
from anofel.disk.files import read_small_file
from anofel.errors import InvalidInput, OutOfRange
from anofel.framing import Malformed, Reader, Writer
from anofel.models.parameters import Integers, Layout, Parameters
from anofel.tasks.task import RateChange

_MAGIC = b"anofel.model.1\0\0"
_MAX_TENSORS = 4096
_MAX_NAME_BYTES = 255
_MAX_DIMENSIONS = 8
_MAX_FILE_BYTES = 1 << 34
MAX_SCALE_BITS = 40
MAX_SECOND = 1 << 62
"""No second moment is larger."""
MAX_MAGNITUDE_BITS = 20
"""No parameter is larger than 2^20; the larger they may be, the sooner chosen rows overflow."""


class ModelOverflow(InvalidInput):
    """A parameter is not finite, or larger than a model may hold."""

    code = "model-overflow"


@contextmanager
def _refusals() -> Iterator[None]:
    """Say in our own errors why the core does not apply an update."""
    try:
        yield
    except OutOfRange as error:
        raise ModelOverflow(f"The update cannot be applied: {error}.") from None
    except ValueError as error:
        raise InvalidInput(f"The update cannot be applied: {error}.") from None


@dataclass(frozen=True, eq=False)
class IntegerModel:
    """Parameters (and velocity, and second moment) as 64-bit integers in the order of the layout."""

    layout: Layout
    scale_bits: int
    values: Integers
    velocity: Integers | None = field(default=None)
    second: Integers | None = field(default=None)
    """The second moment that an adaptive rule keeps, at scale 2^(2f); there is a velocity beside it."""

    def __post_init__(self) -> None:
        _check_scale(self.scale_bits)
        if not 0 < len(self.layout.names) <= _MAX_TENSORS:
            raise InvalidInput(f"A model has between 1 and {_MAX_TENSORS} tensors.")
        if not self.layout.size:
            raise InvalidInput("A model has at least one parameter.")
        for vector in (self.values, self.velocity):
            if vector is not None and (vector.dtype != np.int64 or vector.shape != (self.layout.size,)):
                raise InvalidInput(f"A model of {self.layout.size} parameters needs as many 64-bit integers.")
            if vector is not None and (vector.max() > self.limit or vector.min() < -self.limit):
                raise ModelOverflow(f"A parameter or its velocity is larger than 2^{MAX_MAGNITUDE_BITS}.")
        if self.second is None:
            return
        if self.velocity is None or self.second.dtype != np.int64 or len(self.second) != len(self.values):
            raise InvalidInput("A second moment stands beside a velocity, entry by entry.")
        if self.second.min() < 0 or self.second.max() > MAX_SECOND:
            raise ModelOverflow(f"A second moment lies outside 0 and 2^{MAX_SECOND.bit_length() - 1}.")

    @property
    def companions(self) -> int:
        """How many vectors of the rule the model carries."""
        return (self.velocity is not None) + (self.second is not None)

    @property
    def limit(self) -> int:
        """The largest magnitude of an entry, in integer steps."""
        return 1 << (self.scale_bits + MAX_MAGNITUDE_BITS)

    @classmethod
    def average(cls, models: "Sequence[IntegerModel]") -> "IntegerModel":
        """Average models entry by entry, half to even; velocities stay behind. Raises ``InvalidInput``.

        Anybody can, of what the board shows, and it costs no ε. Noise is drawn afresh in every iteration, so
        the mean of a task's last models carries less of it than the last one.
        """
        if not models:
            raise InvalidInput("There is no model to average.")
        first = models[0]
        if any((model.layout, model.scale_bits) != (first.layout, first.scale_bits) for model in models):
            raise InvalidInput("Only models with the same tensors and scale have a mean.")
        quotient, rest = np.zeros_like(first.values), np.zeros_like(first.values)
        for model in models:  # quotients and rests are added apart, so nothing overflows
            part = np.divmod(model.values, len(models))
            quotient, rest = quotient + part[0], rest + part[1]
        more, rest = np.divmod(rest, len(models))
        quotient += more
        up = (2 * rest > len(models)) | ((2 * rest == len(models)) & (quotient % 2 == 1))
        return cls(first.layout, first.scale_bits, quotient + up)

    @classmethod
    def from_parameters(
        cls, parameters: Parameters, scale_bits: int, *, companions: int = 0
    ) -> "IntegerModel":
        """Round named arrays to integers at scale 2^scale_bits (half to even)."""
        _check_scale(scale_bits)  # NumPy cannot scale by more than it can count
        layout = Layout.of(parameters)
        scaled = np.rint(np.ldexp(layout.flatten(parameters), scale_bits))
        if not np.all(np.abs(scaled) < 2.0**63):
            raise ModelOverflow(f"A parameter is not finite or larger than 2^{MAX_MAGNITUDE_BITS}.")
        vectors = [np.zeros(layout.size, np.int64) for _ in range(companions)]
        return cls(layout, scale_bits, scaled.astype(np.int64), *vectors)

    def parameters(self) -> dict[str, NDArray[np.float64]]:
        """Give the parameters as named arrays of numbers, for a trainer."""
        return self.layout.unflatten(np.ldexp(self.values.astype(np.float64), -self.scale_bits))

    def to_bytes(self) -> bytes:
        """Write the canonical file."""
        writer = Writer().raw(_MAGIC).number(self.scale_bits, 1).number(self.companions, 1)
        writer.number(len(self.layout.names), 4)
        for name, shape in zip(self.layout.names, self.layout.shapes, strict=True):
            encoded = name.encode()
            if not 0 < len(encoded) <= _MAX_NAME_BYTES or len(shape) > _MAX_DIMENSIONS:
                raise InvalidInput(f"Tensor '{name}' has a name or shape that the model file cannot hold.")
            writer.number(len(encoded), 2).raw(encoded).number(len(shape), 1)
            for size in shape:
                writer.number(size, 4)
        writer.raw(_bytes(self.values))
        if self.velocity is not None:
            writer.raw(_bytes(self.velocity))
        if self.second is not None:
            writer.raw(_bytes(self.second))
        return writer.done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "IntegerModel":
        """Read a canonical file; refuses anything that is not exactly one."""
        try:
            return cls._parse(data)
        except (Malformed, UnicodeDecodeError):
            raise InvalidInput("The model file is cut short or not a model file.") from None

    @classmethod
    def _parse(cls, data: bytes) -> "IntegerModel":
        if data[:16] != _MAGIC:
            raise InvalidInput("The file does not begin like a model file of version 1.")
        reader = Reader(data)
        reader.raw(len(_MAGIC))
        scale_bits, companions, tensors = reader.number(1), reader.number(1), reader.number(4)
        if companions > 2 or tensors > _MAX_TENSORS:
            raise InvalidInput("The header of the model file is malformed.")
        names, shapes = [], []
        for _ in range(tensors):
            names.append(reader.raw(reader.number(2)).decode())
            shapes.append(tuple(reader.number(4) for _ in range(reader.number(1))))
        layout = Layout(tuple(names), tuple(shapes))
        size = sum(math.prod(shape) for shape in shapes)
        if reader.left != 8 * size * (1 + companions):
            raise InvalidInput(f"The model file names {size} parameters, but its length does not fit.")
        values = np.frombuffer(reader.raw(8 * size), "<i8").astype(np.int64)
        vectors = [np.frombuffer(reader.raw(8 * size), "<i8").astype(np.int64) for _ in range(companions)]
        model = cls(layout, scale_bits, values, *vectors)
        if list(names) != sorted(set(names), key=str.encode) or model.to_bytes() != data:
            raise InvalidInput("The model file is not canonical: tensors must be sorted by name and unique.")
        return model

    def own_part(self, total: Integers) -> Integers:
        """Cut a sum to the entries of the model's parameters; metric slots stand after them."""
        return total[: self.layout.size]

    @classmethod
    def load(cls, path: Path | str) -> "IntegerModel":
        """Read a model file from disk. Raises ``InvalidInput``, which names the file."""
        data = read_small_file(Path(path), _MAX_FILE_BYTES)
        try:
            return cls.from_bytes(data)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None

    def digest(self) -> bytes:
        """SHA-256 of the canonical file."""
        return hashlib.sha256(self.to_bytes()).digest()


@dataclass(frozen=True, kw_only=True)
class IntegerMean:
    """The update rule of a task: m′ = m + v′, v′ = round(β·v/2^16) + round(lr_num·S/(lr_den·count)).

    With ``max_mean``, S is shortened first, so that the norm of the mean is at most this many integer steps.
    """

    lr_num: int
    lr_den: int
    momentum: int = 0
    """β in units of 2^−16, below 2^16."""
    schedule: tuple[RateChange, ...] = ()
    """Changes of the learning rate, in the order of their iterations."""
    max_mean: int | None = None
    """M, in integer steps; None for no bound."""

    @property
    def companions(self) -> int:
        """How many vectors the rule keeps beside the model."""
        return int(self.momentum > 0)

    def rate(self, iteration: int) -> tuple[int, int]:
        """Give numerator and denominator of the learning rate of an iteration of the board."""
        rate = self.lr_num, self.lr_den
        for change in self.schedule:
            if change.iteration <= iteration:
                rate = change.lr_num, change.lr_den
        return rate

    def initial(self, parameters: Parameters, scale_bits: int) -> IntegerModel:
        """Make the first model of a task, with the vectors that the rule keeps."""
        return IntegerModel.from_parameters(parameters, scale_bits, companions=self.companions)

    def apply(self, model: IntegerModel, total: Integers, count: int, iteration: int) -> IntegerModel:
        """Compute the next model from an iteration's sum of `count` updates, the same bits for everyone."""
        (velocity,) = self._check(model, total) or (np.zeros_like(model.values),)
        lr_num, lr_den = self.rate(iteration)
        with _refusals():
            following = update_rule.integer_mean(
                _bytes(model.values),
                _bytes(velocity),
                _bytes(total),
                momentum=self.momentum,
                lr_num=lr_num,
                lr_den=lr_den,
                count=count,
                max_mean=self.max_mean,
            )
        return IntegerModel(
            model.layout,
            model.scale_bits,
            _integers(following.values),
            None if model.velocity is None else _integers(following.velocity),
        )

    def _check(self, model: IntegerModel, total: Integers) -> tuple[Integers, ...]:
        """Return what the model carries for its rule. Raises ``InvalidInput``."""
        if model.companions != self.companions:
            raise InvalidInput("A model carries a velocity exactly if its rule has momentum.")
        if total.dtype != np.int64:
            raise InvalidInput("The sum of updates must be 64-bit integers.")
        return tuple(vector for vector in (model.velocity, model.second) if vector is not None)

    def shortens(self, total: Integers, count: int) -> bool:
        """Whether the mean is longer than the rule's bound."""
        if self.max_mean is None:
            return False
        return update_rule.mean_is_too_long(_bytes(total), count=count, max_mean=self.max_mean)


@dataclass(frozen=True, kw_only=True)
class IntegerAdaptive(IntegerMean):
    """FedAdam and FedYogi in integers: each entry is divided by the root of its own second moment.

    g = round(S/count), u′ = round((β₁·u + (2^16 − β₁)·g)/2^16), and the second moment is
    v′ = round((β₂·v + (2^16 − β₂)·g²)/2^16) (adam) or
    v′ = v − sign(v − g²)·round((2^16 − β₂)·g²/2^16) (yogi);
    m′ = m + round(lr_num·2^f·u′/(lr_den·(⌊√v′⌋ + τ))).
    """

    yogi: bool
    second_momentum: int
    """β₂ in units of 2^−16, below 2^16."""
    floor: int
    """τ, in integer steps: entries with smaller gradients are not magnified more."""

    @property
    def companions(self) -> int:
        """How many vectors the rule keeps beside the model."""
        return 2

    def apply(self, model: IntegerModel, total: Integers, count: int, iteration: int) -> IntegerModel:
        """Compute the next model from an iteration's sum of `count` updates, the same bits for everyone."""
        velocity, second = self._check(model, total)
        lr_num, lr_den = self.rate(iteration)
        with _refusals():
            following = update_rule.integer_adaptive(
                _bytes(model.values),
                _bytes(velocity),
                _bytes(second),
                _bytes(total),
                yogi=self.yogi,
                momentum=self.momentum,
                second_momentum=self.second_momentum,
                floor=self.floor,
                scale_bits=model.scale_bits,
                lr_num=lr_num,
                lr_den=lr_den,
                count=count,
                max_mean=self.max_mean,
            )
        vectors = map(_integers, (following.values, following.first, following.second))
        return IntegerModel(model.layout, model.scale_bits, *vectors)


def _check_scale(bits: int) -> None:
    if not 0 <= bits <= MAX_SCALE_BITS:
        raise InvalidInput(f"The scale of a model must lie between 2^0 and 2^{MAX_SCALE_BITS}.")


def _bytes(values: Integers) -> bytes:
    return values.astype("<i8", copy=False).tobytes()


def _integers(data: bytes) -> Integers:
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)
