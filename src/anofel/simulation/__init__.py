"""All parties in one process, over the same steps and the same rules of the board, for experiments.

The smallest complete program is ``examples/train_a_model.py``::

    task = SimulatedTask(Task.load(path), iid(rows, 16, seed=0))
    with Simulation([task]) as simulation:
        for result in simulation.run(iterations=10):
            print(result.outcome, result.count, result.epsilon)

``Simulation`` has real proofs, dealerless keys and real encryption. ``InsecurePlainSimulation`` has none of
them and computes the same integers. ``docs/simulate.md`` says what neither shows.
"""

from anofel.learning.splits import split_rows
from anofel.simulation.board_run import Simulation
from anofel.simulation.parts import (
    CommitteeSettings,
    IterationResult,
    Participation,
    SimulatedTask,
)
from anofel.simulation.plain_run import InsecurePlainSimulation
from anofel.simulation.rows import made_up_rows
from anofel.simulation.workers import Workers

__all__ = [
    "CommitteeSettings",
    "InsecurePlainSimulation",
    "IterationResult",
    "Participation",
    "SimulatedTask",
    "Simulation",
    "Workers",
    "made_up_rows",
    "split_rows",
]
