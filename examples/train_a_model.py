"""Train a model on six hospitals in one process, with real proofs, committee keys and encryption."""

from pathlib import Path

from anofel.learning.evaluate import evaluate_on
from anofel.learning.integer_model import IntegerModel
from anofel.simulation import SimulatedTask, Simulation, made_up_rows, split_rows
from anofel.studies.load import hold_out
from anofel.task import Task


def main(iterations: int = 3) -> IntegerModel:
    """Train, and print what the board shows of each iteration."""
    task = Task.load(Path(__file__).parent / "tasks" / "small.toml")
    train, test = hold_out(made_up_rows(task.schema, 600), seed=0)
    hospitals = split_rows(train, 6, "dirichlet:1")
    with Simulation([SimulatedTask(task, hospitals, evaluate_on(task, test))]) as simulation:
        for result in simulation.run(iterations):
            print(result.iteration, result.outcome, result.count, f"ε = {result.epsilon:.2f}", result.metrics)
    return simulation.models[task.name]


if __name__ == "__main__":
    main()
