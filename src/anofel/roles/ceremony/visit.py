"""A contributor at a drop: waits for its turn, fetches the ceremony, and hands its contribution in."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from anofel.errors import AnofelError, InvalidInput
from anofel.network.transport import Refused, Transport
from anofel.pki.certificates import RoleKey
from anofel.proofs.ceremony.transcript import (
    AGREEMENT,
    MAX_FILE,
    CeremonyTranscript,
    OnCeremony,
    check_names,
    no_progress,
)
from anofel.roles.ceremony.drop import RECEIPT
from anofel.roles.ceremony.institutions import PlaceRequest

POLL_SECONDS: Final = 5.0
MAX_FILES: Final = 1100
JOIN_ATTEMPTS: Final = 20


class WaitedForTurn(AnofelError):
    """The turn did not come in time."""

    code = "waited-for-turn"
    exit_code = 3


class Visit:
    """One contributor's dealings with a drop, which it trusts for nothing."""

    def __init__(self, transport: Transport, role: RoleKey | None = None) -> None:
        self._transport, self._role = transport, role
        self._ticket = ""

    def wait(
        self, patience: float, tell: Callable[[str], None], *, poll_seconds: float = POLL_SECONDS
    ) -> float:
        """Wait for the turn and return how many seconds it has. Raises ``WaitedForTurn``."""
        ends, said = time.monotonic() + patience, None
        self._ticket = self._join()
        if not self._ticket.isalnum():
            raise InvalidInput("The drop's ticket cannot be used.")
        while True:
            place = self._transport.get(f"/v1/turns/{self._ticket}")
            before = _object(place, "before")
            if before == 0:
                return float(_object(place, "seconds"))
            if before != said:
                tell(f"{before} before you at the drop; waiting.")
                said = before
            if time.monotonic() > ends:
                raise WaitedForTurn(f"{before} were still before you after {patience:.0f} seconds.")
            time.sleep(poll_seconds)

    def _join(self) -> str:
        """Ask for a place; a drop of institutions wants its challenge signed, and others come at once."""
        for attempt in range(JOIN_ATTEMPTS):
            challenge = str(_object(self._transport.get("/v1/ceremony"), "challenge"))
            if challenge and self._role is None:
                raise InvalidInput("This drop takes institutions alone: give --certificate and --key.")
            signed = PlaceRequest.make(challenge, self._role).to_bytes() if self._role and challenge else b""
            try:
                return str(_object(self._transport.post("/v1/turns", signed), "ticket"))
            except Refused as refused:
                if refused.code != "challenge-changed" or attempt + 1 == JOIN_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def fetch(
        self, *, other_powers: bytes | None, on_progress: OnCeremony = no_progress
    ) -> CeremonyTranscript:
        """Fetch the newest state and verify all of it. Raises ``AnofelError``."""
        listed = _object(self._transport.get("/v1/ceremony"), "files")
        if not isinstance(listed, dict) or len(listed) > MAX_FILES or AGREEMENT not in listed:
            raise InvalidInput("The drop does not say what it has.")
        check_names(listed)
        files = {}
        for place, name in enumerate(listed):
            on_progress(place, len(listed), f"Fetching {name}")
            files[name] = self._transport.get(f"/v1/files/{name}", max_bytes=MAX_FILE)
        return CeremonyTranscript.of_files(files, other_powers=other_powers, on_progress=on_progress)

    def deliver(self, after: CeremonyTranscript) -> int:
        """Hand in a contribution with its receipt; return its number."""
        for name in after.agreement.statements:
            self._put(f"{name}.zkey", after.files[f"{name}.zkey"])
        newest = f"{len(after.hashes):04}.receipt.json"
        if newest in after.files:
            self._put(RECEIPT, after.files[newest])
        return int(_object(self._transport.post(f"/v1/turns/{self._ticket}", b""), "number"))

    def _put(self, name: str, data: bytes) -> None:
        self._transport.ask("PUT", f"/v1/turns/{self._ticket}/{name}", bytes, body=data, codes=None)


def _object(data: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(data)[name]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise InvalidInput("The drop's answer cannot be read.") from None
