"""How fast a board admits, replays and audits, and how it grows.

    python bench/board.py            a table, with the bars that ours must keep
    python bench/board.py --json     a list of {name, ours, peer_name, peer, ratio, unit}
    python bench/board.py --posts 64 fewer postings, for a quick look
    python bench/board.py --validators 4   real validators with their engines, and their own bars

A history with real proofs is made first (about a third of a second for each posting). Rates with one
and two threads come from processes of their own. The peer of an admission is the verification of its
proof alone, one by one; so the ratio says what batching saves and what the board adds.
"""

import argparse
import http.client
import json
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

sys.path.insert(0, str(Path(__file__).parents[1]))

import board_validators
import numpy as np
from _table import Row, machine

from anofel.audit.auditor import Auditor
from anofel.audit.sources import BoardSource, open_source
from anofel.board.attachments import AttachmentMissing
from anofel.board.chain import Chain
from anofel.board.rule import Rejected
from anofel.board.state import Phase, State
from anofel.board.verification import Verifier
from anofel.messages import Block, Posting
from anofel.node.files import NodeConfig, write_node
from anofel.primitives import ClientTree
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from tests.board.world import CLASS, LIMITS, World, a_task, a_vector

BATCH = 128
"""Postings that are admitted together."""
CONNECTIONS = 32
SIZES = (10, 14, 18)
"""Registered clients, as powers of two."""
SCALE_POSTS = 128

BARS = {
    "submissions admitted directly, 2 threads": (300, "at least"),
    "submissions admitted over HTTP": (150, "at least"),
    "audit, submissions": (400, "at least"),
    "cost of an admission, 2^18 against 2^10 clients": (1.2, "at most"),
}


# A history with real proofs


def make_history(keys: KeyDirectory, posts: int, directory: Path) -> None:
    """One iteration of one bundle with so many registrations and submissions."""
    size = replace(CLASS, max_posts=posts, train=100_000)
    limits = replace(LIMITS, max_block_bytes=64 << 20)
    world = World(keys, classes=(size,), limits=limits, interval_ms=1000)
    world.offer_certifier_key()
    committees = [world.establish() for _ in range(2)]
    world.board.next_block()
    for number, committee in enumerate(committees):
        task = a_task(
            f"study {number}", privacy={"max_posts": posts, "min_clients": 2}, model={"scale_bits": 12}
        )
        world.announce(committee, task, early_end=True)
    note(f"{posts} registrations")
    world.add_clients(posts)
    world.board.next_block()
    for owner in world.owners:
        world.post_first_model(owner)
    world.board.next_block()
    assert world.bundle().phase is Phase.OPEN
    note(f"{posts} submissions")
    for number, client in enumerate(world.clients):
        target = number % 2
        update = a_vector(world.owners[target].task, number)
        world.board.post(world.submission(client, target, update))
        if number % BATCH == BATCH - 1:
            world.board.next_block()
    world.board.next_block()
    write(world, directory)


def write(world: World, directory: Path) -> None:
    config = NodeConfig(snapshot_blocks=100_000, snapshot_postings=100_000)
    write_node(directory, world.genesis, world.validator, world.storage, world.keys, config)
    store = BlockStore(directory, world.genesis)
    for block in world.board.blocks:
        store.append(block)
    store.close()
    for name, data in world.board.attachments.items():
        path = DirectoryAttachments(directory / "all-blobs").path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class WithoutPayloads:
    """Attachments as an audit finds them after the grace period."""

    def __init__(self, directory: Path, payloads: set[bytes]) -> None:
        self._all = DirectoryAttachments(directory / "all-blobs")
        self._payloads = payloads

    def read(self, sha256: bytes) -> bytes:
        if sha256 in self._payloads:
            raise AttachmentMissing(sha256)
        return self._all.read(sha256)


def kind_of(data: bytes) -> str:
    return type(Posting.from_bytes(data).body).__name__


def split(blocks: list[Block], kind: str) -> tuple[list[Block], list[bytes]]:
    """The blocks before the first posting of a kind, and all postings of that kind."""
    before = []
    for block in blocks:
        if any(kind_of(data) == kind for data in block.postings):
            break
        before.append(block)
    wanted = [data for block in blocks for data in block.postings if kind_of(data) == kind]
    return before, wanted


# What a process of its own measures


def open_chain(directory: Path, threads: int) -> tuple[Chain, list[Block], BoardSource]:
    with open_source(str(directory)) as source:
        registration = RegistrationVerifier.from_bytes(
            (directory / "registration.verification.key").read_bytes(), threads=threads
        )
        submission = SubmissionVerifier.from_bytes(
            (directory / "submission.verification.key").read_bytes(), threads=threads
        )
        attachments = DirectoryAttachments(directory / "all-blobs")
        verifier = Verifier(source.genesis.hash, registration, submission, attachments)
        return Chain(State.at_genesis(source.genesis), verifier), list(source.blocks), source


def admission_rate(directory: Path, kind: str, threads: int) -> float:
    """Postings per second through ``Chain.offer_many``."""
    chain, blocks, _ = open_chain(directory, threads)
    before, wanted = split(blocks, kind)
    for block in before:
        chain.follow(block)
    chain.begin(chain.state.time)
    if kind == "Registration":  # the announcements stand in the same block
        others = [data for data in blocks[len(before)].postings if kind_of(data) != kind]
        chain.offer_many(others)
    start = time.perf_counter()
    for at in range(0, len(wanted), BATCH):
        results = chain.offer_many(wanted[at : at + BATCH])
        assert not any(isinstance(result, Rejected) for result in results), results[0]
    return len(wanted) / (time.perf_counter() - start)


def replay_rates(directory: Path) -> dict[str, float]:
    """Postings per second through ``Chain.follow``, and submissions per second through an audit."""
    chain, blocks, source = open_chain(directory, 2)
    start = time.perf_counter()
    for block in blocks:
        chain.follow(block)
    replay = sum(len(block.postings) for block in blocks) / (time.perf_counter() - start)
    _, wanted = split(blocks, "Submission")
    payloads = {
        entry.payload.sha256
        for data in wanted
        for entry in Posting.from_bytes(data).body.contributions  # type: ignore[union-attr]
    }
    auditor = Auditor(
        source.genesis,
        registration=source.registration,
        submission=source.submission,
        attachments=WithoutPayloads(directory, payloads),
    )
    seconds = 0.0
    for block in blocks:
        submissions = sum(kind_of(data) == "Submission" for data in block.postings)
        start = time.perf_counter()
        auditor.take(block)
        seconds += (time.perf_counter() - start) if submissions else 0
    return {"replay": replay, "audit": len(wanted) / seconds}


def scaling(directory: Path, power: int) -> dict[str, float]:
    """Seconds per admission, and memory, on a board with 2^power registered clients (synthetic leaves)."""
    chain, blocks, _ = open_chain(directory, 1)
    before, wanted = split(blocks, "Registration")
    for block in before:
        chain.follow(block)
    number = 1 << power
    leaves = np.frombuffer(secrets.token_bytes(32 * number), np.uint8).reshape(number, 32).copy()
    leaves[:, 31] = 0  # below the modulus
    start = memory()
    chain.state.client_trees[0] = ClientTree.from_leaf_bytes(leaves.tobytes())
    for _ in range(number):
        chain.state.registered.add(secrets.token_bytes(32))
    for row in leaves[:, :31]:
        chain.state.nullifiers.append(row.tobytes())
    grown = memory() - start
    chain.begin(chain.state.time)
    wanted = wanted[:SCALE_POSTS]
    begin = time.process_time()
    for at in range(0, len(wanted), 32):
        chain.offer_many(wanted[at : at + 32])
    return {"seconds": (time.process_time() - begin) / len(wanted), "bytes": grown / number}


def memory() -> float:
    """What this process holds now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


WORKERS: dict[str, Callable[..., object]] = {
    "admission": lambda directory, kind, threads: admission_rate(Path(directory), kind, int(threads)),
    "replay": lambda directory: replay_rates(Path(directory)),
    "scaling": lambda directory, power: scaling(Path(directory), int(power)),
}


def in_process(threads: int, *arguments: str) -> object:
    environment = os.environ | {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    made = subprocess.run(
        [sys.executable, __file__, "--worker", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(made.stdout)


# A real node over HTTP


def node_directory(history: Path, scratch: Path, kind: str) -> tuple[Path, list[bytes]]:
    """A node's directory that ends where the postings of a kind begin."""
    directory = scratch / f"node-{kind}"
    store = BlockStore(history, read_only=True)
    blocks = list(store.blocks(1))
    before, wanted = split(blocks, kind)
    directory.mkdir()
    for path in history.iterdir():
        if path.is_file() and not path.name.startswith("board."):
            shutil.copy(path, directory / path.name)
    shorter = BlockStore(directory, store.genesis)
    for block in before:
        shorter.append(block)
    shorter.close()
    store.close()
    from anofel.storage.blobs.store import BlobStore

    blobs = BlobStore(directory / "blobs", 1 << 34, 1 << 34)
    for path in (history / "all-blobs").rglob("*"):
        if path.is_file():
            upload = blobs.begin(bytes.fromhex(path.name), path.stat().st_size, expires=1 << 40)
            upload.write(path.read_bytes())
            upload.finish()
    blobs.close()
    return directory, wanted


def over_http(history: Path, scratch: Path, kind: str) -> dict[str, float]:
    """Postings per second through a real node, and the time until a subscriber sees one."""
    directory, wanted = node_directory(history, scratch, kind)
    command = [sys.executable, "-m", "anofel", "node", "run", str(directory), "--port", "0", "--json"]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
    try:
        assert node.stdout is not None
        text = b""
        while not text.rstrip().endswith(b"}"):
            text += os.read(node.stdout.fileno(), 4096)
        address = urlparse(json.loads(text)["url"])
        latency = until_seen(address.hostname or "", address.port or 0, wanted[:5])
        parts = [wanted[5 + index :: CONNECTIONS] for index in range(CONNECTIONS)]
        threads = [
            threading.Thread(target=post_all, args=(address.hostname, address.port, part)) for part in parts
        ]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"rate": (len(wanted) - 5) / (time.perf_counter() - start), "latency": latency}
    finally:
        node.terminate()
        node.wait(timeout=60)


def post_all(host: str, port: int, postings: list[bytes]) -> None:
    connection = http.client.HTTPConnection(host, port, timeout=60)
    for data in postings:
        connection.request("POST", "/v1/postings", data, {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status in (200, 202), content
    connection.close()


def until_seen(host: str, port: int, postings: list[bytes]) -> float:
    """Seconds from a post to the event of the block that holds it, the median."""
    stream = http.client.HTTPConnection(host, port, timeout=60)
    stream.request("GET", "/v1/events")
    events = stream.getresponse()
    waits = []
    for data in postings:
        start = time.perf_counter()
        connection = http.client.HTTPConnection(host, port, timeout=60)
        connection.request("POST", "/v1/postings", data, {"Content-Type": "application/octet-stream"})
        height = json.loads(connection.getresponse().read())["height"]
        connection.close()
        while True:
            line = events.readline().decode().strip()
            if line.startswith("id:") and int(line[3:]) >= height:
                break
        waits.append(time.perf_counter() - start)
    stream.close()
    return sorted(waits)[len(waits) // 2]


# The table


def alone(directory: Path, kind: str) -> float:
    """Proofs per second verified one by one: the peer of an admission."""
    chain, blocks, _ = open_chain(directory, 1)
    before, wanted = split(blocks, kind)
    for block in before:
        chain.follow(block)
    chain.begin(chain.state.time)
    if kind == "Registration":
        others = [data for data in blocks[len(before)].postings if kind_of(data) != kind]
        chain.offer_many(others)
    from anofel.board.statements import registration_item, submission_item

    items = []
    for data in wanted[:64]:
        candidate = chain._candidate(data)
        claim = candidate.claim.proof
        if kind == "Registration":
            items.append(registration_item(claim, chain.state.genesis_hash))
        else:
            items.append(submission_item(claim))
    verifier = chain.verifier.registration if kind == "Registration" else chain.verifier.submission
    start = time.perf_counter()
    for statement, proof in items:
        verifier.verify(statement, proof)  # type: ignore[arg-type]
    return len(items) / (time.perf_counter() - start)


def measure(keys: KeyDirectory, posts: int, scratch: Path) -> list[Row]:
    history = scratch / "history"
    make_history(keys, posts, history)
    rows, latency = [], 0.0
    for kind, noun in (("Registration", "registrations"), ("Submission", "submissions")):
        peer = alone(history, kind)
        for threads in (1, 2):
            note(f"{noun}, {threads} threads")
            rate = in_process(threads, "admission", str(history), kind, str(threads))
            assert isinstance(rate, float)
            words = f"{noun} admitted directly, {threads} thread{'s' if threads > 1 else ''}"
            rows.append(Row(words, rate, "/s", "its proof alone, one by one", peer))
        direct = rows[-1].ours
        note(f"{noun}, a node over HTTP")
        through = over_http(history, scratch, kind)
        latency = through["latency"]
        rows.append(Row(f"{noun} admitted over HTTP", through["rate"], "/s", "directly", direct))
    rows.append(Row("from post to subscriber", latency, "s", "the block interval", 1.0))
    note("replay and audit")
    rates = in_process(2, "replay", str(history))
    assert isinstance(rates, dict)
    rows.append(Row("replay, postings", rates["replay"], "/s"))
    rows.append(Row("audit, submissions", rates["audit"], "/s", "admitted directly", direct))
    rows += scale_rows(history)
    store = (history / "board.sqlite").stat().st_size
    number = sum(len(block.postings) for block in BlockStore(history, read_only=True).blocks(1))
    rows.append(Row("on disk per posting, mean", store / number, "bytes"))
    return rows


def scale_rows(history: Path) -> list[Row]:
    found = {}
    for power in SIZES:
        note(f"2^{power} registered clients")
        found[power] = in_process(1, "scaling", str(history), str(power))
    first, rows = found[SIZES[0]], []
    for power, values in found.items():
        name = f"CPU per registration admitted, 2^{power} clients"
        rows.append(Row(name, 1000 * values["seconds"], "ms", "2^10 clients", 1000 * first["seconds"]))  # type: ignore[index]
    last = found[SIZES[-1]]
    ratio = last["seconds"] / first["seconds"]  # type: ignore[index]
    rows.append(Row("cost of an admission, 2^18 against 2^10 clients", ratio, "×"))
    rows.append(Row("memory per registered client, at 2^18", last["bytes"], "bytes"))  # type: ignore[index]
    return rows


def show(rows: list[Row]) -> None:
    print(machine())
    print(f"{'':56} {'ours':>12}       {'peer':>12}  ratio  bar")
    for row in rows:
        peer = f"{row.peer:12.4g}" if row.peer is not None else " " * 12
        ratio = f"{row.ratio:5.2f}" if row.ratio is not None else " " * 5
        bar = ""
        if row.name in BARS:
            limit, words = BARS[row.name]
            kept = row.ours >= limit if words == "at least" else row.ours <= limit
            bar = f"{words} {limit:g}: {'kept' if kept else 'MISSED'}"
        print(f"{row.name:56} {row.ours:12.4g} {row.unit:5} {peer}  {ratio}  {bar} {row.peer_name}")


def note(text: str) -> None:
    print(f"… {text}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--posts", type=int, default=256)
    parser.add_argument("--validators", type=int, default=0)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        name, *values = arguments.worker
        print(json.dumps(WORKERS[name](*values)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        keys = make_insecure_development_keys(Path(scratch) / "keys")
        if arguments.validators:
            rows = board_validators.run(keys, arguments.validators, arguments.posts)
            BARS.update(board_validators.BARS)
        else:
            rows = measure(keys, arguments.posts, Path(scratch))
    if arguments.json:
        print(json.dumps([row.document() for row in rows], indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
