"""From a task to a trained network, cell by cell."""

# %% [markdown]
# # From a task to a trained network, cell by cell
#
# What an owner announces, what a client computes, what is protected, and what comes out. Open it in an
# editor that knows `# %%` cells, or run it whole: `python examples/walkthrough.py [IMAGES.npz]`. It needs
# `anofel[torch]`; without an archive it takes images of MNIST (`anofel study fetch mnist`).

# %% The task: a network by name, how clients train, how sums become models, what is protected.
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from anofel.learning.build import trainer_of
from anofel.learning.certified import dataset_digest
from anofel.learning.evaluate import evaluate_on
from anofel.learning.splits import iid
from anofel.models.exchange import from_safetensors, to_safetensors
from anofel.models.rules import rule_of
from anofel.privacy.plan import Plan
from anofel.privacy.protect import protect, train_unit
from anofel.studies.catalogue import study_named
from anofel.studies.load import hold_out, load_file, load_study
from anofel.tasks.task import Task, read_task

torch.set_num_threads(1)  # two threads on two busy cores are many times slower than one
CLIENTS = 6
task = read_task(
    {
        "task": {"name": "digits", "study": "mnist"},
        "model": {"kind": "lenet5"},
        "training": {"algorithm": "fedsgd"},
        # A client sends the sum over its records; the rate divides by their number.
        "rule": {"lr_num": 1, "lr_den": 1000, "momentum": 58_982},
        "privacy": {
            "unit": "record",
            "clipping_norm": 1,
            "noise_multiplier": 4,
            "max_releases": 12,
            "min_clients": CLIENTS,
            "max_colluders": 1,
            "records_per_client": 400,
        },
    }
)
assert Task.from_bytes(task.to_bytes()) == task  # one encoding, one digest, for everybody
print(f"{task.model.kind}: {task.model.parameters:,} parameters, task {task.digest().hex()[:16]}…")

# %% What it costs: ε follows from the announced numbers alone, before anyone trains.
plan = Plan.of(task)
for releases in (1, task.privacy.max_releases):
    print(f"ε after {releases} iterations: {plan.epsilon(releases, 'zero-out'):.2f} per record, δ = 1e-5")

# %% The data of six clients. A certificate covers its exact bytes.
archive = Path(sys.argv[1]) if len(sys.argv) > 1 else None
if archive is None:
    train, test = load_study(study_named("mnist"))
    train = train.take(np.arange(400 * CLIENTS))
else:
    train, test = hold_out(load_file(archive, task.schema), seed=0)
clients = iid(train, CLIENTS, seed=0)
print(f"first client: {len(clients[0])} images, digest {dataset_digest(clients[0]).to_bytes().hex()[:16]}…")

# %% One client, one iteration: each record's gradient is clipped, the sum is rounded, noise is added.
trainer, rule = trainer_of(task), rule_of(task)
model = rule.initial(trainer.initial(), task.model.scale_bits)
local = train_unit(trainer, model.parameters(), clients[0], plan)
update = protect(local, model.layout, plan)
print(f"{local.examples} records became {update.size:,} integers, noise of ±{plan.local_sigma():,} each")

# %% Twelve iterations. A deployment encrypts each update; the sum is the same, integer for integer.
measure = evaluate_on(task, test)
for iteration in range(1, task.privacy.max_releases + 1):
    total = np.zeros(plan.dimension, dtype=np.int64)
    for rows in clients:
        total += protect(train_unit(trainer, model.parameters(), rows, plan), model.layout, plan)
    model = rule.apply(model, total, len(clients), iteration)
print(f"accuracy after {task.privacy.max_releases} iterations: {measure(model)['accuracy']:.3f}")

# %% The model leaves as safetensors, and comes back bit by bit.
with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "lenet5.safetensors"
    path.write_bytes(to_safetensors(model))
    back = from_safetensors(path)
print(f"safetensors: the same integers again: {back.is_same}")
