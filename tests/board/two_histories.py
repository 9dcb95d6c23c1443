"""A node that serves an honest history, another signed one, or whatever it was told to say."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlparse

from anofel.messages import Block, Genesis
from anofel.network.transport import Transport
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard
from tests.board.listening import listening
from tests.board.world import TIME, World
from tests.node.support import SECONDS

PAGE = b"<html>Log in to the network</html>"
"""What a portal answers in the place of a node."""


def transport(url: str) -> Transport:
    return Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS)


class Histories:
    """Two histories that one validator signed, and what else a lying node may say."""

    def __init__(self, keys: KeyDirectory, num_blocks: int = 4) -> None:
        self.world = World(keys)
        self.num_blocks = num_blocks
        self.keys = keys
        self.genesis: Genesis = self.world.genesis
        self.honest = self._blocks(TIME)
        self.other = self._blocks(TIME + 5)
        self.blocks = self.honest
        self.said: dict[str, bytes] = {}
        """What is answered in place of the node, by path."""

    def _blocks(self, time_of_blocks: int) -> list[Block]:
        board = LocalBoard(
            self.genesis,
            validator=self.world.validator,
            storage=self.world.storage,
            registration=self.keys.registration_verifier(threads=1),
            submission=self.keys.submission_verifier(threads=1),
        )
        return [board.next_block(time_of_blocks) for _ in range(self.num_blocks)]

    def go_on_as(self, world: World) -> None:
        """Serve another world, and thirty empty blocks after it."""
        self.world, self.genesis = world, world.genesis
        for _ in range(30):
            world.board.next_block()
        self.blocks = world.board.blocks
        for name, data in world.board.attachments.items():
            self.said[f"/v1/blobs/{name.hex()}"] = data

    def resigned(self, block: Block, **changes: bytes) -> Block:
        """Another block that the validator signed."""
        header = replace(block.header, **changes)
        signature = self.world.validator.sign(header.vote_bytes(self.genesis.hash))
        return replace(block, header=header, commit=(replace(block.commit[0], signature=signature),))

    def name(self, block: Block) -> bytes:
        return block.header.hash(self.genesis.hash)

    def answer(self, target: str) -> bytes | None:
        url = urlparse(target)
        if url.path in self.said:
            return self.said[url.path]
        if url.path == "/v1/genesis":
            return self.genesis.to_bytes()
        if url.path.startswith("/v1/keys/"):
            name, _, proving = url.path.rsplit("/", 1)[1].partition(".")
            role = "proving" if proving else "verification"
            return self.keys.file(name, role).path.read_bytes()  # type: ignore[arg-type]
        if url.path == "/v1/status":
            return json.dumps({"height": len(self.blocks)}).encode()
        if url.path == "/v1/blocks":
            first = int(parse_qs(url.query)["from"][0])
            frames = [block.to_bytes() for block in self.blocks[first - 1 :]]
            return b"".join(len(data).to_bytes(4, "little") + data for data in frames)
        return None


@contextmanager
def serving(histories: Histories) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = histories.answer(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        do_PUT = do_POST  # noqa: N815 - the name that the library looks for

        def log_message(self, *_values: object) -> None:
            pass

    with listening(Handler) as url:
        yield url
