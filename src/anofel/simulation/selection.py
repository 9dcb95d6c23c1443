"""The best model by the owner's rows, and when to stop looking for a better one.

What such a choice costs, in the same words in ``docs/simulate.md``:

1. All models that are compared were released before, so a choice among them costs clients no ε, as long as
   the rows that decide are not theirs.
2. Rows of clients would have to pay: each figure that is computed from them is one more release. Metric slots
   are such figures, and their ε is part of the task's.
3. The rows that decide have no ε of their own: whoever sees the choice learns something about them.
4. The figure of the chosen model on these rows is too good; another file tells how good it is.
"""

from dataclasses import dataclass, field

from anofel.simulation.parts import IterationResult


@dataclass(frozen=True)
class BestModel:
    """Which model is the best so far."""

    loss: float
    iteration: int


@dataclass
class BestModels:
    """Watches the results of all tasks; the lowest loss on the owner's rows wins, of equals the earlier."""

    patience: int | None = None
    """Stop after so many models in a row that are no better; None: never."""
    best: dict[str, BestModel] = field(default_factory=dict)
    """That of every task that is measured."""
    _in_vain: dict[str, int] = field(default_factory=dict)

    def watch(self, result: IterationResult) -> bool:
        """Take a result; whether its model is the best one so far."""
        loss = (result.metrics or {}).get("loss")
        if loss is None or result.total is None:
            return False
        is_better = result.task not in self.best or loss < self.best[result.task].loss
        if is_better:
            self.best[result.task] = BestModel(loss, result.iteration)
        self._in_vain[result.task] = 0 if is_better else self._in_vain.get(result.task, 0) + 1
        return is_better

    @property
    def is_over(self) -> bool:
        """Whether no task has become better for as long as one is patient."""
        if self.patience is None or not self._in_vain:
            return False
        return all(count >= self.patience for count in self._in_vain.values())
