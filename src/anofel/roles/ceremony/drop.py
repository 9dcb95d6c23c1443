"""The drop of a ceremony: the newest state on disk, one contributor at a time, and a queue.

Nothing is trusted to it. It verifies what it takes so that nobody's work is lost to somebody's mistake;
contributors and everybody else verify for themselves.

1. The head of the queue has the turn, for so many seconds; then the next one has it.
2. Somebody who waits and does not ask for so many seconds loses its place.
3. Only who has the turn hands anything in, and no file is larger than what it replaces, but for a little.
4. A state is taken only if it adds one person's contribution and everything about it holds.
5. Every state is a directory of its own that appears whole; a drop that starts again goes on from the newest.
6. With roots, only an institution with a certificate under one of them gets a place, and one place: it signs
   the drop's challenge, which changes with every place given.
7. With roots, a state is taken only with a receipt that the institution which has the turn signed, and an
   institution contributes once, also after its certificate has expired.
"""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from anofel.errors import AnofelError
from anofel.proofs.ceremony.receipts import ContributionReceipt
from anofel.proofs.ceremony.transcript import CeremonyTranscript, OnCeremony, no_progress
from anofel.roles.ceremony.institutions import PlaceRequest, institution, signers

TURN_SECONDS: Final = 1800.0
WAIT_SECONDS: Final = 60.0
MAX_WAITING: Final = 256
GROWTH_BYTES: Final = 4096
MAX_RECEIPT: Final = 1 << 16
RECEIPT: Final = "receipt.json"


class DropRefused(AnofelError):
    """The drop says no; ``code`` says why."""

    code = "drop-refused"

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(slots=True)
class _Visitor:
    asked: float
    institution: str
    """Empty at a drop without roots."""
    turn_ends: float | None = None
    files: dict[str, bytes] = field(default_factory=dict)


class Drop:
    """The newest state of a ceremony and who waits to contribute."""

    def __init__(
        self,
        path: Path,
        state: CeremonyTranscript,
        *,
        roots: Sequence[bytes] = (),
        turn_seconds: float = TURN_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self.state = path, state
        self._roots, self._challenge = roots, secrets.token_hex(32)
        self._contributed = signers(state.receipts, roots) if roots else set()
        self._turn_seconds, self._wait_seconds, self._clock = turn_seconds, wait_seconds, clock
        self._visitors: dict[str, _Visitor] = {}
        """By ticket, in the order in which they came."""
        self._taken: dict[str, int] = {}
        """Contributions by the ticket that brought them: an answer may get lost and be asked for again."""

    @classmethod
    def open(
        cls,
        path: Path,
        start: Path,
        *,
        other_powers: bytes | None = None,
        roots: Sequence[bytes] = (),
        turn_seconds: float = TURN_SECONDS,
        on_progress: OnCeremony = no_progress,
    ) -> "Drop":
        """Go on from the newest state in the drop's directory, or from ``start`` (5)."""
        found = newest_state(path)
        state = CeremonyTranscript.open(found or start, other_powers=other_powers, on_progress=on_progress)
        if found:
            begun = CeremonyTranscript.open(start, other_powers=other_powers, on_progress=on_progress)
            if begun.hashes != state.hashes[: len(begun.hashes)] or begun.agreement != state.agreement:
                raise DropRefused(
                    "another-ceremony", f"{path} holds states of another ceremony than {start}."
                )
        return cls(path, state, roots=roots, turn_seconds=turn_seconds)

    def describe(self) -> bytes:
        """Say publicly what there is."""
        self._tidy()
        shown = {
            "contributions": len(self.state.hashes),
            "ended": self.state.has_ended,
            "hashes": [{name: made.hex() for name, made in hashes.items()} for hashes in self.state.hashes],
            "challenge": self._challenge if self._roots else "",
            "waiting": len(self._visitors),
            "files": {name: len(data) for name, data in self.state.files.items()},
        }
        return json.dumps(shown).encode()

    def join(self, request: bytes = b"") -> str:
        """Take a place in the queue and return its ticket. With roots, the request is signed (6)."""
        self._tidy()
        if self.state.has_ended:
            raise DropRefused("ceremony-ended", "The ceremony has ended.")
        who = self._admit(request) if self._roots else ""
        if len(self._visitors) >= MAX_WAITING:
            raise DropRefused("queue-full", "Too many wait already; come back later.")
        ticket = secrets.token_hex(32)
        self._visitors[ticket] = _Visitor(self._clock(), who)
        self._tidy()
        return ticket

    def _admit(self, request: bytes) -> str:
        """Return which institution asks for a place (6); a place that it had is given up."""
        asked = PlaceRequest.from_bytes(request)
        if asked.challenge != self._challenge:
            raise DropRefused("challenge-changed", "Somebody else came first; ask with the new challenge.")
        who = institution(asked.verify(self._roots))
        if who in self._contributed:
            raise DropRefused("has-contributed", "This institution has contributed already.")  # (7)
        self._challenge = secrets.token_hex(32)
        for ticket in [ticket for ticket, visitor in self._visitors.items() if visitor.institution == who]:
            del self._visitors[ticket]
        return who

    def place(self, ticket: str) -> tuple[int, float]:
        """Return how many are before somebody, and how many seconds are left of its turn."""
        visitor = self._find(ticket)
        visitor.asked = self._clock()
        self._tidy()
        left = 0.0 if visitor.turn_ends is None else max(0.0, visitor.turn_ends - self._clock())
        return list(self._visitors).index(ticket), left

    def hand_in(self, ticket: str, name: str, data: bytes) -> None:
        """Take one file of somebody whose turn it is (3)."""
        if len(data) > self.room_for(ticket, name):
            raise DropRefused("too-large", f"{name} is larger than it can be.")
        self._find(ticket).files[name] = data

    def room_for(self, ticket: str, name: str) -> int:
        """Return how many bytes a file may have. Raises ``DropRefused`` out of turn and for other files."""
        self._require_turn(ticket)
        if name == RECEIPT:
            return MAX_RECEIPT
        if name not in [f"{statement}.zkey" for statement in self.state.agreement.statements]:
            raise DropRefused("unknown-file", f"No file named {name} is expected.")
        return len(self.state.files[name]) + GROWTH_BYTES

    def take(self, ticket: str) -> int:
        """Verify and keep what was handed in (4), and end the turn; return the contribution's number."""
        if ticket in self._taken:
            return self._taken[ticket]
        self._require_turn(ticket)
        visitor = self._find(ticket)
        files = dict(visitor.files)
        receipt = files.pop(RECEIPT, None)
        after = self.state.take(files)
        if receipt is not None:
            after = after.with_receipt(ContributionReceipt.from_bytes(receipt))
        if self._roots and signers(after.receipts[len(self.state.receipts) :], self._roots) != {
            visitor.institution
        }:  # (7)
            raise DropRefused("receipt-missing", "The institution that has the turn signs the receipt here.")
        number = len(after.hashes)
        after.write(self.path / f"{number:04}")
        self.state = after
        self._contributed.add(visitor.institution)
        self._taken[ticket] = number
        self._visitors.pop(ticket, None)
        self._tidy()
        return number

    def leave(self, ticket: str) -> None:
        """Give up a place."""
        self._visitors.pop(ticket, None)
        self._tidy()

    def _find(self, ticket: str) -> _Visitor:
        self._tidy()
        if ticket not in self._visitors:
            raise DropRefused(
                "ticket-unknown", "The ticket is not in the queue, or its time is over; ask again."
            )
        return self._visitors[ticket]

    def _require_turn(self, ticket: str) -> None:
        if self._find(ticket).turn_ends is None:
            raise DropRefused("not-your-turn", "Somebody else has the turn; wait for yours.")

    def _tidy(self) -> None:
        """Let go of those whose time is over, and give the turn to the head of the queue."""
        now = self._clock()
        for ticket, visitor in list(self._visitors.items()):
            late = (
                now > visitor.asked + self._wait_seconds
                if visitor.turn_ends is None
                else now > visitor.turn_ends
            )
            if late:
                del self._visitors[ticket]
        for visitor in self._visitors.values():
            if visitor.turn_ends is None:
                visitor.turn_ends = now + self._turn_seconds
            break


def newest_state(path: Path) -> Path | None:
    """Return the newest state in the directory of a drop or a mirror."""
    states = sorted(found for found in path.glob("[0-9][0-9][0-9][0-9]") if found.is_dir())
    return states[-1] if states else None
