"""A recorded board as the verifier page gets it: an archive, flips of bits, a node that hands it out."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from anofel.audit.archive import Archive, write_archive
from anofel.audit.sources import open_source
from anofel.messages import Block

Flip = tuple[int, int, int, int]
"""Height, place (−1: the whole block), byte and bit."""


def export(directory: Path, out: Path) -> Path:
    """Write the archive of a board."""
    with open_source(str(directory)) as source, out.open("wb") as file:
        write_archive(
            file,
            genesis=source.genesis.to_bytes(),
            registration=source.registration_key,
            submission=source.submission_key,
            blocks=source.blocks,
            attachments=source.attachments,
        )
    return out


def sampled_flips(archive: Path, number: int, seed: int) -> list[Flip]:
    """Draw bits of postings, headers and votes, each as likely as its posting or block."""
    opened = Archive.open(archive)
    blocks = [Block.from_bytes(data) for data in opened.blocks()]
    opened.close()
    generator = random.Random(seed)
    places = [(at, place) for at, block in enumerate(blocks) for place in range(-1, len(block.postings))]
    flips = []
    for _ in range(number):
        at, place = generator.choice(places)
        block = blocks[at]
        # Of a block the header and the vote, which stand first; what follows are its postings.
        length = len(block.header.to_bytes()) + 70 if place < 0 else len(block.postings[place])
        flips.append((at + 1, place, generator.randrange(length), generator.randrange(8)))
    return flips


def flipped(data: bytes, byte: int, bit: int) -> bytes:
    """Change one bit."""
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)


@contextmanager
def handed_out(archive: Path) -> Iterator[str]:
    """Serve an archive as a node would, to pages of any origin."""
    opened = Archive.open(archive)
    blocks = list(opened.blocks())
    single = {
        "/v1/status": json.dumps({"height": len(blocks)}).encode(),
        "/v1/genesis": opened.genesis,
        "/v1/keys/registration": opened.registration,
        "/v1/keys/submission": opened.submission,
    }
    blobs = {f"/v1/blobs/{name.hex()}": opened.read(name) for name in opened.names()}
    opened.close()

    class Node(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            answer = single.get(path) or blobs.get(path)
            if path == "/v1/blocks":
                first = int(query.split("from=")[1].split("&")[0])
                answer = b"".join(
                    len(data).to_bytes(4, "little") + data for data in blocks[first - 1 : first + 4]
                )
            self.send_response(404 if answer is None else 200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Node)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
