"""Results of bench/learning.py as JSON, plots and one page of tables."""

import json
import math
import os
import platform
import statistics
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _paper import BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "experiments.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- results: bench/learning.py page -->", "<!-- end of results -->"

CARE = """\
**Read with care.** A part with one run says nothing of its spread. Rates, clipping norms and numbers of
iterations for MNIST, SUPPORT2 and nwtco (as classes) were chosen by looking at the same test rows (for nwtco
ten pairs of rate and iterations; the rates of central and federated training for both are the steadiest of
five), and the search costs no ε here; figures on fresh rows would be somewhat lower. Fashion-MNIST takes the
rates of MNIST. Rates and batches of the clients for CIFAR-10 were chosen on training rows that the
experiments leave out, after a few iterations each. In mnist-iid the protected variants, the encrypted
iteration and central training (which the command now trains for 40 iterations) are of earlier runs. The
settings of the linear models on scattering features were chosen on a tenth of the training rows of MNIST, in
about twenty tries (if those rows were private, so many private runs would cost roughly √20 times the ε of
one), and taken over for the others. No test row was looked at for them."""
CHOSEN = {
    ("support2-survival", "nwtco-survival", "heartbeats"): """\
Settings of survival and of heartbeats were chosen on a tenth of the training rows of one to three splits, in
about fifty tries (private ones would cost roughly √50 times the ε of one); such rows are test rows of other
splits. That survival starts at a hazard of a tenth was decided after a look at test rows of nwtco.""",
    ("fashion-remedies", "mnist-remedies", "fashion-skewed"): """\
The remedies for rows that are not IID were chosen on a tenth of the training rows of Fashion-MNIST sorted by
label, in thirteen runs without noise.""",
}
"""How the settings of these were chosen, said where one of them ran."""

LITERATURE = {
    "mnist": "0.987 at ε = 3 [1]",
    "fashion-mnist": "0.897 at ε = 3 [1]",
    "cifar-10": "0.670 at ε = 3 [1]",
}
"""Of the same kind of model, all rows in one place and without other data; sources under the table."""
SOURCES = """\
Every figure is of the test rows at the end, the mean where there are several runs. [1] Tramèr and Boneh,
*Differentially Private Learning Needs Better Features*, arXiv 2011.11660: the same kind of model, central,
per record, δ = 1e-5. The paper's ε is [not a bound](privacy.md#where-the-papers-calibration-fails)."""

LOGARITHMIC = 10
"""Curves whose lengths differ by more share an axis of logarithms."""
MEANINGFUL = 100
"""A share of hardly any training says nothing."""
PAPER_ACCURACY = {"mnist-iid": 0.9927, "cifar-resnet20-full": 0.9060, "cifar-resnet20-noniid": 0.7661}
"""Of AnoFel §5, with the paper's own privacy formula."""


def machine() -> dict[str, Any]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ] or [platform.processor()]
    packages = {name: _version(name) for name in ("anofel", "numpy", "torch", "dp-accounting")}
    return {
        "cpu": models[0],
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **packages,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        return "not installed"


def write(result: dict[str, Any], directory: Path) -> Path:
    """Write a result; parts of an earlier run of the same command that it does not hold are kept."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result['experiment']}.json"
    merged = result | _earlier_parts(path, result)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
    partial.replace(path)
    plot(merged, path.with_suffix(".png"))
    return path


def _earlier_parts(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Join the parts of both; the result's own win, and runs of a part with other settings are dropped."""
    if not path.exists():
        return {}
    earlier = json.loads(path.read_text())
    if any(earlier.get(name) != result[name] for name in ("command", "shortened")):
        return {}
    variants = {part["name"]: part for part in earlier["variants"]}
    for part in result["variants"]:
        before = variants.get(part["name"])
        if before is not None and before["task"] == part["task"]:
            runs = {run["seed"]: run for run in (*before["runs"], *part["runs"])}
            part = {**part, "runs": [runs[seed] for seed in sorted(runs)]}
        variants[part["name"]] = part
    joined: dict[str, Any] = {"variants": list(variants.values())}
    for name in ("encrypted", "spread"):
        parts = {part["clients"]: part for part in (*earlier.get(name, ()), *result[name])}
        joined[name] = [parts[key] for key in sorted(parts)]
    return joined


def plot(result: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for variant in result["variants"]:
        curves, name = [run["scores"] for run in variant["runs"]], variant["name"]
        if len(curves[0]) == 1:
            axes.axhline(_mean_end(variant), label=name, linewidth=1, linestyle="--", color="grey")
            continue
        iterations = range(1, len(curves[0]) + 1)
        means = [statistics.fmean(scores) for scores in zip(*curves, strict=True)]
        (line,) = axes.plot(iterations, means, label=name, linewidth=1.4)
        if len(curves) > 1:
            lowest, highest = [list(map(of, zip(*curves, strict=True))) for of in (min, max)]
            axes.fill_between(iterations, lowest, highest, color=line.get_color(), alpha=0.2, linewidth=0)
    lengths = [len(part["runs"][0]["scores"]) for part in result["variants"]]
    longer = [length for length in lengths if length > 1]
    if longer and max(longer) > LOGARITHMIC * min(longer):
        axes.set_xscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel(result["measure"])
    axes.set_title(result["title"] + (" (shortened)" if result["shortened"] else ""), fontsize=10)
    axes.grid(alpha=0.3)
    if result["variants"]:
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


@dataclass(frozen=True)
class Row:
    """One line of the table at the top: an experiment, its variants, and what others report."""

    title: str
    experiment: str
    central: str = "central"
    federated: str = "federated"
    ours: str = "no DP"
    private: str = "record"
    looser: str = "record, ε = 3"
    paper: str = "–"
    literature: str = "–"


ROWS = (
    Row("LeNet5, MNIST", "mnist-iid", paper="0.9927"),
    Row("ResNet20, CIFAR-10", "cifar-resnet20-full", paper="0.9060"),
    Row("ResNet20, CIFAR-10, sorted by label", "cifar-resnet20-noniid", paper="0.7661"),
    Row("ResNet20, CIFAR-10, shortened to 8 iterations", "cifar-resnet20"),
    Row("SqueezeNet, CIFAR-10, shortened to 5 iterations", "cifar-squeezenet"),
    Row("LeNet5, Fashion-MNIST", "fashion-iid"),
    Row("linear on scattering features, MNIST", "mnist-private", literature=LITERATURE["mnist"]),
    Row(
        "linear on scattering features, Fashion-MNIST",
        "fashion-private",
        literature=LITERATURE["fashion-mnist"],
    ),
    Row("linear on scattering features, CIFAR-10", "cifar-private", literature=LITERATURE["cifar-10"]),
    Row(
        "SUPPORT2, death in hospital, 512 clients (area under the curve)",
        "support2",
        "central, converged",
        "federated, 512 clients",
        "",
        "client, 512 clients",
    ),
    Row(
        "SUPPORT2, survival, 512 clients (concordance)",
        "support2-survival",
        federated="federated, 512 clients",
        ours="",
        private="record, 512 clients",
    ),
    Row(
        "nwtco, relapse in time, 512 clients (concordance)",
        "nwtco-survival",
        federated="federated, 512 clients",
        ours="",
        private="record, 512 clients",
    ),
    Row(
        "heartbeats of five kinds, 512 clients",
        "heartbeats",
        federated="federated, 512 clients",
        ours="",
        private="record, 512 clients",
        looser="record, ε = 3, 512 clients",
    ),
)


def overview(directory: Path = RESULTS) -> list[str]:
    """Compare what ran with the paper and with others, on one screen; what did not run has no line."""
    ran = {
        row.title: {part["name"]: part for part in json.loads(path.read_text())["variants"]}
        for row in ROWS
        if (path := directory / f"{row.experiment}.json").exists()
    }
    looser = any(row.looser in ran.get(row.title, {}) for row in ROWS)
    heads = ["what", "central", "plain federated", "through anofel, no noise", "ε = 0.9"]
    heads += [*(["ε = 3"] if looser else []), "the paper, its own ε", "others"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in ROWS:
        if row.title not in ran:
            continue
        variants = ran[row.title]
        private = variants.get(row.private)
        unit = "" if private is None else f" for a {row.private.partition(',')[0]}"
        cells = [_cell(variants.get(name)) for name in (row.central, row.federated, row.ours)]
        cells += [_cell(private) + unit, *([_cell(variants.get(row.looser))] if looser else [])]
        lines.append(f"| {' | '.join([row.title, *cells, row.paper, row.literature])} |")
    return lines


def _cell(variant: dict[str, Any] | None) -> str:
    if variant is None:
        return "–"
    ends = _ends(variant)
    return f"{statistics.fmean(ends):.3f}" + (f" ({len(ends)} runs)" if len(ends) > 1 else "")


def write_readme(directory: Path = RESULTS, readme: Path = README) -> None:
    """Replace the table between the two marks of the README."""
    before, rest = readme.read_text().split(BEGIN)
    _, after = rest.split(END)
    readme.write_text("\n".join([before + BEGIN, "", *overview(directory), "", END + after]))


def write_page(directory: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the page of all results that are there; figures in CARE and CHOSEN alone are typed by hand."""
    results = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    ran = {result["experiment"] for result in results}
    lines = [
        "# Experiments",
        "",
        "Written by `python bench/learning.py page` from the files in `docs/results/`; every table says",
        "how it was made. [Networks](networks.md) explains the variants. The seed fixes the split and the",
        "first model; noise, sampling and rounding are drawn afresh by every run.",
        "",
        *overview(directory),
        "",
        *SOURCES.splitlines(),
        "",
        *CARE.splitlines(),
        *(line for names, text in CHOSEN.items() if ran & {*names} for line in text.splitlines()),
        "",
    ]
    lines += [*_costs(results), *_remedies(results)]
    for result in results:
        lines += _section(result)
    page.write_text("\n".join(lines).rstrip() + "\n")


def _section(result: dict[str, Any]) -> list[str]:
    lines = [f"## {result['title']}", ""]
    if result["shortened"]:
        lines += [f"**Shortened:** {result['shortened']}.", ""]
    lines += [f"![{result['title']}](results/{result['experiment']}.png)", ""]
    lines += [
        f"| variant | iterations | ε (δ = 1e-5) | {result['measure']} at the end "
        "| runs | range | CPU, one run |",
        "|---|---|---|---|---|---|---|",
    ]
    for variant in result["variants"]:
        ends, seconds = _ends(variant), [run["cpu_seconds"] for run in variant["runs"]]
        spread = f"{min(ends):.4f} – {max(ends):.4f}" if len(ends) > 1 else ""
        spent = "" if None in seconds else _duration(statistics.fmean(seconds))
        lines.append(
            f"| {variant['name']} | {variant['iterations']} | {variant['epsilon']} "
            f"| {statistics.fmean(ends):.4f}{_interval(ends)} | {len(ends)} | {spread} | {spent} |"
        )
    if result["experiment"] in PAPER_ACCURACY:
        figure = PAPER_ACCURACY[result["experiment"]]
        lines.append(f"| the paper's figure | | 0.9 by its own formula | {figure:.4f} | | | |")
    lines += ["", *_spread(result)]
    seeds = sorted({run["seed"] for part in result["variants"] for run in part["runs"]})
    lines += [f"`{result['command']}`, seeds {', '.join(map(str, seeds))}, one thread."]
    machines = [
        (made["cpu"], made["cores"], made["python"], made["numpy"], made["torch"])
        for part in result["variants"]
        for run in part["runs"]
        for made in run["machines"]
    ]
    lines += [
        f"{cpu} with {cores} cores, Python {python}, NumPy {numpy}, PyTorch {torch}."
        for cpu, cores, python, numpy, torch in dict.fromkeys(machines)
    ]
    return [*lines, ""]


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{max(1, round(seconds))} s"


def _interval(ends: list[float]) -> str:
    """Half the width of the 95 % interval of the mean (Student's t), for three runs or more."""
    if len(ends) < 3:
        return ""
    from scipy import stats

    width = stats.t.ppf(0.975, len(ends) - 1) * statistics.stdev(ends) / math.sqrt(len(ends))
    return f" ± {width:.4f}"


def _ends(variant: dict[str, Any]) -> list[float]:
    return [run["scores"][-1] for run in variant["runs"]]


def _mean_end(variant: dict[str, Any]) -> float:
    return statistics.fmean(_ends(variant))


def _spread(result: dict[str, Any]) -> list[str]:
    if not result.get("spread"):
        return []
    runs = {len(part["scores"]) for part in result["spread"]}
    lines = [
        f"The variant `client` again, {' or '.join(map(str, sorted(runs)))} runs over plain integers:",
        f"{result['measure']} at the end.",
        "",
        "| clients | lowest | median | highest |",
        "|---|---|---|---|",
    ]
    for part in result["spread"]:
        scores = part["scores"]
        figures = (min(scores), statistics.median(scores), max(scores))
        lines.append(f"| {part['clients']} | " + " | ".join(f"{figure:.4f}" for figure in figures) + " |")
    return [*lines, ""]


COSTS = """\
## What anonymity costs a client

Of one client in one iteration through the encrypted protocol, two tasks in its bundle. All else is the digest
of its data, its ledger, noise, the proof of membership, encryption to two committees, the contribution proof
and the signature. The paper has 512 clients, trains on a GPU and does the rest with 8 threads; its shares
follow from its statement how much of the whole the proof alone is, and its bytes are of one task."""


UNPROVEN_COSTS = "Rows without bytes were measured before there were contribution proofs, and have none."


def _costs(results: list[dict[str, Any]]) -> list[str]:
    """Hold what a client does for anonymity beside its training, and beside the paper's."""
    checks = [(result, check) for result in results for check in result["encrypted"]]
    if not checks:
        return []
    earlier = any("client_bytes" not in check for _, check in checks)
    lines = [
        *COSTS.splitlines(),
        *([UNPROVEN_COSTS] if earlier else []),
        "",
        "| experiment | clients | parameters | integers | training, s of CPU | all else | of training "
        "| sends | the paper: of training | sends |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result, check in checks:
        ratio = check["overhead_seconds"] / max(check["train_seconds"], 1e-9)
        share = f"{ratio:.0%}" if ratio < MEANINGFUL else "–"
        same = "as in the plain path" if check["same_integers"] else "OTHERS"
        quoted = next((one for one in BENCHMARKS.values() if one.kind == result["kind"]), None)
        paper = "– | –"
        if quoted is not None:
            derived = quoted.beside_training / quoted.training
            paper = f"{derived:.0%} ({quoted.data}) | {quoted.client_bytes / 1e6:.1f} MB"
        sent = f"{check['client_bytes'] / 1e6:.2f} MB" if "client_bytes" in check else "–"
        lines.append(
            f"| {result['experiment']} | {check['clients']} | {check['parameters']:,} | {same} "
            f"| {check['train_seconds']:.3f} | {check['overhead_seconds']:.3f} | {share} | {sent} | {paper} |"
        )
    return [*lines, ""]


REMEDIES = """\
## What helps where rows are not IID

Quality at the end, the mean of the runs; in brackets the lowest and the highest. All in integers
and without noise, with the same iterations and the same rate of the clients."""


def _remedies(results: list[dict[str, Any]]) -> list[str]:
    """One table of what is held against rows that are not IID: an experiment is a column."""
    columns = [result for result in results if result.get("remedies")]
    if not columns:
        return []
    lines = [
        *REMEDIES.splitlines(),
        "",
        "| | " + " | ".join(f"{result['title'].partition(':')[0]}" for result in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for name in dict.fromkeys(part["name"] for result in columns for part in result["variants"]):
        found = [_named(result, name) for result in columns]
        lines.append(f"| {name} | " + " | ".join(map(_with_range, found)) + " |")
    return [*lines, ""]


def _named(result: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((part for part in result["variants"] if part["name"] == name), None)


def _with_range(variant: dict[str, Any] | None) -> str:
    if variant is None:
        return "–"
    ends = _ends(variant)
    spread = f" ({min(ends):.3f} – {max(ends):.3f})" if len(ends) > 1 else ""
    return f"{statistics.fmean(ends):.3f}{spread}"
