"""What is left when the demo is over: one JSON document, a picture, and the story in a few sentences."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from anofel.demo.data import DemoStudy
from anofel.demo.plan import TARGET_EPSILON
from anofel.demo.play import Demo
from anofel.errors import InvalidInput
from anofel.privacy.calibrate import noise_multiplier, with_noise
from anofel.privacy.plan import Plan
from anofel.tasks.task import Task

PICTURE: Final = "quality.png"
DOCUMENT: Final = "demo.json"
BEARABLE_NOISE: Final = 0.5
"""Noise of half the largest mean update: a study can be trained with that."""
_STYLES: Final[tuple[dict[str, Any], ...]] = (
    {"marker": "o", "linestyle": "-"},
    {"marker": "s", "linestyle": "--", "markerfacecolor": "none", "markersize": 10},
)
"""Two lines that lie on each other can still be told apart."""


def document(demo: Demo) -> dict[str, Any]:
    """Return the result as ``--json`` shows it."""
    results = [result for study in demo.studies for result in demo.watching.of(study)]
    return {
        "dir": str(demo.layout.root),
        "iterations": [result.document() for result in results],
        "refused": [{"what": tried.what, "code": tried.code} for tried in demo.watching.refused],
        "audit": demo.audit,
    }


# Client-level privacy


@dataclass(frozen=True)
class ClientLevel:
    """What protecting whole clients at the same ε would mean for a study."""

    noise_here: float
    """Norm of the noise in the mean of this demo's clients, in the largest possible mean updates."""
    clients_needed: int
    """How many clients make that noise bearable."""


def client_level(task: Task) -> ClientLevel:
    """Compute it from the task's plan: same ε, δ, releases and colluders, unit ``client``."""
    spec = replace(task.privacy, unit="client")
    plan = Plan.of(replace(task, privacy=spec))
    plan = with_noise(plan, noise_multiplier(plan, TARGET_EPSILON, "zero-out"))
    clients = spec.expected_clients
    needed = clients
    while _relative_noise(plan, needed) > BEARABLE_NOISE:
        needed = math.ceil(needed * 1.05)
    return ClientLevel(_relative_noise(plan, clients), needed)


def _relative_noise(plan: Plan, clients: int) -> float:
    """Norm of the noise in a mean over `clients` of whom all but the colluders add their part."""
    spec = plan.spec
    honest = max(2, clients - spec.max_colluders)
    per_coordinate = float(spec.noise_multiplier) * math.sqrt(clients / honest) / clients
    return per_coordinate * math.sqrt(plan.dimension)


# The story


def story(demo: Demo) -> list[tuple[str, list[str]]]:
    """Return headings, each with its sentences."""
    return [
        ("The models", [_model(demo, study) for study in demo.studies]),
        ("What the world saw", _seen(demo)),
        ("What nobody could see", _unseen(demo)),
        ("What was refused", _refused(demo)),
        ("What client-level privacy would need", _needed(demo)),
        ("What is left", _left(demo)),
    ]


def _model(demo: Demo, study: DemoStudy) -> str:
    summed = [result for result in demo.watching.of(study) if result.metrics is not None]
    if not summed:
        return f"{study.title}: no iteration had enough posts, so there is no model."
    found, best = dict(summed[-1].metrics or {}), demo.central[study.name]
    epsilon = "?" if summed[-1].epsilon is None else f"{summed[-1].epsilon:.2f}"
    return (
        f"{study.title}: AUC {found.get('auc', math.nan):.3f} after {len(summed)} sums, at ε = {epsilon} for "
        f"each patient; {best.get('auc', math.nan):.3f} if all rows were pooled at one place."
    )


def _seen(demo: Demo) -> list[str]:
    seen, audit = demo.watching.seen, demo.audit
    sizes = " or ".join(f"{size:,}" for size in sorted(seen.submission_bytes))
    sets = seen.sizes_of_sets.values()
    postings = sum(audit["postings"].values())
    return [
        f"{audit['height']} blocks with {postings} postings; the audit checked every one again.",
        f"{seen.registrations} registrations and {seen.submissions} submissions, each of {sizes} bytes and "
        "under a key that was used once.",
        f"How many updates a sum holds, and the sum; {min(sets)} to {max(sets)} clients could have posted.",
        "Who the certifiers, the committees and the owners are.",
    ]


def _unseen(demo: Demo) -> list[str]:
    options = demo.options
    return [
        "Which client posted in an iteration, and for which study: each post goes to all committees, with an "
        "update for one and zeros for the others.",
        f"Any single update: {options.threshold} of {options.committee} members open a sum together, and "
        f"only one of at least {options.min_clients} updates.",
        "Not hidden here: all roles ran on one machine without a proxy. Proof keys are development keys, "
        "since a ceremony takes minutes, and certificates were made for the demo; the board says so in its "
        "genesis.",
    ]


def _refused(demo: Demo) -> list[str]:
    lines = [f"{tried.what}: {tried.code}" for tried in demo.watching.refused]
    return lines or ["Nothing: the run was too short for the cheaters."]


def _needed(demo: Demo) -> list[str]:
    lines = [
        "The demo protects single patients (unit record): whether one row was in the data. It does not hide "
        "that a hospital took part from somebody who knows everything else."
    ]
    for study in demo.studies:
        found = client_level(demo.tasks[study.name])
        lines.append(
            f"{study.title}: whole clients at ε = {TARGET_EPSILON:g} would need noise {found.noise_here:.1f} "
            f"times as large as the largest mean update of {demo.options.clients} clients. With "
            f"{found.clients_needed} clients it would be half as large."
        )
    return lines


def _left(demo: Demo) -> list[str]:
    root = demo.layout.root
    return [
        f"anofel audit {demo.layout.nodes[0]}",
        *([f"{root / PICTURE} shows quality and ε."] if (root / PICTURE).exists() else []),
        f"{root / 'logs'} holds what every process said.",
    ]


# The picture


def draw(demo: Demo, path: Path) -> None:
    """Draw quality and ε over the iterations, as PNG. Raises ``InvalidInput`` without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise InvalidInput("The picture needs matplotlib: pip install 'anofel[demo]'.") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for place, study in enumerate(demo.studies):
        results = [result for result in demo.watching.of(study) if result.metrics is not None]
        numbers = [result.iteration for result in results]
        quality = [(result.metrics or {}).get("auc", math.nan) for result in results]
        style = _STYLES[place % len(_STYLES)]
        (line,) = left.plot(numbers, quality, **style, label=study.title)
        best, colour = demo.central[study.name].get("auc", math.nan), line.get_color()
        left.axhline(best, color=colour, linestyle=":", linewidth=1)
        where = {"xytext": (0, 3), "textcoords": "offset points", "fontsize": 8}
        left.annotate("all rows pooled", (1, best), color=colour, **where)
        right.plot(numbers, [result.epsilon for result in results], **style, label=study.title)
    left.set(xlabel="iteration", ylabel="AUC on the owner's held-out rows", title="Quality of the model")
    left.legend(loc="lower right")
    right.set(
        xlabel="iteration", ylabel="ε (zero-out) at δ = 1e-5", title="What one patient's record gave away"
    )
    right.set_ylim(bottom=0)
    right.legend(loc="lower right")
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
