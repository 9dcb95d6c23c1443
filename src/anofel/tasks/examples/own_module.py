"""A module of your own in twenty lines; the same file serves a deployment as `--trainer own_module:trainer`.

Run: python own_module.py [IMAGES.npz]     (needs anofel[torch]; MNIST: anofel study fetch mnist)
"""

import sys
from pathlib import Path

import torch
from torch import nn

import anofel
from anofel.learning.pytorch.trainer import TorchTrainer


def trainer(task: anofel.Task) -> TorchTrainer:
    """Make the trainer of a task; its first model follows from the task's seed."""
    return TorchTrainer.for_task(
        task,
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
        ),
    )


def main(archive: Path | None) -> None:
    """Train it with four clients over the integers that a deployment encrypts."""
    torch.set_num_threads(1)  # two threads on two busy cores are many times slower than one
    task = anofel.Task.example("own-module")
    if archive is None:
        train, test = anofel.load_study(anofel.study_named("mnist"))
    else:
        train, test = anofel.hold_out(anofel.load_file(archive, task.schema), 0)
    own = trainer(task)
    hospitals, measure = anofel.split_rows(train, 4, "iid"), anofel.evaluate_on(task, test, own)
    study = anofel.SimulatedTask(task, hospitals, measure, own_trainer=own)
    with anofel.InsecurePlainSimulation([study]) as simulation:
        for result in simulation.run(3):
            print(f"iteration {result.iteration}: accuracy {(result.metrics or {})['accuracy']:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
