"""Train a model of one's own: anything with ``initial`` and ``train``; here one centre for each class."""

from pathlib import Path

import numpy as np

from anofel.learning.integer_model import IntegerModel
from anofel.learning.parameters import Parameters
from anofel.learning.trainer import LocalUpdate
from anofel.simulation import SimulatedTask, Simulation, made_up_rows, split_rows
from anofel.studies.dataset import Dataset
from anofel.studies.load import hold_out
from anofel.task import Task


class Centres:
    """A trainer; its update moves every centre to the mean of the client's rows of that class."""

    def initial(self) -> Parameters:
        """Begin with all centres at zero: two classes, four features."""
        return {"centres": np.zeros((2, 4))}

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Return how far the centres should move; a class that the client lacks stays."""
        centres, inputs = np.array(parameters["centres"]), dataset.inputs()
        for label in np.unique(dataset.labels):
            centres[label] = inputs[dataset.labels == label].mean(axis=0)
        return LocalUpdate({"centres": centres - parameters["centres"]}, len(dataset))


def main(iterations: int = 2) -> IntegerModel:
    """Train, and print what the board shows of each iteration."""
    task = Task.load(Path(__file__).parent / "tasks" / "custom.toml")
    train, test = hold_out(made_up_rows(task.schema, 600), seed=0)

    def measure(model: IntegerModel) -> dict[str, float]:
        distances = np.linalg.norm(test.inputs()[:, None] - model.parameters()["centres"], axis=2)
        return {"accuracy": float((distances.argmin(axis=1) == test.labels).mean())}

    study = SimulatedTask(task, split_rows(train, 6), measure, own_trainer=Centres())
    with Simulation([study]) as simulation:
        for result in simulation.run(iterations):
            print(result.iteration, result.outcome, result.count, f"ε = {result.epsilon:.2f}", result.metrics)
    return simulation.models[task.name]


if __name__ == "__main__":
    main()
