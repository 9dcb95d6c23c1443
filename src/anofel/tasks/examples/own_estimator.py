"""Train what you have: an estimator of scikit-learn, or a plain function of NumPy; both of five numbers.

In a deployment this file is `--trainer own_estimator:trainer` or `--trainer own_estimator:logistic`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

import anofel

Arrays = dict[str, NDArray[np.float64]]


def trainer(task: anofel.Task) -> anofel.EstimatorTrainer:
    """Make the trainer of a task: five steps of scikit-learn over a client's rows in each iteration."""
    return anofel.EstimatorTrainer.for_task(
        task, lambda: SGDClassifier(loss="log_loss", alpha=0.01, random_state=0), epochs=5
    )


def probability(arrays: Arrays, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the probability of the second class, row by row."""
    return np.asarray(1 / (1 + np.exp(-(inputs @ arrays["weight"] + arrays["bias"]))))


@anofel.array_trainer({"weight": np.zeros(4), "bias": np.zeros(1)}, predict=probability)
def logistic(arrays: Arrays, inputs: NDArray[np.float64], labels: NDArray[Any]) -> Arrays:
    """Take twenty steps of gradient descent; the update is how far the arrays moved."""
    for _ in range(20):
        error = probability(arrays, inputs) - labels
        arrays["weight"] -= 0.5 * inputs.T @ error / len(labels)
        arrays["bias"] -= 0.5 * error.mean()
    return arrays


def main(iterations: int = 2) -> anofel.IntegerModel:
    """Train the estimator, and print what the board shows of each iteration."""
    task = anofel.Task.example("scikit-learn")
    train, test = anofel.hold_out(anofel.made_up_rows(task.schema, 600), seed=0)
    own = trainer(task)  # or logistic(task)
    measure = anofel.evaluate_on(task, test, own)
    study = anofel.SimulatedTask(task, anofel.split_rows(train, 6), measure, own_trainer=own)
    with anofel.Simulation([study]) as simulation:
        for result in simulation.run(iterations):
            print(result.iteration, result.outcome, result.count, f"ε = {result.epsilon:.2f}", result.metrics)
    return simulation.models[task.name]


if __name__ == "__main__":
    main()
