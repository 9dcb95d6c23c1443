"""The way to a worker: bytes in, bytes out, and an end to every wait."""

from typing import Final, Protocol

from anofel.errors import AnofelError

ORDER_SECONDS: Final = 1800
"""The longest that a worker may take over one client; start it with less where training is short."""


class WorkerLost(AnofelError):
    """A worker ended, or did not answer in time; the message names it."""

    code = "worker-lost"


class Link(Protocol):
    """One worker."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether it sees the files of this machine."""
        ...

    def converse(self, order: bytes, seconds: float) -> bytes:
        """Send an order and wait for its answer; one at a time. Raises ``WorkerLost``."""
        ...

    def close(self) -> None:
        """End the worker, also while somebody waits for it."""
        ...
