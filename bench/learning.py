"""The paper's experiments, each one command: quality per iteration, ε, and what anonymity costs.

Run: python bench/learning.py EXPERIMENT [--iterations N] [--rows N] [--only VARIANT …] [--seed N]
                                         [--checkpoints DIR] [--validate [--set NAME VALUE …]] [--json]
     python bench/learning.py list | page

Variants: central (all rows in one place) and federated (plain averaging) as peers; no DP, client, record
(both at ε = 0.9, δ = 1e-5; record for some at ε = 3 too) and paper (the paper's formulas, which prove
nothing) over the integers that a deployment encrypts. Where rows are not IID, what is said to help the mean
stands beside it, without noise. One iteration, or for the medical studies every one, goes through the real
encrypted protocol and must give the same integers. The medical studies also say how far noise scatters the
end of a run: spread repeats it over plain integers. Results are written part by part: --only PART does one
again and keeps the others. With --checkpoints DIR a run that was stopped, however, goes on from its last
iteration when the same command is given again, and says what it still needs; the encrypted parts, spread and
the linear models on scattering features begin anew. Data: anofel study fetch; networks: anofel[torch].
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # several threads on few cores are slower

import numpy as np
from _learning_report import RESULTS, machine, write, write_page, write_readme
from _learning_resume import Checkpoint, Saved
from _learning_runs import Judge, Step, central, encrypted, federated, integers
from _learning_tasks import (
    EPSILON,
    EXPERIMENTS,
    Experiment,
    Remedy,
    central_task_of,
    experiment_named,
    record_name,
    schema_of,
    task_of,
    variants_of,
)

from anofel.errors import AnofelError
from anofel.learning.splits import split_rows
from anofel.models.integer_model import IntegerModel
from anofel.privacy.plan import Plan
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.fetch import fetch, is_fetched
from anofel.studies.load import study_rows
from anofel.tasks.schema import ImageSchema, Schema
from anofel.tasks.task import Task

SPREAD_RUNS = 20
VALIDATION_PART = 10
"""Settings are chosen on every tenth of the training rows; the test rows are looked at afterwards."""
FEDERATED_BAR = 0.005
"""How far anofel without noise may stay behind plain federated averaging, as a share."""
OVERHEAD_BAR = {"squeezenet-gn": 1.0}
"""Seconds of CPU that a client may spend on all but training in an iteration."""


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def load(experiment: Experiment, seed: int, *, validate: bool = False) -> tuple[Dataset, Dataset]:
    """The rows to train on and those to measure with; to validate, a tenth of the former is the latter."""
    study = study_named(experiment.study)
    if not is_fetched(study):
        note(f"fetching {study.name} ...")
        fetch(study)
    schema = schema_of(experiment)
    train, test = _rows(study.name, schema, 0 if isinstance(schema, ImageSchema) else seed)
    shuffled = np.random.default_rng(seed).permutation(len(train))
    if experiment.rows is not None:
        shuffled = shuffled[: experiment.rows]
    if validate:
        kept = len(shuffled) - len(shuffled) // VALIDATION_PART
        return train.take(shuffled[:kept]), train.take(shuffled[kept:])
    return (train if experiment.rows is None else train.take(shuffled)), test


@cache
def _rows(study: str, schema: Schema, seed: int) -> tuple[Dataset, Dataset]:
    """Load and transform a study once for all seeds; those with images have test rows of their own."""
    train, test = study_rows(study_named(study), schema, seed)
    return train.dataset.transformed(), test.dataset.transformed()


class Run:
    """One experiment with its data; what is finished is written at once."""

    def __init__(
        self,
        experiment: Experiment,
        data: tuple[Dataset, Dataset],
        out: Path | None,
        *,
        seed: int = 0,
        only: tuple[str, ...] = (),
        command: str = "",
        checkpoints: Path | None = None,
    ) -> None:
        self.train, self.test = data
        self.checkpoints = checkpoints
        self.experiment, self.seed, self.only, self.out, self.command = experiment, seed, only, out, command
        self.variants: list[dict[str, Any]] = []
        self.encrypted: list[dict[str, Any]] = []
        self.spread: list[dict[str, Any]] = []

    def split(self, clients: int) -> list[Dataset]:
        return split_rows(self.train, clients, self.experiment.split, self.seed)

    def wants(self, variant: str) -> bool:
        return not self.only or variant in self.only

    def keep(
        self,
        name: str,
        epsilon: str,
        task: Task,
        iterations: int,
        steps: Callable[..., Iterator[Step]],
    ) -> None:
        """Do a part, or what is left of it, and say before every iteration what it still needs."""
        checkpoint = self.checkpoint(name, task)
        saved = checkpoint.load() if checkpoint else None
        scores = [] if saved is None else list(saved.scores)
        note(f"{name}: {len(scores)} of {iterations} iterations are done")
        begin, first, before = time.process_time(), len(scores), 0.0 if saved is None else saved.seconds
        machines = _machines(saved)
        for step in steps(saved=saved):
            scores.append(round(step.score, 6))
            spent = time.process_time() - begin
            if checkpoint:
                checkpoint.save(Saved(scores, step.model, before + spent, machines))
            left = iterations - len(scores)
            seconds = left * spent / (len(scores) - first)
            note(
                f"{name}: iteration {len(scores)}, {step.score:.4f}; "
                f"{left} left, about {seconds:.0f} s of CPU"
            )
        seconds = before + time.process_time() - begin
        self.add(name, epsilon, scores, task=task, seconds=seconds, machines=machines)

    def checkpoint(self, name: str, task: Task) -> Checkpoint | None:
        if self.checkpoints is None:
            return None
        identity = {
            "experiment": self.experiment.name,
            "task": task.to_bytes().hex(),
            "split": self.experiment.split,
            "rows": len(self.train),
            "seed": self.seed,
        }
        return Checkpoint(self.checkpoints, name, identity)

    def add(
        self,
        name: str,
        epsilon: str,
        scores: list[float],
        *,
        task: Task,
        seconds: float,
        iterations: int | None = None,
        machines: tuple[str, ...] = (),
    ) -> None:
        run = {
            "seed": self.seed,
            "scores": scores,
            "cpu_seconds": round(seconds),
            "machines": [json.loads(one) for one in machines or _machines(None)],
        }
        self.variants.append(
            {
                "name": name,
                "epsilon": epsilon,
                "iterations": iterations or len(scores),
                "task": _with_seed(task, 0).digest().hex(),
                "runs": [run],
            }
        )
        self.write()

    def write(self) -> None:
        if self.out is not None:
            write(self.result(), self.out)

    def run(self) -> None:
        for clients in self.experiment.clients:
            parts = self.split(clients)
            suffix = f", {clients} clients" if len(self.experiment.clients) > 1 else ""
            if self.experiment.encrypted:
                self.run_encrypted(parts, suffix)
            elif self.experiment.private:
                self.run_private(parts)
            elif self.experiment.remedies:
                self.run_remedies(parts)
            elif self.experiment.compares_counts:
                self.run_count(parts, suffix)
            else:
                self.run_plain(parts)

    def task(
        self, unit: str, parts: list[Dataset], *, epsilon: float = EPSILON, remedy: Remedy | None = None
    ) -> Task:
        """Make the task of a variant, whose first model follows from the seed."""
        records = max(map(len, parts))
        return task_of(
            self.experiment, unit, len(parts), records, epsilon=epsilon, remedy=remedy, seed=self.seed
        )

    def run_plain(self, parts: list[Dataset]) -> None:
        iterations = self.experiment.unprotected_iterations
        run: Callable[..., Iterator[Step]]
        open_task = self.task("none", parts)
        judge = Judge(open_task, self.test)
        if self.wants("central"):
            task = central_task_of(self.experiment, max(map(len, parts)), self.seed)
            run = partial(central, task, self.train, judge, iterations)
            self.keep("central", "none", task, iterations, run)
        if self.wants("federated"):
            run = partial(federated, open_task, parts, judge, iterations)
            self.keep("federated", "none", open_task, iterations, run)
        if self.wants("no DP"):
            run = partial(integers, open_task, parts, judge, iterations, noise=False)
            self.keep("no DP", "none", open_task, iterations, run)
        for unit in ("client", "paper"):
            if self.wants(unit):
                self.keep_protected(unit, self.task(unit, parts), parts, judge)
        self.run_records(parts, judge)
        if self.wants("encrypted"):
            self.check_encrypted(self.task("client", parts), parts, judge, iterations=1)

    def run_records(self, parts: list[Dataset], judge: Judge, suffix: str = "") -> None:
        """Train record by record, once for each ε."""
        for epsilon in self.experiment.epsilons if self.experiment.record else ():
            if self.wants(record_name(epsilon)):
                task = self.task("record", parts, epsilon=epsilon)
                self.keep_protected(record_name(epsilon) + suffix, task, parts, judge)

    def keep_protected(self, name: str, task: Task, parts: list[Dataset], judge: Judge) -> None:
        releases = task.privacy.max_releases
        run = partial(integers, task, parts, judge, releases, noise=True)
        self.keep(name, epsilon_of(task), task, releases, run)

    def run_count(self, parts: list[Dataset], suffix: str) -> None:
        """Both units beside plain averaging and all rows in one place, over plain integers."""
        iterations, open_task = self.experiment.unprotected_iterations, self.task("none", parts)
        judge = Judge(open_task, self.test)
        if self.wants("central") and len(parts) == self.experiment.clients[0]:
            task = central_task_of(self.experiment, max(map(len, parts)), self.seed)
            run: Callable[..., Iterator[Step]] = partial(central, task, self.train, judge, iterations)
            self.keep("central", "none", task, iterations, run)
        if self.wants("federated"):
            run = partial(federated, open_task, parts, judge, iterations)
            self.keep(f"federated{suffix}", "none", open_task, iterations, run)
        if self.wants("client"):
            self.keep_protected(f"client{suffix}", self.task("client", parts), parts, judge)
        self.run_records(parts, judge, suffix)

    def run_remedies(self, parts: list[Dataset]) -> None:
        """Hold the plain mean and what is said to help it beside each other, in integers, without noise."""
        iterations = self.experiment.unprotected_iterations
        for remedy in self.experiment.remedies:
            if self.wants(remedy.name):
                task = self.task("none", parts, remedy=remedy)
                run = partial(integers, task, parts, Judge(task, self.test), iterations, noise=False)
                self.keep(remedy.name, "none", task, iterations, run)

    def run_private(self, parts: list[Dataset]) -> None:
        """Train record by record, and average the models of the second half: that costs no ε."""
        for epsilon in self.experiment.epsilons:
            if self.wants(record_name(epsilon)):
                self.run_averaged(record_name(epsilon), self.task("record", parts, epsilon=epsilon), parts)

    def run_averaged(self, name: str, task: Task, parts: list[Dataset]) -> None:
        judge, releases, epsilon = Judge(task, self.test), task.privacy.max_releases, epsilon_of(task)
        begin, scores, averaged = time.process_time(), [], []
        models: list[IntegerModel] = []
        for step in integers(task, parts, judge, releases, noise=True):
            scores.append(round(step.score, 6))
            if len(scores) > releases // 2:
                models.append(IntegerModel.from_bytes(step.model))
                averaged.append(round(judge.score(IntegerModel.average(models).parameters()), 6))
            note(f"{name}: iteration {len(scores)} of {releases}, {step.score:.4f} {averaged[-1:]}")
        seconds = time.process_time() - begin
        self.add(name, epsilon, scores, task=task, seconds=seconds)
        held = scores[: len(scores) - len(averaged)] + averaged
        self.add(f"{name}, models averaged", epsilon, held, task=task, seconds=seconds)

    def run_encrypted(self, parts: list[Dataset], suffix: str) -> None:
        iterations = self.experiment.iterations
        run: Callable[..., Iterator[Step]]
        task, open_task = self.task("client", parts), self.task("none", parts)
        judge = Judge(task, self.test)
        if self.wants("central") and len(parts) == self.experiment.clients[0]:
            run = partial(central, open_task, self.train, judge, iterations)
            self.keep("central", "none", open_task, iterations, run)
            self.converge(open_task, judge)
        if self.wants("federated"):
            run = partial(federated, open_task, parts, judge, iterations)
            self.keep(f"federated{suffix}", "none", open_task, iterations, run)
        if self.wants("client"):
            begin = time.process_time()
            scores = self.check_encrypted(task, parts, judge, iterations=iterations)
            seconds = time.process_time() - begin
            self.add(f"client{suffix}", epsilon_of(task), scores, task=task, seconds=seconds)
        if self.wants("spread"):
            self.repeat(task, parts, judge)

    def repeat(self, task: Task, parts: list[Dataset], judge: Judge) -> None:
        """Run over plain integers, again and again, to see what noise and rounding do to the end."""
        ends = []
        for _ in range(SPREAD_RUNS):
            *_, last = integers(task, parts, judge, task.privacy.max_releases, noise=True)
            ends.append(round(last.score, 6))
        note(f"spread, {len(parts)} clients: {min(ends):.4f} to {max(ends):.4f}")
        self.spread.append({"clients": len(parts), "scores": ends})
        self.write()

    def converge(self, task: Task, judge: Judge) -> None:
        """Train centrally until nothing is to be gained: the best that the model can do."""
        if self.experiment.converged:
            begin = time.process_time()
            *_, last = central(task, self.train, judge, self.experiment.converged)
            self.add(
                "central, converged",
                "none",
                [round(last.score, 6)],
                task=task,
                seconds=time.process_time() - begin,
                iterations=self.experiment.converged,
            )

    def check_encrypted(
        self, task: Task, parts: list[Dataset], judge: Judge, *, iterations: int
    ) -> list[float]:
        steps: list[Step] = []
        same = True
        for step, equal in encrypted(task, parts, judge, iterations):
            steps.append(step)
            same &= equal
            note(f"encrypted, {len(parts)} clients: iteration {len(steps)}, {step.score:.4f}")
        self.encrypted.append(
            {
                "clients": len(parts),
                "iterations": iterations,
                "parameters": task.model.parameters,
                "same_integers": same,
                "train_seconds": float(np.median([step.train_seconds for step in steps])),
                "overhead_seconds": float(np.median([step.overhead_seconds for step in steps])),
                "client_bytes": steps[-1].client_bytes,
                "machine": machine(),
            }
        )
        self.write()
        return [round(step.score, 6) for step in steps]

    def result(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "kind": self.experiment.kind,
            "shortened": self.experiment.shortened,
            "remedies": bool(self.experiment.remedies),
            "measure": measure_of(self.experiment, self.test),
            "command": self.command,
            "variants": self.variants,
            "encrypted": self.encrypted,
            "spread": self.spread,
        }

    def missed_bars(self) -> list[str]:
        found = {variant["name"]: _end(variant) for variant in self.variants}
        missed = [
            f"{name}: {found[name]:.4f} is below {bar}"
            for name, bar in self.experiment.bars
            if name in found and found[name] < bar
        ]
        if not self.experiment.shortened and {"federated", "no DP"} <= set(found):
            behind = found["federated"] - found["no DP"]
            if behind > FEDERATED_BAR:
                missed.append(f"no DP: {100 * behind:.2f} points behind plain federated averaging")
        limit = OVERHEAD_BAR.get(self.experiment.kind)
        for check in self.encrypted:
            if not check["same_integers"]:
                missed.append("the encrypted path gave other integers than the plain one")
            if limit is not None and check["overhead_seconds"] >= limit:
                missed.append(f"a client spends {check['overhead_seconds']:.2f} s beside its training")
        return missed


def measure_of(experiment: Experiment, test: Dataset) -> str:
    """Name what is measured."""
    if experiment.target is not None:
        return "concordance index"
    return "area under the curve" if test.schema.classes == 2 else "accuracy"


def _machines(saved: Saved | None) -> tuple[str, ...]:
    """Describe the machines on which a part was and will be done."""
    return tuple(dict.fromkeys([*(saved.machines if saved else ()), json.dumps(machine(), sort_keys=True)]))


def _with_seed(task: Task, seed: int) -> Task:
    """Give the same task with another first model: runs of several seeds belong to one task."""
    return replace(task, model=replace(task.model, seed=seed))


def _end(variant: dict[str, Any]) -> float:
    """The score of this seed's last iteration."""
    return float(variant["runs"][0]["scores"][-1])


def epsilon_of(task: Task) -> str:
    if task.privacy.unit == "paper":
        return "unproven"
    value = Plan.of(task).epsilon(task.privacy.max_releases, "zero-out")
    return f"{value:.3f} per {task.privacy.unit}"


def rows_of(run: Run) -> list[dict[str, Any]]:
    """The rows that all benchmarks print: each variant beside plain federated averaging."""
    peers = {v["name"]: _end(v) for v in run.variants if v["name"].startswith("federated")}
    rows = []
    for variant in run.variants:
        name, ours = variant["name"], _end(variant)
        suffix = name.partition(",")[1] + name.partition(",")[2] if name.endswith(" clients") else ""
        peer = peers.get(f"federated{suffix}")
        ratio = None if not peer else ours / peer
        rows.append(
            {
                "name": f"{run.experiment.name}: {name}",
                "ours": ours,
                "peer_name": "plain federated averaging",
                "peer": peer,
                "ratio": ratio,
                "unit": "share",
            }
        )
    for check in run.encrypted:
        rows.append(
            {
                "name": f"{run.experiment.name}: client work but training, {check['clients']} clients",
                "ours": check["overhead_seconds"],
                "peer_name": "its training",
                "peer": check["train_seconds"],
                "ratio": check["overhead_seconds"] / max(check["train_seconds"], 1e-9),
                "unit": "s of CPU",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [experiment.name for experiment in EXPERIMENTS]
    parser.add_argument("experiment", choices=[*names, "list", "page"])
    parser.add_argument("--iterations", type=positive, help="fewer iterations (the bars do not apply then)")
    parser.add_argument("--rows", type=positive, help="fewer rows to train on (the bars do not apply then)")
    parser.add_argument("--clients", type=positive, nargs="+", help="other numbers of clients")
    parser.add_argument("--only", nargs="+", default=(), metavar="PART", help="some parts of it")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run for each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument(
        "--validate", action="store_true", help="measure on a tenth of the training rows; write no result"
    )
    parser.add_argument(
        "--set",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="another setting of the experiment, to choose one with --validate",
    )
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="go on from what was done before")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if options.experiment == "list":
        for experiment in EXPERIMENTS:
            print(f"{experiment.name:<18} {experiment.title}{' (shortened)' * bool(experiment.shortened)}")
        return
    if options.experiment == "page":
        write_page(options.out)
        write_readme(options.out)
        return
    experiment = experiment_named(options.experiment)
    parts = variants_of(experiment)
    if not set(options.only) <= set(parts):
        parser.error(f"the parts of {experiment.name} are: {', '.join(parts)}")
    if options.set and not options.validate:
        parser.error("--set is for --validate; what was chosen is written into the experiment")
    changed = changes(experiment, options)
    chosen = replace(experiment, **changed)
    command, missed, rows = command_of(options), list[str](), list[dict[str, Any]]()
    try:
        for seed in options.seed:
            run = Run(
                chosen,
                load(chosen, seed, validate=options.validate),
                None if options.validate else options.out,
                seed=seed,
                only=tuple(options.only),
                command=command,
                checkpoints=options.checkpoints,
            )
            run.run()
            rows += rows_of(run)
            missed += [] if changed or options.validate else run.missed_bars()
    except AnofelError as error:
        sys.exit(str(error))
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            peer = "-" if row["peer"] is None else f"{row['peer']:.4f}"
            print(f"{row['name']:<60} {row['ours']:>8.4f} {row['unit']:<9} {row['peer_name']:<26} {peer:>8}")
        if not options.validate:
            print(f"written: {options.out / experiment.name}.json")
    for sentence in missed:
        note(f"bar missed: {sentence}")
    sys.exit(bool(missed))


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def command_of(options: argparse.Namespace) -> str:
    """The command that makes all parts of these results again."""
    words = ["python bench/learning.py", options.experiment]
    for name in ("iterations", "rows", "clients"):
        value = getattr(options, name)
        if value:
            words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return " ".join(words)


def changes(experiment: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    """What the command line shortens; it stands in the results."""
    changed: dict[str, Any] = {}
    if options.iterations is not None:
        changed |= {"iterations": options.iterations, "open_iterations": 0}
        if experiment.record is not None:
            changed["record"] = {**experiment.record, "iterations": options.iterations}
    if options.rows is not None:
        changed["rows"] = options.rows
    if options.clients is not None:
        changed["clients"] = tuple(options.clients)
    for name, value in options.set:
        changed |= _setting(replace(experiment, **changed), name, value)
    if changed:
        changed["shortened"] = "by the options of its command"
    return changed


def _number(text: str) -> int | str:
    """Read a whole number; anything else is what a task file writes as text."""
    return int(text) if text.isdecimal() else text


def _setting(experiment: Experiment, name: str, value: str) -> dict[str, Any]:
    """Read one setting: of the experiment, of ``record.`` or ``training.``, or as ``REMEDY.rule.lr_den``."""
    table, dot, key = name.partition(".")
    if any(remedy.name == table for remedy in experiment.remedies):
        part, _, key = key.partition(".")
        changed = [
            replace(remedy, **{part: {**getattr(remedy, part), key: _number(value)}})
            if remedy.name == table
            else remedy
            for remedy in experiment.remedies
        ]
        return {"remedies": tuple(changed)}
    if dot:
        old = getattr(experiment, table) or {}
        kind = type(old[key]) if key in old else str
        return {table: {**old, key: kind(value)}}
    return {name: type(getattr(experiment, name))(value)}


if __name__ == "__main__":
    main()
