"""The experiments of bench/learning.py: which task, which split, how long."""

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anofel.disk.sections import canonical_json
from anofel.models.schedules import cosine_schedule
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.tasks.schema import ImageSchema, Schema, SurvivalTarget, known_schema
from anofel.tasks.task import Task, read_task

EPSILON, DELTA = 0.9, "0.00001"
MOMENTUM = 58_982
"""0.9 in units of 2^-16."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What a task changes where rows are not IID; nothing for the plain mean."""

    name: str
    training: dict[str, Any] = field(default_factory=dict)
    rule: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One command. `rows` shortens the training set, and is labelled in the results."""

    name: str
    title: str
    study: str
    kind: str
    split: str = "iid"
    clients: tuple[int, ...] = (16,)
    iterations: int
    open_iterations: int = 0
    """Of the variants without privacy, if they get more: each iteration costs the others noise."""
    rate: int = 1
    """The owner's learning rate."""
    peer_rate: int = 1
    """The same for central and plain federated training, whose updates are not clipped."""
    central_learning_rate: str = ""
    """The trainer's rate in central training, where steps are not averaged; empty for the clients' own."""
    converged: int = 0
    """Iterations of a further central run, for models that converge in seconds."""
    learning_rate: str = "0"
    momentum: str = "0"
    epochs: int = 1
    batch_size: int = 32
    clipping_norm: str = "1"
    record: dict[str, Any] | None = None
    """Iterations, records in a batch, clipping norm and learning rate of the variant ``record``."""
    epsilons: tuple[float, ...] = (EPSILON,)
    """For which the variant ``record`` runs."""
    remedies: tuple[Remedy, ...] = ()
    """Held beside each other without noise, and nothing else then."""
    transform: str = "none"
    """Of the schema's images."""
    private: bool = False
    """Whether only the variant ``record`` runs, and the mean of its last models beside it."""
    target: SurvivalTarget | None = None
    """What is predicted in place of the study's classes, and from the column of this time."""
    time: str = ""
    training: dict[str, Any] = field(default_factory=dict)
    """Further keys of ``[training]``."""
    cosine: bool = False
    """Whether the rate falls along half a cosine in the variants without privacy."""
    rows: int | None = None
    encrypted: bool = False
    """Whether every iteration goes through the encrypted protocol, or one for comparison."""
    shortened: str = ""
    bars: tuple[tuple[str, float], ...] = ()

    @property
    def compares_counts(self) -> bool:
        """Whether both units run with each number of clients, over plain integers."""
        return not self.encrypted and (self.target is not None or len(self.clients) > 1)

    @property
    def unprotected_iterations(self) -> int:
        """Iterations of central, federated and no DP."""
        return self.open_iterations or self.iterations


def _target(event: str, cuts: tuple[int, ...]) -> SurvivalTarget:
    return SurvivalTarget(kind="survival", unit="days", event=event, event_values=("0", "1"), cuts=cuts)


_RESNET20: dict[str, Any] = {
    "study": "cifar-10",
    "kind": "resnet20-gn",
    "iterations": 25,
    "open_iterations": 60,
    "learning_rate": "0.05",
    "central_learning_rate": "0.05",
    "momentum": "0.9",
    "clipping_norm": "2",
    "training": {"weight_decay": "0.0005", "augment": "shift-and-flip", "precision": "bfloat16"},
    "cosine": True,
}

_SQUEEZENET: dict[str, Any] = {
    "kind": "squeezenet-gn",
    "learning_rate": "0.003",
    "central_learning_rate": "0.002",
    "momentum": "0.9",
    "batch_size": 16,
    "clipping_norm": "2",
}

_LINEAR: dict[str, Any] = {
    "kind": "logistic",
    "transform": "scattering",
    "private": True,
    "iterations": 1,
    "epsilons": (EPSILON, 3.0),
}
_SURVIVAL: dict[str, Any] = {
    "kind": "logistic",
    "clients": (16, 128, 512),
}
_PRIVATE: dict[str, Any] = {"clipping_norm": "0.1", "scale_bits": 20, "batch": 8192, "rate": Decimal(20)}
"""Gradients are divided by the clipping norm: a rate says how far the model moves if all point one way."""

_REMEDIES = (
    Remedy(name="plain mean"),
    Remedy(name="FedProx", training={"proximal": "0.1"}),
    Remedy(name="momentum", rule={"lr_num": 1, "lr_den": 4, "momentum": MOMENTUM}),
    Remedy(name="FedAdam", rule={"kind": "integer-adam", "lr_num": 1, "lr_den": 100, "momentum": MOMENTUM}),
    Remedy(name="weighted mean", weights={"most": 2500}),
)
_NONIID: dict[str, Any] = {
    "kind": "lenet5",
    "iterations": 25,
    "learning_rate": "0.02",
    "rows": 10_000,
    "remedies": _REMEDIES,
    "shortened": "10,000 of 60,000 images, so that three seeds of each take an hour",
}

EXPERIMENTS = (
    Experiment(
        name="mnist-iid",
        title="LeNet5 on MNIST, 16 clients, IID",
        study="mnist",
        kind="lenet5",
        iterations=25,
        open_iterations=40,
        learning_rate="0.05",
        central_learning_rate="0.01",
        momentum="0.9",
        record={"iterations": 150, "batch": 4096, "clipping_norm": "1", "rate": Decimal("0.45")},
        epsilons=(EPSILON, 3.0),
        bars=(("no DP", 0.989), ("record", 0.94)),
    ),
    Experiment(
        name="mnist-noniid",
        title="LeNet5 on MNIST, 16 clients, sorted by label",
        study="mnist",
        kind="lenet5",
        split="by-label",
        iterations=25,
        learning_rate="0.02",
        record={"iterations": 100, "batch": 4096, "clipping_norm": "1", "rate": Decimal("0.45")},
    ),
    Experiment(
        name="fashion-iid",
        title="LeNet5 on Fashion-MNIST, 16 clients, IID",
        study="fashion-mnist",
        kind="lenet5",
        iterations=25,
        learning_rate="0.05",
        central_learning_rate="0.01",
        momentum="0.9",
        record={"iterations": 100, "batch": 4096, "clipping_norm": "1", "rate": Decimal("0.45")},
    ),
    Experiment(
        name="fashion-noniid",
        title="LeNet5 on Fashion-MNIST, 16 clients, sorted by label",
        study="fashion-mnist",
        kind="lenet5",
        split="by-label",
        iterations=25,
        learning_rate="0.02",
        record={"iterations": 100, "batch": 4096, "clipping_norm": "1", "rate": Decimal("0.45")},
    ),
    Experiment(
        name="mnist-remedies",
        title="LeNet5 on MNIST, 16 clients, sorted by label: what helps the mean",
        study="mnist",
        split="by-label",
        **_NONIID,
    ),
    Experiment(
        name="fashion-remedies",
        title="LeNet5 on Fashion-MNIST, 16 clients, sorted by label: what helps the mean",
        study="fashion-mnist",
        split="by-label",
        **_NONIID,
    ),
    Experiment(
        name="fashion-skewed",
        title="LeNet5 on Fashion-MNIST, 16 clients, labels and sizes skewed: what helps the mean",
        study="fashion-mnist",
        split="dirichlet:0.1",
        **_NONIID,
    ),
    Experiment(
        name="cifar-resnet20",
        title="ResNet20 on CIFAR-10, 16 clients, IID",
        study="cifar-10",
        kind="resnet20-gn",
        iterations=8,
        learning_rate="0.02",
        central_learning_rate="0.005",
        momentum="0.9",
        batch_size=8,
        clipping_norm="2",
        rows=10_000,
        shortened="10,000 of 50,000 images and 8 iterations, what two cores do in an hour",
    ),
    Experiment(
        name="cifar-resnet20-full",
        title="ResNet20 on all of CIFAR-10, 16 clients, IID",
        **_RESNET20,
        bars=(("no DP", 0.85),),
    ),
    Experiment(
        name="cifar-resnet20-noniid",
        title="ResNet20 on all of CIFAR-10, 16 clients, sorted by label",
        split="by-label",
        **{**_RESNET20, "learning_rate": "0.02", "open_iterations": 100},
        bars=(("no DP", 0.70),),
    ),
    Experiment(
        name="mnist-private",
        title="A linear model on scattering features of MNIST, 16 clients, private record by record",
        study="mnist",
        record={**_PRIVATE, "iterations": 240},
        bars=(("record", 0.975),),
        **_LINEAR,
    ),
    Experiment(
        name="fashion-private",
        title="A linear model on scattering features of Fashion-MNIST, 16 clients, private record by record",
        study="fashion-mnist",
        record={**_PRIVATE, "iterations": 120},
        bars=(("record", 0.84),),
        **_LINEAR,
    ),
    Experiment(
        name="cifar-private",
        title="A linear model on scattering features of CIFAR-10, 16 clients, private record by record",
        study="cifar-10",
        record={**_PRIVATE, "iterations": 120},
        bars=(("record", 0.45),),
        **_LINEAR,
    ),
    Experiment(
        name="cifar-squeezenet",
        title="SqueezeNet on CIFAR-10, 16 clients, IID",
        study="cifar-10",
        iterations=5,
        rows=8_000,
        **_SQUEEZENET,
        shortened="8,000 of 50,000 images and 5 iterations, what two cores do in an hour",
    ),
    Experiment(
        name="tiny-squeezenet",
        title="SqueezeNet on TinyImageNet, 16 clients, IID",
        study="tiny-imagenet",
        iterations=25,
        **_SQUEEZENET,
    ),
    Experiment(
        name="mnist-clients",
        title="LeNet5 on MNIST, private for a client, with 512 and 5,000 clients",
        study="mnist",
        kind="lenet5",
        clients=(512, 5000),
        iterations=25,
        learning_rate="0.05",
        central_learning_rate="0.01",
        momentum="0.9",
    ),
    Experiment(
        name="support2",
        title="Logistic regression on SUPPORT2 through the encrypted protocol",
        study="support2",
        kind="logistic",
        clients=(16, 128, 512),
        iterations=6,
        rate=8,
        peer_rate=2,
        converged=1000,
        clipping_norm="0.25",
        encrypted=True,
        bars=(("client, 512 clients", 0.79),),
    ),
    Experiment(
        name="support2-survival",
        title="Survival after SUPPORT2: proportional hazards over seven intervals up to four years",
        study="support2",
        time="d.time",
        target=_target("death", (7, 30, 90, 180, 365, 730, 1460)),
        iterations=10,
        open_iterations=500,
        clipping_norm="0.1",
        rate=16,
        record={"iterations": 60, "batch": 0, "clipping_norm": "1", "rate": Decimal(2)},
        **_SURVIVAL,
    ),
    Experiment(
        name="nwtco-survival",
        title="Relapse of Wilms' tumour: proportional hazards over six intervals up to five years",
        study="nwtco",
        time="edrel",
        target=_target("rel", (120, 200, 300, 500, 800, 1825)),
        iterations=10,
        open_iterations=300,
        clipping_norm="0.25",
        rate=32,
        peer_rate=8,
        record={"iterations": 60, "batch": 0, "clipping_norm": "1", "rate": Decimal(2)},
        **_SURVIVAL,
    ),
    Experiment(
        name="heartbeats",
        title="Five kinds of heartbeats (ECG5000), softmax regression on 140 samples",
        study="ecg5000",
        kind="logistic",
        clients=(16, 128, 512),
        iterations=20,
        open_iterations=300,
        rate=16,
        clipping_norm="0.25",
        record={"iterations": 60, "batch": 0, "clipping_norm": "1", "rate": Decimal(2)},
        epsilons=(EPSILON, 3.0),
    ),
    Experiment(
        name="nwtco",
        title="Logistic regression on nwtco (Wilms tumour) through the encrypted protocol",
        study="nwtco",
        kind="logistic",
        clients=(16, 128, 512),
        iterations=6,
        rate=16,
        peer_rate=8,
        converged=1000,
        clipping_norm="0.25",
        encrypted=True,
    ),
)


def variants_of(experiment: Experiment) -> tuple[str, ...]:
    """The parts of an experiment that ``--only`` can name."""
    if experiment.encrypted:
        return ("central", "federated", "client", "spread")
    record = tuple(map(record_name, experiment.epsilons)) if experiment.record else ()
    if experiment.private:
        return record
    if experiment.remedies:
        return tuple(remedy.name for remedy in experiment.remedies)
    if experiment.compares_counts:
        return ("central", "federated", "client", *record)
    return ("central", "federated", "no DP", "client", "paper", *record, "encrypted")


def record_name(epsilon: float) -> str:
    """Name the variant ``record`` at an ε; the usual one goes without saying."""
    return "record" if epsilon == EPSILON else f"record, ε = {epsilon:g}"


def experiment_named(name: str) -> Experiment:
    return next(experiment for experiment in EXPERIMENTS if experiment.name == name)


def task_of(
    experiment: Experiment,
    unit: str,
    clients: int,
    records: int,
    *,
    epsilon: float = EPSILON,
    remedy: Remedy | None = None,
    seed: int = 0,
) -> Task:
    """The task of one variant; ``none`` clips so widely that nothing is clipped.

    ``seed`` is that of the first model, and of the order of the batches.
    """
    iterations, training = experiment.iterations, _training(experiment)
    rule: dict[str, Any] = {
        "lr_num": experiment.peer_rate if unit == "none" else experiment.rate,
        "lr_den": 1,
    }
    scale_bits = 20 if unit == "none" else 16
    privacy: dict[str, Any] = {
        "unit": unit,
        "delta": DELTA,
        "clipping_norm": experiment.clipping_norm,
        "noise_multiplier": "1",
        "max_releases": iterations,
        "min_clients": clients,
        "max_colluders": 2,
        "records_per_client": records,
    }
    if unit == "none":
        if experiment.cosine:
            changes = cosine_schedule(rule["lr_num"], 1, iterations=experiment.unprotected_iterations)
            rule["schedule"] = [vars(change) for change in changes]
        privacy |= {
            "unit": "client",
            "clipping_norm": "1000",
            "noise_multiplier": "0.001",
            "max_releases": experiment.unprotected_iterations,
        }
    if unit == "record":
        assert experiment.record is not None
        record, training = experiment.record, {"algorithm": "fedsgd"}
        scale_bits = record.get("scale_bits", scale_bits)
        rate = Fraction(record["rate"])
        if experiment.private:
            rate /= Fraction(record["clipping_norm"])
        batch = record["batch"] or records * clients  # all of them, without sampling
        num, den = (rate * clients / batch).as_integer_ratio()
        rule = {"lr_num": num, "lr_den": den, "momentum": MOMENTUM}
        share = min(Decimal(1), Decimal(batch) / (records * clients))
        privacy |= {
            "clipping_norm": record["clipping_norm"],
            "max_releases": record["iterations"],
            "sampling_rate": str(share.quantize(Decimal("0.0001"))),
        }
    document = {
        "task": {"name": f"{experiment.name}-{unit}", "study": experiment.study},
        "model": {"kind": experiment.kind, "scale_bits": scale_bits, "seed": seed},
        "training": training,
        "rule": rule,
        "privacy": privacy,
    }
    if remedy is not None:
        document |= {"training": training | remedy.training, "rule": rule | remedy.rule}
        if remedy.weights:
            document["weights"] = remedy.weights
    if experiment.transform != "none" or experiment.target is not None:
        document["schema"] = json.loads(canonical_json(schema_of(experiment).document()))
    task = read_task(document)
    if unit in ("client", "record"):
        noise = noise_multiplier(Plan.of(task), epsilon, "zero-out")
        task = replace(task, privacy=replace(task.privacy, noise_multiplier=noise))
    return task


def schema_of(experiment: Experiment) -> Schema:
    """The study's schema, with the transform of the experiment."""
    schema = known_schema(experiment.study)
    if isinstance(schema, ImageSchema):
        return replace(schema, transform=experiment.transform)
    if experiment.target is None:
        return schema
    answers = {experiment.time, experiment.target.event}
    unused = tuple(name for name in (*schema.unused, schema.label) if name not in answers)
    return replace(schema, label=experiment.time, label_values=(), target=experiment.target, unused=unused)


def central_task_of(experiment: Experiment, records: int, seed: int = 0) -> Task:
    """The task of all rows in one place."""
    changes = {"learning_rate": experiment.central_learning_rate or experiment.learning_rate}
    return task_of(replace(experiment, **changes), "none", experiment.clients[0], records, seed=seed)


def _training(experiment: Experiment) -> dict[str, Any]:
    if experiment.kind == "logistic":
        return {"algorithm": "fedsgd"}
    return {
        "algorithm": "fedavg",
        "learning_rate": experiment.learning_rate,
        "momentum": experiment.momentum,
        "epochs": experiment.epochs,
        "batch_size": experiment.batch_size,
        **experiment.training,
    }
