"""A board in a directory, cheap valid postings for it, and its node as a real process."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from anofel.messages import ChainAuthor, Class, Genesis, Limits, Posting, make_posting
from anofel.node.files import NodeConfig
from anofel.node.init import BoardNumbers, BoardTrust, make_node
from anofel.phase1_setup.step1a_certifier_key import offer_key
from anofel.pki.certificates import Purpose, RoleKey, verify_chain
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory

OCTETS = {"Content-Type": "application/octet-stream"}
SECONDS = 600
"""The most that anything takes on a busy machine."""
CLASS = Class(max_length=1000, max_posts=8, post_from=0, train=4, aggregate=3, count=3, sum=3, model=3)
LIMITS = Limits(
    root_window=4,
    max_postings=1000,
    max_block_bytes=4 << 20,
    grace=2,
    max_runs=2,
    max_tasks=2,
    max_key_bytes=1 << 20,
    max_model_bytes=1 << 20,
)


@dataclass
class BoardOfTest:
    """A node's directory with the authority that certifies everybody."""

    directory: Path
    authority: TestAuthority
    genesis: Genesis

    def certifier(self, name: str = "Clinic", *, seconds: int = 86_400) -> RoleKey:
        """Valid since an hour ago: a block's time lies up to an interval in the past."""
        now = int(time.time())
        return self.authority.issue(Purpose.CERTIFIER, name, now - 3600, now + seconds)

    def posting(self, role: RoleKey | None = None) -> Posting:
        """The cheapest valid posting: a new certifier offers its key."""
        role = role or self.certifier()
        now = int(time.time())
        holder = verify_chain(role.chain, [self.authority.root], Purpose.CERTIFIER, now)
        body = offer_key(CertifierSecret.generate(), holder=holder, genesis=self.genesis.hash)
        return make_posting(body, ChainAuthor(role.chain), self.genesis.hash, role.sign)


def make_board(
    directory: Path,
    keys: KeyDirectory,
    *,
    interval_ms: int = 100,
    limits: Limits = LIMITS,
    classes: tuple[Class, ...] = (CLASS,),
    bundle_wait: int = 10,
    config: NodeConfig | None = None,
) -> BoardOfTest:
    authority = TestAuthority.create(not_before=int(time.time()) - 7200)
    storage = authority.issue(Purpose.STORAGE, "Storage")
    genesis = make_node(
        directory,
        name="test",
        trust=BoardTrust((authority.root,), storage, insecure=True),
        keys=keys,
        clock=BoardNumbers(interval_ms, 2, bundle_wait, classes, limits),
        config=config or NodeConfig(),
        allow_insecure_keys=True,
    )
    return BoardOfTest(directory, authority, genesis)


class NodeProcess:
    """``anofel node run``, or a script that takes the same arguments, over real HTTP."""

    def __init__(self, directory: Path, *extra: str, script: list[str] | None = None, port: int = 0) -> None:
        command = script or [sys.executable, "-m", "anofel", "node", "run"]
        self.process = subprocess.Popen(
            [*command, str(directory), "--port", str(port), "--json", *extra],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.url = self._ready()["url"]

    def _ready(self, seconds: float = SECONDS) -> dict[str, str]:
        assert self.process.stdout is not None
        text, end = b"", time.monotonic() + seconds
        while not text.rstrip().endswith(b"}"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError("The node did not get ready.")
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                raise AssertionError(f"The node ended: {self.process.communicate()[1].decode()}")
            text += piece
        return json.loads(text)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait; return exit code and what the node said."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors.decode()


@contextmanager
def running(directory: Path, *extra: str) -> Iterator[NodeProcess]:
    node = NodeProcess(directory, *extra)
    try:
        yield node
    finally:
        if node.process.poll() is None:
            node.stop(signal.SIGKILL)


def wait_until(condition, seconds: float = SECONDS) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "What was waited for did not happen."
        time.sleep(0.02)


def height(client: httpx2.Client) -> int:
    return client.get("/v1/status").raise_for_status().json()["height"]
