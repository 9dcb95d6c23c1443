"""What somebody must have verified before a board's proofs mean anything to them."""

from anofel.board.genesis import INSECURE_KEYS, flaws_of
from anofel.messages import Genesis
from anofel.proofs.ceremony.verified import require_verified


def require_trusted_keys(genesis: Genesis) -> None:
    """Refuse a board whose proof keys come from nowhere.

    1. Genesis says that they are development keys; then everybody is told. Or
    2. this machine verified the ceremony whose transcript genesis pins, and it yields the keys of genesis.

    Raises ``UnverifiedCeremony``, ``InvalidCeremony``.
    """
    if INSECURE_KEYS in flaws_of(genesis):
        return
    require_verified(genesis.transcript, genesis.key_pins, "The proof keys of the board")
