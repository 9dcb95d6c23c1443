"""``anofel node run`` with a fault: ``POINT TIMES`` kills it there, ``full-disk PAGES`` leaves no more room.

The faults are put around the real code here; the package knows nothing of them.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anofel.node.embedded import EmbeddedNode
from anofel.storage.blobs.store import BlobStore
from anofel.storage.blocks import BlockStore

POINTS = (
    "before-pin",
    "before-pending",
    "inside-pending",
    "after-pending",
    "before-append",
    "inside-append",
    "after-append",
    "before-prune",
    "after-prune",
)


class Fault:
    """Kills the process when a point is reached for the n-th time."""

    def __init__(self, point: str, times: int) -> None:
        self.point, self.left = point, times
        self.inside = ""

    def reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if name == "append" and not arguments[1].postings:
                return method(*arguments, **named)  # an empty block has nothing to lose
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
                self.reach(f"inside-{self.inside}")  # everything is written, nothing is committed

        return begin


def install(fault: Fault) -> None:
    BlockStore._transaction = fault.in_transaction(BlockStore._transaction)  # type: ignore[method-assign]
    BlockStore.add_pending = fault.around("pending", BlockStore.add_pending)  # type: ignore[method-assign]
    BlockStore.append = fault.around("append", BlockStore.append)  # type: ignore[method-assign]
    BlobStore.prune = fault.around("prune", BlobStore.prune)  # type: ignore[method-assign]
    EmbeddedNode._commit = fault.around("pin", EmbeddedNode._commit)  # type: ignore[method-assign]


def fill_disk(num_pages: int) -> None:
    """Let the board's file grow by so many pages and no more."""
    open_store = BlockStore._open

    def open_and_bound(store: BlockStore, *arguments: Any) -> None:
        open_store(store, *arguments)
        ((pages,),) = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages + num_pages}").fetchall()

    BlockStore._open = open_and_bound  # type: ignore[method-assign]


if __name__ == "__main__":
    from anofel.cli import main

    point, number = sys.argv[1], int(sys.argv[2])
    if point == "full-disk":
        fill_disk(number)
    else:
        install(Fault(point, number))
    sys.argv = ["anofel", "node", "run", *sys.argv[3:]]
    main()
