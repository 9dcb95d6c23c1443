"""``anofel node run`` of a validator with a fault put around the real code; the package knows nothing of it.

kill POINT TIMES            kill -9 when a write point is reached for the n-th time
disk PAGES                  the board's file may grow by so many pages and no more
propose KIND NOTES          propose what no honest validator proposes, and note each time in a file
skew                        take an engine that was changed (``skewed_engine``)
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anofel.comet.wire import uvarint
from anofel.messages import Posting
from anofel.node.replicated import engine
from anofel.node.replicated.abci import Proposal
from anofel.node.replicated.blobs import Holders
from anofel.node.replicated.node import ReplicatedNode
from anofel.storage.blobs import retention
from anofel.storage.blobs.errors import BlobUnknown
from anofel.storage.blobs.store import BlobStore
from anofel.storage.blocks import BlockStore
from tests.node.faulty_node import Fault, fill_disk

WRITES: tuple[tuple[type, str, str], ...] = (
    (ReplicatedNode, "finalize", "finalize"),
    (BlobStore, "promise_all", "promise"),
    (BlockStore, "append", "append"),
    (BlockStore, "add_seal", "seal"),
    (BlobStore, "prune", "prune"),
)
INSIDE = ("append", "seal")
POINTS = tuple(
    f"{when}-{name}"
    for _, _, name in WRITES
    for when in ("before", *(["inside"] if name in INSIDE else []), "after")
)
KINDS = ("invalid", "duplicates", "oversized", "withheld", "endless", "none")


class AnyFault(Fault):
    """Also for writes of empty blocks."""

    def around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.reach(f"before-{name}")
            self.inside = name
            result = method(*arguments, **named)
            self.inside = ""
            self.reach(f"after-{name}")
            return result

        return call

    def in_transaction(self, transaction: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def begin(store: BlockStore) -> Iterator[Any]:
            with transaction(store) as connection:
                yield connection
                self.reach(f"inside-{self.inside}")

        return begin


def kill_at(point: str, times: int) -> None:
    fault = AnyFault(point, times)
    BlockStore._transaction = fault.in_transaction(BlockStore._transaction)  # type: ignore[method-assign]
    for owner, method, name in WRITES:
        setattr(owner, method, fault.around(name, getattr(owner, method)))


def propose(kind: str, notes: Path) -> None:
    """Change what this validator proposes; it judges others' proposals as it should."""
    if kind == "withheld":
        withhold()
    honest = ReplicatedNode.prepare

    def prepare(node: ReplicatedNode, proposal: Proposal) -> list[bytes]:
        chosen = honest(node, proposal)
        bad = _bad(kind, node, proposal, chosen)
        if bad is not None:
            with notes.open("a") as file:
                file.write(f"{proposal.height}\n")
        return chosen if bad is None else bad

    def process(node: ReplicatedNode, proposal: Proposal) -> bool:
        return proposal.proposer == node.own_address or honestly(node, proposal)  # type: ignore[attr-defined]

    honestly = ReplicatedNode.process
    ReplicatedNode.prepare = prepare  # type: ignore[method-assign]
    from anofel.comet.commits import address_of

    ReplicatedNode.own_address = property(  # type: ignore[attr-defined]
        lambda node: address_of(node.files.validator.public_key().to_bytes())
    )
    ReplicatedNode.process = process  # type: ignore[method-assign]


def withhold() -> None:
    """Sign for blobs and hand out none, and send none that is brought here to the first of the others."""
    send = Holders._send

    def send_but_one(holders: Holders, holder: Any, *arguments: Any) -> Any:
        return None if holder.number == min(holders._holders) else send(holders, holder, *arguments)

    def hand_out_nothing(_store: BlobStore, _sha256: bytes, *_range: int) -> Any:
        raise BlobUnknown("There is no such blob.")

    Holders._send = send_but_one  # type: ignore[method-assign]
    BlobStore.open_range = hand_out_nothing  # type: ignore[method-assign]


def _bad(kind: str, node: ReplicatedNode, proposal: Proposal, chosen: list[bytes]) -> list[bytes] | None:
    if kind == "endless":
        time.sleep(30)
        return chosen
    if kind == "none":
        os.kill(os.getpid(), signal.SIGSTOP)  # says nothing at all, until somebody lets it go on
        return chosen
    if not chosen:
        return None
    if kind == "withheld":
        named = any(retention.blobs_of(Posting.from_bytes(data).body) for data in chosen)
        return chosen if named else None
    if kind == "invalid":
        return [*chosen, chosen[0][:-1] + bytes([chosen[0][-1] ^ 1])]
    if kind == "duplicates":
        return [*chosen, chosen[0]]
    assert kind == "oversized"
    size = sum(1 + len(uvarint(len(data))) + len(data) for data in chosen)
    again = 2 + (node.genesis.limits.max_block_bytes - size) // len(chosen[0])
    return [*chosen, *[chosen[0]] * min(again, 1 + (proposal.max_bytes - size) // (len(chosen[0]) + 4))]


if __name__ == "__main__":
    from anofel.cli import main

    what, *words = sys.argv[1:]
    if what == "kill":
        kill_at(words.pop(0), int(words.pop(0)))
    elif what == "disk":
        fill_disk(int(words.pop(0)))
    elif what == "propose":
        propose(words.pop(0), Path(words.pop(0)))
    elif what == "skew":
        engine.check_engine = lambda _path: None
    sys.argv = ["anofel", "node", "run", *words]
    main()
