"""Boards that stand at a certain point, made once in a process and copied for each test."""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.key_runs import min_rounds, round_messages
from anofel.board.rule import Rejected
from anofel.board.state import Phase, Progress, State
from anofel.board.verification import Verifier
from anofel.committee.interface import HandoverParty, HandoverResult
from anofel.messages import (
    Aggregate,
    Body,
    ChainAuthor,
    CountShare,
    DkgRound,
    Exclusion,
    GroupSum,
    HandoverTerms,
    KeyAuthor,
    Posting,
    Receipt,
    Run,
    SumShare,
    make_posting,
    receipt_bytes,
)
from anofel.phase1_setup.step1c_committee_key import handover_run, post_round
from anofel.phase2_training.step5_submission import SealedSubmission, post_submission
from anofel.phase3_access.step6_homomorphic_sum import check_payload
from anofel.phase3_access.step8_partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.pki.certificates import RoleKey
from anofel.primitives import CertifierTree, ClientTree, MessageSecret, NameSet
from anofel.proofs.keys import KeyDirectory
from tests.board.world import CommitteeOfTest, FinishedRun, Member, Owner, World, a_task, a_vector

TARGETS = (0, 0, 1, 1, None)
"""What the clients of the stage ``submitted`` train; one more client has not posted."""
MEMBERS, THRESHOLD = 3, 2

WRAPPED_BYTES, PROOF_BYTES = 2048 * 32, 26_752
"""Of a payload of the lattice scheme: what follows the encrypted words."""


def with_garbage(payload: bytes, *, proven: bool = True) -> bytes:
    """A payload that parses, but whose words are no vector."""
    end = WRAPPED_BYTES + (PROOF_BYTES if proven else 0)
    return os.urandom(len(payload) - end) + payload[-end:]


# Copies


def copy_state(state: State) -> State:
    """Copy a state; the trees of the core are made again from their leaves."""
    memo: dict[int, object] = {id(state.genesis): state.genesis}
    tree = state.certifier_tree
    memo[id(tree)] = CertifierTree.from_node_bytes(tree.node_bytes())
    for clients in state.client_trees.values():
        memo[id(clients)] = ClientTree.from_node_bytes(clients.node_bytes())
    memo[id(state.registered)] = NameSet.from_bytes(state.registered.to_bytes())
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
    if world.finished is not None:
        members = [copy.copy(member) for member in world.finished.members]
        made.finished = replace(world.finished, members=members)
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
    posting = post_submission(world.board, sealed)
    return signed_by_key(world, sealed.membership.message_secret, replace(posting.body, **changes))


def a_submission(world: World, client: int, target: int | None, **changes: object) -> Posting:
    update = None if target is None else a_vector(world.owners[target].task, client)
    return submit(world, world.sealed(world.clients[client], target, update), **changes)


def rounds(world: World, members: Sequence[Member], run: Run, number: int, senders: Sequence[int]) -> None:
    """Post a round of a run. The bodies are stand-ins: the board does not read them before the key."""
    for sender in senders:
        world.board.post_as(members[sender - 1].role, a_round(world, run, number, sender))


def a_round(world: World, run: Run, number: int, sender: int) -> DkgRound:
    blob = world.board.upload(f"round {number} of {sender}".encode())
    run_id = run.run_id(world.board.genesis_hash)
    return DkgRound(run_id=run_id, round=number, sender=sender, run=run if number == 0 else None, body=blob)


def whole_run(world: World, members: Sequence[Member], run: Run) -> None:
    for number in range(min_rounds(run)):
        rounds(world, members, run, number, range(1, len(members) + 1))


def run_handover(world: World, number: int, members: Sequence[Member]) -> FinishedRun:
    """A handover over the board, but for the key: members 1 and 2 deal to ``members``."""
    committee, board = world.committees[number], world.board
    assert committee.key is not None
    run = replace(
        world.make_run(members, THRESHOLD),
        handover=HandoverTerms(key_id=committee.key.key_id, dealers=(1, 2)),
    )
    seen = handover_run(run, board.genesis_hash, committee.key)
    dealers = {member.subject: member for member in committee.members[:2]}
    receivers = {member.subject: member for member in members}
    parties = {}
    for name in dealers | receivers:
        share = dealers[name].share if name in dealers else None
        party = HandoverParty(share=share, member=receivers[name].number if name in receivers else None)
        parties[name] = committee.scheme.handover().begin(seen, party)
    roles = {name: member.role for name, member in (receivers | dealers).items()}
    spoken = 0
    while any(isinstance(result, HandoverResult) for result in parties.values()):
        for name, result in parties.items():
            if result.message is not None:
                board.post_as(roles[name], post_round(run, result.message, board.upload(result.message.body)))
        messages = round_messages(board.state.runs[seen.run_id], spoken, board.attachments.read)
        spoken += 1
        parties = {
            name: committee.scheme.handover().advance(result.state, messages)
            for name, result in parties.items()
        }
    return FinishedRun(list(members), run, [parties[member.subject] for member in members])


def an_aggregate(
    world: World, number: int, member: Member, leave_out: Sequence[bytes] = (), reason: int = 1
) -> Aggregate:
    """What a member adds; a lying one leaves out payloads that are good."""
    committee, seat = world.committees[number], world.seat(world.owners[number])
    assert committee.key is not None
    kept = {post.nullifier: post for post in seat.posts() if post.nullifier not in leave_out}
    totals = []
    for names in seat.groups_of(kept):
        accumulator = committee.scheme.accumulator(committee.key, seat.context, seat.limits)
        for name in names:
            payload = world.board.attachments.read(kept[name].payloads[seat.place].sha256)
            accumulator.add(check_payload(world.board, seat, kept[name], payload))
        totals.append(accumulator.finish())
    return Aggregate(
        task=seat.task_id,
        iteration=seat.number,
        member=member.number,
        close_hash=seat.iteration.close_hash,
        excluded=tuple(Exclusion(nullifier=entry, reason=reason) for entry in sorted(leave_out)),
        groups=tuple(
            GroupSum(
                set_digest=total.set_digest,
                num_posts=total.num_posts,
                sum=world.board.upload(total.to_bytes()),
            )
            for total in totals
        ),
    )


def a_count_share(world: World, number: int, member: Member) -> CountShare:
    assert member.share is not None
    return share_of_count(world.board, world.seat(world.owners[number]), member.share)


def a_sum_share(world: World, number: int, member: Member) -> SumShare:
    assert member.share is not None
    seat = world.seat(world.owners[number])
    return post_sum_share(world.board, seat, member.number, share_of_sum(world.board, seat, member.share))


# Stages


class Stages:
    """Worlds at named points of one iteration; ``stages("open")`` gives a fresh copy."""

    def __init__(self, keys: KeyDirectory) -> None:
        self.keys = keys
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

    def _generated(self) -> World:
        """A run of key generation whose rounds are complete; its key is not posted."""
        world = self("fresh")
        world.finished = world.generate(MEMBERS, THRESHOLD, name="Aggregator 0")
        return world

    def _established(self) -> World:
        world = self("generated")
        assert world.finished is not None
        world.post_keys(world.finished)
        world.establish(MEMBERS, THRESHOLD, name="Aggregator 1")
        world.add_clients(len(TARGETS) + 1)
        world.board.next_block()
        return world

    def _handed_over(self) -> World:
        """A refresh of the first committee whose rounds are complete; its key is not posted."""
        world = self("established")
        world.finished = run_handover(world, 0, world.committees[0].members)
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

    def _unproven(self) -> World:
        """As ``submitted``, but the first task takes unproven contributions."""
        world = self("established")
        first = {"insecure_unproven_contributions": True}
        for number, (committee, head) in enumerate(zip(world.committees, (first, {}), strict=True)):
            world.announce(committee, a_task(f"study {number}", task={"name": f"study {number}"} | head))
        world.board.next_block()
        for owner in world.owners:
            world.post_first_model(owner)
        world.board.next_block()
        for client, target in enumerate(TARGETS):
            world.board.post(a_submission(world, client, target))
        world.board.next_block()
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
