"""Faults of a board of four validators: ``python -m tests.faults.replicated``. Exit code 1 on any violation.

--scale 0.2       fewer faults of each kind
--only NAME       one part
--seed 5          another campaign
--keep FILE       write down each part that ends, and do not begin again those that are written there
--page FILE       also write the table as a page of the documentation
"""
# What was wanted and not kept in time is counted apart: it says as much about the machine as about the board.

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anofel.errors import PeerUnreachable
from anofel.light_client.base import BoardClient, BoardMisbehaved
from anofel.light_client.client import LightClient
from anofel.light_client.header_client import HeaderClient
from anofel.network.transport import Transport
from anofel.node.replicated.engine import LAST_VOTE, find_engine
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from tests.board.lying import LIES, LyingNode
from tests.faults import networks, skewed_engine
from tests.faults.campaign import machine
from tests.faults.cluster import (
    INVARIANTS,
    NUMBER,
    PATIENCE,
    WANTED_INTERVALS,
    WANTED_SECONDS,
    Cluster,
    followers,
    under_load,
)
from tests.faults.faulty_validator import KINDS, POINTS
from tests.faults.lies import try_all
from tests.faults.node_process import Findings
from tests.replicated.support import free_ports

Part = Callable[[KeyDirectory, Path, Findings, int, float], None]


ENGINE_POINTS = range(10)
"""CometBFT's own places to fail, with which its developers try its recovery: about those of one block."""


def times(number: int, scale: float) -> int:
    return max(1, round(number * scale))


def kills_at_random(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """kill -9 of one validator with its engine's connection, of two, or of an engine alone, under load."""
    chance = random.Random(seed)
    with under_load(keys, directory, findings, seed) as cluster:
        for place in range(times(40, scale)):
            kind = ("one", "engine", "one", "two")[place % 4]
            chosen = chance.sample(range(NUMBER), 2 if kind == "two" else 1)
            for number in chosen:
                if kind == "engine":
                    cluster.kill_engine(number)
                else:
                    cluster.kill(number)
                findings.add("faults")
            if kind != "two" and place % 4 == 0:
                cluster.goes_on(findings, [n for n in range(NUMBER) if n not in chosen])
            time.sleep(chance.uniform(0, 2))
            for number in chosen:
                if kind != "engine":
                    cluster.start(number)
            if place % 4 == 3:
                cluster.equal_again(findings)


def kills_at_writes(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """An end before, inside and after every write of a block, its seal and its blobs, and of the engine's."""
    chance = random.Random(seed)
    points = [point for _ in range(times(3, scale)) for point in POINTS]
    with under_load(keys, directory, findings, seed) as cluster:
        while points:
            group, points = points[:3], points[3:]
            number = chance.randrange(NUMBER)
            for point in group:
                cluster.kill(number)
                cluster.start(number, "kill", point, str(1 + chance.randrange(4)))
                try:
                    cluster.nodes[number].process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    findings.violations.append(f"{point} was never reached.")
                findings.add("faults")
            cluster.goes_on(findings, [n for n in range(NUMBER) if n != number])
            cluster.start(number)
            cluster.equal_again(findings)
        for point in list(ENGINE_POINTS)[:: max(1, round(0.2 / scale))]:
            number = point % NUMBER
            cluster.kill(number)
            cluster.environments[number]["FAIL_TEST_INDEX"] = str(point)
            cluster.start(number)
            if not cluster.wait_for_words(number, f"*** fail-test {point} ***"):
                findings.violations.append(f"The engine never came to its place {point}.")
            findings.add("faults")
            cluster.goes_on(findings, [n for n in range(NUMBER) if n != number])
            cluster.kill(number)
            del cluster.environments[number]["FAIL_TEST_INDEX"]
            cluster.start(number)
            cluster.equal_again(findings)


def byzantine(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """One validator proposes what no honest one does, whenever it is its turn."""
    wanted = times(6, scale)
    with under_load(keys, directory, findings, seed) as cluster:
        for place, kind in enumerate(KINDS):
            number = place % NUMBER
            notes = directory / f"proposed-{kind}"
            cluster.kill(number)
            cluster.start(number, "propose", kind, str(notes))
            others = [n for n in range(NUMBER) if n != number]
            assert cluster.load is not None
            cluster.load.uploads_at = number if kind == "withheld" else None
            end = time.monotonic() + PATIENCE
            seen = 0
            while seen < (wanted if kind not in ("endless", "none") else 1) and time.monotonic() < end:
                cluster.goes_on(findings, others)
                seen = len(notes.read_text().splitlines()) if notes.exists() else 0
                if kind in ("endless", "none"):
                    seen = 1
            findings.add("faults", seen)
            if not seen:
                findings.violations.append(f"Nobody was proposed {kind}.")
            cluster.load.uploads_at = None
            cluster.kill(number)
            cluster.start(number)
            cluster.equal_again(findings)


def twins(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """The same key votes at two places: one faulty validator, whose votes mostly agree. No fork."""
    with under_load(keys, directory, findings, seed) as cluster:
        for place in range(times(3, scale)):
            number = place % NUMBER
            twin = directory / f"twin{place}"
            cluster.kill(number)
            shutil.copytree(cluster.path(number), twin, ignore=shutil.ignore_patterns("*.lock"))
            (twin / "engine.key").write_bytes(MessageSecret.generate().to_secret_bytes())
            network = (twin / "network.toml").read_text().splitlines()
            peers = free_ports(2)
            network[1] = f'listen = "127.0.0.1:{peers}"'
            (twin / "network.toml").write_text("\n".join(network) + "\n")
            cluster.start(number)
            copy = cluster.start_copy(twin, peers + 1)
            findings.add("faults")
            for _ in range(8):
                cluster.goes_on(findings, [n for n in range(NUMBER) if n != number])
            copy.kill()
            cluster.equal_again(findings)
        findings.add("blocks with evidence", cluster.words("brings evidence"))  # seldom: votes agree


def disks(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """A disk that is full, and what is lost of a validator's directory."""
    chance = random.Random(seed)
    with under_load(keys, directory, findings, seed) as cluster:
        for place in range(times(12, scale)):
            number, kind = chance.randrange(NUMBER), ("full", "board", "both", "engine")[place % 4]
            others = [n for n in range(NUMBER) if n != number]
            data = cluster.path(number) / "engine" / "data"
            if kind == "full":
                cluster.kill(number)
                cluster.start(number, "disk", str(1 + chance.randrange(4)))
                code = cluster.nodes[number].process.wait(PATIENCE)
                if code == 0 or "is full" not in cluster.log(number):
                    findings.violations.append(f"A full disk ended a validator with code {code}.")
            else:
                cluster.stop(number)
                if kind in ("board", "both"):
                    for file in cluster.path(number).glob("board.sqlite*"):
                        file.unlink()
                if kind in ("both", "engine"):
                    for entry in data.iterdir():
                        if entry.name != Path(LAST_VOTE).name:
                            shutil.rmtree(entry)
                if kind == "engine":
                    cluster.start(number)
                    cluster.goes_on(findings, others)
                    if cluster.height(number) > 0 and cluster.engine_of(number) is not None:
                        findings.add("engines that came back alone")
                    cluster.kill(number)
                    for file in cluster.path(number).glob("board.sqlite*"):
                        file.unlink()
            findings.add("faults")
            cluster.goes_on(findings, others)
            cluster.start(number)
            cluster.equal_again(findings)


def partitions(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """Cuts 3|1 and 2|2, flapping, a loss of 5 % of all packets; each validator in a network of its own."""
    chance = random.Random(seed)
    if networks.why_not():
        print(f"  left out: {networks.why_not()}", flush=True)
        return
    with networks.separate(NUMBER) as net:

        def prepare(cluster: Cluster) -> None:
            net.join(cluster)

        with under_load(keys, directory, findings, seed, prepare) as cluster:
            for place in range(times(40, scale)):
                kind = ("3|1", "2|2", "flapping", "loss")[place % 4]
                order = chance.sample(range(NUMBER), NUMBER)
                small = order[: 2 if kind == "2|2" else 1]
                rest = [n for n in range(NUMBER) if n not in small]
                if kind == "loss":
                    net.lose(0.05)
                    cluster.goes_on(findings, list(range(NUMBER)))
                    findings.add("faults")
                elif kind == "flapping":
                    for _ in range(3):
                        net.cut(small, rest)
                        time.sleep(chance.uniform(0.5, 2))
                        net.heal()
                        time.sleep(chance.uniform(0.5, 2))
                        findings.add("faults")
                else:
                    net.cut(small, rest)
                    findings.add("faults")
                    if kind == "3|1":
                        cluster.goes_on(findings, rest)
                    time.sleep(chance.uniform(1, 5))
                    if kind == "2|2":
                        stuck = cluster.highest()
                        time.sleep(4)
                        if cluster.highest() > stuck + 1:
                            findings.violations.append("Two of four made blocks.")
                net.heal()
                cluster.equal_again(findings)


def delays(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """200 ms between any two engines, by relays between them."""
    with (
        networks.Relays(0.2) as relays,
        under_load(keys, directory, findings, seed, relays.join) as cluster,
    ):
        for _ in range(times(4, scale)):
            cluster.goes_on(findings, list(range(NUMBER)))
            findings.add("faults")


def clocks(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """An engine's clock is wrong by half a minute or two minutes, either way, and then right again."""
    program = skewed_engine.build()
    if program is None:
        print("  left out: Go was not found, which builds an engine with another clock", flush=True)
        return

    def prepare(cluster: Cluster) -> None:
        for environment in cluster.environments:
            environment["ANOFEL_COMETBFT"] = str(program)
        cluster.fault = ("skew",)

    with under_load(keys, directory, findings, seed, prepare) as cluster:
        for place in range(times(8, scale)):
            number, skew = place % NUMBER, (30, -30, 120, -120)[(place + place // 4) % 4]
            cluster.kill(number)
            cluster.environments[number][skewed_engine.SKEW] = str(skew)
            cluster.start(number)
            findings.add("faults")
            cluster.goes_on(findings, [n for n in range(NUMBER) if n != number], blocks=6)
            cluster.kill(number)
            cluster.environments[number].pop(skewed_engine.SKEW)
            cluster.start(number)
            cluster.equal_again(findings)


def lies(keys: KeyDirectory, directory: Path, findings: Findings, seed: int, scale: float) -> None:
    """A validator shows a light client something else than what was decided."""
    with under_load(keys, directory, findings, seed) as cluster:
        cluster.goes_on(findings, list(range(NUMBER)), blocks=8)
        for place in range(times(1, scale)):
            for name in LIES:
                for kind in (LightClient, HeaderClient):
                    view = directory / f"view-{place}-{name}-{kind.__name__}"
                    follow_beside(cluster, (place + len(name)) % NUMBER, name, kind, view, findings)
    try_all(followers(cluster, 0), cluster.blocks[0], findings, times(4, scale))
    if findings.counts.get("lies", 0) == 0:
        findings.violations.append("No lie was tried.")


def follow_beside(
    cluster: Cluster, liar: int, name: str, kind: type[BoardClient], view: Path, findings: Findings
) -> None:
    """A light client follows, and posts, with the addresses of all validators, of whom one lies."""
    genesis = cluster.board.genesis.hash
    with LyingNode(cluster.url(liar), LIES[name]) as lying:
        honest = [cluster.url(number) for number in range(NUMBER) if number != liar]
        client = kind(view, Transport([lying.url, *honest], hurry=2.0), genesis_hash=genesis)
        posting, end = cluster.board.offer().posting, time.monotonic() + PATIENCE
        try:
            wanted = cluster.highest() + 2
            client.post(posting)
            while client.state.height < wanted and time.monotonic() < end:
                try:
                    client.sync()
                except PeerUnreachable:
                    continue
            if client.state.height < wanted:
                findings.violations.append(f"A light client did not get on beside a validator: {name}.")
            cluster.believed.append((client.state.height, client.state.tip))
        except BoardMisbehaved as error:
            findings.violations.append(f"A light client accused honest validators ({name}): {error}")
        finally:
            client.close()
        findings.add("lies", lying.lies)


PARTS: dict[str, Part] = {
    "kill -9 at random under load: one, two, engines": kills_at_random,
    "kill -9 at every write point, of the node and of its engine": kills_at_writes,
    "a byzantine proposer: invalid, duplicates, oversized, a withheld blob, endless, silent": byzantine,
    "partitions 3\\|1, 2\\|2, flapping; 5 % loss": partitions,
    "200 ms between any two": delays,
    "an engine's clock ±30 s, ±2 min": clocks,
    "full disk; lost board.sqlite, lost engine data, both": disks,
    "a twin with the same key": twins,
    "lies to a light client (counted apart)": lies,
}


HEAD = """\
| part | faults | blocks | postings in them | longest wait for a block | longest until equal | \
waits, longer than wanted | violations |
|---|---|---|---|---|---|---|---|
"""


def run(name: str, keys: KeyDirectory, seed: int, scale: float) -> dict[str, Any]:
    """Run a part; return what it did and found."""
    part, findings = PARTS[name], Findings()
    print(f"{part.__name__} ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="anofel-faults-") as directory:
        try:
            part(keys, Path(directory), findings, seed, scale)
        except AssertionError as error:
            findings.violations.append(f"A validator did not get ready: {error}")
    for text in findings.violations:
        print(f"  VIOLATION: {text}", file=sys.stderr, flush=True)
    print(f"  {asdict(findings)}", flush=True)
    return asdict(findings) | {"seed": seed, "load": round(os.getloadavg()[0])}


def row(name: str, found: dict[str, Any]) -> str:
    """Write the line of a part in the table."""
    counts = found["counts"]
    faults = counts.get("lies") or counts.get("faults", 0)
    shown = " | ".join(f"{counts.get(what, 0):,}" for what in ("blocks", "postings in blocks"))
    return (
        f"| {name} | {faults:,} | {shown} | {found['slowest']:.1f} s | {found['healed']:.1f} s | "
        f"{found['waits']}, {found['late']} | {len(found['violations'])} |\n"
    )


PAGE = """\
# Faults of a board of several validators

`make test-faults` also does this to four validators, each with its engine, while two authors post to all of
them. It is seeded, and one violation ends it with exit code 1. Short forms of all parts are slow tests.

{table}

{faults} faults, {violations}. The last campaign: seed {seed}, {machine}, blocks every half second.

What must hold in every part:

{invariants}

- *Kills* hit a validator's node, whose engine ends with it, or its engine alone. Write points are those of a
  decided block, its seal, and the blobs that it names (`tests/faults/faulty_validator.py`), and the ten
  places of a block at which CometBFT's developers let it end (`FAIL_TEST_INDEX`): it does so again and again.
- *A withheld blob*: the proposer signs for blobs, hands out none, and sends none to one other validator.
- *A cut* drops every packet between two groups of network namespaces. It needs root and Linux; without them
  the part says so and counts nothing. A kernel need not have `netem`: 5 % are lost by a rule of iptables, and
  200 ms are added by relays between the engines.
- *A clock* is the engine's: CometBFT is built with the one function changed by which it reads the time.
- *Longest wait for a block*: of those that have no fault. *Longest until equal*: from the end of a fault
  until all four show a block that none had, the start of a validator included. Wanted are {intervals}
  intervals and {seconds:.0f} seconds. A wait that is longer is counted and is no violation, since on a busy
  machine it says little about the board; nothing within {patience:.0f} seconds is one.
- *Lies* are blocks that were decided, with one thing changed, each of which is refused, and answers of a
  validator that lies to light clients, who follow it beside the others by blocks and by headers.
- *Nullifiers*: in every part clients register twice, under two keys at two validators at once.
- *Blobs*: in every part members of committees begin runs, whose postings name blobs.

Not in the campaign: more than f validators that lie.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS.values()])
    options = parser.parse_args()
    find_engine()
    networks.own()
    kept = options.keep
    found: dict[str, Any] = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    with tempfile.TemporaryDirectory() as directory:
        keys = make_insecure_development_keys(Path(directory) / "keys")
        for name, part in PARTS.items():
            if options.only in (None, part.__name__) and name not in found:
                found[name] = run(name, keys, options.seed, options.scale)
                if kept is not None:
                    kept.write_text(json.dumps(found))
    done = {name: found[name] for name in PARTS if name in found}
    table = HEAD + "".join(row(name, one) for name, one in done.items())
    faults = sum(one["counts"].get("faults", 0) for one in done.values())
    broken = sum(len(one["violations"]) for one in done.values())
    print("\n".join(["", machine(), "", table, f"{faults} faults, {broken} violations"]))
    if options.page is not None:
        loads = [one["load"] for one in done.values()]
        options.page.write_text(
            PAGE.format(
                table=table.rstrip(),
                faults=faults,
                violations=f"{broken} violation{'' if broken == 1 else 's'}",
                seed=" and ".join(sorted({str(one["seed"]) for one in done.values()})),
                intervals=WANTED_INTERVALS,
                seconds=WANTED_SECONDS,
                patience=PATIENCE,
                machine=f"{machine()}, load {min(loads)} to {max(loads)}",
                invariants="\n".join(f"- {text};" for text in INVARIANTS),
            )
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
