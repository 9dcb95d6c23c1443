"""A board of several validators for tests: their directories, cheap postings, and their real processes."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from anofel.messages import Body, ChainAuthor, Class, Genesis, Limits, Posting, make_posting
from anofel.node.files import NodeConfig
from anofel.node.init import BoardNumbers, BoardTrust
from anofel.node.replicated.engine import EngineMissing, find_engine
from anofel.node.replicated.init import make_test_validators
from anofel.phase1_setup.step1a_certifier_key import offer_key
from anofel.pki.certificates import Purpose, RoleKey, verify_chain
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory
from tests.node.support import CLASS, LIMITS, NodeProcess


@dataclass(frozen=True)
class Offer:
    """A certifier's key on its way to the board."""

    role: RoleKey
    secret: CertifierSecret
    posting: Posting


@dataclass(frozen=True)
class Validators:
    """The directories of all validators, with the authority that certifies everybody."""

    directory: Path
    authority: TestAuthority
    genesis: Genesis
    ports: tuple[int, ...]

    def path(self, number: int) -> Path:
        return self.directory / f"node{number}"

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.ports[number]}"

    def copy(self, number: int, to: Path) -> Path:
        shutil.copytree(self.path(number), to)
        return to

    def signed(self, role: RoleKey, body: Body) -> Posting:
        return make_posting(body, ChainAuthor(role.chain), self.genesis.hash, role.sign)

    def offer(self) -> Offer:
        """The cheapest valid posting."""
        now = int(time.time())
        return self.offer_of(self.authority.issue(Purpose.CERTIFIER, "Clinic", now - 3600, now + 86_400))

    def offer_of(self, role: RoleKey) -> Offer:
        """A certifier's key, of which each has one in force."""
        now = int(time.time())
        holder = verify_chain(role.chain, [self.authority.root], Purpose.CERTIFIER, now)
        secret = CertifierSecret.generate()
        body = offer_key(secret, holder=holder, genesis=self.genesis.hash)
        return Offer(role, secret, self.signed(role, body))


def make_validators(
    directory: Path,
    keys: KeyDirectory,
    *,
    number: int,
    interval_ms: int = 1000,
    limits: Limits = LIMITS,
    classes: tuple[Class, ...] = (CLASS,),
) -> Validators:
    ca = directory / "ca"
    TestAuthority.create(not_before=int(time.time()) - 7200).save(ca)
    authority = TestAuthority.open(ca)
    http, peers = free_ports(number), free_ports(number)
    genesis = make_test_validators(
        directory / "board",
        number=number,
        name="test",
        authority=authority,
        trust=BoardTrust((authority.root,), authority.issue(Purpose.STORAGE, "Nobody"), insecure=True),
        keys=keys,
        clock=BoardNumbers(interval_ms, 2, 10, classes, limits),
        config=NodeConfig(),
        ports=(http, peers),
        allow_insecure_keys=True,
    )
    ports = tuple(range(http, http + number))
    return Validators(directory / "board", authority, genesis, ports)


def free_ports(number: int) -> int:
    """Find consecutive ports that are free now, outside the range that the system gives out by itself."""
    for first in range(10_000 + os.getpid() % 20_000, 32_000, number):
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    taken = stack.enter_context(socket.socket())
                    taken.bind(("127.0.0.1", port))
            except OSError:
                continue
        if first not in _GIVEN:
            _GIVEN.update(range(first, first + number))
            return first
    raise AssertionError("No ports are free.")


_GIVEN: set[int] = set()


def needs_engine() -> None:
    """Skip a test where the engine is not built."""
    try:
        find_engine()
    except EngineMissing as error:
        pytest.skip(f"CometBFT is not built (make engine): {error}")


@contextmanager
def running(validators: Validators, *numbers: int) -> Iterator[dict[int, NodeProcess]]:
    """Real processes of validators."""
    nodes: dict[int, NodeProcess] = {}
    try:
        for number in numbers:
            nodes[number] = start(validators, number)
        yield nodes
    finally:
        for node in _STARTED:
            if node.process.poll() is None:
                node.process.terminate()
        for node in _STARTED:
            if node.process.poll() is None:
                node.wait()
            for stream in (node.process.stdout, node.process.stderr):
                if stream is not None:
                    stream.close()
        _STARTED.clear()


def start(validators: Validators, number: int) -> NodeProcess:
    """Start one; ``running`` ends it."""
    _STARTED.append(NodeProcess(validators.path(number), port=validators.ports[number]))
    return _STARTED[-1]


_STARTED: list[NodeProcess] = []
