"""The shape of a phase: what a member sends, keeps and learns, and what everybody learns."""

from collections.abc import Sequence
from typing import Protocol

from anofel.committee.paillier.key_rounds.state import PublicState, RunSetting, SecretPaillierState


class KeyPhase(Protocol):
    """One step of key generation.

    ``make`` is a function of the seed and of earlier messages alone, so that a run can be replayed.
    """

    committed: bool
    """Everybody commits to the public part before anybody shows it."""

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Return the public part, and a private part for every member (or none at all)."""
        ...

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:
        """Raise ``Malformed`` if a private part cannot be used."""
        ...

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Keep what follows from everybody's private parts, which were checked."""
        ...

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Learn from everybody's public parts and return the next phase's name.

        Raises ``Malformed`` through ``read_public``, or ``Fault``.
        """
        ...


class PublicOnly:
    """A phase without private parts."""

    committed = False

    def check_private(self, setting: RunSetting, public: PublicState, sender: int, data: bytes) -> None:
        """Do nothing."""

    def receive(self, state: SecretPaillierState, parts: Sequence[bytes]) -> None:
        """Do nothing."""
