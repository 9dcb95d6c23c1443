"""Step 1.c and steps 6 to 8 for a simulation: committees whose members all act in this process."""

import secrets
from dataclasses import dataclass
from typing import Final

from anofel.board.key_runs import round_messages
from anofel.board.seat import Seat
from anofel.board.state import Progress
from anofel.committee import schemes
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    KeyGeneration,
    Report,
    RoundResult,
    Scheme,
    SecretKeyShare,
)
from anofel.messages import Run
from anofel.phase1_setup.step1c_committee_key import generation_run, post_key, post_round
from anofel.phase3_access.step6_homomorphic_sum import collect, state_aggregate
from anofel.phase3_access.step8_partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.pki.certificates import Purpose, RoleKey
from anofel.simulation.local_board import LocalBoard
from anofel.simulation.parts import CommitteeSettings
from anofel.simulation.venue import Venue

STEPS: Final = 3
"""How often a committee acts until an iteration has its outcome: it adds, opens the count, opens the sum."""


@dataclass(frozen=True, repr=False)
class SimulatedMember:
    """An aggregator with its own share."""

    role: RoleKey
    number: int
    share: SecretKeyShare


@dataclass(frozen=True)
class SimulatedCommittee:
    """A committee whose key is established. Its first t members act; the others might as well be dead."""

    scheme: Scheme
    key: CommitteeKey
    members: tuple[SimulatedMember, ...]

    def act(self, board: LocalBoard, seat: Seat) -> None:
        """Take the step that is due in an iteration that is closed; none once it has its outcome."""
        progress = seat.position.progress
        if progress is Progress.CLOSED:
            self.aggregate(board, seat)
        elif progress is Progress.AGGREGATED:
            self.open_count(board, seat)
        elif progress is Progress.COUNTED:
            self.open_sum(board, seat)

    def aggregate(self, board: LocalBoard, seat: Seat) -> None:
        """Add the accepted submissions (steps 6 and 7).

        Payloads are checked once for all members of this process: each would come to the same verdicts.
        """
        collected = collect(board, seat)
        for member in self._acting:
            board.post_as(member.role, state_aggregate(board, seat, member.number, collected))

    def open_count(self, board: LocalBoard, seat: Seat) -> None:
        """Post the shares of the count (step 8)."""
        for member in self._acting:
            board.post_as(member.role, share_of_count(board, seat, member.share))

    def open_sum(self, board: LocalBoard, seat: Seat) -> None:
        """Post the shares of the sum (step 8)."""
        for member in self._acting:
            share = share_of_sum(board, seat, member.share)
            board.post_as(member.role, post_sum_share(board, seat, member.number, share))

    @property
    def _acting(self) -> tuple[SimulatedMember, ...]:
        return self.members[: self.key.shape.threshold]


def establish(
    venue: Venue, name: str, settings: CommitteeSettings, report: Report | None = None
) -> SimulatedCommittee:
    """Make a committee's key over the board, without a dealer (step 1.c); `report` is told the progress."""
    board, genesis, scheme = venue.board, venue.board.genesis_hash, schemes.by_name(settings.scheme)
    appointed = [
        venue.appoint(Purpose.AGGREGATOR, f"{name}, aggregator {number}")
        for number in range(1, settings.members + 1)
    ]
    run = Run(
        nonce=secrets.token_bytes(32),
        scheme=schemes.NAMES.index(settings.scheme),
        threshold=settings.threshold,
        members=tuple(identity.subject for _, identity in appointed),
        handover=None,
    )
    ends = _generate(board, scheme.key_generation(report), run, [role for role, _ in appointed])
    members = []
    for number, ((role, _), end) in enumerate(zip(appointed, ends, strict=True), start=1):
        blob = board.upload(end.key.to_bytes())
        board.post_as(role, post_key(run, number, end.key, end.transcript, blob, genesis=genesis))
        members.append(SimulatedMember(role, number, end.share))
    return SimulatedCommittee(scheme, ends[0].key, tuple(members))


def _generate(
    board: LocalBoard, generation: KeyGeneration, run: Run, roles: list[RoleKey]
) -> list[GeneratedKey]:
    """Run the rounds; what a member learns of another is what stands on the board."""
    begun = generation_run(run, board.genesis_hash)
    results: list[RoundResult | GeneratedKey] = [
        generation.begin(begun, number) for number in range(1, len(roles) + 1)
    ]
    while True:
        rounds = [result for result in results if isinstance(result, RoundResult)]
        if not rounds:
            return [result for result in results if isinstance(result, GeneratedKey)]
        for role, result in zip(roles, rounds, strict=True):
            board.post_as(role, post_round(run, result.message, board.upload(result.message.body)))
        number = rounds[0].message.round
        messages = round_messages(board.state.runs[begun.run_id], number, board.attachments.read)
        results = [generation.advance(result.state, messages) for result in rounds]
