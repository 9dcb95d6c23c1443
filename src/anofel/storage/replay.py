"""From the disk to the newest state: the last snapshot if it is sound, then the blocks after it."""

import logging
from collections.abc import Callable

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.messages import Block
from anofel.storage.blocks import BlockStore

log = logging.getLogger("anofel.board")


def replay(
    store: BlockStore, verifier: Verifier, on_block: Callable[[Block], None] = lambda _block: None
) -> Chain:
    """Return the chain after the last stored block; the blocks after the snapshot are verified again."""
    chain = Chain(last_state(store), verifier)
    for block in store.blocks(chain.state.height + 1):
        chain.follow(block)
        on_block(block)
    return chain


def last_state(store: BlockStore) -> State:
    """Return the state of the last snapshot, or that of genesis if there is none or it is damaged."""
    kept = store.snapshot()
    header = store.header(kept[0]) if kept is not None else None
    if kept is not None and header is not None:
        try:
            return snapshot.decode(kept[1], store.genesis, header)
        except snapshot.DamagedSnapshot as error:
            log.warning("%s The blocks are verified from genesis instead.", error)
    return State.at_genesis(store.genesis)
