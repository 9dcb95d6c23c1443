"""A bundle in its current iteration, and one task at its place there: what follows from the state.

Rules, phases and roles ask a sitting or a seat; nobody puts these facts together a second time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anofel.board.claims import Addressee, CommitteeRef, CountedGroup, CountShareClaim, SumShareClaim
from anofel.board.groups import deal
from anofel.board.state import (
    AcceptedSubmission,
    Agreement,
    Bundle,
    Committee,
    CommitteeShares,
    Iteration,
    Phase,
    Position,
    State,
    TaskState,
)
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits, digest_of_agreed
from anofel.committee.count import bit_of
from anofel.committee.interface import Envelope
from anofel.errors import InvalidInput
from anofel.ids import AgreedDigest, BlobHash, GenesisHash, Nullifier, TaskId
from anofel.messages import Class
from anofel.primitives import ClientTree, Scope


@dataclass(frozen=True, slots=True)
class Seat:
    """A task, its committee, and where both stand in an iteration."""

    genesis: GenesisHash
    bundle: Bundle
    iteration: Iteration
    task: TaskState
    committee: Committee

    @classmethod
    def find(cls, state: State, task_id: TaskId) -> "Seat | None":
        """Return the seat of a task; None before the first iteration of its bundle."""
        task = state.tasks.get(task_id)
        if task is None or task.bundle is None:
            return None
        bundle = state.bundles[task.bundle]
        if bundle.current is None:
            return None
        return cls(state.genesis_hash, bundle, bundle.current, task, state.committee_of(task))

    @classmethod
    def of(cls, state: State, task_id: TaskId) -> "Seat":
        """Return the seat of a task whose bundle had an iteration. Raises ``InvalidInput``."""
        found = cls.find(state, task_id)
        if found is None:
            raise InvalidInput("The task has had no iteration yet.")
        return found

    @property
    def task_id(self) -> TaskId:
        """The task's name."""
        return self.task.task_id

    @property
    def number(self) -> int:
        """The number of the iteration."""
        return self.iteration.number

    @property
    def place(self) -> int:
        """The task's place in its bundle."""
        return self.task.position

    @property
    def position(self) -> Position:
        """Where the committee stands in the iteration."""
        return self.iteration.positions[self.place]

    @property
    def is_open(self) -> bool:
        """Whether clients may submit."""
        return self.bundle.phase is Phase.OPEN

    @property
    def is_closed(self) -> bool:
        """Whether committees open what was submitted."""
        return self.bundle.phase is Phase.CLOSED

    # What postings are bound to

    @property
    def limits(self) -> TaskLimits:
        """What the task promises about its vectors."""
        return self.task.facts.limits

    @property
    def shares(self) -> CommitteeShares:
        """The shares that open this iteration: from its close on, those of that moment."""
        return self.position.shares or self.committee.current

    @property
    def addressee(self) -> Addressee:
        """The committee as claims name it."""
        return addressee_of(self.committee, self.task, self.shares)

    @property
    def scope(self) -> Scope:
        """What a nullifier of the iteration is bound to; the same for every seat of the bundle."""
        return Scope(self.genesis, self.bundle.number, self.number)

    @property
    def context(self) -> IterationContext:
        """What ciphertexts and proofs of the iteration are bound to."""
        return IterationContext(
            genesis=self.genesis,
            task=self.task_id,
            iteration=self.number,
            scope=self.scope.to_bytes(),
            position=self.place,
        )

    def post_context(self, *, nullifier: Nullifier, tag: bytes, message_key: bytes) -> PostContext:
        """Return what the ciphertexts of one submission are bound to."""
        return PostContext(iteration=self.context, nullifier=nullifier, tag=tag, pk_sig=message_key)

    # What was submitted

    def posts(self) -> Iterator[AcceptedSubmission]:
        """Return the accepted submissions, in board order."""
        yield from self.iteration.submissions.values()

    def context_of(self, post: AcceptedSubmission) -> PostContext:
        """Return what the ciphertexts of an accepted submission are bound to."""
        return self.post_context(nullifier=post.nullifier, tag=post.tag, message_key=post.message_key)

    def envelope_of(self, post: AcceptedSubmission) -> Envelope:
        """Return the part of an accepted submission that names its payload for this committee."""
        name = post.payloads[self.place]
        return Envelope(
            proof=name.envelope,
            payload_length=name.length,
            payload_sha256=name.sha256,
            bit=bit_of(post.ballot, self.place),
        )

    # What the committee agreed on

    def groups_of(self, kept: Iterable[Nullifier]) -> tuple[tuple[Nullifier, ...], ...]:
        """Deal the posts that are added, named by their nullifiers, to the groups of the task (D-26)."""
        facts, close_hash = self.task.facts, self.iteration.close_hash
        return deal(kept, close_hash, groups=facts.groups, min_clients=facts.limits.min_clients)

    @property
    def agreed(self) -> tuple[AgreedSet, ...]:
        """The groups that t members agreed on. Raises ``InvalidInput`` before they did."""
        return tuple(
            AgreedSet(
                iteration=self.context,
                key_id=self.committee.key_id,
                close_hash=self.iteration.close_hash,
                set_digest=group.set_digest,
                sum_digest=group.sum_digest,
                num_posts=group.num_posts,
                min_clients=self.limits.min_clients,
            )
            for group in self._agreement.groups
        )

    @property
    def agreed_digest(self) -> AgreedDigest:
        """What postings of shares name: all agreed groups together."""
        return digest_of_agreed(self.agreed)

    @property
    def _agreement(self) -> Agreement:
        agreement = self.position.agreed
        if agreement is None:
            raise InvalidInput("The committee has not agreed on a set yet.")
        return agreement

    @property
    def counted_groups(self) -> tuple[CountedGroup, ...]:
        """What the committee counts, and who opened it: the first t in board order."""
        excluded = {nullifier for nullifier, _ in self._agreement.excluded}
        submissions = self.iteration.submissions
        dealt = self.groups_of(nullifier for nullifier in submissions if nullifier not in excluded)
        first = self.position.count_shares[: self.shares.threshold]
        return tuple(
            CountedGroup(
                agreed,
                tuple((name, bit_of(submissions[name].ballot, self.place)) for name in names),
                tuple((share.member, share.contents[place]) for share in first),
            )
            for place, (agreed, names) in enumerate(zip(self.agreed, dealt, strict=True))
        )

    @property
    def opened(self) -> tuple[int, ...]:
        """The groups whose sums are opened, by their places: those whose count reached ``min_clients``."""
        counts = self.position.counts or ()
        return tuple(place for place, count in enumerate(counts) if count >= self.limits.min_clients)

    @property
    def opened_groups(self) -> tuple[CountedGroup, ...]:
        """The groups whose sums are opened."""
        groups = self.counted_groups
        return tuple(groups[place] for place in self.opened)

    def count_share_claim(self, member: int, shares: tuple[bytes, ...]) -> CountShareClaim:
        """Return what has to be verified of a member's shares of the counts."""
        return CountShareClaim(self.addressee, self.counted_groups, member, shares)

    def sum_share_claim(self, member: int, shares: tuple[BlobHash, ...]) -> SumShareClaim:
        """Return what has to be verified of a member's shares of the sums; ``shares`` are their SHA-256."""
        return SumShareClaim(self.addressee, self.opened_groups, member, shares)


@dataclass(frozen=True, slots=True)
class Sitting:
    """A bundle in its current iteration: what all its seats have in common."""

    state: State
    bundle: Bundle
    iteration: Iteration

    @classmethod
    def find(cls, state: State, bundle: int | None) -> "Sitting | None":
        """Return the sitting of a bundle, by its number; None before its first iteration."""
        found = None if bundle is None else state.bundles.get(bundle)
        if found is None or found.current is None:
            return None
        return cls(state, found, found.current)

    @classmethod
    def of(cls, state: State, bundle: int | None) -> "Sitting":
        """Return the sitting of a bundle that had an iteration. Raises ``InvalidInput``."""
        found = cls.find(state, bundle)
        if found is None:
            raise InvalidInput("The bundle has had no iteration yet.")
        return found

    @classmethod
    def live(cls, state: State) -> "list[Sitting]":
        """Return the sittings of the bundles that have not ended."""
        found = (cls.find(state, bundle.number) for bundle in state.bundles.live())
        return [sitting for sitting in found if sitting is not None]

    @property
    def number(self) -> int:
        """The number of the iteration."""
        return self.iteration.number

    @property
    def turn(self) -> tuple[int, int]:
        """Bundle and iteration, by their numbers."""
        return self.bundle.number, self.number

    @property
    def size(self) -> Class:
        """The size class of the bundle, with its deadlines."""
        return self.state.class_of(self.bundle)

    @property
    def is_open(self) -> bool:
        """Whether clients may submit."""
        return self.bundle.phase is Phase.OPEN

    @property
    def is_closed(self) -> bool:
        """Whether committees open what was submitted."""
        return self.bundle.phase is Phase.CLOSED

    @property
    def is_full(self) -> bool:
        """Whether no further submission is taken."""
        return len(self.iteration.submissions) >= self.size.max_posts

    @property
    def scope(self) -> Scope:
        """What a nullifier of the iteration is bound to."""
        return Scope(self.state.genesis_hash, self.bundle.number, self.number)

    @property
    def seats(self) -> list[Seat]:
        """The seats, in the order of their places."""
        return [Seat.of(self.state, task_id) for task_id in self.bundle.tasks]

    @property
    def clients(self) -> ClientTree:
        """The tree of clients whose root was fixed when the iteration opened (D-07)."""
        return self.state.client_trees[self.iteration.epoch].at_size(self.iteration.num_clients)


def addressee_of(committee: Committee, task: TaskState, shares: CommitteeShares) -> Addressee:
    """Return a task's committee as claims name it, with the shares that it holds."""
    reference = CommitteeRef(committee.key_id, committee.scheme, shares.shares_id)
    return Addressee(reference, task.task_id, task.facts.limits, task.facts.types)
