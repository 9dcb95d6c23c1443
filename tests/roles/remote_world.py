"""A real node with everybody on it over HTTP: ``tests.board.world`` with a light client for a board."""

import time
from pathlib import Path

from anofel.light_client.client import LightClient
from anofel.messages import Body, ChainAuthor, Class, Genesis, Posting, make_posting
from anofel.network.transport import Transport
from anofel.node.files import NodeConfig
from anofel.node.init import BoardNumbers, BoardTrust, make_node
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory
from tests.board.world import LIMITS, World
from tests.node.support import SECONDS

INTERVAL_MS = 150
CLASS = Class(
    max_length=1000, max_posts=8, post_from=60, train=150, aggregate=6000, count=6000, sum=6000, model=6000
)


class Authority:
    """The certificate authority of the board."""

    def __init__(self) -> None:
        self.now = int(time.time())
        self._ca = TestAuthority.create(not_before=self.now - 7200)

    @property
    def root(self) -> bytes:
        return self._ca.root

    def issue(self, purpose: Purpose, name: str) -> RoleKey:
        return self._ca.issue(purpose, name, self.now - 3600, self.now + 900 * 86_400)


def make_remote_board(
    directory: Path, keys: KeyDirectory, authority: Authority, size: Class = CLASS
) -> Genesis:
    return make_node(
        directory,
        name="test",
        trust=BoardTrust((authority.root,), authority.issue(Purpose.STORAGE, "Storage"), insecure=True),
        keys=keys,
        clock=BoardNumbers(INTERVAL_MS, 2, 1000, (size,), LIMITS),
        config=NodeConfig(),
        allow_insecure_keys=True,
    )


class RemoteBoard:
    """What ``World`` needs of a board, through a light client; a posting is waited for."""

    def __init__(self, client: LightClient) -> None:
        self.client = client

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)  # everything else of a board is the client's

    @property
    def genesis_hash(self) -> bytes:
        return self.client.genesis.hash

    def post(self, posting: Posting) -> Posting:
        self.client.sync()
        self.client.post(posting)
        seen: list[bytes] = []
        end = time.monotonic() + SECONDS
        while posting.data not in seen:
            assert time.monotonic() < end, "The posting was not taken."
            self.client.sync(on_block=lambda block: seen.extend(block.postings))
            time.sleep(0.02)
        return posting

    def post_as(self, role: RoleKey, body: Body) -> Posting:
        return self.post(make_posting(body, ChainAuthor(role.chain), self.genesis_hash, role.sign))

    def next_block(self) -> None:
        height = self.state.height
        self.wait(lambda: self.state.height > height)

    def wait(self, condition, seconds: float = SECONDS) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + seconds
        self.client.sync()
        while not condition():
            assert time.monotonic() < end, "What was waited for did not happen."
            time.sleep(0.05)
            self.client.sync()


class RemoteWorld(World):
    """Certifier, committees and owners, played by the test; the clients are real."""

    def __init__(self, keys: KeyDirectory, authority: Authority, client: LightClient) -> None:
        self.keys = keys
        self.authority = authority  # type: ignore[assignment]
        self.genesis = client.genesis
        self.board = RemoteBoard(client)  # type: ignore[assignment]
        self.certifier_secret = CertifierSecret.generate()
        self.certifier = authority.issue(Purpose.CERTIFIER, "Clinic")
        self.committees, self.owners, self.clients = [], [], []

    @property
    def remote(self) -> RemoteBoard:
        return self.board  # type: ignore[return-value]


def connect(url: str, directory: Path, genesis_hash: bytes) -> LightClient:
    return LightClient(
        directory, Transport(url, attempts=2, timeout=SECONDS, patience=SECONDS), genesis_hash=genesis_hash
    )
