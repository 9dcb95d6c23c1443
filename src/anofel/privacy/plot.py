"""Plot a task's ε before it runs (PNG). Needs the extra ``anofel[plot]``."""

from pathlib import Path

import numpy as np

from anofel.errors import InvalidInput
from anofel.privacy.bounds import advantage_bound
from anofel.privacy.plan import Plan
from anofel.tasks.task import RELATIONS, Task

_POINTS = 40


def plot_task(task: Task, path: Path) -> None:
    """Draw ε and γ against the number of releases, under both relations."""
    if path.suffix.lower() != ".png":
        raise InvalidInput(f"The plot is a PNG file; '{path.name}' must end in .png.")
    if task.privacy.unit == "paper":
        raise InvalidInput("The unit 'paper' proves no ε, so there is nothing to plot.")
    try:
        import matplotlib as mpl
    except ImportError:
        raise InvalidInput("Plots need the extra: pip install 'anofel[plot]'.") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    plan = Plan.of(task)
    last = plan.spec.max_releases
    releases = sorted({int(count) for count in np.linspace(1, last, min(last, _POINTS))})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    curves = {relation: [plan.epsilon(count, relation) for count in releases] for relation in RELATIONS}
    for relation, values in curves.items():
        left.plot(releases, values, marker=".", label=relation)
    left.set(xlabel="released sums", ylabel=f"ε at δ = {float(plan.spec.delta):g}", title=task.name)
    left.legend(title=f"unit: {plan.spec.unit}")
    delta = float(plan.spec.delta)
    right.plot(releases, [advantage_bound(value, delta) for value in curves["replace"]], marker=".")
    right.set(xlabel="released sums", ylabel="γ, bound on the attacker's advantage", ylim=(0, 1))
    right.set_title(f"h = {plan.spec.honest}, noise multiplier {plan.spec.noise_multiplier}")
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise InvalidInput(f"The plot cannot be written to '{path}': {error.strerror or error}.") from None
    finally:
        pyplot.close(figure)
