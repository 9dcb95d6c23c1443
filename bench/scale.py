"""Many clients of one simulation: what each costs, and what is in memory, as their number grows.

    python bench/scale.py                       500, 2,000 and 5,000 clients
    python bench/scale.py --quick               64 and 128 clients; minutes
    python bench/scale.py --keep DIR            sizes that DIR has figures of are not run again
    python bench/scale.py --json                a list of {name, ours, peer_name, peer, ratio, unit}

Every size is a run of its own in a process of its own: one iteration of logistic regression on vectors of
the size of ``support2`` (34 features and an intercept) over made-up rows, two for each client. Everything is
real: ownership, registration and submission proofs, a committee of three without a dealer, of which two
open, encryption, and a board in a directory. The workers own the clients, one for each core. Processor time
counts everything from the start of Python to the last block, keys of the committee included; proof keys are
made once before. Memory is the peak of a process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _table import Row, machine, report

from anofel.learning.splits import split_rows
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from anofel.simulation import SimulatedTask, Simulation, made_up_rows
from anofel.simulation.parts import OnProgress
from anofel.studies.catalogue import study_named
from anofel.tasks.task import Task, read_task

SIZES = (500, 2000, 5000)
QUICK = (64, 128)
ROWS = 2
MIB = 1 << 20
FLAT = 1.1
"""How much more a client may cost among the most than among the fewest."""


def task_for(clients: int) -> Task:
    """Make a task in which all clients count."""
    return read_task(
        {
            "task": {"name": "scale", "study": "support2"},
            "model": {"kind": "logistic", "scale_bits": 12},
            "training": {"algorithm": "fedsgd"},
            "rule": {"lr_num": 5, "lr_den": ROWS},
            "privacy": {
                "unit": "record",
                "clipping_norm": 2,
                "noise_multiplier": 1,
                "max_releases": 1,
                "min_clients": clients,
                "max_colluders": 0,
                "expected_clients": clients,
                "records_per_client": ROWS,
            },
        }
    )


def narrator(start: float) -> OnProgress:
    """Tell a log how far a run is, and what it took so far: a run that is stopped has shown that much."""

    def tell(what: str, done: int, total: int) -> None:
        cpu = f"{time.process_time():.1f} s here, {cpu_of_children():.1f} s in workers"
        said = f"{time.monotonic() - start:8.0f} s  {what}: {done} of {total}; processor {cpu}"
        print(said, file=sys.stderr, flush=True)

    return tell


def cpu_of_children() -> float:
    """What the processes that this one started took so far (Linux)."""
    pids = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    times = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids]
    return sum(int(user) + int(system) for user, system in times) / os.sysconf("SC_CLK_TCK")


def run(keys: Path, clients: int, workers: int) -> dict[str, object]:
    """Run one size here; give what it took."""
    start = time.monotonic()
    rows = made_up_rows(study_named("support2").schema(), ROWS * clients)
    part = SimulatedTask(task_for(clients), split_rows(rows, clients))
    with tempfile.TemporaryDirectory() as scratch:
        board = Path(scratch) / "board"
        with Simulation(
            [part],
            directory=board,
            keys=KeyDirectory.open(keys),
            workers=workers,
            on_progress=narrator(start),
        ) as simulation:
            (result,) = simulation.run(1)
        kept = sum(file.stat().st_size for file in board.rglob("*") if file.is_file())
    assert (result.outcome, result.count, result.posts) == ("summed", clients, clients), result.document()
    own, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "clients": clients,
        "workers": workers,
        "machine": machine(),
        "seconds": time.monotonic() - start,
        "board_cpu": own.ru_utime + own.ru_stime,
        "workers_cpu": theirs.ru_utime + theirs.ru_stime,
        "board_memory": own.ru_maxrss / 1024,
        "worker_memory": theirs.ru_maxrss / 1024,
        "disk": kept / MIB,
    }


def measured(size: int, workers: int, keys: Path, keep: Path) -> dict[str, float]:
    """Give the figures of a size, from an earlier run if there was one."""
    path = keep / f"scale-{size}.json"
    if not path.exists():
        command = [sys.executable, __file__, "--run", str(keys), str(size), str(workers)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        path.write_bytes(done.stdout)
    found: dict[str, float] = json.loads(path.read_text())
    return found


def rows_of(found: dict[str, float]) -> list[Row]:
    clients = found["clients"]
    what = f"{clients:,} clients"
    return [
        Row(f"{what}: processor of the workers, for each client", found["workers_cpu"] / clients, "s"),
        Row(f"{what}: processor of board and committee, for each client", found["board_cpu"] / clients, "s"),
        Row(f"{what}: on the clock", found["seconds"] / 60, "min"),
        Row(f"{what}: memory of board and committee", found["board_memory"], "MiB"),
        Row(f"{what}: memory of the largest worker", found["worker_memory"], "MiB"),
        Row(f"{what}: on disk for each client", found["disk"] / clients * 1024, "KiB"),
    ]


def cost(found: dict[str, float]) -> float:
    return (found["workers_cpu"] + found["board_cpu"]) / found["clients"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="64 and 128 clients")
    parser.add_argument("--sizes", type=int, nargs="+", help="other numbers of clients")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=Path, help="where the figures of each size are kept")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        keys, size, workers = options.run
        print(json.dumps(run(Path(keys), int(size), int(workers))))
        return
    sizes = options.sizes or (QUICK if options.quick else SIZES)
    with tempfile.TemporaryDirectory() as scratch:
        keys, keep = Path(scratch) / "keys", options.keep or Path(scratch)
        make_insecure_development_keys(keys)
        keep.mkdir(parents=True, exist_ok=True)
        found = [measured(size, options.workers, keys, keep) for size in sizes]
    rows = [row for entry in found for row in rows_of(entry)]
    name = f"processor for each client, {max(sizes):,} clients against {min(sizes):,}"
    ordered = sorted(found, key=lambda entry: entry["clients"])
    rows.append(Row(name, cost(ordered[-1]) / cost(ordered[0]), "times"))
    notes = [
        f"{entry['clients']:,} clients in {entry['workers']} workers: {entry['machine']}" for entry in found
    ]
    report("Many clients in one simulation", rows, {name: FLAT}, notes, as_json=options.json)


if __name__ == "__main__":
    main()
