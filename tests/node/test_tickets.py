"""A stranger fills all room for uploads that it gets; who has a ticket goes on. A real node over HTTP."""

import hashlib
import os
import time
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import httpx2

from anofel.light_client.client import LightClient
from anofel.network.transport import Transport
from anofel.node.files import NodeConfig, write_node
from anofel.phase2_training.step5_submission import post_submission, upload_ticket
from anofel.proofs.keys import KeyDirectory
from tests.board.world import Authority, World, a_vector
from tests.node.support import OCTETS, SECONDS, running
from tests.node.test_iteration import NodeBoard

PENDING = 8 << 20
PIECE = 256 << 10
HOUR_MS = 3_600_000
"""So long that the iteration stays open while the node is attacked."""


def put(client: httpx2.Client, data: bytes, ticket: bytes = b"") -> httpx2.Response:
    shown = f"?ticket={urlsafe_b64encode(ticket).decode()}" if ticket else ""
    return client.put(f"/v1/blobs/{hashlib.sha256(data).hexdigest()}{shown}", content=data, headers=OCTETS)


def test_a_stranger_who_fills_the_room_for_uploads_stops_nobody_with_a_ticket(
    tmp_path: Path, keys: KeyDirectory
) -> None:
    now = int(time.time()) - 60
    world = World(keys, Authority(now), bundle_size=1, interval_ms=HOUR_MS, time=now)
    config = NodeConfig(max_pending_bytes=PENDING, min_free_bytes=1)
    write_node(tmp_path / "node", world.genesis, world.validator, world.storage, keys, config)
    board = world.board = NodeBoard(tmp_path / "node")
    world.set_up(num_clients=2, committees=((2, 2, 0),))
    honest, liar = (
        world.sealed(client, 0, a_vector(world.owners[0].task, number))
        for number, client in enumerate(world.clients)
    )
    owner = world.owners[0].role
    board.node.close()
    with running(tmp_path / "node") as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        taken = 0
        while (answer := put(client, os.urandom(PIECE))).status_code == 201:
            taken += PIECE
            assert taken <= PENDING // 2, "a stranger gets half"
        assert (answer.status_code, answer.json()["code"]) == (503, "blob-store-full")
        assert taken == PENDING // 2

        # It has seen other tickets, and makes its own.
        genesis = world.genesis.hash
        copied = upload_ticket(liar, genesis)
        assert put(client, os.urandom(PIECE), copied).json()["code"] == "blob-store-full"
        changed = replace(liar, payloads=tuple(os.urandom(len(data)) for data in liar.payloads))
        assert put(client, changed.payloads[0], b"nonsense").json()["code"] == "blob-store-full"
        assert put(client, honest.payloads[0]).json()["code"] == "blob-store-full"

        # A client that is registered has one place, however many payloads it makes up.
        assert put(client, liar.payloads[0], copied).status_code == 201
        again = upload_ticket(changed, genesis)
        assert put(client, changed.payloads[0], again).json()["code"] == "blob-store-full"

        # Honest parties upload and post, as if nobody were there.
        view = LightClient(tmp_path / "view", Transport(node.url), genesis_hash=genesis)
        view.sync()
        view.post(post_submission(view, honest))
        view.uploads_as = owner
        blob = view.upload(os.urandom(PIECE))
        assert len(blob.receipts) == 1
        view.close()
        code, said = node.stop()
    assert code == 0
    assert "Traceback" not in said
