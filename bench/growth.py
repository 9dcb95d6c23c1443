"""How a board grows: clients, blocks, and what has ended.

    python bench/growth.py            10^5 and 10^6 clients and blocks, 10^3 ended bundles; most of an hour
    python bench/growth.py --quick    10^4 of each
    python bench/growth.py --only follow   what following costs a client, for 10^2 to 10^5 posts
    python bench/growth.py --json     a list of {name, ours, peer_name, peer, ratio, unit}

Beside each figure stands the baseline: what the first version of the board took on a machine of the same
kind, with 10^6 clients, 10^6 blocks or 10^3 ended bundles.

Histories are synthetic where the figure does not depend on proofs. Clients are random leaves and
nullifiers, put into a state, which is then written as a snapshot and loaded as a start loads it. Ended
bundles, with their tasks, committees and runs, are put there as the rules leave them
(``tests/board/ended.py``). Blocks are empty, sealed and signed as a node does it, and stored without
waiting for the disk; a real node serves them over loopback, and a ``LightClient`` verifies them all into a
directory of its own. Every row is measured in a process of its own; seconds are on the clock.
"""

import argparse
import json
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from _following import rows_of_following
from _table import Row, report, taken

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.light_client.client import LightClient
from anofel.messages import Block, Vote
from anofel.network.transport import Transport
from anofel.node.files import NodeConfig, write_node
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import ClientTree, Commitment, MessageSecret
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from anofel.storage.replay import last_state
from tests.board.ended import add_ended
from tests.board.world import Authority, make_genesis
from tests.node.support import running

MIB = 1 << 20
HOUR_MS = 3_600_000
"""So long that no block ends while its board is measured."""
BLOCKS = 50
"""How many empty blocks the work for a block is averaged over; the best of some such runs counts."""
RUNS = 20
NEWCOMERS = 128
BARS = {"work for a block, with ended bundles against without": 1.3}


def memory() -> float:
    """What this process holds now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


class EmptyBoard:
    """A board on which nobody posts, with its validator."""

    def __init__(self, keys: KeyDirectory) -> None:
        authority = TestAuthority.create(not_before=int(time.time()) - 7200)
        self.storage = authority.issue(Purpose.STORAGE, "Storage")
        self.validator = MessageSecret.generate()
        self.genesis = make_genesis(
            cast(Authority, authority),
            keys,
            self.storage,
            self.validator,
            interval_ms=HOUR_MS,
            time=int(time.time()),
        )
        verifier = Verifier(
            self.genesis.hash,
            keys.registration_verifier(threads=1),
            keys.submission_verifier(threads=1),
            DirectoryAttachments(Path("nothing-is-attached")),
        )
        self.chain = Chain(State.at_genesis(self.genesis), verifier)

    @property
    def state(self) -> State:
        return self.chain.state

    def next_block(self) -> Block:
        self.chain.begin(self.state.time)
        header = self.chain.seal()
        signature = self.validator.sign(header.vote_bytes(self.genesis.hash))
        return Block(header=header, commit=(Vote(validator=0, signature=signature),), postings=())


def milliseconds_of_a_block(board: EmptyBoard) -> float:
    """The work for an empty block without its signature."""

    def run() -> None:
        for _ in range(BLOCKS):
            board.chain.begin(board.state.time)
            board.chain.seal()

    board.next_block()
    return min(taken(run).cpu for _ in range(RUNS)) / BLOCKS * 1000


def kept(board: EmptyBoard, directory: Path) -> dict[str, float]:
    """Write the state as a snapshot beside its block."""
    block = board.next_block()
    start = time.perf_counter()
    data = snapshot.encode(board.state)
    seconds = time.perf_counter() - start
    store = BlockStore(directory, board.genesis)
    store.append(block, data)
    store.close()
    return {"snapshot_seconds": seconds, "snapshot_bytes": len(data)}


# Measured in processes of their own


def make_clients(keys: Path, directory: Path, number: int) -> dict[str, float]:
    """A state with so many clients; what it costs to go on with it and to keep it."""
    board = EmptyBoard(KeyDirectory.open(keys))
    names = np.frombuffer(secrets.token_bytes(32 * number), np.uint8).reshape(number, 32).copy()
    names[:, 31] = 0  # below the modulus
    board.state.client_trees[0] = ClientTree.from_leaf_bytes(names.tobytes())
    for name in names:
        board.state.registered.add(name.tobytes())
        board.state.nullifiers.append(name.tobytes())
    empty = milliseconds_of_a_block(board)
    leaves = [secrets.token_bytes(31) + b"\0" for _ in range(NEWCOMERS)]
    start = time.process_time()
    board.state.clients.append([Commitment.from_bytes(leaf) for leaf in leaves])
    joining = (time.process_time() - start) * 1000
    return {"block": empty, "joining": joining, **kept(board, directory)}


def load(directory: Path) -> dict[str, float]:
    """The last state from the disk, as nodes and light clients begin."""
    store, before = BlockStore(directory), memory()
    start = time.perf_counter()
    state = last_state(store)
    seconds = time.perf_counter() - start
    assert state.height > 0
    return {"seconds": seconds, "bytes": memory() - before}


def make_ended(keys: Path, directory: Path, number: int) -> dict[str, float]:
    """The work for a block with and without so many bundles that ended."""
    board = EmptyBoard(KeyDirectory.open(keys))
    without = milliseconds_of_a_block(board)
    add_ended(board.state, number)
    return {"without": without, "with": milliseconds_of_a_block(board), **kept(board, directory)}


def make_blocks(keys: Path, directory: Path, number: int) -> dict[str, float]:
    """A node's directory with so many empty blocks."""
    opened = KeyDirectory.open(keys)
    board = EmptyBoard(opened)
    write_node(directory, board.genesis, board.validator, board.storage, opened, NodeConfig())
    store = BlockStore(directory, board.genesis)
    store._connection.execute("PRAGMA synchronous = OFF")  # only while it is made
    for _ in range(number - 1):
        store.append(board.next_block())
    block = board.next_block()
    store.append(block, snapshot.encode(board.state))
    size = (directory / "board.sqlite").stat().st_size
    store.close()
    return {"bytes": size}


def sync(directory: Path, url: str, genesis_hash: str) -> dict[str, float]:
    """All blocks of a node, verified into a directory; then the same directory opened again."""
    before = memory()
    client = LightClient(directory, Transport(url), genesis_hash=bytes.fromhex(genesis_hash))
    synced = taken(client.sync)
    number, grown = client.state.height, memory() - before
    client.close()
    start = time.perf_counter()
    client = LightClient(directory, Transport(url))
    again = time.perf_counter() - start
    assert client.state.height == number
    client.close()
    return {"taken": number, "seconds": synced.wall, "cpu": synced.cpu, "again": again, "bytes": grown}


WORKERS: dict[str, Callable[..., dict[str, float]]] = {
    "clients": lambda keys, at, number: make_clients(Path(keys), Path(at), int(number)),
    "load": lambda at: load(Path(at)),
    "ended": lambda keys, at, number: make_ended(Path(keys), Path(at), int(number)),
    "blocks": lambda keys, at, number: make_blocks(Path(keys), Path(at), int(number)),
    "sync": lambda at, url, name: sync(Path(at), url, name),
}


def worker(name: str, *arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", name, *map(str, arguments)]
    made = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result: dict[str, float] = json.loads(made.stdout)
    return result


# Rows


def beside(name: str, ours: float, unit: str, baseline: float | None = None) -> Row:
    return Row(name, ours, unit, None if baseline is None else "baseline", baseline)


def rows_of_clients(keys: Path, scratch: Path, number: int) -> list[Row]:
    is_baseline = number == 10**6
    made = worker("clients", keys, scratch / f"clients-{number}", number)
    loaded = worker("load", scratch / f"clients-{number}")
    what = f"{number:,} clients"
    return [
        beside(f"{what}: start (load)", loaded["seconds"], "s", 23 if is_baseline else None),
        beside(f"{what}: memory", loaded["bytes"] / MIB, "MiB", 182 if is_baseline else None),
        beside(f"{what}: work for an empty block", made["block"], "ms"),
        beside(f"{what}: {NEWCOMERS} more", made["joining"], "ms"),
        beside(f"{what}: writing a snapshot", made["snapshot_seconds"], "s"),
        beside(f"{what}: size of a snapshot", made["snapshot_bytes"] / MIB, "MiB"),
    ]


def rows_of_ended(keys: Path, scratch: Path, number: int) -> list[Row]:
    made = worker("ended", keys, scratch / f"ended-{number}", number)
    loaded = worker("load", scratch / f"ended-{number}")
    what = f"{number:,} ended bundles"
    return [
        beside(f"{what}: work for a block", made["with"], "ms", 42 if number == 10**3 else None),
        Row(next(iter(BARS)), made["with"] / made["without"], "times"),
        beside(f"{what}: start (load)", loaded["seconds"], "s"),
        beside(f"{what}: memory", loaded["bytes"] / MIB, "MiB"),
        beside(f"{what}: size of a snapshot", made["snapshot_bytes"] / MIB, "MiB"),
    ]


def rows_of_blocks(keys: Path, scratch: Path, number: int) -> list[Row]:
    directory = scratch / f"node-{number}"
    made = worker("blocks", keys, directory, number)
    store = BlockStore(directory, read_only=True)
    name = store.genesis.hash.hex()
    store.close()
    start = time.perf_counter()
    with running(directory) as node:
        ready = time.perf_counter() - start
        done = worker("sync", scratch / f"view-{number}", node.url, name)
    what = f"{number:,} blocks"
    return [
        beside(f"{what}: start of the node", ready, "s"),
        beside(f"{what}: sync", done["seconds"] / 60, "min", 16 if number == 10**6 else None),
        beside(f"{what}: sync, for each block", done["seconds"] / done["taken"] * 1000, "ms", 0.96),
        beside(
            f"{what}: sync, for each block, processor of the client", done["cpu"] / done["taken"] * 1000, "ms"
        ),
        beside(f"{what}: start of a light client", done["again"], "s"),
        beside(f"{what}: memory of a light client, grown by the sync", done["bytes"] / MIB, "MiB"),
        beside(f"{what}: on disk for each block", made["bytes"] / number, "bytes"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10^4 instead of 10^5 and 10^6")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=("clients", "ended", "blocks", "follow"))
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(WORKERS[options.worker[0]](*options.worker[1:])))
        return
    sizes = [10**4] if options.quick else [10**5, 10**6]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        keys, at = Path(scratch) / "keys", Path(scratch)
        make_insecure_development_keys(keys)
        if options.only in (None, "ended"):
            rows += rows_of_ended(keys, at, 10**3)
        if options.only in (None, "follow"):
            rows += rows_of_following(KeyDirectory.open(keys))
        for number in sizes:
            if options.only in (None, "clients"):
                rows += rows_of_clients(keys, at, number)
        for number in sizes:
            if options.only in (None, "blocks"):
                rows += rows_of_blocks(keys, at, number)
    notes = [
        "The baseline of a sync is the better of two runs (16 and 23 minutes); that of a block follows.",
        "Memory is what the process grew by.",
    ]
    bars = BARS if options.only in (None, "ended") else {}
    report("How a board grows", rows, bars, notes, as_json=options.json)


if __name__ == "__main__":
    main()
