"""Plot the models of a run: their quality and ε, iteration by iteration (PNG). Needs ``anofel[plot]``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anofel.errors import InvalidInput


def check_plot(path: Path) -> None:
    """Refuse what could not be written, before anything runs. Raises ``InvalidInput``."""
    if path.suffix.lower() != ".png":
        raise InvalidInput(f"The plot is a PNG file; '{path.name}' must end in .png.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no directory '{path.parent}' for the plot.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InvalidInput("Plots need the extra: pip install 'anofel[plot]'.") from None


def plot_run(iterations: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the metrics of every task on the left and ε on the right. Raises ``InvalidInput``."""
    check_plot(path)
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for task in dict.fromkeys(entry["task"] for entry in iterations):
        done = [entry for entry in iterations if entry["task"] == task]
        measured = [entry for entry in done if entry["metrics"]]
        for name in sorted({name for entry in measured for name in entry["metrics"]}):
            points = [(entry["iteration"], entry["metrics"].get(name)) for entry in measured]
            left.plot(*zip(*points, strict=True), marker=".", label=f"{task}: {name}")
        right.plot(
            [entry["iteration"] for entry in done],
            [entry["epsilon"] for entry in done],
            marker=".",
            label=task,
        )
    left.set(xlabel="iteration", title="quality on the owner's rows")
    right.set(xlabel="iteration", ylabel="ε so far", title="what it costs")
    for axes in (left, right):
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise InvalidInput(f"The plot cannot be written to '{path}': {error.strerror or error}.") from None
    finally:
        pyplot.close(figure)
