"""Results of bench/attacks.py as JSON, plots and one page of tables."""

import json
from pathlib import Path
from typing import Any

from _attack_runs import ATTACKS, DEFENCES, SHARES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "attacks"
PAGE = ROOT / "docs" / "attacks.md"

INTRODUCTION = """\
# Attack bench

Written by `python bench/attacks.py page` from the files in `docs/results/attacks/`.
`python bench/attacks.py` makes them, goes on where it was stopped, and prints them with `--json`.

- *Lies about the protocol* go through the real cryptography: a committee of three at toy length,
  and a board.
- *Lies about the update* are within the protocol. They are played over the plain integers that a
  deployment encrypts, without proofs, encryption and board.

The columns, each with what the one before it has: **none**, nothing bounds a client; **norm
proof**, a liar sends as much of its vector as may ever pass a [contribution
proof](contribution-proof.md), 2.85·B (what is longer is excluded, as the first tables show); **+
clipping**, the rule [shortens the mean](training.md#a-bound-on-the-mean) to one clipping norm; **+
groups**, it takes the median of the means of [groups](groups.md).

The attacks: *scaling ×1000*, a client's own update, a thousand times; *sign flip ×10*, its update
reversed and ten times; *label flip*, training on wrong labels, clipped as everybody's; *backdoor
×100*, training on marked rows that are all called the target class, a hundred times; *zero
vectors*, Sybils that count and say nothing. One run each, with one seed for split and liars:
differences of a point or two say nothing.
"""


def write(result: dict[str, Any], path: Path) -> None:
    """Write a result whole or not at all, with its plot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    partial.replace(path)
    if result.get("runs"):
        plot(result, path.with_suffix(".png"))


def plot(result: dict[str, Any], path: Path) -> None:
    """One panel for each attack: what is left of the model, by the share of liars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(ATTACKS), figsize=(14, 3.2), sharey=True)
    for panel, attack in zip(panels, ATTACKS, strict=True):
        for defence in DEFENCES:
            points = [
                (100 * run["share"], run["score"])
                for run in result["runs"]
                if run["defence"] == defence and run["attack"] in ("", attack)
            ]
            panel.plot(
                *zip(*sorted(points), strict=True), marker="o", markersize=3, linewidth=1.2, label=defence
            )
        panel.set_title(attack, fontsize=9)
        panel.set_xlabel("liars, %")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(result["measure"])
    panels[0].legend(fontsize=7)
    figure.suptitle(f"{result['study']}, {result['clients']} clients", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def write_page(directory: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the page of all results that are there."""
    lines = [*INTRODUCTION.splitlines(), ""]
    protocol = directory / "protocol.json"
    if protocol.exists():
        lines += _protocol(json.loads(protocol.read_text()))
    for path in sorted(directory.glob("*.json")):
        if path != protocol:
            lines += _study(json.loads(path.read_text()))
    page.write_text("\n".join(lines).rstrip() + "\n")


def _protocol(result: dict[str, Any]) -> list[str]:
    lines = ["## Lies about the protocol", ""]
    heads = {
        "committee": "Payloads, before a committee with `lattice`; three honest clients beside each:",
        "board": "Whole posts, over a board; four honest clients beside each:",
    }
    for name, head in heads.items():
        lines += [
            head,
            "",
            "| lie | refused by | code | sum is the honest one's | where proofs are off |",
            "|---|---|---|---|---|",
        ]
        for row in result[name]:
            right = "yes" if row["sum is right"] else "no"
            code = "–" if row["refused"] == "nothing" else f"`{row['refused']}`"
            lines.append(f"| {row['lie']} | {row['where']} | {code} | {right} | {row['without proofs']} |")
        lines.append("")
    return [*lines, _made(result), ""]


def _study(result: dict[str, Any]) -> list[str]:
    found = {(run["defence"], run["attack"], run["share"]): run for run in result["runs"]}
    missing = len(DEFENCES) * (1 + len(ATTACKS) * len(SHARES)) - len(found)
    lines = [f"## {result['study']}", "", result["remark"], ""]
    lines += [f"{result['iterations']} iterations, {result['groups']} groups, median.", ""]
    if missing:
        lines += [f"**Not complete**: {missing} runs are missing; the command plays them.", ""]
    lines += [f"![{result['study']}](results/attacks/{result['study']}.png)", ""]
    lines += [
        f"{result['measure'].capitalize()} at the end; for the backdoor, in brackets, the share of marked "
        "rows that are put into the target class. † says in how many iterations the sum or the model was "
        "beyond the integers, so that the model stayed.",
        "",
        "| attack | liars | " + " | ".join(DEFENCES) + " |",
        "|---|---|" + "---|" * len(DEFENCES),
    ]
    lines.append(
        "| nobody lies | – | "
        + " | ".join(_cell(found.get((d, "", 0.0)), backdoor=True) for d in DEFENCES)
        + " |"
    )
    for attack in ATTACKS:
        for share in SHARES:
            cells = [_cell(found.get((d, attack, share)), backdoor="backdoor" in attack) for d in DEFENCES]
            lines.append(f"| {attack} | {share:.0%} | " + " | ".join(cells) + " |")
    return [*lines, "", _made(result), ""]


def _cell(run: dict[str, Any] | None, *, backdoor: bool) -> str:
    if run is None:
        return ""
    marked = f" ({run['backdoor']:.2f})" if backdoor else ""
    lost = f" †{run['lost']}" if run["lost"] else ""
    return f"{run['score']:.3f}{marked}{lost}"


def _made(result: dict[str, Any]) -> str:
    made = result["machine"]
    where = f"{made['cpu']} with {made['cores']} cores, Python {made['python']}, NumPy {made['numpy']}"
    return f"`{result['command']}`; {where}."
