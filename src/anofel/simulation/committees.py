"""Step 1.c and steps 6 to 8 for a simulation: committees whose members all act in this process."""

import secrets
from dataclasses import dataclass

from anofel.board.local import LocalBoard
from anofel.board.state import Bundle, TaskState
from anofel.certificates import Purpose, RoleKey
from anofel.committee import schemes
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    KeyGeneration,
    Report,
    RoundMessage,
    RoundResult,
    Scheme,
    SecretKeyShare,
)
from anofel.messages import Run
from anofel.phase1_setup.committee_keys import generation_run, post_key, post_round
from anofel.phase3_access.homomorphic_sum import collect, post_aggregate
from anofel.phase3_access.partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.simulation.parts import CommitteeSettings
from anofel.simulation.venue import Venue


@dataclass(frozen=True, repr=False)
class Member:
    """An aggregator with its own share."""

    role: RoleKey
    number: int
    share: SecretKeyShare


@dataclass(frozen=True)
class SimulatedCommittee:
    """A committee whose key is established. Its first t members act; the others might as well be dead."""

    scheme: Scheme
    key: CommitteeKey
    members: tuple[Member, ...]

    def aggregate(self, board: LocalBoard, bundle: Bundle, task: TaskState) -> None:
        """Add the accepted submissions (steps 6 and 7)."""
        for member in self._acting:
            collected = collect(board.state, bundle, task, self.scheme, self.key, board.attachments.read)
            blob = board.store(collected.total.to_bytes())
            body = post_aggregate(task.task_id, bundle, member.number, collected, blob)
            board.post_as(member.role, body)

    def open_count(self, board: LocalBoard, bundle: Bundle, task: TaskState) -> None:
        """Post the shares of the count (step 8)."""
        for member in self._acting:
            board.post_as(member.role, share_of_count(board.state, bundle, task, self.key, member.share))

    def open_sum(self, board: LocalBoard, bundle: Bundle, task: TaskState) -> None:
        """Post the shares of the sum (step 8)."""
        state, desk = board.state, board.chain.verifier.shares
        for member in self._acting:
            share = share_of_sum(state, bundle, task, desk, self.scheme, self.key, member.share)
            blob = board.store(share)
            board.post_as(member.role, post_sum_share(state, bundle, task, member.number, blob))

    @property
    def _acting(self) -> tuple[Member, ...]:
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
        blob = board.store(end.key.to_bytes())
        board.post_as(role, post_key(run, number, end.key, end.transcript, blob, genesis=genesis))
        members.append(Member(role, number, end.share))
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
            board.post_as(role, post_round(run, result.message, board.store(result.message.body)))
        number = rounds[0].message.round
        posted = board.state.runs[begun.run_id].posted[number]
        messages = [
            RoundMessage(
                run_id=begun.run_id, round=number, sender=sender, body=board.attachments.read(sha256)
            )
            for sender, sha256 in sorted(posted.items())
        ]
        results = [generation.advance(result.state, messages) for result in rounds]
