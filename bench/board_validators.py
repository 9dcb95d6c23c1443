"""What several validators on this machine do: ``python bench/board.py --validators 4``.

Real nodes, real engines, real proofs. All validators and everybody who posts share the machine, so a
validator alone on such a machine does more.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx2
from _table import Row

from anofel.board.chain import Chain, verify_commit
from anofel.board.state import State
from anofel.board.validators import Eras
from anofel.board.verification import Verifier
from anofel.messages import Block
from anofel.node.files import BLOBS
from anofel.phase2_training.step5_submission import post_submission
from anofel.primitives import ClientTree, Commitment
from anofel.proofs.keys import KeyDirectory
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from tests.board.world import CLASS, LIMITS, a_task, a_vector
from tests.node.support import OCTETS, BoardOfTest, wait_until
from tests.replicated.support import Validators, make_validators, running
from tests.roles.remote_world import RemoteBoard, RemoteWorld, connect

INTERVAL_MS = 1000
IDLE_BLOCKS = 12
THREADS = 32
FORKS = 50

BARS = {
    "seconds until all submissions are in blocks": (15.0, "at most"),
    "block interval, mean, in intervals": (1.1, "at most"),
    "block interval, shortest, in intervals": (1.0, "at least"),
    "memory of a validator, idle, engine apart": (150.0, "at most"),
    "a client's check of a header with its commit": (1.0, "at most"),
    "fork of a state with 2^18 clients": (3.0, "at most"),
}


def measure(keys: KeyDirectory, number: int, posts: int, scratch: Path) -> list[Row]:
    """Run a board of so many validators with so many submissions."""
    size = replace(CLASS, max_posts=posts, train=100_000, model=10_000)
    limits = replace(LIMITS, max_block_bytes=64 << 20, max_key_bytes=4 << 20, max_model_bytes=4 << 20)
    validators = make_validators(
        scratch, keys, number=number, interval_ms=INTERVAL_MS, limits=limits, classes=(size,)
    )
    with running(validators, *range(number)) as nodes:
        wait_until(lambda: height(validators) >= 3)
        begun = height(validators)
        wait_until(lambda: height(validators) >= begun + IDLE_BLOCKS)
        memory = [resident(node.process.pid) for node in nodes.values()]
        engines = [resident(child) for node in nodes.values() for child in children(node.process.pid)]
        seconds, empty = submit(validators, keys, posts, scratch)
    blocks = read(validators)
    idle = intervals(blocks[begun : begun + IDLE_BLOCKS])
    rows = [
        Row("seconds until all submissions are in blocks", seconds, "s", "blocks that took", float(empty)),
        Row("submissions in blocks, per second", posts / seconds, "/s"),
        Row("block interval, mean, in intervals", sum(idle) / len(idle), "×"),
        Row("block interval, shortest, in intervals", min(idle), "×"),
        Row("memory of a validator, idle, engine apart", max(memory), "MB"),
        Row("memory of its engine, idle", max(engines), "MB"),
        Row("a client's check of a header with its commit", commit_ms(validators, blocks), "ms"),
    ]
    return [*rows, Row("fork of a state with 2^18 clients", fork_ms(validators, keys), "ms")]


def submit(validators: Validators, keys: KeyDirectory, posts: int, scratch: Path) -> tuple[float, int]:
    """Post so many submissions to all validators at once; return how long until blocks had them."""
    client = connect(validators.url(0), scratch / "view", validators.genesis.hash)
    try:
        made = BoardOfTest(validators.directory, validators.authority, validators.genesis)
        board = RemoteBoard(client)
        world = RemoteWorld(keys, made, board)
        note("a certifier, two committees, two tasks")
        world.offer_certifier_key()
        for _ in range(2):
            world.establish()
        for place, committee in enumerate(world.committees):
            task = a_task(
                f"study {place}",
                privacy={"max_posts": posts, "min_clients": 2},
                model={"scale_bits": 12},
            )
            world.announce(committee, task, early_end=True)
        note(f"{posts} registrations")
        registered = [world.certify(seed=place) for place in range(posts)]
        everyone = [world.registration(one).data for one in registered]
        in_blocks(board, validators, everyone)
        world.clients = registered
        for owner in world.owners:
            world.post_first_model(owner)
        board.wait(lambda: world.bundle().phase.value == "open", "an iteration")
        note(f"{posts} submissions")
        submissions = []
        for place, one in enumerate(world.clients):
            target = place % 2
            sealed = world.sealed(one, target, a_vector(world.owners[target].task, place))
            submissions.append(post_submission_to_nobody(world, sealed))
        note("posting them")
        before = client.state.height
        begun = time.monotonic()
        in_blocks(board, validators, submissions)
        return time.monotonic() - begun, client.state.height - before
    finally:
        client.close()


def post_submission_to_nobody(world: RemoteWorld, sealed: object) -> bytes:
    """Upload the payloads and sign the submission; it is posted later, with all others."""

    class Quiet:
        def __getattr__(self, name: str) -> object:
            return getattr(world.board, name)

        @staticmethod
        def post(posting: object) -> object:
            return posting

    return post_submission(Quiet(), sealed).data  # type: ignore[arg-type]


def in_blocks(board: RemoteBoard, validators: Validators, postings: list[bytes]) -> None:
    """Post to all validators in turn and wait until blocks hold everything."""
    left = set(postings)

    def post(numbered: tuple[int, bytes]) -> None:
        number, data = numbered
        url = f"{validators.url(number % len(validators.ports))}/v1/postings"
        while True:
            answer = httpx2.post(url, content=data, headers=OCTETS, timeout=120)
            if answer.status_code in (200, 202):
                return
            assert answer.status_code in (429, 503), answer.text
            time.sleep(0.1)

    with ThreadPoolExecutor(THREADS) as pool:
        done = pool.map(post, enumerate(postings))
        board.wait(lambda: not left, "blocks", lambda block: left.difference_update(block.postings))
        list(done)


# What is read afterwards


def height(validators: Validators) -> int:
    answers = [
        httpx2.get(f"{validators.url(place)}/v1/status", timeout=60).json()["height"]
        for place in range(len(validators.ports))
    ]
    return min(answers)


def read(validators: Validators) -> list[Block]:
    store = BlockStore(validators.path(0), read_only=True)
    try:
        return list(store.blocks(1))
    finally:
        store.close()


def intervals(blocks: list[Block]) -> list[float]:
    """From one block's moment to the next, in nominal intervals."""
    moments = [block.header.time + (block.seal.nanos if block.seal else 0) / 1e9 for block in blocks]
    return [(late - early) * 1000 / INTERVAL_MS for early, late in pairwise(moments)]


def commit_ms(validators: Validators, blocks: list[Block]) -> float:
    eras = Eras.of(validators.genesis)
    begun = time.process_time()
    for block in blocks:
        verify_commit(validators.genesis, eras, block)
    return (time.process_time() - begun) * 1000 / len(blocks)


def fork_ms(validators: Validators, keys: KeyDirectory) -> float:
    genesis = validators.genesis
    verifier = Verifier(
        genesis.hash,
        keys.registration_verifier(threads=1),
        keys.submission_verifier(threads=1),
        DirectoryAttachments(validators.path(0) / BLOBS),
    )
    state = Chain(State.at_genesis(genesis), verifier).state
    tree: ClientTree = state.clients
    tree.append([Commitment.from_bytes((n + 1).to_bytes(32, "little")) for n in range(1 << 18)])
    for n in range(1 << 18):
        state.registered.add((n * 7919 + 1).to_bytes(32, "little"))
    times = []
    for _ in range(FORKS):
        begun = time.process_time()
        state.fork()
        times.append(time.process_time() - begun)
    return 1000 * sorted(times)[len(times) // 2]


def resident(pid: int) -> float:
    """What a process holds now, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (size,) = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(size) / 1000


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def note(text: str) -> None:
    print(f"… {text}", file=sys.stderr)


def run(keys: KeyDirectory, number: int, posts: int) -> list[Row]:
    """Measure in a directory that is removed."""
    with tempfile.TemporaryDirectory() as scratch:
        return measure(keys, number, posts, Path(scratch))
