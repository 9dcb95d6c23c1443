"""A board in this process as a node serves it to clients in header mode, and what a lying node may change."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlparse

from anofel.board.framing import frame
from anofel.board.log import merkle_root
from anofel.ids import BlobHash
from anofel.messages import Block, Posting
from anofel.messages.postings import posting_id
from anofel.node.outlines import Outlines
from anofel.proofs.keys import KeyDirectory
from tests.board.listening import listening
from tests.board.world import World

Lie = Callable[["ServedWorld", str, bytes], bytes | None]
"""From the path with its query and the true answer to another one; None for none at all."""


class ServedWorld:
    """Answers what a node answers."""

    def __init__(self, world: World, keys: KeyDirectory) -> None:
        self.world, self.keys = world, keys
        self.outlines = Outlines()
        self.blocks: list[Block] = list(world.board.blocks)
        self.lie: Lie = lambda _world, _path, answer: answer
        self.asked: list[str] = []
        self.taken: list[bytes] = []
        self.note()

    def note(self) -> None:
        """Write down the state after the last block; nothing was posted since."""
        self.outlines.note(self.world.board.state, self.blocks[-1].header)

    def next_block(self) -> Block:
        block = self.world.board.next_block()
        self.blocks.append(block)
        self.note()
        return block

    def forge_block(self, posting: bytes) -> Block:
        """Sign a block with a posting that no rule admits; the state is as if it had not been posted."""
        block = self.next_block()
        header = replace(block.header, postings=merkle_root([posting_id(posting)]))
        signature = self.world.validator.sign(header.vote_bytes(self.world.genesis.hash))
        vote = replace(block.commit[0], signature=signature)
        forged = replace(block, header=header, commit=(vote,), postings=(posting,))
        self.blocks[-1] = forged
        self.world.board.state.tip = header.hash(self.world.genesis.hash)
        self.note()
        return forged

    def answer(self, target: str) -> bytes | None:
        true = self._truth(target)
        return None if true is None else self.lie(self, target, true)

    def _truth(self, target: str) -> bytes | None:
        url = urlparse(target)
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
        parts = url.path.split("/")
        if url.path == "/v1/genesis":
            return self.world.genesis.to_bytes()
        if url.path.startswith("/v1/keys/"):
            name, _, proving = parts[-1].partition(".")
            return self.keys.file(name, "proving" if proving else "verification").path.read_bytes()  # type: ignore[arg-type]
        if url.path == "/v1/status":
            return json.dumps({"height": len(self.blocks)}).encode()
        if url.path in ("/v1/blocks", "/v1/names", "/v1/headers"):
            found = self.blocks[query["from"] - 1 : query["from"] - 1 + query["limit"]]
            return b"".join(frame(self._shown(url.path, block)) for block in found)
        if url.path == "/v1/outline":
            known = self.blocks[query["known"] - 1].header if query["known"] else None
            return self.outlines.outline(query["height"], known)
        if url.path == "/v1/leaves":
            return self.outlines.leaves(query["epoch"], query["from"], query["limit"])
        if len(parts) == 6 and parts[4] == "postings":
            return self.blocks[int(parts[3]) - 1].postings[int(parts[5])]
        if url.path.startswith("/v1/blobs/"):
            return self.world.board.attachments.read(BlobHash(bytes.fromhex(parts[-1])))
        return None

    @staticmethod
    def _shown(path: str, block: Block) -> Block:
        if path == "/v1/blocks":
            return block
        names = tuple(posting_id(data) for data in block.postings)
        return replace(block, postings=names if path == "/v1/names" else ())

    def take(self, path: str, body: bytes) -> bytes:
        """Take a posting or a blob."""
        if path == "/v1/postings":
            posting = Posting.from_bytes(body)
            self.world.board.post(posting)
            self.taken.append(body)
            return json.dumps({"id": posting.id.hex(), "height": None}).encode()
        return self.world.board.upload(body).to_bytes()


@contextmanager
def serving(served: ServedWorld) -> Iterator[str]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with lock:
                served.asked.append(self.path)
                try:
                    self._answer(served.answer(self.path))
                except Exception:
                    self._answer(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                self._answer(served.take(self.path, body))

        do_PUT = do_POST  # noqa: N815 - the name that the library looks for

        def _answer(self, content: bytes | None) -> None:
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_values: object) -> None:
            pass

    with listening(Handler) as url:
        yield url
