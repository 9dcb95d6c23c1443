"""Noise, clipping, encoding, the update rule, ε and the SUPPORT2 experiment, each beside a named peer.

Run: python bench/privacy.py [--json]
Peers: OpenDP (in requirements/dev.txt) for exact noise; Opacus for ε if it is installed
(`pip install --no-deps opacus` is enough); NumPy and dp-accounting otherwise.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the plain path is among the tests

import numpy as np
from _table import machine

from anofel.learning import splits
from anofel.learning.build import network_of
from anofel.learning.dense import DenseNetwork
from anofel.learning.metrics import auc
from anofel.learning.trainer import LocalUpdate
from anofel.models.integer_model import IntegerMean, IntegerModel
from anofel.models.parameters import Layout
from anofel.privacy.mechanisms import DiscreteGaussian, Skellam
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.fetch import fetch, is_fetched
from anofel.studies.load import load_study
from anofel.tasks.task import Task, read_task
from tests.plain_path import iterate

SIZES = {"SUPPORT2": 35, "LeNet5": 61_706, "ResNet20": 273_258, "SqueezeNet": 832_456}
SIGMA = 16_384
ROOT = Path(__file__).parents[1]
SUPPORT2 = ROOT / "src" / "anofel" / "tasks" / "examples" / "support2.toml"
REPEATS = 5
SEEDS = (1, 2, 3)

BAR_SAMPLER_SECONDS = 1.0
BAR_EPSILON = 0.01
BAR_AUC = 0.79

Row = dict[str, Any]


def row(name: str, ours: float, peer_name: str, peer: float | None, unit: str) -> Row:
    ratio = None if peer is None or not peer else ours / peer
    return {"name": name, "ours": ours, "peer_name": peer_name, "peer": peer, "ratio": ratio, "unit": unit}


def seconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median wall time; the first call is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def opendp_sampler(size: int) -> Callable[[], Any] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=float(SIGMA))
    zeros = [0] * size
    return lambda: mechanism(zeros)


def sampler_rows() -> list[Row]:
    rows = []
    for name, size in SIZES.items():
        peer = opendp_sampler(size)
        theirs = None if peer is None else seconds(peer, 1)
        for mechanism in (DiscreteGaussian(), Skellam()):
            ours = seconds(lambda size=size, mechanism=mechanism: mechanism.sample(SIGMA, size))
            rows.append(
                row(
                    f"{mechanism.name} noise, {name} ({size:,})",
                    ours,
                    "OpenDP discrete Gaussian",
                    theirs,
                    "s",
                )
            )
    return rows


def custom_task(size: int) -> Task:
    return read_task(
        {
            "task": {"name": "bench"},
            "model": {"kind": "custom", "parameters": size},
            "training": {"algorithm": "custom"},
            "rule": {},
            "privacy": {
                "clipping_norm": 1,
                "noise_multiplier": Decimal("20.5"),
                "max_releases": 25,
                "min_clients": 512,
                "max_colluders": 2,
            },
            "schema": {"kind": "image", "shape": [1, 1, 1], "label_values": ["0", "1"]},
        }
    )


def encoding_rows() -> list[Row]:
    rows = []
    rng = np.random.default_rng(0)
    for name, size in SIZES.items():
        plan = Plan.of(custom_task(size))
        vector = rng.normal(size=size)
        layout = Layout(("w",), ((size,),))
        local = LocalUpdate({"w": vector}, 1)
        ours = seconds(lambda local=local, layout=layout, plan=plan: encode(local, layout, plan))

        def floating(vector: Any = vector, plan: Plan = plan) -> Any:
            clipped = vector * min(1, plan.clipping_norm / np.linalg.norm(vector))
            return np.rint(clipped * plan.scale).astype(np.int64)

        rows.append(
            row(
                f"clip, round, check norm, {name} ({size:,})",
                ours,
                "NumPy clip and rint",
                seconds(floating),
                "s",
            )
        )
    return rows


def clipping_rows() -> list[Row]:
    """Per-example clipping: ours never forms the gradients of single records."""
    network = DenseNetwork(features=784, classes=10, hidden=(78,))
    rng = np.random.default_rng(0)
    inputs, labels = rng.random((256, 784)), rng.integers(0, 10, 256)
    parameters = network.initial()
    layout = Layout.of(parameters)

    def loop() -> Any:
        total = np.zeros(layout.size)
        for index in range(len(labels)):
            one = layout.flatten(network.gradient(parameters, inputs[[index]], labels[[index]]))
            total += one * min(1, 1 / np.linalg.norm(one))
        return total

    ours = seconds(lambda: network.clipped_gradient_sum(parameters, inputs, labels, 1.0))
    return [
        row(
            f"256 records clipped one by one, MLP ({layout.size:,})",
            ours,
            "loop over records",
            seconds(loop, 2),
            "s",
        )
    ]


def rule_rows() -> list[Row]:
    rows = []
    for name, size in SIZES.items():
        rng = np.random.default_rng(0)
        model = IntegerModel.from_parameters({"w": rng.normal(size=size)}, 16, companions=1)
        total = rng.integers(-(2**30), 2**30, size)
        rule = IntegerMean(lr_num=1, lr_den=3, momentum=58_982)
        ours = seconds(lambda model=model, total=total, rule=rule: rule.apply(model, total, 512, 1))
        values = model.values.astype(np.float64)

        def floating(values: Any = values, total: Any = total) -> Any:
            velocity = 0.9 * values + total / (3 * 512)
            return values + velocity

        rows.append(
            row(
                f"integer-mean rule, {name} ({size:,})",
                ours,
                "NumPy float64, not exact",
                seconds(floating),
                "s",
            )
        )
    return rows


def opacus_epsilon(noise_multiplier: float, steps: int, delta: float) -> tuple[str, float | None]:
    try:
        from opacus.accountants import create_accountant

        accountant = create_accountant("prv")
        accountant.history = [(noise_multiplier, 1.0, steps)]
        return "Opacus PRV", float(accountant.get_epsilon(delta))
    except ImportError:
        pass
    package = importlib.util.find_spec("opacus")
    if package is None or not package.submodule_search_locations:
        return "Opacus (not installed)", None
    # Opacus needs PyTorch as a whole, its Rényi analysis does not.
    path = Path(package.submodule_search_locations[0]) / "accountants" / "analysis" / "rdp.py"
    spec = importlib.util.spec_from_file_location("opacus_rdp", path)
    if spec is None or spec.loader is None:
        return "Opacus (not readable)", None
    analysis = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(analysis)
    orders = [1 + x / 10 for x in range(1, 100)] + list(range(11, 512))
    curve = analysis.compute_rdp(q=1.0, noise_multiplier=noise_multiplier, steps=steps, orders=orders)
    return "Opacus RDP", float(analysis.get_privacy_spent(orders=orders, rdp=curve, delta=delta)[0])


def epsilon_rows(task: Task) -> list[Row]:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    plan = Plan.of(task)
    rows = []
    for relation in ("zero-out", "replace"):
        ours = plan.epsilon(task.privacy.max_releases, relation)
        # Independent of our events: the multiplier from first principles, composed step by step.
        factor = 2 if relation == "replace" else 1
        steps = plan.local_sigma() * task.privacy.honest**0.5 / (factor * plan.norm_squared**0.5)
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        accountant.compose(dp_accounting.GaussianDpEvent(steps), task.privacy.max_releases)
        independent = float(accountant.get_epsilon(float(task.privacy.delta)))
        rows.append(row(f"ε of the task, {relation}", ours, "dp-accounting PLD", independent, "ε"))
        name, value = opacus_epsilon(steps, task.privacy.max_releases, float(task.privacy.delta))
        rows.append(row(f"ε of the task, {relation}", ours, name, value, "ε"))
    return rows


def central_auc(network: DenseNetwork, train: Dataset, test: Dataset) -> float:
    """Gradient descent on all rows in one place, without privacy, until it has converged."""
    parameters, inputs = network.initial(), train.inputs()
    for _ in range(2000):
        gradient = network.gradient(parameters, inputs, train.labels)
        parameters = {name: parameters[name] - 0.5 * gradient[name] for name in parameters}
    return auc(network.logits(parameters, test.inputs())[:, 0], test.labels)


def experiment_rows(task: Task) -> list[Row]:
    study = study_named("support2")
    if not is_fetched(study):
        fetch(study, lambda *_: None)
    train, test = load_study(study)
    network = network_of(task)

    def federated(seed: int, no_noise: bool) -> float:
        clients = splits.iid(train, task.privacy.min_clients, seed)
        runs = iterate(task, clients, task.privacy.max_releases, insecure_no_noise=no_noise)
        *_, (model, _) = runs
        return auc(network.logits(model.parameters(), test.inputs())[:, 0], test.labels)

    private = statistics.mean(federated(seed, False) for seed in SEEDS)
    open_federated = statistics.mean(federated(seed, True) for seed in SEEDS)
    name = (
        f"SUPPORT2 AUC, {task.privacy.min_clients} clients, h = {task.privacy.honest}, "
        f"{task.privacy.max_releases} rounds, client-level zero-out ε ≤ 0.9"
    )
    return [
        row(name, private, "federated without noise", open_federated, "AUC"),
        row(name, private, "central without privacy", central_auc(network, train, test), "AUC"),
    ]


def missed_bars(rows: list[Row], task: Task) -> list[str]:
    missed = []
    for entry in rows:
        if "noise, SqueezeNet" in entry["name"] and entry["ours"] >= BAR_SAMPLER_SECONDS:
            missed.append(f"{entry['name']} took {entry['ours']:.2f} s")
        if entry["peer_name"] == "dp-accounting PLD" and abs(entry["ratio"] - 1) > BAR_EPSILON:
            missed.append(f"{entry['name']} differs from dp-accounting by {entry['ratio'] - 1:.2%}")
        if entry["unit"] == "AUC" and entry["ours"] < BAR_AUC:
            missed.append(f"the AUC is {entry['ours']:.3f}")
    if Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") > 0.9:
        missed.append("the example task exceeds ε = 0.9")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    as_json = parser.parse_args().json
    task = Task.load(SUPPORT2)
    rows: list[Row] = []
    for part in (sampler_rows, encoding_rows, clipping_rows, rule_rows):
        print(f"{part.__name__} ...", file=sys.stderr)
        rows += part()
    rows += epsilon_rows(task) + experiment_rows(task)
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        print(machine())
        for entry in rows:
            peer = "-" if entry["peer"] is None else f"{entry['peer']:.4g}"
            ratio = "-" if entry["ratio"] is None else f"{entry['ratio']:.3g}"
            print(f"{entry['name']:<95} {entry['ours']:>10.4g} {entry['unit']:<4}", end=" ")
            print(f"{entry['peer_name']:<26} {peer:>9} {ratio:>8}")
    for sentence in missed_bars(rows, task):
        print(f"bar missed: {sentence}", file=sys.stderr)
    sys.exit(bool(missed_bars(rows, task)))


if __name__ == "__main__":
    main()
