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
from anofel.board.light_client import LightClient
from anofel.board.rules.common import addressee_of
from anofel.board.shares import ShareDesk
from anofel.board.state import Agreement, Bundle, Committee, Iteration, Phase, Position, Progress, TaskState
from anofel.certificates import Purpose
from anofel.committee.interface import CommitteeKey, Scheme, SecretKeyShare
from anofel.keystore import MissingSecret
from anofel.messages import Aggregate, CountShare, SumShare
from anofel.phase3_access.homomorphic_sum import CollectedSum, Collector, post_aggregate
from anofel.phase3_access.partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.roles.directory import RoleDirectory
from anofel.roles.key_secrets import forget_stale, share_name
from anofel.roles.outbox_pruning import forget_old
from anofel.roles.role import CertifiedRole, Say


@dataclass
class Duty:
    """One task that a committee of ours serves, in the current iteration of its bundle."""

    committee: Committee
    task: TaskState
    bundle: Bundle
    iteration: Iteration
    position: Position
    member: int
    """Our number in the committee."""

    @property
    def name(self) -> str:
        """The end of the names of everything posted for it."""
        return f"{self.task.task_id.hex()}/{self.iteration.number}"


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

    def __init__(self, directory: RoleDirectory, board: LightClient, say: Say = lambda _text: None) -> None:
        super().__init__(directory, board, say)
        self._work: dict[tuple[bytes, int, bytes], Work] = {}
        self._shares: dict[bytes, SecretKeyShare] = {}
        self.culprits: list[dict[str, Any]] = []
        """Members that stated another sum than the right one."""

    @property
    def _desk(self) -> ShareDesk:
        return self.board.chain.verifier.shares

    def step(self) -> str:
        """Do what is due in every iteration of every committee of ours."""
        self._forget_old_shares()
        forget_old(self.directory.outbox, self.state, self.directory.secrets)
        duties = list(self._duties())
        kept = {self._key(duty) for duty in duties}
        self._work = {key: work for key, work in self._work.items() if key in kept}
        waits = [self._serve(duty) for duty in duties]
        if not any(self._member_of(committee) for committee in self.state.committees.values()):
            return "a committee of which this aggregator is a member"
        return "; ".join(sorted(set(waits))) or "a task"

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
            task = self.state.tasks.get(committee.task or b"")
            if not member or task is None or task.bundle is None:
                continue
            bundle = self.state.bundles[task.bundle]
            if bundle.current is not None and bundle.phase in (Phase.OPEN, Phase.CLOSED):
                position = bundle.current.positions[task.position]
                yield Duty(committee, task, bundle, bundle.current, position, member)

    def _member_of(self, committee: Committee) -> int:
        """Return our number in a committee; 0 if we are not in it."""
        members = committee.current.members
        return members.index(self.identity.subject) + 1 if self.identity.subject in members else 0

    def _serve(self, duty: Duty) -> str:
        where = f"iteration {duty.iteration.number} of task {duty.task.task_id.hex()[:8]}…"
        try:
            self._do(duty)
        except (AttachmentMissing, MissingSecret) as error:  # others may still be served
            self.say(f"In {where}: {error}")
        if duty.bundle.phase is Phase.OPEN:
            return f"clients in {where} until block {duty.iteration.close_by}"
        return f"the committee in {where} ({duty.position.progress.value})"

    def _do(self, duty: Duty) -> None:
        position, height = duty.position, self.state.height
        if position.progress is Progress.COLLECTING:
            self._take(duty)
        elif position.progress is Progress.CLOSED and duty.iteration.close_hash:
            if duty.member not in position.aggregates and height < duty.iteration.aggregate_by:
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

    def _key(self, duty: Duty) -> tuple[bytes, int, bytes]:
        return duty.task.task_id, duty.iteration.number, duty.committee.current.shares_id

    def _take(self, duty: Duty) -> Work:
        """Check and add what arrived."""
        key = self._key(duty)
        if key not in self._work:
            scheme, committee_key = self._committee_key(duty)
            collector = Collector(self.state, duty.bundle, duty.task, scheme, committee_key)
            self._work[key] = Work(collector)
        work = self._work[key]
        if work.collected is None:
            work.collector.take(self.state, duty.bundle, duty.task, self.board.attachments.read)
        return work

    def _collected(self, duty: Duty) -> CollectedSum:
        work = self._take(duty)
        if work.collected is None:
            work.collected = work.collector.finish()
        return work.collected

    def _send_aggregate(self, duty: Duty) -> None:
        def make() -> Aggregate:
            collected = self._collected(duty)
            blob = self.board.upload(collected.total.to_bytes())
            return post_aggregate(duty.task.task_id, duty.bundle, duty.member, collected, blob)

        self.send(f"aggregate/{duty.name}", make)

    def _agrees(self, duty: Duty) -> bool:
        """Whether the committee agreed on what we added ourselves; nothing else is ever decrypted."""
        ours = _agreement_on(self._collected(duty))
        self._name_liars(duty, ours)
        if duty.position.agreed == ours:
            return True
        self.say("The committee agreed on another sum than the one on the board; we do not open it.")
        return False

    def _name_liars(self, duty: Duty, ours: Agreement) -> None:
        work = self._work[self._key(duty)]
        for member, stated in duty.position.aggregates.items():
            if stated != ours and member not in work.named:
                work.named.add(member)
                subject = duty.committee.current.members[member - 1].hex()
                self.culprits.append(
                    {
                        "task": duty.task.task_id.hex(),
                        "iteration": duty.iteration.number,
                        "member": member,
                        "aggregator": subject,
                    }
                )
                self.say(f"Member {member} ({subject[:16]}…) stated a wrong sum in {duty.name}.")

    # Step 8

    def _send_count_share(self, duty: Duty) -> None:
        def make() -> CountShare:
            _, key = self._committee_key(duty)
            return share_of_count(self.state, duty.bundle, duty.task, key, self._share(duty))

        self.send(f"count-share/{duty.name}", make)

    def _send_sum_share(self, duty: Duty) -> None:
        def make() -> SumShare:
            scheme, key = self._committee_key(duty)
            content = share_of_sum(
                self.state, duty.bundle, duty.task, self._desk, scheme, key, self._share(duty)
            )
            blob = self.board.upload(content)
            return post_sum_share(self.state, duty.bundle, duty.task, duty.member, blob)

        self.send(f"sum-share/{duty.name}", make)

    def _committee_key(self, duty: Duty) -> tuple[Scheme, CommitteeKey]:
        return self._desk.key_of(addressee_of(self.state, duty.task).committee)

    def _share(self, duty: Duty) -> SecretKeyShare:
        """Read our share from the key store; it is checked against the committee's key."""
        shares_id = duty.committee.current.shares_id
        if shares_id not in self._shares:
            scheme, key = self._committee_key(duty)
            secret = self.directory.secrets[share_name(shares_id)]
            self._shares[shares_id] = scheme.read_share(key, secret.reveal())
        return self._shares[shares_id]


def _agreement_on(collected: CollectedSum) -> Agreement:
    return Agreement(
        excluded=tuple((entry.nullifier, int(entry.reason)) for entry in collected.excluded),
        set_digest=collected.total.set_digest,
        num_posts=collected.total.num_posts,
        sum_digest=collected.total.digest,
    )
