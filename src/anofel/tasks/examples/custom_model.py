"""Train a model of one's own: anything with ``initial`` and ``train``; here one centre for each class."""

import numpy as np

import anofel


class Centres:
    """A trainer; its update moves every centre to the mean of the client's rows of that class."""

    def initial(self) -> anofel.Parameters:
        """Begin with all centres at zero: two classes, four features."""
        return {"centres": np.zeros((2, 4))}

    def train(self, parameters: anofel.Parameters, dataset: anofel.Dataset) -> anofel.LocalUpdate:
        """Return how far the centres should move; a class that the client lacks stays."""
        centres, inputs = np.array(parameters["centres"]), dataset.inputs()
        for label in np.unique(dataset.labels):
            centres[label] = inputs[dataset.labels == label].mean(axis=0)
        return anofel.LocalUpdate({"centres": centres - parameters["centres"]}, len(dataset))


def main(iterations: int = 2) -> anofel.IntegerModel:
    """Train, and print what the board shows of each iteration."""
    task = anofel.Task.example("custom")
    train, test = anofel.hold_out(anofel.made_up_rows(task.schema, 600), seed=0)

    def measure(model: anofel.IntegerModel) -> dict[str, float]:
        distances = np.linalg.norm(test.inputs()[:, None] - model.parameters()["centres"], axis=2)
        return {"accuracy": float((distances.argmin(axis=1) == test.labels).mean())}

    study = anofel.SimulatedTask(task, anofel.split_rows(train, 6), measure, own_trainer=Centres())
    with anofel.Simulation([study]) as simulation:
        for result in simulation.run(iterations):
            print(result.iteration, result.outcome, result.count, f"ε = {result.epsilon:.2f}", result.metrics)
    return simulation.models[task.name]


if __name__ == "__main__":
    main()
