"""Boards that stand at a certain point, made once in a process and copied for each test.

Committee keys are generated once for a whole test run; everything else of a world is made anew.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec
import pytest

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.rule import Rejected
from anofel.board.rules.committees import min_rounds
from anofel.board.rules.common import addressee_of, iteration_context, scheme_name
from anofel.board.state import Phase, Progress, State
from anofel.board.verification import Verifier
from anofel.certificates import RoleKey
from anofel.committee import schemes
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    ResharedKey,
    ResharingParty,
)
from anofel.keys import KeyDirectory
from anofel.messages import (
    Aggregate,
    Body,
    ChainAuthor,
    CountShare,
    DkgRound,
    Exclusion,
    KeyAuthor,
    Posting,
    Receipt,
    Run,
    SumShare,
    make_posting,
    receipt_bytes,
)
from anofel.phase1_setup.committee_keys import post_key
from anofel.phase2_training.submit_update import SealedSubmission, post_submission
from anofel.phase3_access.homomorphic_sum import accepted, check_payload
from anofel.phase3_access.partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.primitives import CertifierTree, ClientTree, MessageSecret
from tests.board.world import CommitteeOfTest, Member, Owner, World, a_task, a_vector
from tests.committee.test_resharing import a_resharing
from tests.committee.world import Committee, a_run, generate

TARGETS = (0, 0, 1, 1, None)
"""What the clients of the stage ``submitted`` train; one more client has not posted."""
MEMBERS, THRESHOLD = 3, 2

WORDS_AT_THE_END = 2048 * 32
"""Of a payload of the lattice scheme: what binds its author; the encrypted words come before."""


@dataclass(frozen=True)
class RecordedCommittee:
    """A committee as bytes: its key and its members' shares, by number."""

    key: bytes
    shares: dict[int, bytes]


@dataclass(frozen=True)
class Recording:
    """What takes long to make: two committees, and the first one with refreshed shares."""

    committees: list[RecordedCommittee]
    refreshed: RecordedCommittee

    @classmethod
    def make(cls) -> "Recording":
        scheme = schemes.by_name("lattice")
        committees = [_generate(number) for number in range(2)]
        run = a_resharing(committees[0], (1, 2), MEMBERS, THRESHOLD)
        resharing = scheme.resharing()
        parties = [
            ResharingParty(share=committees[0].shares[1], member=1),
            ResharingParty(share=committees[0].shares[2], member=2),
            ResharingParty(member=3),
        ]
        results = [resharing.begin(run, party) for party in parties]
        while not isinstance(results[0], ResharedKey):
            messages = [result.message for result in results if result.message is not None]
            results = [resharing.advance(result.state, messages) for result in results]
        shares = {end.share.member: end.share.to_bytes() for end in results}
        refreshed = RecordedCommittee(results[0].key.to_bytes(), shares)
        return cls([_record(committee) for committee in committees], refreshed)


def _generate(number: int) -> Committee:
    scheme = schemes.by_name("lattice")
    ends, _ = generate(scheme.key_generation(), a_run(MEMBERS, THRESHOLD, f"committee {number}"))
    assert all(isinstance(end, GeneratedKey) for end in ends)
    return Committee.of(scheme, ends)


def _record(committee: Committee) -> RecordedCommittee:
    shares = {member: share.to_bytes() for member, share in committee.shares.items()}
    return RecordedCommittee(committee.key.to_bytes(), shares)


def encode_recording(recording: Recording) -> bytes:
    return msgspec.msgpack.encode(recording)


def decode_recording(data: bytes) -> Recording:
    return msgspec.msgpack.decode(data, type=Recording)


# Copies


def copy_state(state: State) -> State:
    """Copy a state; the trees of the core are made again from their leaves."""
    memo: dict[int, object] = {id(state.genesis): state.genesis}
    tree = state.certifier_tree
    memo[id(tree)] = CertifierTree.from_leaf_bytes(tree.leaf_bytes())
    for clients in state.client_trees.values():
        memo[id(clients)] = ClientTree.from_leaf_bytes(clients.leaf_bytes())
    return copy.deepcopy(state, memo)


def fork(world: World) -> World:
    """Copy a world; the copies share what was verified and stored."""
    made, board = copy.copy(world), copy.copy(world.board)
    board.chain = Chain(copy_state(world.board.state), world.board.chain.verifier)
    board.chain._ids = list(world.board.chain._ids)
    board.blocks, board._postings = list(world.board.blocks), list(world.board._postings)
    made.board = board
    made.owners = [copy.copy(owner) for owner in world.owners]
    made.committees = [
        replace(c, members=[copy.copy(member) for member in c.members]) for c in world.committees
    ]
    made.clients = list(world.clients)
    return made


# Refusals


def fingerprint(state: State) -> bytes:
    return snapshot.encode(state) + bytes([state.num_postings & 0xFF])


@contextmanager
def refused(world: World, code: str) -> Iterator[pytest.ExceptionInfo[Rejected]]:
    """The block refuses by one rule, and nothing has changed."""
    before = fingerprint(world.board.state)
    with pytest.raises(Rejected) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    assert fingerprint(world.board.state) == before


def alone(world: World, code: str, bad: Posting, good: Posting) -> Rejected:
    """The bad posting breaks one rule; the good one, which differs in that only, is admitted."""
    with refused(world, code) as caught:
        world.board.post(bad)
    world.board.post(good)
    return caught.value


# Postings


def signed(world: World, role: RoleKey, body: Body) -> Posting:
    return make_posting(body, ChainAuthor(role.chain), world.board.genesis_hash, role.sign)


def signed_by_key(world: World, secret: MessageSecret, body: Body) -> Posting:
    author = KeyAuthor(secret.public_key().to_bytes())
    return make_posting(body, author, world.board.genesis_hash, secret.sign)


def receipt(world: World, sha256: bytes, length: int, expires: int, role: RoleKey | None = None) -> Receipt:
    message = receipt_bytes(world.board.genesis_hash, sha256, length, expires)
    return Receipt(holder=0, expires=expires, signature=(role or world.storage).sign(message))


def submit(world: World, sealed: SealedSubmission, **changes: object) -> Posting:
    """Sign a sealed submission, with some fields of its body changed."""
    blobs = [world.board.store(payload) for payload in sealed.payloads]
    posting = post_submission(sealed, blobs, genesis=world.board.genesis_hash)
    return signed_by_key(world, sealed.prepared.message_secret, replace(posting.body, **changes))


def a_submission(world: World, client: int, target: int | None, **changes: object) -> Posting:
    update = None if target is None else a_vector(world.owners[target].task, client)
    return submit(world, world.sealed(world.clients[client], target, update), **changes)


def rounds(world: World, members: Sequence[Member], run: Run, number: int, senders: Sequence[int]) -> None:
    """Post a round of a run. The bodies are stand-ins: the board does not read them."""
    for sender in senders:
        world.board.post_as(members[sender - 1].role, a_round(world, run, number, sender))


def a_round(world: World, run: Run, number: int, sender: int) -> DkgRound:
    blob = world.board.store(f"round {number} of {sender}".encode())
    run_id = run.run_id(world.board.genesis_hash)
    return DkgRound(run_id=run_id, round=number, sender=sender, run=run if number == 0 else None, body=blob)


def whole_run(world: World, members: Sequence[Member], run: Run) -> None:
    for number in range(min_rounds(run)):
        rounds(world, members, run, number, range(1, len(members) + 1))


def a_key_posting(world: World, run: Run, member: Member, key: CommitteeKey) -> Posting:
    blob = world.board.store(key.to_bytes())
    body = post_key(run, member.number, key, bytes(32), blob, genesis=world.board.genesis_hash)
    return signed(world, member.role, body)


def install(world: World, recorded: RecordedCommittee, name: str) -> CommitteeOfTest:
    """Establish a recorded committee: the run is posted as any other, its key is real."""
    scheme, members = schemes.by_name(scheme_name(0)), world.make_members(MEMBERS, name)
    key = scheme.read_key(recorded.key)
    run = world.make_run(members, THRESHOLD)
    whole_run(world, members, run)
    for member in members:
        member.share = scheme.read_share(key, recorded.shares[member.number])
        world.board.post(a_key_posting(world, run, member, key))
    made = CommitteeOfTest(scheme, members, THRESHOLD, key)
    world.committees.append(made)
    return made


def an_aggregate(
    world: World, number: int, member: Member, leave_out: Sequence[bytes] = (), reason: int = 1
) -> Aggregate:
    """What a member adds; a lying one leaves out payloads that are good."""
    owner, committee = world.owners[number], world.committees[number]
    state, task = world.board.state, world.task_state(owner)
    bundle = world.bundle(task.bundle or 0)
    assert committee.key is not None
    assert bundle.current is not None
    accumulator = committee.scheme.accumulator(
        committee.key, iteration_context(state, bundle, task), addressee_of(state, task).limits
    )
    for post in accepted(bundle):
        if post.nullifier not in leave_out:
            payload = world.board.attachments.read(post.payloads[task.position].sha256)
            accumulator.add(
                check_payload(state, bundle, task, committee.scheme, committee.key, post, payload)
            )
    total = accumulator.finish()
    return Aggregate(
        task=owner.task_id,
        iteration=bundle.current.number,
        member=member.number,
        close_hash=bundle.current.close_hash,
        excluded=tuple(Exclusion(nullifier=entry, reason=reason) for entry in sorted(leave_out)),
        set_digest=total.set_digest,
        num_posts=total.num_posts,
        sum=world.board.store(total.to_bytes()),
    )


def a_count_share(world: World, number: int, member: Member) -> CountShare:
    task = world.task_state(world.owners[number])
    key = world.committees[number].key
    assert key is not None
    assert member.share is not None
    return share_of_count(world.board.state, world.bundle(task.bundle or 0), task, key, member.share)


def a_sum_share(world: World, number: int, member: Member) -> SumShare:
    state, task = world.board.state, world.task_state(world.owners[number])
    bundle, committee = world.bundle(task.bundle or 0), world.committees[number]
    assert committee.key is not None
    assert member.share is not None
    desk = world.board.chain.verifier.shares
    share = share_of_sum(state, bundle, task, desk, committee.scheme, committee.key, member.share)
    return post_sum_share(state, bundle, task, member.number, world.board.store(share))


# Stages


class Stages:
    """Worlds at named points of one iteration; ``stages("open")`` gives a fresh copy."""

    def __init__(self, keys: KeyDirectory, recording: Recording) -> None:
        self.keys = keys
        self.recording = recording
        self._made: dict[str, World] = {}

    def __call__(self, name: str) -> World:
        if name not in self._made:
            self._made[name] = getattr(self, f"_{name}")()
        return fork(self._made[name])

    def world(self, num_clients: int = 0, **changes: object) -> World:
        """A new board of its own with a certifier and clients."""
        world = World(self.keys, **changes)
        world.offer_certifier_key()
        world.board.next_block()
        world.add_clients(num_clients)
        return world

    def _fresh(self) -> World:
        return self.world()

    def _established(self) -> World:
        world = self("fresh")
        for number, recorded in enumerate(self.recording.committees):
            install(world, recorded, f"Aggregator {number}")
        world.add_clients(len(TARGETS) + 1)
        world.board.next_block()
        return world

    def _waiting(self) -> World:
        world = self("established")
        for number, committee in enumerate(world.committees):
            world.announce(committee, a_task(f"study {number}"), early_end=True)
        world.board.next_block()
        assert world.bundle().phase is Phase.WAITING
        return world

    def _open(self) -> World:
        world = self("waiting")
        for owner in world.owners:
            world.post_first_model(owner)
        world.board.next_block()
        assert world.bundle().phase is Phase.OPEN
        return world

    def _submitted(self) -> World:
        world = self("open")
        for client, target in enumerate(TARGETS):
            world.board.post(a_submission(world, client, target))
        world.board.next_block()
        return world

    def _closed(self) -> World:
        world = self("submitted")
        world.blocks_until(Phase.CLOSED)
        return world

    def _aggregated(self) -> World:
        return everybody(self("closed"), World.aggregate)

    def _counted(self) -> World:
        return everybody(self("aggregated"), World.count_share)

    def _summed(self) -> World:
        world = everybody(self("counted"), World.sum_share)
        assert world.bundle().phase is Phase.WAITING
        return world


def everybody(
    world: World,
    step: Callable[[World, Owner, CommitteeOfTest, Member], Posting],
    owners: Sequence[int] = (0, 1),
) -> World:
    """Let the first t members of each committee take a step, and end the block."""
    for number in owners:
        committee = world.committees[number]
        for member in committee.members[: committee.threshold]:
            step(world, world.owners[number], committee, member)
    world.board.next_block()
    return world


def to_height(world: World, height: int) -> None:
    while world.board.state.height < height:
        world.board.next_block()


# Whole stretches


def progress(world: World) -> list[Progress]:
    return [world.position(owner).progress for owner in world.owners]


def follow(world: World) -> None:
    """Whoever replays the blocks comes to the same headers."""
    world.board.next_block()
    verifier = Verifier(
        world.genesis.hash,
        world.keys.registration_verifier(threads=1),
        world.keys.submission_verifier(threads=1),
        world.board.attachments,
    )
    chain = Chain(State.at_genesis(world.genesis), verifier)
    for block in world.board.blocks:
        chain.follow(block)


def phase3(world: World, owners: Sequence[int] = (0, 1)) -> None:
    for step in (World.aggregate, World.count_share, World.sum_share):
        live = [n for n in owners if not world.position(world.owners[n]).progress.is_outcome]
        everybody(world, step, live)


def next_iteration(world: World) -> None:
    """The owners post what they must; the next iteration opens."""
    for owner in world.owners:
        task = world.task_state(owner)
        if not task.ended:
            if task.summed:
                world.recover(owner)
            world.post_model(owner)
    world.board.next_block()
