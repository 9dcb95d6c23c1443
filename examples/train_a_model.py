"""Train a model on six hospitals in one process, with real proofs, committee keys and encryption."""

import anofel


def main(iterations: int = 3) -> anofel.IntegerModel:
    """Train, and print what the board shows of each iteration."""
    task = anofel.Task.example("small")
    train, test = anofel.hold_out(anofel.made_up_rows(task.schema, 600), seed=0)
    hospitals = anofel.split_rows(train, 6, "dirichlet:1")
    study = anofel.SimulatedTask(task, hospitals, anofel.evaluate_on(task, test))
    with anofel.Simulation([study]) as simulation:
        for result in simulation.run(iterations):
            print(result.iteration, result.outcome, result.count, f"ε = {result.epsilon:.2f}", result.metrics)
    return simulation.models[task.name]


if __name__ == "__main__":
    main()
