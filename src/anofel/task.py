"""A task: what the model owner announces (step 1.d), read from a TOML file.

``docs/task-file.md`` describes every key. A task has one canonical encoding without floats
(:meth:`Task.to_bytes`), so a posting can carry it and its digest means the same to everyone.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from anofel.errors import InvalidInput
from anofel.network_sizes import NETWORKS, network_size
from anofel.sections import Section, canonical_json
from anofel.studies.schema import Schema, read_schema

_TASK_DOMAIN = b"anofel.task.v1\0"
UNITS = ("client", "record", "paper")
RELATIONS = ("zero-out", "replace")
METRICS = ("accuracy", "loss")
EXAMPLES = "examples"
"""The slot that counts records, by which sums over records are divided."""
MAX_CLIENTS = 1 << 20
MAX_COUNT = 1 << 32
MAX_RATE = 1 << 62
MAX_CHANGES = 1024
DENSE = ("logistic", "mlp")
"""The networks that train with NumPy."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The network: dense (`hidden` empty is logistic regression), one of the paper's, or ``custom``.

    ``custom`` only fixes the number of parameters.
    """

    kind: str
    hidden: tuple[int, ...]
    seed: int
    scale_bits: int
    parameters: int
    """The number of parameters; follows from the schema unless the kind is ``custom``."""


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How a client trains."""

    algorithm: str
    learning_rate: Decimal
    epochs: int
    batch_size: int
    optimiser: str
    momentum: Decimal
    """Of the client's own optimiser; it starts at zero in every iteration."""


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """From an iteration on, another learning rate."""

    iteration: int
    lr_num: int
    lr_den: int


@dataclass(frozen=True, kw_only=True)
class RuleSpec:
    """The update rule: ``integer-mean`` with a rational learning rate and a momentum in units of 2^−16.

    With the kind ``owner`` the owner makes each model as it likes, and an audit says so.
    """

    kind: str
    lr_num: int
    lr_den: int
    momentum: int
    schedule: tuple[RateChange, ...]
    """Changes of the learning rate, in the order of their iterations."""

    def document(self) -> dict[str, Any]:
        """Write the rule as nested tables; a rule without changes has no schedule."""
        changes = [dict(vars(change)) for change in self.schedule]
        return {**vars(self), "schedule": changes} if changes else _without(vars(self), "schedule")


@dataclass(frozen=True, kw_only=True)
class PrivacySpec:
    """What is protected, how, and for how many releases."""

    unit: str
    relation: str
    mechanism: str
    adaptive: bool
    clipping_norm: Decimal
    noise_multiplier: Decimal
    """Standard deviation of the honest noise in the sum, in clipping norms."""
    delta: Decimal
    max_releases: int
    min_clients: int
    max_colluders: int
    expected_clients: int
    max_posts: int
    """The most posts an iteration may hold; only the adaptive mode depends on it."""
    sampling_rate: Decimal
    records_per_client: int
    paper_epsilon: Decimal

    @property
    def honest(self) -> int:
        """h, the guaranteed number of honest contributors."""
        return self.min_clients - self.max_colluders


@dataclass(frozen=True, kw_only=True)
class MetricsSpec:
    """Slots of the encrypted sum that say how good the posted model is on the clients' own rows."""

    names: tuple[str, ...]
    """Of ``METRICS``, in that order."""
    share: Decimal
    """The part of the clipping norm that the metrics take; the update keeps √(1 − share²) of it."""
    loss_bound: Decimal
    """The largest loss of a record that is told apart."""


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

    @property
    def metric_slots(self) -> tuple[str, ...]:
        """The names of the slots that stand after the model's in every vector; none unless asked for."""
        if self.metrics is None:
            return ()
        return (*self.metrics.names, EXAMPLES) if self.privacy.unit == "record" else self.metrics.names

    @property
    def length(self) -> int:
        """The length of every encrypted vector: the model's parameters and the metric slots."""
        return self.model.parameters + len(self.metric_slots)

    def document(self) -> dict[str, Any]:
        """Write the task as nested tables, as in its file."""
        model, training, rule, privacy = self.model, self.training, self.rule, self.privacy
        tables: dict[str, Any] = {
            "task": {"name": self.name, "study": self.study, "dataset_type": self.dataset_type},
            "model": dict(vars(model)),
            "training": dict(vars(training)),
            "rule": rule.document(),
            "privacy": dict(vars(privacy)),
            "schema": self.schema.document(),
        }
        return tables if self.metrics is None else tables | {"metrics": dict(vars(self.metrics))}

    def to_bytes(self) -> bytes:
        """Write the canonical encoding: sorted JSON, decimals as text, no floats."""
        return canonical_json(self.document())

    def digest(self) -> bytes:
        """SHA-256 of the canonical encoding under its own domain."""
        return hashlib.sha256(_TASK_DOMAIN + self.to_bytes()).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Task":
        """Read a canonical encoding; refuses anything that is not exactly one."""
        try:
            task = read_task(json.loads(data, parse_float=_no_floats))
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("The task is not a JSON document.") from None
        if task.to_bytes() != data:
            raise InvalidInput("The task is not in its canonical encoding.")
        return task

    @classmethod
    def load(cls, path: Path) -> "Task":
        """Read a task file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The task file '{path}' cannot be read: {error}.") from None
        try:
            document = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"The task file '{path}' is not TOML: {error}.") from None
        return read_task(document)


def _no_floats(text: str) -> Any:
    raise InvalidInput(f"The task holds the floating-point number {text}; decimals are written as text.")


def read_task(document: Mapping[str, Any]) -> Task:
    """Read a task from nested tables, strictly."""
    root = Section(document, "task file")
    head = root.table("task")
    study = head.text("study", default="")
    schema = _schema_of(root, study)
    model = _read_model(root.table("model"), schema)
    task = Task(
        name=head.text("name"),
        study=study,
        dataset_type=head.integer("dataset_type", 0, 2**32 - 1, 0),
        model=model,
        training=_read_training(root.table("training")),
        rule=_read_rule(root.table("rule")),
        privacy=_read_privacy(root.table("privacy")),
        schema=schema,
        metrics=_read_metrics(root.table("metrics")) if "metrics" in root else None,
    )
    head.finish()
    root.finish()
    _check_together(task)
    return task


def _schema_of(root: Section, study: str) -> Schema:
    if "schema" in root:
        return read_schema(root.table("schema"))
    if study:
        from anofel.studies.catalogue import study_named

        return study_named(study).schema()
    raise InvalidInput("The task file needs a [schema], or the name of a study that has one.")


def _read_model(section: Section, schema: Schema) -> ModelSpec:
    kind = section.text("kind", ("logistic", "mlp", *NETWORKS, "custom"))
    hidden = section.integers("hidden", 1, 1 << 16, ())
    if (kind == "mlp") != bool(hidden):
        raise section.fail("hidden", "names the hidden layers of an mlp, and of nothing else")
    if kind == "custom":
        size = section.integer("parameters", 1, 1 << 30)
    elif kind in NETWORKS:
        size = network_size(kind, schema.row_shape, schema.classes)
    else:
        size = _dense_size(schema, hidden)
    model = ModelSpec(
        kind=kind,
        hidden=hidden,
        seed=section.integer("seed", 0, 2**32 - 1, 0),
        scale_bits=section.integer("scale_bits", 8, 32, 16),
        parameters=section.integer("parameters", size, size, size),
    )
    section.finish()
    return model


def _dense_size(schema: Schema, hidden: tuple[int, ...]) -> int:
    inputs = 1
    for extent in schema.row_shape:
        inputs *= extent
    widths = (inputs, *hidden, 1 if schema.classes == 2 else schema.classes)
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(widths))


def _read_training(section: Section) -> TrainingSpec:
    training = _training_in(section)
    section.finish()
    if training.algorithm != "fedavg":
        _refuse_local_epochs(section, training)
    elif not training.learning_rate:
        raise section.fail("learning_rate", "must be positive for fedavg")
    if training.momentum and training.optimiser != "sgd":
        raise section.fail("momentum", "belongs to the optimiser sgd")
    return training


def _training_in(section: Section) -> TrainingSpec:
    return TrainingSpec(
        algorithm=section.text("algorithm", ("fedsgd", "fedavg", "custom")),
        learning_rate=section.decimal("learning_rate", "0", "1000", "0"),
        epochs=section.integer("epochs", 1, 1000, 1),
        batch_size=section.integer("batch_size", 1, 1 << 20, 32),
        optimiser=section.text("optimiser", ("sgd", "adam"), "sgd"),
        momentum=section.decimal("momentum", "0", "0.9999", "0"),
    )


def _refuse_local_epochs(section: Section, training: TrainingSpec) -> None:
    """Refuse settings that would do nothing; their defaults stand in every canonical encoding."""
    defaults = _training_in(Section({"algorithm": training.algorithm}, "training"))
    for key, value in vars(training).items():
        if value != getattr(defaults, key):
            raise section.fail(key, f"belongs to the algorithm fedavg, not to {training.algorithm}")


def _read_rule(section: Section) -> RuleSpec:
    rule = RuleSpec(
        kind=section.text("kind", ("integer-mean", "owner"), "integer-mean"),
        lr_num=section.integer("lr_num", 1, MAX_RATE, 1),
        lr_den=section.integer("lr_den", 1, MAX_RATE, 1),
        momentum=section.integer("momentum", 0, (1 << 16) - 1, 0),
        schedule=_read_schedule(section) if "schedule" in section else (),
    )
    section.finish()
    if rule.kind == "owner" and rule.momentum:
        raise section.fail("momentum", "belongs to the rule integer-mean")
    if rule.kind == "owner" and rule.schedule:
        raise section.fail("schedule", "belongs to the rule integer-mean")
    return rule


def _read_schedule(section: Section) -> tuple[RateChange, ...]:
    changes = []
    for entry in section.tables("schedule"):
        changes.append(
            RateChange(
                iteration=entry.integer("iteration", 2, MAX_COUNT),
                lr_num=entry.integer("lr_num", 1, MAX_RATE),
                lr_den=entry.integer("lr_den", 1, MAX_RATE, 1),
            )
        )
        entry.finish()
    if any(later.iteration <= earlier.iteration for earlier, later in pairwise(changes)):
        raise section.fail("schedule", "must be in the order of its iterations, each named once")
    if len(changes) > MAX_CHANGES:
        raise section.fail("schedule", f"holds at most {MAX_CHANGES} changes")
    return tuple(changes)


def _read_privacy(section: Section) -> PrivacySpec:
    unit = section.text("unit", UNITS, "client")
    min_clients = section.integer("min_clients", 2, MAX_CLIENTS)
    expected = section.integer("expected_clients", min_clients, MAX_CLIENTS, min_clients)
    privacy = PrivacySpec(
        unit=unit,
        relation=section.text("relation", RELATIONS, "zero-out"),
        mechanism=section.text("mechanism", default="discrete-gaussian"),
        adaptive=section.boolean("adaptive", False),
        clipping_norm=section.decimal("clipping_norm", "0.000001", "1000000"),
        noise_multiplier=section.decimal(
            "noise_multiplier", "0", "1000000", "0" if unit == "paper" else None
        ),
        delta=section.decimal("delta", "0.000000000001", "0.1", "0.00001"),
        max_releases=section.integer("max_releases", 1, 100_000),
        min_clients=min_clients,
        max_colluders=section.integer("max_colluders", 0, MAX_CLIENTS),
        expected_clients=expected,
        max_posts=section.integer("max_posts", expected, MAX_COUNT, expected),
        sampling_rate=section.decimal("sampling_rate", "0.0001", "1", "1"),
        records_per_client=section.integer("records_per_client", 1, MAX_COUNT, 1),
        paper_epsilon=section.decimal("paper_epsilon", "0.001", "1000", "0.9"),
    )
    section.finish()
    return privacy


def _read_metrics(section: Section) -> MetricsSpec:
    names = section.texts("names")
    if not names or names != tuple(name for name in METRICS if name in names):
        raise section.fail("names", f"must be some of {', '.join(METRICS)}, in this order")
    metrics = MetricsSpec(
        names=names,
        share=section.decimal("share", "0.001", "0.999", "0.1"),
        loss_bound=section.decimal("loss_bound", "0.001", "1000", "2"),
    )
    section.finish()
    return metrics


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _check_together(task: Task) -> None:
    privacy, training = task.privacy, task.training
    if task.model.kind in DENSE and (training.optimiser != "sgd" or training.momentum):
        raise InvalidInput("[training] The networks in NumPy train with plain sgd only.")
    if privacy.honest < 2:
        raise InvalidInput("[privacy] min_clients must exceed max_colluders by at least 2.")
    if privacy.unit != "paper" and not privacy.noise_multiplier:
        raise InvalidInput("[privacy] noise_multiplier must be positive.")
    if privacy.sampling_rate != 1 and privacy.unit != "record":
        raise InvalidInput("[privacy] sampling_rate is for the unit 'record' only.")
    if privacy.unit == "record" and training.algorithm == "fedavg":
        raise InvalidInput("[training] The unit 'record' needs one gradient per release: use fedsgd.")
    if privacy.adaptive and privacy.unit == "paper":
        raise InvalidInput("[privacy] The unit 'paper' has its own noise; it is not combined with adaptive.")
    if task.metrics is not None and (privacy.unit == "paper" or privacy.sampling_rate != 1):
        raise InvalidInput("[metrics] Metric slots need the unit 'client' or 'record', and no sampling.")
