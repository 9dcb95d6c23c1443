"""A task: what the model owner announces (step 1.d), read from a TOML file.

``docs/task-file.md`` describes every key. A task has one canonical encoding without floats
(:meth:`Task.to_bytes`), so a posting can carry it and its digest means the same to everyone.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta

from anofel.disk.files import read_small_file
from anofel.disk.sections import (
    InvalidDocument,
    Texts,
    between,
    canonical_json,
    is_one_line,
    parse_json,
    parse_toml,
    read_table,
    read_toml,
)
from anofel.errors import InvalidInput
from anofel.tasks.example_files import example_text
from anofel.tasks.network_sizes import NETWORKS, network_size
from anofel.tasks.schema import CONTROLS, Schema, SurvivalTarget, TableSchema, known_schema

_TASK_DOMAIN = b"anofel.task.v1\0"
Unit = Literal["client", "record", "paper"]
Relation = Literal["zero-out", "replace"]
RELATIONS: Final[tuple[str, ...]] = get_args(Relation)
METRICS: Final = ("accuracy", "loss")
EXAMPLES = "examples"
"""The slot that counts records, by which sums over records are divided."""
MAX_CLIENTS: Final = 1 << 20
LEAST_NOISE: Final = Decimal("0.000001")
"""A positive noise multiplier is no smaller."""
LEAST_MEAN_NORM: Final = Decimal("0.000001")
"""A bound on the norm of the mean is no smaller."""
MAX_COUNT: Final = 1 << 32
MAX_RATE: Final = 1 << 62
MAX_CHANGES: Final = 1024
MAX_NAME: Final = 128
"""Of a task: it is shown, and part of the names of files."""
MAX_PARAMETERS: Final = 1 << 30
DENSE = ("logistic", "mlp")
"""The networks that train with NumPy."""
_LATER_KEYS: Final = (
    "max_steps",
    "proximal",
    "weight_decay",
    "label_smoothing",
    "augment",
    "precision",
)
"""Keys of ``[training]`` that the encoding of a task without them does not name."""
SECOND_MOMENTUM: Final = 64_881
"""0.99 in units of 2^−16."""
_ADAPTIVE_KEYS: Final = ("second_momentum", "floor")
_PYTORCH_KEYS: Final = ("optimiser", "momentum", "weight_decay", "label_smoothing", "augment", "precision")

DatasetTypeNumber = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Rate = Annotated[int, Meta(ge=1, le=MAX_RATE)]
ClientCount = Annotated[int, Meta(ge=2, le=MAX_CLIENTS)]
Count = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Delta = Annotated[Decimal, between("0.000000000001", "0.1")]
Faults = Iterator[tuple[str, str]]
"""Keys of a table whose values do not fit together, and why."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The network: dense (`hidden` empty is logistic regression), one of the paper's, or ``custom``.

    ``custom`` only fixes the number of parameters.
    """

    kind: Literal["logistic", "mlp", "lenet5", "resnet20-gn", "squeezenet-gn", "custom"]
    hidden: tuple[Annotated[int, Meta(ge=1, le=1 << 16)], ...] = ()
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    scale_bits: Annotated[int, Meta(ge=8, le=32)] = 16
    parameters: Annotated[int, Meta(ge=0, le=MAX_PARAMETERS)] = 0
    """The number of parameters; follows from the schema unless the kind is ``custom``."""

    def faults(self) -> Faults:
        """Name what does not fit together."""
        if (self.kind == "mlp") != bool(self.hidden):
            yield "hidden", "names the hidden layers of an mlp, and of nothing else"
        if self.kind == "custom" and not self.parameters:
            yield "parameters", "is needed for the kind custom"


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How a client trains."""

    algorithm: Literal["fedsgd", "fedavg", "custom"]
    learning_rate: Annotated[Decimal, between("0", "1000")] = Decimal(0)
    epochs: Annotated[int, Meta(ge=1, le=1000)] = 1
    batch_size: Annotated[int, Meta(ge=1, le=1 << 20)] = 32
    optimiser: Literal["sgd", "adam"] = "sgd"
    momentum: Annotated[Decimal, between("0", "0.9999")] = Decimal(0)
    """Of the client's own optimiser; it starts at zero in every iteration."""
    max_steps: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    """The most batches of an iteration, so that clients with many rows do not go further; 0: any number."""
    proximal: Annotated[Decimal, between("0", "1000")] = Decimal(0)
    """μ of FedProx: how strongly the posted model holds a client back."""
    weight_decay: Annotated[Decimal, between("0", "1")] = Decimal(0)
    label_smoothing: Annotated[Decimal, between("0", "0.5")] = Decimal(0)
    augment: Literal["none", "shift", "shift-and-flip"] = "none"
    """What a client does to its images before each batch, anew in every epoch."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the products inside a network; parameters and updates keep 32 bits."""

    def faults(self) -> Faults:
        """Name what does not fit together, and settings that would do nothing."""
        if self.algorithm == "fedavg":
            if not self.learning_rate:
                yield "learning_rate", "must be positive for fedavg"
            if self.momentum and self.optimiser != "sgd":
                yield "momentum", "belongs to the optimiser sgd"
            return
        defaults = TrainingSpec(algorithm=self.algorithm)
        for key, value in vars(self).items():
            if value != getattr(defaults, key):
                yield key, f"belongs to the algorithm fedavg, not to {self.algorithm}"

    def document(self) -> dict[str, Any]:
        """Write the training as a table, without later keys that say nothing."""
        defaults = TrainingSpec(algorithm=self.algorithm)
        return {
            key: value
            for key, value in vars(self).items()
            if key not in _LATER_KEYS or value != getattr(defaults, key)
        }


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """From an iteration on, another learning rate."""

    iteration: Annotated[int, Meta(ge=2, le=MAX_COUNT)]
    lr_num: Rate
    lr_den: Rate = 1


@dataclass(frozen=True, kw_only=True)
class RuleSpec:
    """The update rule: ``integer-mean`` with a rational learning rate and a momentum in units of 2^−16.

    ``integer-adam`` and ``integer-yogi`` divide each entry by the root of its own second moment.

    With the kind ``owner`` the owner makes each model as it likes, and an audit says so.
    """

    kind: Literal["integer-mean", "integer-adam", "integer-yogi", "owner"] = "integer-mean"
    lr_num: Rate = 1
    lr_den: Rate = 1
    momentum: Annotated[int, Meta(ge=0, le=(1 << 16) - 1)] = 0
    schedule: tuple[RateChange, ...] = ()
    """Changes of the learning rate, in the order of their iterations."""
    max_mean_norm: Annotated[Decimal, between("0", "1000000")] = Decimal(0)
    """The longest mean that the rule applies as it is, in the units of the clipping norm; 0: any."""

    second_momentum: Annotated[int, Meta(ge=0, le=(1 << 16) - 1)] = SECOND_MOMENTUM
    """β₂ of the adaptive rules, in units of 2^−16."""
    floor: Annotated[Decimal, between("0.000001", "1000000")] = Decimal("0.001")
    """τ of the adaptive rules: entries whose mean updates are smaller are not magnified more."""

    @property
    def is_adaptive(self) -> bool:
        """Whether each entry has a rate of its own."""
        return self.kind in ("integer-adam", "integer-yogi")

    def faults(self) -> Faults:
        """Name what does not fit together."""
        for key in _ADAPTIVE_KEYS:
            if not self.is_adaptive and getattr(self, key) != getattr(RuleSpec(), key):
                yield key, "belongs to the rules integer-adam and integer-yogi"
        if any(later.iteration <= earlier.iteration for earlier, later in pairwise(self.schedule)):
            yield "schedule", "must be in the order of its iterations, each named once"
        if len(self.schedule) > MAX_CHANGES:
            yield "schedule", f"holds at most {MAX_CHANGES} changes"
        if self.kind == "owner" and self.momentum:
            yield "momentum", "belongs to the rule integer-mean"
        if self.kind == "owner" and self.schedule:
            yield "schedule", "belongs to the rule integer-mean"
        if self.kind == "owner" and self.max_mean_norm:
            yield "max_mean_norm", "belongs to the rule integer-mean"
        if 0 < self.max_mean_norm < LEAST_MEAN_NORM:
            yield "max_mean_norm", f"must be 0 or at least {LEAST_MEAN_NORM}"

    def document(self) -> dict[str, Any]:
        """Write the rule as nested tables, without a schedule or a bound that it does not have."""
        changes = [dict(vars(change)) for change in self.schedule]
        tables = {**vars(self), "schedule": changes} if changes else _without(vars(self), "schedule")
        tables = tables if self.max_mean_norm else _without(tables, "max_mean_norm")
        return tables if self.is_adaptive else _without(_without(tables, "second_momentum"), "floor")


@dataclass(frozen=True, kw_only=True)
class GroupsSpec:
    """Groups (D-26): each has a count and a sum of its own, and the rule takes one mean from theirs."""

    number: Annotated[int, Meta(ge=2, le=32)]
    """To how many groups the posts of an iteration are dealt, if each gets ``min_clients`` of them."""
    combine: Literal["median", "trimmed-mean"] = "median"
    trim: Annotated[int, Meta(ge=0, le=15)] = 0
    """How many groups are left out at either end, for each parameter."""

    def faults(self) -> Faults:
        """Name what does not fit together."""
        if (self.combine == "trimmed-mean") != bool(self.trim):
            yield (
                "trim",
                "says how many groups a trimmed-mean leaves out at either end, and belongs to it alone",
            )
        if 2 * self.trim >= self.number:
            yield "trim", f"must be below half of the groups, {self.number}"


@dataclass(frozen=True, kw_only=True)
class PrivacySpec:
    """What is protected, how, and for how many releases."""

    unit: Unit = "client"
    relation: Relation = "zero-out"
    mechanism: str = "discrete-gaussian"
    adaptive: bool = False
    clipping_norm: Annotated[Decimal, between("0.000001", "1000000")]
    noise_multiplier: Annotated[Decimal, between("0", "1000000")]
    """Standard deviation of the honest noise in the sum, in clipping norms."""
    delta: Delta = Decimal("0.00001")
    max_releases: Annotated[int, Meta(ge=1, le=100_000)]
    min_clients: ClientCount
    max_colluders: Annotated[int, Meta(ge=0, le=MAX_CLIENTS)]
    expected_clients: ClientCount
    max_posts: Count
    """The most posts an iteration may hold; only the adaptive mode depends on it."""
    sampling_rate: Annotated[Decimal, between("0.0001", "1")] = Decimal(1)
    records_per_client: Count = 1
    paper_epsilon: Annotated[Decimal, between("0.001", "1000")] = Decimal("0.9")

    @staticmethod
    def absent(values: dict[str, Any]) -> dict[str, Any]:
        """Add what follows for keys that are not there: as many clients as are needed, the paper's noise."""
        if values.get("unit") == "paper":
            values.setdefault("noise_multiplier", 0)
        values.setdefault("expected_clients", values.get("min_clients", 2))
        values.setdefault("max_posts", values["expected_clients"])
        return values

    def faults(self) -> Faults:
        """Name what does not fit together."""
        if self.expected_clients < self.min_clients:
            yield "expected_clients", f"must be at least min_clients, {self.min_clients}"
        if self.max_posts < self.expected_clients:
            yield "max_posts", f"must be at least expected_clients, {self.expected_clients}"
        if self.honest < 2:
            yield "min_clients", "must exceed max_colluders by at least 2"
        if 0 < self.noise_multiplier < LEAST_NOISE:
            yield "noise_multiplier", f"must be 0 or at least {LEAST_NOISE}"
        if self.unit != "paper" and not self.noise_multiplier:
            yield "noise_multiplier", "must be positive"
        if self.sampling_rate != 1 and self.unit != "record":
            yield "sampling_rate", "is for the unit 'record' only"
        if self.adaptive and self.unit == "paper":
            yield "adaptive", "is not combined with the unit 'paper', which has its own noise"

    @property
    def honest(self) -> int:
        """h, the guaranteed number of honest contributors."""
        return self.min_clients - self.max_colluders


@dataclass(frozen=True, kw_only=True)
class MetricsSpec:
    """Slots of the encrypted sum that say how good the posted model is on the clients' own rows."""

    names: Texts
    """Of ``METRICS``, in that order."""
    share: Annotated[Decimal, between("0.001", "0.999")] = Decimal("0.1")
    """The part of the clipping norm that the metrics take; the update keeps √(1 − share²) of it."""
    loss_bound: Annotated[Decimal, between("0.001", "1000")] = Decimal(2)
    """The largest loss of a record that is told apart."""
    proven_ranges: bool = False
    """Whether a client proves that its slots are within their range and its noise (lattice committees)."""

    def faults(self) -> Faults:
        """Name what does not fit together."""
        if not self.names or self.names != tuple(name for name in METRICS if name in self.names):
            yield "names", f"must be some of {', '.join(METRICS)}, in this order"

    def document(self) -> dict[str, Any]:
        """Write the slots as a table, without a proof that is not asked for."""
        return dict(vars(self)) if self.proven_ranges else _without(vars(self), "proven_ranges")


@dataclass(frozen=True, kw_only=True)
class WeightsSpec:
    """A weighted mean: a client counts by its rows, and one more slot of the sum holds the weights."""

    most: Annotated[int, Meta(ge=1, le=MAX_COUNT)]
    """From how many rows on a client has the weight 1; with fewer it has its part of that."""
    share: Annotated[Decimal, between("0.001", "0.999")] = Decimal("0.2")
    """The part of the clipping norm that the weight takes; the update keeps √(1 − share²) of it."""
    floor: Annotated[Decimal, between("0.001", "1")] = Decimal("0.1")
    """The least mean weight that the rule divides by: the sum of the weights carries noise."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything a client must know before it takes part."""

    name: str
    study: str
    dataset_type: int
    model: ModelSpec
    training: TrainingSpec
    rule: RuleSpec
    privacy: PrivacySpec
    schema: Schema
    metrics: MetricsSpec | None = None
    groups: GroupsSpec | None = None
    weights: WeightsSpec | None = None
    insecure_unproven_contributions: bool = False
    """Whether clients prove nothing about their vectors; then one of them can spoil every sum."""

    @property
    def metric_slots(self) -> tuple[str, ...]:
        """The names of the slots that stand last in every vector; none unless asked for."""
        if self.metrics is None:
            return ()
        return (*self.metrics.names, EXAMPLES) if self.privacy.unit == "record" else self.metrics.names

    @property
    def length(self) -> int:
        """The length of every encrypted vector: the model's parameters, the weight, and the metric slots."""
        return self.metrics_start + len(self.metric_slots)

    @property
    def metrics_start(self) -> int:
        """Where the metric slots of a vector begin."""
        return self.model.parameters + (self.weights is not None)

    @property
    def weight_step(self) -> int:
        """ω: what a client of weight 1 adds to the weight slot, in integer steps; 0 without weights."""
        if self.weights is None:
            return 0
        privacy = self.privacy
        return int(
            Fraction(privacy.clipping_norm) * Fraction(self.weights.share) * (1 << self.model.scale_bits)
        )

    def document(self) -> dict[str, Any]:
        """Write the task as nested tables, as in its file."""
        model, training, rule, privacy = self.model, self.training, self.rule, self.privacy
        head: dict[str, Any] = {"name": self.name, "study": self.study, "dataset_type": self.dataset_type}
        if self.insecure_unproven_contributions:
            head["insecure_unproven_contributions"] = True
        tables: dict[str, Any] = {
            "task": head,
            "model": dict(vars(model)),
            "training": training.document(),
            "rule": rule.document(),
            "privacy": dict(vars(privacy)),
            "schema": self.schema.document(),
        }
        if self.metrics is not None:
            tables["metrics"] = self.metrics.document()
        if self.groups is not None:
            tables["groups"] = dict(vars(self.groups))
        if self.weights is not None:
            tables["weights"] = dict(vars(self.weights))
        return tables

    def to_bytes(self) -> bytes:
        """Write the canonical encoding: sorted JSON, decimals as text, no floats."""
        return canonical_json(self.document())

    def digest(self) -> bytes:
        """SHA-256 of the canonical encoding under its own domain."""
        return hashlib.sha256(_TASK_DOMAIN + self.to_bytes()).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Task":
        """Read a canonical encoding; refuses anything that is not exactly one."""
        task = parse_json(data, _TaskFile, "The task").task_of("The task")
        if task.to_bytes() != data:
            raise InvalidInput("The task is not in its canonical encoding.")
        return task

    @classmethod
    def load(cls, path: Path | str) -> "Task":
        """Read a task file: TOML, or the canonical encoding as ``.json``."""
        path = Path(path)
        if path.suffix == ".json":
            return cls.from_bytes(read_small_file(path))
        return read_toml(path, _WrittenTask).task_of(str(path))

    @classmethod
    def example(cls, name: str) -> "Task":
        """Give an example task that comes with the package. Raises ``InvalidInput``."""
        return parse_task(example_text(name), name)


def parse_task(text: str, name: str) -> Task:
    """Read the text of a task file, which is called ``name``. Raises ``InvalidInput``."""
    return parse_toml(text, _WrittenTask, name).task_of(name)


def read_task(document: Mapping[str, Any]) -> Task:
    """Read a task from nested tables, strictly."""
    return read_table(document, _TaskFile, "The task").task_of("The task")


@dataclass(frozen=True, kw_only=True)
class _Head:
    name: str
    study: str = ""
    dataset_type: DatasetTypeNumber = 0
    insecure_unproven_contributions: bool = False

    def faults(self) -> Faults:
        """Name what others could not be shown, or keep as a file."""
        if not 1 <= len(self.name) <= MAX_NAME:
            yield "name", f"must have 1 to {MAX_NAME} characters"
        for key, text in (("name", self.name), ("study", self.study)):
            if not is_one_line(text):
                yield key, CONTROLS


@dataclass(frozen=True, kw_only=True)
class _TaskFile:
    """The tables of a task file."""

    task: _Head
    model: ModelSpec
    training: TrainingSpec
    rule: RuleSpec
    privacy: PrivacySpec
    schema: Schema | None = None
    metrics: MetricsSpec | None = None
    groups: GroupsSpec | None = None
    weights: WeightsSpec | None = None

    def faults(self) -> Faults:
        """Name what does not fit together."""
        privacy, training = self.privacy, self.training
        if self.schema is None and not self.task.study:
            yield "schema", "is needed, or the name of a study that has one"
        plain = TrainingSpec(algorithm=training.algorithm)
        if self.model.kind in DENSE and any(
            getattr(training, key) != getattr(plain, key) for key in _PYTORCH_KEYS
        ):
            yield (
                "training",
                f"the networks in NumPy train with plain sgd only, without {', '.join(_PYTORCH_KEYS)}",
            )
        transform = getattr(self.schema, "transform", "none")
        if self.model.kind in NETWORKS and transform != "none":
            yield "schema", f"the network {self.model.kind} takes images as they are: transform must be none"
        target = getattr(self.schema, "target", None)
        if self.metrics is not None and target is not None:
            yield "metrics", "metric slots measure classes; the schema's target is none"
        if isinstance(self.schema, TableSchema) and training.augment != "none":
            yield "training", "only images are augmented"
        if privacy.unit == "record" and training.algorithm == "fedavg":
            yield "training", "the unit 'record' needs one gradient per release: use fedsgd"
        if self.metrics is not None and (privacy.unit == "paper" or privacy.sampling_rate != 1):
            yield "metrics", "metric slots need the unit 'client' or 'record', and no sampling"
        if self.groups is not None:
            yield from self._faults_of_groups(self.groups)
        if self.weights is not None:
            yield from self._faults_of_weights(self.weights)

    def _faults_of_groups(self, groups: GroupsSpec) -> Faults:
        least = groups.number * self.privacy.min_clients
        if self.rule.kind == "owner":
            yield "groups", "need a rule that everybody can recompute, not the kind owner"
        if self.privacy.unit == "paper":
            yield "groups", "need the unit 'client' or 'record'"
        if self.privacy.expected_clients < least:
            yield (
                "groups",
                f"{groups.number} groups need expected_clients of {least} or more: min_clients, "
                f"{self.privacy.min_clients}, for each",
            )

    def _faults_of_weights(self, weights: WeightsSpec) -> Faults:
        if self.privacy.unit != "client":
            yield (
                "weights",
                "need the unit 'client'; with the unit 'record' every row counts the same already",
            )
        if self.rule.kind == "owner":
            yield "weights", "need a rule that everybody can recompute, not the kind owner"
        taken = 0 if self.metrics is None else self.metrics.share**2
        if weights.share**2 + taken >= 1:
            yield "weights", "and metrics leave nothing of the clipping norm: lower a share"
        if Fraction(self.privacy.clipping_norm) * Fraction(weights.share) * (1 << self.model.scale_bits) < 1:
            yield "weights", "are less than one integer step: raise share, or [model] scale_bits"

    def task_of(self, name: str) -> Task:
        """Make the task of the document called ``name``. Raises ``InvalidInput``."""
        schema = known_schema(self.task.study) if self.schema is None else self.schema
        size = _size(self.model, schema)
        if self.model.parameters not in (0, size):
            given = self.model.parameters
            raise InvalidDocument(
                name, [f"[model] parameters must be {size} with this schema, but is {given}"]
            )
        return Task(
            **vars(self.task),
            model=replace(self.model, parameters=size),
            training=self.training,
            rule=self.rule,
            privacy=self.privacy,
            schema=schema,
            metrics=self.metrics,
            groups=self.groups,
            weights=self.weights,
        )


@dataclass(frozen=True, kw_only=True)
class _WrittenTask(_TaskFile):
    """A task file that a person writes; a board takes some more tasks, and what it takes stays as it is."""

    def faults(self) -> Faults:
        """Name also what could not be used as it was meant."""
        yield from super().faults()
        if "/" in self.task.name or "\\" in self.task.name:
            yield "task.name", "must be without / and \\, since files are named by it"
        if isinstance(self.schema, TableSchema):
            if not self.schema.label:
                yield "schema.label", "must name a column"
            if isinstance(self.schema.target, SurvivalTarget) and not self.schema.target.event:
                yield "schema.target.event", "must name a column"


def _size(model: ModelSpec, schema: Schema) -> int:
    """How many parameters a model has. Raises ``InvalidInput``."""
    if model.kind == "custom":
        return model.parameters
    if model.kind in NETWORKS:
        return network_size(model.kind, schema.row_shape, schema.classes)
    widths = (schema.inputs, *model.hidden, schema.outputs)
    shared = widths[-2] * (schema.outputs - schema.scores)
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(widths)) - shared


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}
