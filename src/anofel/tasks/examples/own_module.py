"""A module of your own in twenty lines; the same file serves a deployment as `--trainer own_module:trainer`.

Run: python own_module.py [IMAGES.npz]     (needs anofel[torch]; MNIST: anofel study fetch mnist)
"""

import sys
from pathlib import Path

import torch
from torch import nn

from anofel.learning.build import trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.pytorch.trainer import TorchTrainer
from anofel.learning.splits import iid
from anofel.privacy.plain_path import iterate
from anofel.studies.catalogue import study_named
from anofel.studies.load import hold_out, load_file, load_study
from anofel.tasks.task import Task


def trainer(task: Task) -> TorchTrainer:
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
    task = Task.example("own-module")
    train, test = (
        load_study(study_named("mnist")) if archive is None else hold_out(load_file(archive, task.schema), 0)
    )
    own = trainer_of(task, f"{Path(__file__).stem}:trainer")
    measure = evaluate_on(task, test, own)
    for number, (model, _) in enumerate(iterate(task, iid(train, 4, seed=0), 3, trainer=own), start=1):
        print(f"iteration {number}: accuracy {measure(model)['accuracy']:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
