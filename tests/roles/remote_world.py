"""A real node with everybody on it over HTTP: ``tests.board.world`` with a light client for a board."""

import time
from collections.abc import Callable
from pathlib import Path

from anofel.board.interface import OnBlock
from anofel.ids import GenesisHash
from anofel.light_client.client import LightClient
from anofel.messages import Block, Body, ChainAuthor, Class, Posting, make_posting
from anofel.network.transport import Transport
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory
from tests.board.world import LIMITS, Authority, World
from tests.node.support import SECONDS, BoardOfTest, make_board

INTERVAL_MS = 150
CLASS = Class(
    max_length=1000, max_posts=8, post_from=60, train=150, aggregate=6000, count=6000, sum=6000, model=6000
)


def make_remote_board(
    directory: Path, keys: KeyDirectory, size: Class = CLASS, interval_ms: int = INTERVAL_MS
) -> BoardOfTest:
    return make_board(
        directory,
        keys,
        interval_ms=interval_ms,
        limits=LIMITS,
        classes=(size,),
        bundle_wait=1000,
    )


class RemoteBoard:
    """What ``World`` needs of a board, through a light client; a posting is waited for."""

    def __init__(self, client: LightClient, on_block: OnBlock = lambda _block: None) -> None:
        self.client, self._on_block = client, on_block

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)  # everything else of a board is the client's

    @property
    def genesis_hash(self) -> GenesisHash:
        return self.client.genesis.hash

    def post(self, posting: Posting) -> Posting:
        seen: set[bytes] = set()
        self.client.sync(on_block=self._on_block)
        self.client.post(posting)
        self.wait(lambda: posting.data in seen, "a posting", lambda block: seen.update(block.postings))
        return posting

    def post_as(self, role: RoleKey, body: Body) -> Posting:
        return self.post(make_posting(body, ChainAuthor(role.chain), self.genesis_hash, role.sign))

    def next_block(self) -> None:
        height = self.client.state.height
        self.wait(lambda: self.client.state.height > height, "a block")

    def wait(
        self,
        condition: Callable[[], bool],
        what: str,
        on_block: OnBlock = lambda _block: None,
        seconds: float = SECONDS,
    ) -> None:
        """Follow the board block by block until something holds."""

        def take(block: Block) -> None:
            self._on_block(block)
            on_block(block)

        end = time.monotonic() + seconds
        while True:
            self.client.sync(on_block=take)
            if condition():
                return
            assert time.monotonic() < end, f"Waited for {what} in vain."
            time.sleep(0.05)


class RemoteWorld(World):
    """Everybody whom the test plays itself, over HTTP."""

    def __init__(self, keys: KeyDirectory, made: BoardOfTest, board: RemoteBoard) -> None:
        self.keys = keys
        self.authority = Authority(int(time.time()), made.authority)
        self.genesis = made.genesis
        self.board = board  # type: ignore[assignment]
        self.certifier_secret = CertifierSecret.generate()
        self.certifier = self.authority.issue(Purpose.CERTIFIER, "Clinic")
        self.committees, self.owners, self.clients = [], [], []

    @property
    def remote(self) -> RemoteBoard:
        return self.board  # type: ignore[return-value]


def connect(url: str, directory: Path, genesis_hash: bytes) -> LightClient:
    return LightClient(
        directory, Transport(url, attempts=2, timeout=SECONDS, patience=SECONDS), genesis_hash=genesis_hash
    )
