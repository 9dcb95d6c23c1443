"""How a board is followed: posting by posting, or by its headers; by default the size of the board says."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from anofel.errors import PeerUnreachable
from anofel.ids import GenesisHash
from anofel.light_client.base import BoardClient
from anofel.light_client.client import LightClient
from anofel.light_client.header_client import HeaderClient
from anofel.light_client.header_store import FILE
from anofel.network.transport import Transport
from anofel.storage.blocks import FILE as BLOCKS

Follow = Literal["size", "all", "headers"]
LARGE_BOARD: Final = 1024
"""With so many clients a board is followed by its headers, unless somebody says otherwise."""


def open_board(
    directory: Path,
    transport: Transport,
    *,
    genesis_hash: GenesisHash | None = None,
    tell: Callable[[str], None] = lambda _sentence: None,
    follow: Follow = "all",
) -> BoardClient:
    """Open the view in a directory.

    By size: a view that is there goes on as it is while the board is small, and by headers once it is large.
    A board that grew is looked at when the view is opened, not in between; one whose size is not told then is
    followed posting by posting. Raises ``PeerUnreachable``.
    """
    if follow == "size" and not (directory / FILE).exists() and (directory / BLOCKS).exists():
        whole = LightClient(directory, transport, genesis_hash=genesis_hash, tell=tell)
        if len(whole.state.clients) < LARGE_BOARD:
            return whole
        whole.close()
    if follow == "all":
        return LightClient(directory, transport, genesis_hash=genesis_hash, tell=tell)
    view = HeaderClient(directory, transport, genesis_hash=genesis_hash, tell=tell)
    if follow == "headers":
        return view
    try:
        if not view.state.height:
            with suppress(PeerUnreachable):  # whoever hides the size makes us verify everything
                view.sync()
        is_large = len(view.state.clients) >= LARGE_BOARD
    except BaseException:
        view.close()
        raise
    if is_large:
        tell(
            f"The board has {LARGE_BOARD} clients or more: it is followed by its headers, and postings are "
            'checked by sample. Write follow = "all" in role.toml to verify every posting.'
        )
        return view
    view.close()
    view.forget()
    return LightClient(directory, transport, genesis_hash=genesis_hash, tell=tell)
