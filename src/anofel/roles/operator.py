"""The operator of a board: takes a certifier's key back, and begins a new epoch (``docs/node.md``).

An epoch begins together with the revocation of a key that is in force, and a key is revoked once. So
a command that is repeated because its end was not seen never begins a second epoch.
"""

import time

from anofel.board.waits import POSTED
from anofel.errors import InvalidInput
from anofel.light_client.base import BoardClient, OnWait
from anofel.messages import ChainAuthor, make_posting
from anofel.phase1_setup.step1a_certifier_key import revoke_key
from anofel.pki.certificates import Purpose, RoleKey, verify_chain
from anofel.primitives import CertifierKey


def revoke_certifier(
    board: BoardClient,
    role: RoleKey,
    key: CertifierKey,
    *,
    new_epoch: bool,
    seconds: float,
    on_wait: OnWait = lambda _what: None,
) -> int:
    """Revoke a certifier's key as an operator and wait until the board shows it; returns the height.

    With ``new_epoch`` everybody registers again. Raises ``InvalidInput``, ``Refused``.
    """
    verify_chain(role.chain, board.genesis.roots, Purpose.OPERATOR, int(time.time()))
    board.sync()
    known = board.state.certifiers.get(key.to_bytes())
    if known is None:
        raise InvalidInput("The board has no such certifier key.")
    if known.in_force:
        body = revoke_key(key, new_epoch=new_epoch)
        board.post(make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign))
    elif new_epoch:
        raise InvalidInput(
            f"The key was revoked before; the board is in epoch {board.state.epoch}. "
            "A new epoch begins with the revocation of a key that is in force."
        )
    board.wait_for(
        lambda state: not state.certifiers[key.to_bytes()].in_force,
        f"the revocation to be on the board ({board.lasting(POSTED)})",
        seconds=seconds,
        on_wait=on_wait,
    )
    return board.state.height
