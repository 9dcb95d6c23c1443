"""Proofs against their peers, in one run on the same constraint system.

    python bench/proofs.py [--json] [--runs N]

What is in a figure of proving:
  ours         the values of all variables, the check that they satisfy the statement, the proof
  ark-groth16  its constraints laid down and the proof; the values of the variables are given to it
  gnark        the check that the values of the variables satisfy the constraints, and the proof
  snarkjs      the proof, with the values of the variables in memory and its workers running

gnark and snarkjs have our constraints, row by row, and make keys of their own. All use every core.
Programs take turns run by run, so that a busy moment hits all of them. The CPU time of all cores together, a
mean, is the figure that a busy machine disturbs least.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace
from statistics import fmean, median

import _table
from peers import Circuits, Gnark, Snarkjs, Taken, machine
from rich.console import Console
from rich.table import Table

STATEMENTS = ("submission", "registration")
DEPTHS = range(4, 9)
CLIENT_DEPTH = 7


@dataclass(frozen=True)
class Row(_table.Row):
    """One line of the result: ours against a peer, and the bar that it has to meet."""

    spread: str = ""
    bar: str = ""
    met: bool | None = None


class Samples:
    """Milliseconds by name, taken in turns."""

    def __init__(
        self, circuits: Circuits, peers: dict[str, Snarkjs | Gnark | None], runs: int, console: Console
    ) -> None:
        """Measure nothing yet."""
        self._circuits = circuits
        self._peers = {name: peer for name, peer in peers.items() if peer is not None}
        self._runs, self._console = runs, console
        self._samples: dict[tuple[str, str], list[float]] = {}
        self._cpu: dict[tuple[str, str], list[float]] = {}

    @property
    def peers(self) -> list[str]:
        """The peers that are other programs, and were found."""
        return list(self._peers)

    def take(self, *names: tuple[str, str]) -> None:
        """Measure each (work, statement) once to warm up, then `runs` times in turns."""
        for run in range(self._runs + 1):
            self._console.print(f"{names[0][0]} {names[0][1]} …: run {run} of {self._runs}")
            for work, statement in names:
                taken = self._once(work, statement)
                if run == 0:
                    continue
                self._samples.setdefault((work, statement), []).append(1000 * taken.wall)
                if taken.cpu is not None:
                    self._cpu.setdefault((work, statement), []).append(1000 * taken.cpu)

    def _once(self, work: str, statement: str) -> Taken:
        peer, _, rest = work.partition("-")
        if peer in self._peers:
            return self._peers[peer].measure(rest, statement)
        return self._circuits.measure(work, statement)

    def row(
        self,
        name: str,
        ours: tuple[str, str],
        peer_name: str | None = None,
        peer: tuple[str, str] | None = None,
        bar: float | None = None,
    ) -> Row:
        """Compare two medians; the bar is a ratio, or milliseconds where it is above 1."""
        own = median(self._samples[ours])
        other = median(self._samples[peer]) if peer else None
        spread = self._spread(ours) + (f" / {self._spread(peer)}" if peer else "")
        row = Row(name, own, "ms", peer_name, other, spread)
        if bar is None:
            return row
        found = own if bar > 1 else row.ratio
        text = f"≤ {bar:g} ms" if bar > 1 else f"≤ {bar:.3g}"
        return Row(name, own, "ms", peer_name, other, spread, text, found is not None and found <= bar)

    def cpu_rows(
        self,
        name: str,
        ours: tuple[str, str],
        peer_name: str,
        peer: tuple[str, str],
        bar: float | None = None,
    ) -> list[Row]:
        """Compare two means of CPU time, where the system tells; the bar is a ratio."""
        if ours not in self._cpu or peer not in self._cpu:
            return []
        row = Row(name, fmean(self._cpu[ours]), "ms CPU", peer_name, fmean(self._cpu[peer]))
        if bar is None or row.ratio is None:
            return [row]
        return [replace(row, bar=f"≤ {bar:.3g}", met=row.ratio <= bar)]

    def _spread(self, name: tuple[str, str]) -> str:
        values = self._samples[name]
        return f"{number(min(values))}–{number(max(values))}"


def prove_rows(samples: Samples) -> list[Row]:
    """Proving, against all peers."""
    works = ["prove", "stock-prove", *(f"{peer}-prove" for peer in samples.peers)]
    samples.take(*((work, statement) for statement in STATEMENTS for work in works))
    bars = {"submission": 0.5, "registration": 0.6}
    rows = []
    for statement in STATEMENTS:
        name, ours, stock = f"prove {statement}", ("prove", statement), ("stock-prove", statement)
        rows.append(samples.row(name, ours, "ark-groth16", stock, bars[statement]))
        cpu_bar = 1 / 3 if statement == "submission" else None
        rows += samples.cpu_rows(name, ours, "ark-groth16", stock, cpu_bar)
        for peer in samples.peers:
            theirs = (f"{peer}-prove", statement)
            bar = 1 / 6 if (peer, statement) == ("snarkjs", "submission") else None
            rows.append(samples.row(name, ours, peer, theirs, bar))
            rows += samples.cpu_rows(name, ours, peer, theirs)
    return rows


def verify_rows(samples: Samples) -> list[Row]:
    """One proof, and a batch of 64."""
    one, batch = ("verify", "submission"), ("verify-batch", "submission")
    samples.take(one, batch, *((f"{peer}-verify", "submission") for peer in samples.peers))
    rows = []
    for peer in samples.peers:
        theirs = (f"{peer}-verify", "submission")
        rows.append(samples.row("verify one", one, peer, theirs, 1.0 if peer == "gnark" else None))
        rows += samples.cpu_rows("verify one", one, peer, theirs)
    if not rows:
        rows.append(samples.row("verify one", one))
    return [*rows, samples.row("verify in a batch of 64, each", batch, "ours, one by one", one, 0.4)]


def key_rows(samples: Samples) -> list[Row]:
    """Check proving keys and make their tables, as it is done once; load the tables; make keys."""
    works = ("expand", "load", "load-file", "stock-load", "setup", "stock-setup")
    rows = []
    for statement in STATEMENTS:
        samples.take(*((work, statement) for work in works))
        stock_load, stock_setup = ("stock-load", statement), ("stock-setup", statement)
        peer = "ark-groth16, checked"
        rows += [
            samples.row(f"check {statement} key and make its tables, once", ("expand", statement)),
            samples.row(f"load {statement} key", ("load", statement), peer, stock_load, 50),
            samples.row(
                f"load {statement} key, file read too", ("load-file", statement), peer, stock_load, 50
            ),
            samples.row(f"set-up {statement}", ("setup", statement), "ark-groth16", stock_setup),
        ]
    return rows


def size_rows(sizes: dict[str, dict[str, int]]) -> list[Row]:
    """Constraints and bytes."""
    rows = []
    for statement in STATEMENTS:
        size = sizes[statement]
        rows.append(Row(f"{statement} constraints", size["constraints"], "constraints"))
        wire, tables, stock = (size[key] / 1e6 for key in ("key_bytes", "tables_bytes", "stock_key_bytes"))
        rows.append(Row(f"{statement} proving key", wire, "MB", "ark-groth16, uncompressed", stock))
        rows.append(Row(f"{statement} tables, on disk", tables, "MB"))
    return rows


def depth_rows(samples: Samples, sizes: dict[str, dict[str, int]]) -> list[Row]:
    """Membership alone at several depths, and what the whole submission would have there."""
    samples.take(*(("prove", f"membership-{depth}") for depth in DEPTHS))
    rest = sizes["submission"]["constraints"] - sizes[f"membership-{CLIENT_DEPTH}"]["constraints"]
    rows = []
    for depth in DEPTHS:
        name = f"membership-{depth}"
        rows.append(samples.row(f"prove membership alone, 8^{depth} leaves", ("prove", name)))
        total = sizes[name]["constraints"] + rest
        rows.append(Row(f"submission constraints, 8^{depth} leaves", total, "constraints"))
    return rows


def number(value: float) -> str:
    """Write three digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_table(rows: list[Row], console: Console) -> None:
    """Print the rows for people."""
    table = Table(title="Medians; ratio = ours / peer; spread = least–most of ours / peer")
    for heading in ("what", "ours", "peer", "", "ratio", "bar", "met", "unit", "spread"):
        table.add_column(heading, justify="left" if heading in ("what", "", "spread") else "right")
    for row in rows:
        peer = "" if row.peer is None else number(row.peer)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        met = {True: "yes", False: "NO", None: ""}[row.met]
        table.add_row(
            row.name, number(row.ours), peer, row.peer_name or "", ratio, row.bar, met, row.unit, row.spread
        )
    console.print(table)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description="Benchmark the proofs against their peers.")
    parser.add_argument("--json", action="store_true", help="print a list of rows as JSON")
    parser.add_argument("--runs", type=int, default=10, help="runs of each measurement (default 10)")
    arguments = parser.parse_args()
    progress = Console(stderr=True)
    with (
        Circuits() as circuits,
        Snarkjs.start(circuits, STATEMENTS, progress) as snarkjs,
        Gnark.start(circuits, STATEMENTS, progress) as gnark,
    ):
        sizes = circuits.describe()
        samples = Samples(circuits, {"gnark": gnark, "snarkjs": snarkjs}, arguments.runs, progress)
        rows = prove_rows(samples) + verify_rows(samples)
        rows += key_rows(samples) + size_rows(sizes) + depth_rows(samples, sizes)
        about = machine(snarkjs, gnark)
    if arguments.json:
        json.dump([row.document() for row in rows], sys.stdout, indent=2)
        print()
        return
    output = Console(width=None if sys.stdout.isatty() else 170)
    for line in about:
        output.print(line, highlight=False)
    output.print(f"{arguments.runs} runs of each, after one to warm up.", highlight=False)
    print_table(rows, output)
    if snarkjs is None:
        output.print("snarkjs was not measured: Node or npm was not found.")
    if gnark is None:
        output.print("gnark was not measured: Go was not found.")


if __name__ == "__main__":
    main()
