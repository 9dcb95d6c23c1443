"""Four real validators with their engines, a load, and what must hold after whatever was done to them."""

import hashlib
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2

from anofel.board.chain import Chain, InvalidBlock
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.ids import BlobHash, Subject
from anofel.messages import Blob, Block, DkgRound, Header, Posting, Registration, Run
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.pki.certificates import Purpose
from anofel.primitives import CertifierTree, DatasetDigest, DatasetType, MasterSecret, MessageSecret, Salt
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import RegistrationProver
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from tests.faults.node_process import Findings
from tests.node.support import OCTETS, NodeProcess
from tests.replicated.support import Offer, Validators, make_validators

NUMBER = 4
FAULTY = str(Path(__file__).with_name("faulty_validator.py"))
PATIENCE = 600.0
"""The most that anything takes on a busy machine."""
WANTED_INTERVALS = 10
"""With at most f faults the next block is wanted within so many intervals,"""
WANTED_SECONDS = 30.0
"""and all equal so soon after the end of a fault. Whether they are says something about the machine too."""
PAIRS = 3
"""Clients that register twice, at two validators at once."""


class Validator(NodeProcess):
    """A validator's process, whose words go to a file: a full pipe would stop it."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as words:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=words, env=os.environ | environment
            )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Cluster:
    """The validators of one board."""

    def __init__(self, directory: Path, keys: KeyDirectory, *, interval_ms: int = 500) -> None:
        self.board: Validators = make_validators(directory, keys, number=NUMBER, interval_ms=interval_ms)
        self.keys, self.directory = keys, directory
        self.interval = interval_ms / 1000
        self.nodes: dict[int, Validator] = {}
        self.hosts = ["127.0.0.1"] * NUMBER
        self.before: list[list[str]] = [[] for _ in range(NUMBER)]
        """The words that start a validator in a network of its own."""
        self.environments: list[dict[str, str]] = [{} for _ in range(NUMBER)]
        self.fault: tuple[str, ...] = ()
        """What every validator is told that has no fault of its own."""
        self.blocks: list[list[Block]] = []
        """What every validator keeps, when all have stopped."""
        self.load: Load | None = None
        """Who posts meanwhile."""
        self.believed: list[tuple[int, bytes]] = []
        """Heights and hashes of last blocks that light clients believed."""

    def path(self, number: int) -> Path:
        return self.board.path(number)

    def url(self, number: int) -> str:
        return f"http://{self.hosts[number]}:{self.board.ports[number]}"

    # Life

    def start(self, number: int, *fault: str) -> None:
        """Start a validator; ``fault`` is what ``faulty_validator`` is told."""
        fault = fault or self.fault
        program = (
            [sys.executable, FAULTY, *fault] if fault else [sys.executable, "-m", "anofel", "node", "run"]
        )
        host = [] if self.hosts[number].startswith("127.") else ["--host", "0.0.0.0"]
        port = ["--port", str(self.board.ports[number])]
        command = [*self.before[number], *program, str(self.path(number)), *port, *host, "--json"]
        log = self.directory / f"node{number}.log"
        self.nodes[number] = Validator(
            command, log, self.environments[number] | {"PYTHONPATH": os.pathsep.join(sys.path)}
        )

    def start_all(self) -> None:
        for number in range(NUMBER):
            self.start(number)
        self.wait_for_height(2)

    def start_copy(self, path: Path, port: int) -> Validator:
        """Start a copy of a validator's directory."""
        command = [sys.executable, "-m", "anofel", "node", "run", str(path), "--port", str(port), "--json"]
        return Validator(command, self.directory / f"{path.name}.log", {})

    def stop(self, number: int) -> None:
        """Stop a validator in good order."""
        self.nodes[number].process.send_signal(signal.SIGTERM)
        self.nodes[number].process.wait(PATIENCE)

    def log(self, number: int) -> str:
        return (self.directory / f"node{number}.log").read_text(errors="replace")

    def words(self, text: str) -> int:
        """How often all validators together said something."""
        return sum(self.log(number).count(text) for number in range(NUMBER))

    def wait_for_words(self, number: int, text: str) -> bool:
        """Wait until a validator says something; False if it does not within ``PATIENCE``."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if text in self.log(number):
                return True
            time.sleep(0.2)
        return False

    def kill(self, number: int) -> None:
        self.nodes[number].kill()

    def kill_engine(self, number: int) -> bool:
        """End a validator's engine alone; False if it has none at this moment."""
        pid = self.engine_of(number)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True

    def engine_of(self, number: int) -> int | None:
        pid = self.nodes[number].process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        with suppress(OSError):
            for child in children.read_text().split():
                if "cometbft" in Path(f"/proc/{child}/cmdline").read_text():
                    return int(child)
        return None

    def close(self) -> None:
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                node.process.wait(60)
            except subprocess.TimeoutExpired:
                node.kill()
            if node.process.stdout is not None:
                node.process.stdout.close()

    # Looking

    def height(self, number: int) -> int:
        """The last block that a validator shows; −1 if it does not answer."""
        try:
            answer = httpx2.get(f"{self.url(number)}/v1/status", timeout=5)
            return int(answer.json()["height"]) if answer.status_code == 200 else -1
        except (httpx2.HTTPError, ValueError, KeyError):
            return -1

    def highest(self) -> int:
        return max(self.height(number) for number in range(NUMBER))

    def wait_for_height(
        self, height: int, numbers: Iterator[int] | range | list[int] = range(NUMBER)
    ) -> bool:
        """Wait until these validators show a block; False if they do not within ``PATIENCE``."""
        left, end = set(numbers), time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            left = {number for number in left if self.height(number) < height}
            time.sleep(0.1)
        return not left

    def goes_on(self, findings: Findings, numbers: list[int], blocks: int = 2) -> None:
        """With at most f faults the others make blocks."""
        at = max(self.height(number) for number in numbers)
        for height in range(at + 1, at + blocks + 1):
            begun = time.monotonic()
            if not self.wait_for_height(height, numbers):
                findings.violations.append(
                    f"No progress of {numbers} past block {height - 1}. {self.last_words()}"
                )
                return
            waited = time.monotonic() - begun
            findings.slowest = max(findings.slowest, waited)
            findings.waits += 1
            findings.late += waited > WANTED_INTERVALS * self.interval

    def equal_again(self, findings: Findings) -> None:
        """After healing everybody is where the others are, and goes on."""
        begun, at = time.monotonic(), self.highest()
        if not self.wait_for_height(at + 1):
            heights = [self.height(number) for number in range(NUMBER)]
            findings.violations.append(f"Not together again: blocks {heights}. {self.last_words()}")
        waited = time.monotonic() - begun
        findings.healed = max(findings.healed, waited)
        findings.waits += 1
        findings.late += waited > WANTED_SECONDS

    def blobs_everywhere(self, findings: Findings) -> None:
        """What a block names, every validator gets, whoever withheld it."""
        assert self.load is not None
        left = {(number, name) for number in range(NUMBER) for name in self.load.named}
        findings.add("blobs", len(self.load.named))
        end = time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            left = {(number, name) for number, name in left if not self._holds(number, name)}
            time.sleep(0.2)
        for number, name in left:
            findings.violations.append(f"Validator {number} never got the blob {name.hex()[:16]} of a block.")

    def _holds(self, number: int, name: BlobHash) -> bool:
        try:
            answer = httpx2.get(f"{self.url(number)}/v1/blobs/{name.hex()}", timeout=5)
        except httpx2.HTTPError:
            return False
        return answer.status_code == 200 and hashlib.sha256(answer.content).digest() == name

    def last_words(self) -> str:
        parts = []
        for number in range(NUMBER):
            log = self.directory / f"node{number}.log"
            lines = log.read_text(errors="replace").splitlines()[-2:] if log.exists() else []
            engine = self.path(number) / "engine" / "engine.log"
            lines += engine.read_text(errors="replace").splitlines()[-1:] if engine.exists() else []
            parts.append(f"node{number}: " + " / ".join(line[:300] for line in lines))
        return " | ".join(parts)


class Load:
    """Posts from several threads to random validators, and remembers every height it was told."""

    def __init__(self, cluster: Cluster, seed: int, pause: float = 0.05) -> None:
        self.cluster, self.pause = cluster, pause
        self.told: dict[bytes, int] = {}
        self.named: set[BlobHash] = set()
        """Blobs of postings that were told to be in a block."""
        self.uploads_at: int | None = None
        """The validator that is given the blobs; any of them if nobody says so."""
        self.broken: list[str] = []
        self._chance = random.Random(seed)
        self._began = threading.Event()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(4)
        self._running = [self._pool.submit(self._run, self._chance.random()) for _ in range(2)]
        self._running.append(self._pool.submit(self._register_twice))
        self._running.append(self._pool.submit(self._store, self._chance.random()))

    def close(self) -> None:
        self._stop.set()
        for running in self._running:
            running.result()
        self._pool.shutdown()

    def _run(self, seed: float) -> None:
        self._began.wait(PATIENCE)
        chance = random.Random(seed)
        waiting: list[bytes] = []
        while not self._stop.is_set():
            if len(waiting) < 6:
                waiting.append(self.cluster.board.offer().posting.data)
            data = chance.choice(waiting)
            if self._post(chance.randrange(NUMBER), data) is not None:
                waiting.remove(data)
            self._stop.wait(self.pause)

    def _post(self, number: int, data: bytes) -> int | None:
        """Send a posting to a validator; return the height that it told."""
        try:
            answer = httpx2.post(
                f"{self.cluster.url(number)}/v1/postings", content=data, headers=OCTETS, timeout=5
            )
        except httpx2.HTTPError:
            return None
        if answer.status_code == 200 and answer.json()["height"] is not None:
            height = int(answer.json()["height"])
            if self.told.setdefault(data, height) != height:
                self.broken.append(f"A posting was told to be in blocks {self.told[data]} and {height}.")
            return height
        if answer.status_code not in (200, 202, 422, 429, 500, 503):
            self.broken.append(f"A validator answered {answer.status_code}: {answer.text[:200]}")
        return None

    def _store(self, seed: float) -> None:
        """Members of committees that begin a run: the cheapest postings that name a blob."""
        self._began.wait(PATIENCE)
        chance = random.Random(seed)
        while not self._stop.wait(4 * self.pause):
            blob = self._upload(chance)
            if blob is None:
                continue
            data = self._first_message(blob).data
            while not self._stop.wait(self.pause):
                if self._post(chance.randrange(NUMBER), data) is not None:
                    self.named.add(blob.sha256)
                    break

    def _upload(self, chance: random.Random) -> Blob | None:
        """Give a blob to a validator; return it with the receipts of a quorum."""
        data = chance.randbytes(20_000)
        number = chance.randrange(NUMBER) if self.uploads_at is None else self.uploads_at
        url = f"{self.cluster.url(number)}/v1/blobs/{hashlib.sha256(data).hexdigest()}"
        try:
            answer = httpx2.put(url, content=data, headers=OCTETS, timeout=30)
        except httpx2.HTTPError:
            return None
        return Blob.from_bytes(answer.content) if answer.status_code in (200, 201) else None

    def _first_message(self, blob: Blob) -> Posting:
        board = self.cluster.board
        role = board.authority.issue(Purpose.AGGREGATOR, f"Aggregator {secrets.token_hex(4)}")
        others = (Subject(secrets.token_bytes(32)) for _ in range(2))
        run = Run(
            nonce=secrets.token_bytes(32),
            scheme=0,
            threshold=2,
            members=(role.subject, *others),
            handover=None,
        )
        name = run.run_id(board.genesis.hash)
        return board.signed(role, DkgRound(run_id=name, round=0, sender=1, run=run, body=blob))

    def _register_twice(self) -> None:
        """Clients that register twice: the same nullifier under two keys, at different validators at once."""
        try:
            offer = self.cluster.board.offer()
            end = time.monotonic() + PATIENCE
            while self._post(self._chance.randrange(NUMBER), offer.posting.data) is None:
                if self._stop.wait(0.2) or time.monotonic() > end:
                    return
            tree = CertifierTree()
            tree.append([offer.secret.public_key()])
            prover = self.cluster.keys.registration_prover(threads=1)
            pairs = [self._pair(offer, tree, prover) for _ in range(PAIRS)]
        finally:
            self._began.set()  # from now on other certifiers' keys change the root
        for _ in range(3):
            for place, pair in enumerate(pairs):
                for half, data in enumerate(pair):
                    self._post((place + 2 * half + self._chance.randrange(2)) % NUMBER, data)

    def _pair(self, offer: Offer, tree: CertifierTree, prover: RegistrationProver) -> tuple[bytes, bytes]:
        msk, d, dt = (
            MasterSecret.generate(),
            DatasetDigest.of_chunks([secrets.token_bytes(32)]),
            DatasetType(1),
        )
        certificate = offer.secret.certify(d, msk.public_key(), dt)
        credential = Credential(msk, d, dt, offer.secret.public_key(), certificate)

        def one() -> bytes:
            return make_registration(
                credential,
                salt=Salt.generate(),
                certifiers=tree,
                genesis=self.cluster.board.genesis.hash,
                epoch=0,
                message_secret=MessageSecret.generate(),
                prover=prover,
            ).data

        return one(), one()


def check(cluster: Cluster, load: Load, findings: Findings) -> None:
    """What must hold when everybody has stopped: see ``INVARIANTS``."""
    findings.violations += load.broken
    genesis = cluster.board.genesis.hash
    chains: list[list[tuple[bytes, tuple[bytes, ...]]]] = []
    cluster.blocks.clear()
    for number in range(NUMBER):
        store = BlockStore(cluster.path(number), read_only=True)
        try:
            blocks = list(store.blocks(1))
        finally:
            store.close()
        cluster.blocks.append(blocks)
        _follow(cluster, number, blocks, findings)
        chains.append([(block.header.to_bytes(), block.postings) for block in blocks])
    longest = max(chains, key=len)
    findings.add("blocks", len(longest))
    for number, chain in enumerate(chains):
        if chain != longest[: len(chain)]:
            findings.violations.append(f"Validator {number} has another block at some height.")
    where = {data: height for height, (_, postings) in enumerate(longest, 1) for data in postings}
    findings.add("postings in blocks", len(where))
    for data, height in load.told.items():
        if where.get(data) != height:
            findings.violations.append(
                f"A posting was told to be in block {height} and is in {where.get(data)}."
            )
    bodies = [Posting.from_bytes(data).body for data in where]
    spent = Counter(body.nullifier for body in bodies if isinstance(body, Registration))
    findings.add("nullifiers that two postings claimed", len(spent))
    if any(times > 1 for times in spent.values()):
        findings.violations.append("A nullifier is spent twice.")
    for height, name in cluster.believed:
        if height > len(longest) or Header.from_bytes(longest[height - 1][0]).hash(genesis) != name:
            findings.violations.append(f"A light client believed another block {height}.")
    _audit(str(cluster.path(0)), findings)


def _audit(where: str, findings: Findings) -> None:
    """Let the command audit the board, at a node's address or in a directory."""
    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", where], capture_output=True, check=False
    )
    if audited.returncode:
        findings.violations.append(
            f"The audit of {where} ended with {audited.returncode}: {audited.stderr.decode()[-300:]}"
        )


def followers(cluster: Cluster, number: int) -> Callable[[], Chain]:
    """Return who makes parties that know genesis alone; they share what was verified."""
    genesis, keys = cluster.board.genesis, cluster.keys
    verifier = Verifier(
        genesis.hash,
        keys.registration_verifier(threads=1),
        keys.submission_verifier(threads=1),
        DirectoryAttachments(cluster.path(number) / "blobs"),
    )
    return lambda: Chain(State.at_genesis(genesis), verifier)


def _follow(cluster: Cluster, number: int, blocks: list[Block], findings: Findings) -> None:
    """Follow every block of a validator, with what vouches for it."""
    chain = followers(cluster, number)()
    try:
        for block in blocks:
            chain.follow(block)
    except InvalidBlock as error:
        findings.violations.append(f"Validator {number} keeps a block that breaks a rule: {error}")


INVARIANTS = (
    "no two blocks of a height differ",
    "every block of every validator passes `follow`, with its seal",
    "what was answered with a height is in that block",
    "no posting and no nullifier is there twice",
    "with at most f faults blocks come",
    "after healing all are equal and go on",
    "every blob that a block names is at every validator in the end",
    "no light client believes what was not decided, and none accuses a board that did not fork",
    "the audit of a node's address and of a directory exits with 0",
)


@contextmanager
def under_load(
    keys: KeyDirectory,
    directory: Path,
    findings: Findings,
    seed: int,
    prepare: Callable[[Cluster], None] = lambda _cluster: None,
) -> Iterator[Cluster]:
    """A cluster under load; what must hold is checked when the block ends."""
    cluster = Cluster(directory, keys)
    prepare(cluster)
    load = None
    try:
        cluster.start_all()
        load = cluster.load = Load(cluster, seed)
        yield cluster
        cluster.equal_again(findings)
        cluster.blobs_everywhere(findings)
        _audit(cluster.url(random.Random(seed).randrange(NUMBER)), findings)
    finally:
        if load is not None:
            load.close()
        cluster.close()
    check(cluster, load, findings)
