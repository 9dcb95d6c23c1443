"""Steps 6 to 8 as a process: an aggregator adds, counts and opens sums with its committee (AnoFel §4.3.3).

1. While an iteration is open, payloads are fetched, checked and added as they arrive.
2. When it is closed: one ``Aggregate``.
3. When t members agree, and on what we added ourselves: one share of the count.
4. When the count reaches ``min_clients``: one share of the sum. Never anything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anofel.board.attachments import AttachmentMissing
from anofel.board.rules.sums import AGGREGATE_DUE, COUNT_DUE, SUM_DUE
from anofel.board.seat import Seat
from anofel.board.state import Agreement, Committee, Progress
from anofel.committee.interface import SecretKeyShare
from anofel.disk.keystore import MissingSecret
from anofel.ids import SharesId
from anofel.light_client.base import BoardClient
from anofel.messages import SumShare
from anofel.phase3_access.step6_homomorphic_sum import CollectedSum, Collector, state_aggregate
from anofel.phase3_access.step8_partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.pki.certificates import Purpose
from anofel.roles.aggregator.key_secrets import forget_stale, share_name
from anofel.roles.directory import RoleDirectory
from anofel.roles.outbox_pruning import forget_old
from anofel.roles.role import CertifiedRole, Say


@dataclass(frozen=True)
class Duty:
    """A seat that a committee of ours serves."""

    seat: Seat
    member: int
    """Our number in the committee."""

    @property
    def name(self) -> str:
        """The end of the names of everything posted for it."""
        return f"{self.seat.task_id.hex()}/{self.seat.number}"

    @property
    def key(self) -> tuple[bytes, int, bytes]:
        """What the work for it depends on."""
        return self.seat.task_id, self.seat.number, self.seat.committee.current.shares_id


@dataclass
class Work:
    """What was added so far in one iteration of one task."""

    collector: Collector
    collected: CollectedSum | None = None
    named: set[int] = field(default_factory=set)
    """Members whose aggregate is not ours, once said."""


class Aggregator(CertifiedRole):
    """One member of any number of committees."""

    purpose = Purpose.AGGREGATOR
    overtaken = frozenset({AGGREGATE_DUE.code, COUNT_DUE.code, SUM_DUE.code})
    """t members are enough: the next one's share comes when the node has the result already."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say = lambda _text: None) -> None:
        super().__init__(directory, board, say)
        self._work: dict[tuple[bytes, int, bytes], Work] = {}
        self._shares: dict[SharesId, SecretKeyShare] = {}
        self.culprits: list[dict[str, Any]] = []
        """Members that stated another sum than the right one."""

    def step(self) -> str:
        """Do what is due in every iteration of every committee of ours."""
        self._forget_old_shares()
        forget_old(self.directory.outbox, self.state, self.directory.secrets)
        duties = list(self._duties())
        kept = {duty.key for duty in duties}
        self._work = {key: work for key, work in self._work.items() if key in kept}
        waits = [self._serve(duty) for duty in duties]
        if not any(self._member_of(committee) for committee in self.state.committees.values()):
            return "a committee of which this aggregator is a member (anofel aggregator keygen makes one)"
        return "; ".join(sorted(set(waits))) or self._idle()

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows."""
        committees = [
            {
                "committee": committee.key_id.hex(),
                "member": member,
                "has_share": share_name(committee.current.shares_id) in self.directory.secrets,
                "task": committee.task.hex() if committee.task else None,
            }
            for committee in self.state.committees.values()
            if (member := self._member_of(committee))
        ]
        return {
            **super().status(),
            "aggregator": self.identity.subject.hex(),
            "committees": committees,
            "culprits": self.culprits,
        }

    # What there is to do

    def _duties(self) -> Iterator[Duty]:
        for committee in self.state.committees.values():
            member = self._member_of(committee)
            seat = Seat.find(self.state, committee.task) if member and committee.task else None
            if seat is not None and (seat.is_open or seat.is_closed):
                yield Duty(seat, member)

    def _idle(self) -> str:
        """What is waited for while no iteration of a committee of ours is under way."""
        mine = [c for c in self.state.committees.values() if self._member_of(c)]
        tasks = [self.state.tasks[committee.task] for committee in mine if committee.task is not None]
        bundles = [self.state.bundles[task.bundle] for task in tasks if task.bundle is not None]
        if not tasks:
            return "a task (until an owner announces one to its committee)"
        if not bundles:
            return f"other tasks to form a bundle ({self.lasting(self.board.genesis.bundle_wait)})"
        most = max(self.state.class_of(bundle).model for bundle in bundles)
        return f"the owners' models ({self.lasting(most)}; owners that run shorten it)"

    def _member_of(self, committee: Committee) -> int:
        """Return our number in a committee; 0 if we are not in it."""
        members = committee.current.members
        return members.index(self.identity.subject) + 1 if self.identity.subject in members else 0

    def _serve(self, duty: Duty) -> str:
        seat = duty.seat
        where = f"iteration {seat.number} of task {seat.task_id.hex()[:8]}…"
        try:
            self._do(duty)
        except (AttachmentMissing, MissingSecret) as error:  # others may still be served
            self.say(f"In {where}: {error}")
        if seat.is_open:
            wait = self.lasting(seat.iteration.close_by - seat.iteration.opened_at)
            return f"clients in {where} until block {seat.iteration.close_by} ({wait})"
        size, standing = self.state.class_of(seat.bundle), seat.position.progress
        left = {Progress.AGGREGATED: size.count, Progress.COUNTED: size.sum}.get(standing, size.aggregate)
        wait = self.lasting(left)
        return f"the committee in {where} ({standing.value}; {wait}; members that run shorten it)"

    def _do(self, duty: Duty) -> None:
        position, iteration = duty.seat.position, duty.seat.iteration
        if position.progress is Progress.COLLECTING:
            self._take(duty)
        elif position.progress is Progress.CLOSED and iteration.close_hash:
            if duty.member not in position.aggregates and self.state.height < iteration.aggregate_by:
                self._send_aggregate(duty)
        elif position.progress in (Progress.AGGREGATED, Progress.COUNTED) and self._agrees(duty):
            counted = {share.member for share in position.count_shares}
            summed = {share.member for share in position.sum_shares}
            if position.progress is Progress.AGGREGATED and duty.member not in counted:
                self._send_count_share(duty)
            if position.progress is Progress.COUNTED and duty.member not in summed:
                self._send_sum_share(duty)

    def _forget_old_shares(self) -> None:
        """Delete shares that a handover made worthless: t of them, kept, would still decrypt."""
        if forgotten := forget_stale(self.state, self.directory.secrets, self.identity.subject):
            self._shares.clear()
            self.say(f"Deleted {len(forgotten)} old secrets of committees that handed their key on.")

    # Steps 6 and 7

    def _take(self, duty: Duty) -> Work:
        """Check and add what arrived."""
        if duty.key not in self._work:
            self._work[duty.key] = Work(Collector(self.board, duty.seat))
        work = self._work[duty.key]
        if work.collected is None:
            work.collector.take(self.board, duty.seat)
        return work

    def _collected(self, duty: Duty) -> CollectedSum:
        work = self._take(duty)
        if work.collected is None:
            work.collected = work.collector.finish(self.board, duty.seat)
        return work.collected

    def _send_aggregate(self, duty: Duty) -> None:
        self.send(
            f"aggregate/{duty.name}",
            lambda: state_aggregate(self.board, duty.seat, duty.member, self._collected(duty)),
        )

    def _agrees(self, duty: Duty) -> bool:
        """Whether the committee agreed on what we added ourselves; nothing else is ever decrypted."""
        ours = self._collected(duty).agreement
        self._name_liars(duty, ours)
        if duty.seat.position.agreed == ours:
            return True
        self.say("The committee agreed on another sum than the one on the board; we do not open it.")
        return False

    def _name_liars(self, duty: Duty, ours: Agreement) -> None:
        work, seat = self._work[duty.key], duty.seat
        for member, stated in seat.position.aggregates.items():
            if stated != ours and member not in work.named:
                work.named.add(member)
                subject = seat.committee.current.members[member - 1].hex()
                self.culprits.append(
                    {
                        "task": seat.task_id.hex(),
                        "iteration": seat.number,
                        "member": member,
                        "aggregator": subject,
                    }
                )
                self.say(f"Member {member} ({subject[:16]}…) stated a wrong sum in {duty.name}.")

    # Step 8

    def _send_count_share(self, duty: Duty) -> None:
        self.send(
            f"count-share/{duty.name}", lambda: share_of_count(self.board, duty.seat, self._share(duty))
        )

    def _send_sum_share(self, duty: Duty) -> None:
        def make() -> SumShare:
            share = share_of_sum(self.board, duty.seat, self._share(duty))
            return post_sum_share(self.board, duty.seat, duty.member, share)

        self.send(f"sum-share/{duty.name}", make)

    def _share(self, duty: Duty) -> SecretKeyShare:
        """Read our share from the key store; it is checked against the committee's key."""
        shares_id = duty.seat.shares.shares_id
        if shares_id not in self._shares:
            scheme, key = self.board.keys.read(duty.seat.addressee.committee)
            secret = self.directory.secrets[share_name(shares_id)]
            self._shares[shares_id] = scheme.read_share(key, secret.reveal())
        return self._shares[shares_id]
