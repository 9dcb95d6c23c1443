"""What a role keeps for itself: such types are neither pickled nor copied."""

from typing import NoReturn


class Kept:
    """A secret that leaves its object by ``to_bytes`` alone, for the key store.

    A copy would also let a preparation be used twice.
    """

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is neither pickled nor copied; to_bytes is for the key store")
