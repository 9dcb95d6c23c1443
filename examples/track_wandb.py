"""Show a simulation or a board in Weights & Biases: every task is a run, every iteration a step.

Run: python examples/track_wandb.py run             (needs wandb; WANDB_MODE=offline sends nothing)
"""

import sys

import wandb

import anofel


def log(where: str, project: str = "anofel") -> None:
    """Log what a simulation's directory or a board's says, and the card of the last model."""
    results = anofel.read_results(where)
    for task in dict.fromkeys(one.task for one in results):
        with wandb.init(project=project, name=task) as run:
            for one in (one for one in results if one.task == task):
                run.log(dict(one.values), step=one.iteration)
                if one.card:
                    run.notes = one.card


if __name__ == "__main__":
    log(sys.argv[1])
