"""The whole campaign with a table: ``python -m tests.faults.campaign``. Exit code 1 on any violation.

--scale 0.01      a hundredth of everything, to see that it works
--seed 5          another campaign
--page FILE       also write the table as a page of the documentation
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from anofel.proofs.keys import make_insecure_development_keys
from tests.faults import kills, postings, requests
from tests.faults.node_process import Findings

CHANGED_POSTINGS = 16_300
MALFORMED_REQUESTS = 12_500
KILLS = 81
ACCEPTED_POSTINGS = 4_500
SHOWN = 5
"""How many violations of a part are printed in full."""


@dataclass
class Part:
    """One part of the campaign."""

    name: str
    expectation: str
    least: dict[str, int]
    run: Callable[[], Findings]


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if "model name" in line), platform.machine()
    )
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def run(parts: list[Part]) -> tuple[list[str], bool]:
    """Run every part; return the lines of the table and whether all went well."""
    lines = ["| part | done | must hold | violations | minutes |", "|---|---|---|---|---|"]
    fine = True
    for part in parts:
        print(f"{part.name} ...", flush=True)
        start = time.monotonic()
        findings = part.run()
        minutes = (time.monotonic() - start) / 60
        for name, least in part.least.items():
            if findings.counts.get(name, 0) < least and not findings.violations:
                findings.violations.append(f"Only {findings.counts.get(name, 0)} of {least} {name}.")
        for text in findings.violations[:SHOWN]:
            print(f"  VIOLATION: {text}", file=sys.stderr)
        for name, number in sorted(findings.counts.items()):
            print(f"  {name}: {number:,}")
        done = ", ".join(f"{findings.counts.get(name, 0):,} {name}" for name in part.least)
        lines.append(
            f"| {part.name} | {done} | {part.expectation} | {len(findings.violations)} | {minutes:.1f} |"
        )
        fine = fine and not findings.violations
    return lines, fine


PAGE = """\
# The fuzz and fault campaign

`make test-faults` attacks real nodes, each a process of its own, and ends with this table. It is seeded;
one violation ends it with exit code 1. The default tests run short forms of all parts.

{table}

The last campaign: seed {seed}, {machine}.

- *Changed postings*: one valid posting of every kind is changed in its content and signed again by its
  author, who may post. The board stands where the unchanged posting is admitted, and it admits that one
  after all the others. A change that makes another valid posting (a ledger entry with other numbers, a task
  with another name) is not sent.
- *Malformed requests*: changed, cut and contradictory HTTP. No write is answered with success, no request
  with an error inside the node, and the node's log has no traceback. A request that is not complete gets no
  answer within the half second that is waited for one: there a mistake would show by a traceback alone.
- *Kills*: `kill -9` at every named point of an admission and of a block, and at random moments under load.
  Every posting that got a yes is in a block exactly once, every block follows from the one before it, and
  nothing is half-written.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--only", choices=("postings", "requests", "kills"))
    options = parser.parse_args()

    def scaled(number: int) -> int:
        return max(1, round(number * options.scale))

    with tempfile.TemporaryDirectory() as directory:
        keys = make_insecure_development_keys(Path(directory) / "keys")

        def attack_with_postings() -> Findings:
            stages = postings.SlowStages(keys)
            return postings.attack(stages, scaled(CHANGED_POSTINGS), options.seed)

        parts = {
            "postings": Part(
                "changed postings",
                "no false accept, no crash",
                {"changed postings": scaled(CHANGED_POSTINGS)},
                attack_with_postings,
            ),
            "requests": Part(
                "malformed requests",
                "no false accept, no crash",
                {"malformed requests": scaled(MALFORMED_REQUESTS)},
                lambda: requests.attack(keys, scaled(MALFORMED_REQUESTS), options.seed),
            ),
            "kills": Part(
                "kills",
                "nothing lost",
                {"kills": scaled(KILLS), "accepted postings": scaled(ACCEPTED_POSTINGS)},
                lambda: kills.attack(keys, scaled(KILLS), scaled(ACCEPTED_POSTINGS), options.seed),
            ),
        }
        chosen = [part for name, part in parts.items() if options.only in (None, name)]
        table, fine = run(chosen)
    print("\n".join(["", machine(), "", *table]))
    if options.page is not None and fine:
        text = PAGE.format(table="\n".join(table), seed=options.seed, machine=machine())
        options.page.write_text(text)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
