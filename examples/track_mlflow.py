"""Show a simulation or a board in MLflow: every task is a run, every iteration a step.

Run: python examples/track_mlflow.py run            (needs mlflow, which is asked for the tracking server)
"""

import sys

import mlflow

import anofel


def log(where: str) -> None:
    """Log what a simulation's directory or a board's says, and the card of the last model."""
    results = anofel.read_results(where)
    for task in dict.fromkeys(one.task for one in results):
        with mlflow.start_run(run_name=task):
            for one in (one for one in results if one.task == task):
                mlflow.log_metrics(dict(one.values), step=one.iteration)
                if one.card:
                    mlflow.log_text(one.card, "card.md")


if __name__ == "__main__":
    log(sys.argv[1])
