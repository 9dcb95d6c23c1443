"""Everything that is there before the first process: proof keys, the board's genesis, a directory per role.

These are the library calls behind ``anofel setup dev``, ``anofel node init`` and ``anofel ROLE init``; one
process makes them all, which saves thirty starts of Python. The key files lie beside the directories, because
nobody is there to type passphrases.
"""

import secrets
import shutil
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Final

from anofel.demo.data import DemoStudy, policy_text
from anofel.demo.plan import CERTIFIERS, DELTA, TARGET_EPSILON, Options, StageLayout, size_class
from anofel.disk.files import write_new_file
from anofel.disk.keystore import KeyFile
from anofel.errors import InvalidInput
from anofel.ids import GenesisHash
from anofel.messages import Genesis, Limits
from anofel.node.files import NodeConfig
from anofel.node.init import BoardNumbers, BoardTrust, make_node
from anofel.node.replicated.init import make_test_validators
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    DatasetDigest,
    DatasetType,
    MasterSecret,
    MessageSecret,
    Salt,
)
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys
from anofel.roles.certifier.role import init_certifier
from anofel.roles.client.files import init_client
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import ROLE_KEY

POLICY: Final = "policy.toml"
BOARD_NAME: Final = "anofel demo"
_HOUR: Final = 3600
_PROOFS: Final = 5
_PORT_TRIES: Final = 100


class Stage:
    """What the demo made, and what it still needs of it."""

    def __init__(self, options: Options) -> None:
        self.options, self.layout = options, StageLayout(options.directory, options.validators)
        now = int(time.time())
        self._authority = TestAuthority.create(not_before=now - 2 * _HOUR)
        self._valid = (now - _HOUR, now + 90 * 24 * _HOUR)
        self._role_keys: dict[str, RoleKey] = {}
        self.genesis: Genesis
        self.keys: KeyDirectory

    def make_board(self) -> None:
        """Make insecure proof keys and the board that pins them; its directory is the demo's."""
        parent = self.options.directory.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".anofel-demo-", dir=parent) as scratch:
            keys = make_insecure_development_keys(Path(scratch) / "keys")
            clock = BoardNumbers(
                self.options.interval_ms,
                len(self.options.studies),
                600,
                (size_class(self.options, _proof_seconds(keys)),),
                _LIMITS,
            )
            trust = BoardTrust(
                (self._authority.root,), self._issue(Purpose.STORAGE, "Storage"), insecure=True
            )
            if self.options.validators:
                self.genesis = self._make_validators(keys, clock, trust)
            else:
                self.genesis = make_node(
                    self.layout.root,
                    name=BOARD_NAME,
                    trust=trust,
                    keys=keys,
                    clock=clock,
                    config=NodeConfig(),
                    allow_insecure_keys=True,
                )
            shutil.move(keys.path, self.layout.keys)
        self.keys = KeyDirectory.open(self.layout.keys)
        for directory in (self.layout.roles, self.layout.logs):
            directory.mkdir(mode=0o700)

    def _make_validators(self, keys: KeyDirectory, clock: BoardNumbers, trust: BoardTrust) -> Genesis:
        number = self.options.validators
        http = free_ports(2 * number)
        return make_test_validators(
            self.layout.root,
            number=number,
            name=BOARD_NAME,
            authority=self._authority,
            trust=trust,
            keys=keys,
            clock=clock,
            config=NodeConfig(),
            ports=(http, http + number),
            allow_insecure_keys=True,
        )

    def make_roles(self, studies: list[DemoStudy], boards: list[str]) -> None:
        """Make the directory of every role, each with keys of its own and a node that it talks to."""
        given = cycle(boards)
        write_new_file(self.layout.data / POLICY, policy_text(studies, self.layout).encode())
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(self._certifier, name, next(given)) for name in CERTIFIERS]
            for study in studies:
                members = [study.member(number + 1) for number in range(self.options.committee)]
                jobs += [
                    pool.submit(self._certified, Purpose.AGGREGATOR, name, next(given)) for name in members
                ]
                jobs.append(pool.submit(self._certified, Purpose.OWNER, study.owner, next(given)))
                clients = range(1, self.options.clients + 1)
                jobs += [pool.submit(self._client, study, number, next(given)) for number in clients]
            for job in jobs:
                job.result()

    def _certifier(self, name: str, board: str) -> None:
        init_certifier(
            self.layout.role(name),
            KeyFile.generate(self.layout.key_file(name)),
            board=board,
            genesis_hash=self.genesis.hash,
            role_key=self._issue(Purpose.CERTIFIER, name),
            keys=self.keys,
            policy=self.layout.data / POLICY,
        )

    def _certified(self, purpose: Purpose, name: str, board: str) -> None:
        role_key = self._role_keys[name] = self._issue(purpose, name)
        RoleDirectory.create(
            self.layout.role(name),
            KeyFile.generate(self.layout.key_file(name)),
            role=purpose.value,
            board=board,
            genesis_hash=self.genesis.hash,
            secrets={ROLE_KEY: role_key.to_secret_bytes()},
        )

    def _client(self, study: DemoStudy, number: int, board: str) -> None:
        name, options = study.client(number), self.options
        is_late = number > options.clients - options.late
        init_client(
            self.layout.role(name),
            KeyFile.generate(self.layout.key_file(name)),
            board=board,
            genesis_hash=self.genesis.hash,
            data=self.layout.rows(name),
            schema=self.layout.task(study.name),
            keys=self.layout.keys,
            settings={
                "dataset_type": study.number,
                "task": study.name,
                "max_epsilon": str(TARGET_EPSILON),
                "delta": str(DELTA),
                "unit": "record",
                "relation": "zero-out",
                "min_clients": options.min_clients,
                "min_anonymity_set": options.clients,
                "max_colluders": options.max_colluders,
                "min_bundle": len(options.studies),
                "first_wait": int(is_late),
            },
        )

    def subject(self, name: str) -> str:
        """Who a member of a committee is on the board."""
        return self._role_keys[name].subject.hex()

    def _issue(self, purpose: Purpose, name: str) -> RoleKey:
        return self._authority.issue(purpose, name, *self._valid)


_LIMITS: Final = Limits(
    root_window=120,
    max_postings=10_000,
    max_block_bytes=16 << 20,
    grace=1 << 20,  # payloads stay, so that the audit recomputes every sum
    max_runs=4,
    max_tasks=4,
    max_key_bytes=64 << 20,
    max_model_bytes=64 << 20,
)


def free_ports(number: int) -> int:
    """Find so many consecutive ports that nobody listens on, outside the range that the system gives out.

    Raises ``InvalidInput``.
    """
    for _ in range(_PORT_TRIES):
        first = 10_000 + secrets.randbelow(20_000)
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
    raise InvalidInput(f"There are no {number} free ports in a row on this machine.")


def _proof_seconds(keys: KeyDirectory) -> float:
    """Measure how long a proof takes on this machine, with one thread; the slowest counts."""
    prover, certifier, msk = (
        keys.registration_prover(threads=1),
        CertifierSecret.generate(),
        MasterSecret.generate(),
    )
    d, dt = DatasetDigest.of_chunks([b"rows"]), DatasetType(1)
    certificate = certifier.certify(d, msk.public_key(), dt)
    credential = Credential(msk, d, dt, certifier.public_key(), certificate)
    tree = CertifierTree()
    tree.append([certifier.public_key()])
    slowest = 0.0
    for _ in range(_PROOFS):
        began = time.monotonic()
        make_registration(
            credential,
            salt=Salt.generate(),
            certifiers=tree,
            genesis=GenesisHash(bytes(32)),
            epoch=0,
            message_secret=MessageSecret.generate(),
            prover=prover,
        )
        slowest = max(slowest, time.monotonic() - began)
    return slowest
