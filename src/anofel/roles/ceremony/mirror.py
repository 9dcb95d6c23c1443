"""A copy of what a drop shows, which anybody may keep.

A drop's newest state holds every contribution and receipt there was, each bound to all before it. So an
older copy can tell whether the drop took something back, and a copy can be served in the drop's place.
"""

from dataclasses import replace
from pathlib import Path

from anofel.errors import InvalidCeremony, InvalidInput
from anofel.network.transport import Transport
from anofel.proofs.ceremony.transcript import CeremonyTranscript, OnCeremony, no_progress
from anofel.roles.ceremony.drop import newest_state
from anofel.roles.ceremony.visit import Visit


class Mirror:
    """A directory of verified states, as a drop keeps them.

    1. Every state is verified whole before it is kept.
    2. A state that lacks a contribution or a receipt of the newest copy, or has another agreement, is
       refused.
    """

    def __init__(
        self,
        path: Path,
        *,
        other_powers: bytes | None = None,
        on_progress: OnCeremony = no_progress,
    ) -> None:
        self._path, self._other_powers, self._on_progress = path, other_powers, on_progress
        newest = newest_state(path)
        self._state = None if newest is None else self._open(newest)

    @property
    def state(self) -> CeremonyTranscript:
        """The newest copy. Raises ``InvalidInput`` if there is none."""
        if self._state is None:
            raise InvalidInput(f"{self._path} holds no state of a ceremony.")
        return self._state

    @property
    def newest(self) -> Path:
        """Where the newest copy is."""
        return self._path / f"{len(self.state.hashes):04}"

    def update(self, transport: Transport) -> int:
        """Fetch what the drop has and keep it (1, 2); return how many contributions are new.

        Raises ``InvalidCeremony``.
        """
        found = Visit(transport).fetch(other_powers=self._other_powers, on_progress=self._on_progress)
        before = self._state
        if before is not None:
            _expect_continuation(before, found)  # (2)
        num_before = 0 if before is None else len(before.hashes)
        if before is None or len(found.hashes) > num_before:
            found.write(self._path / f"{len(found.hashes):04}")
            self._state = found
        return len(found.hashes) - num_before

    def _open(self, path: Path) -> CeremonyTranscript:
        return CeremonyTranscript.open(path, other_powers=self._other_powers, on_progress=self._on_progress)


def _expect_continuation(before: CeremonyTranscript, found: CeremonyTranscript) -> None:
    for number, (kept, shown) in enumerate(zip(before.hashes, found.hashes, strict=False), start=1):
        if kept != shown:
            raise InvalidCeremony(
                f"The drop shows another contribution {number} than the copy here: it has taken that one "
                "back. Keep the copy, which shows it, and serve the ceremony from there."
            )
    if len(found.hashes) < len(before.hashes):
        raise InvalidCeremony(
            f"The drop shows {len(found.hashes)} contributions, and the copy here has {len(before.hashes)}: "
            "it has taken some back. Keep the copy, which shows them, and serve the ceremony from there."
        )
    if replace(before.agreement, beacon="") != replace(found.agreement, beacon=""):
        raise InvalidCeremony("The drop shows another agreement than the copy here.")
    lost = [receipt.number for receipt in before.receipts if receipt not in found.receipts]
    if lost:
        raise InvalidCeremony(f"The drop no longer shows the receipt of contribution {lost[0]}.")
