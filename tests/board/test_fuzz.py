"""Whatever bytes come, ``Chain.offer`` admits a valid posting or raises ``Rejected``; nothing else."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from anofel.board.rule import Rejected
from anofel.messages import (
    Blob,
    ChainAuthor,
    EndIteration,
    EndTask,
    GroupSum,
    KeyAuthor,
    Model,
    Posting,
    PrivacyLedger,
    RejectModel,
    RevokeCertifier,
    Run,
)
from anofel.messages.postings import _BODIES
from anofel.phase1_setup.step1d_announcement import announce
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import CertifierSecret, MessageSecret
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard
from tests.board.prepared import (
    Stages,
    a_count_share,
    a_round,
    a_sum_share,
    an_aggregate,
    fork,
    signed,
    submit,
)
from tests.board.test_rules_setup import a_key
from tests.board.world import Member, World, a_task, a_vector

Entry = tuple[World | CommitteeBoard, Posting, Callable[[bytes], bytes]]
"""A board, a posting that it would admit, and how its author signs."""


@pytest.fixture(scope="module")
def corpus(stages: Stages) -> list[Entry]:
    return make_corpus(stages)


def copied(world: World | CommitteeBoard) -> World | CommitteeBoard:
    return world.fork() if isinstance(world, CommitteeBoard) else fork(world)


def changes_of_validators(keys: KeyDirectory) -> list[Entry]:
    """A change that one validator proposes, and one that it waits for others to sign."""
    board = CommitteeBoard(keys)
    change = board.change(1, board.seats[1].with_new_key().entry(board.genesis.nonce))
    proposed = board.fork()
    proposed.post(proposed.proposal(0, change))
    return [
        (board, board.proposal(0, change), board.seats[0].role.sign),
        (proposed, proposed.signature(2, change), board.seats[2].role.sign),
    ]


def an_entry(world: World, role: RoleKey, body: object) -> Entry:
    return (world, signed(world, role, body), role.sign)  # type: ignore[arg-type]


def first_entries(fresh: World, members: list[Member], run: Run) -> list[Entry]:
    """One valid posting of every kind that a new board admits, now and in later blocks."""
    certifier = fresh.authority.issue(Purpose.CERTIFIER, "Other")
    revocation = RevokeCertifier(key=next(iter(fresh.board.state.certifiers)), new_epoch=True)
    secret = MessageSecret.generate()
    return [
        an_entry(fresh, certifier, a_key(fresh, certifier, CertifierSecret.generate())),
        an_entry(fresh, fresh.operator, revocation),
        (fresh, fresh.registration(fresh.certify(), message_secret=secret), secret.sign),
        an_entry(fresh, members[0].role, a_round(fresh, run, 0, 1)),
    ]


def make_corpus(stages: Stages) -> list[Entry]:
    """One valid posting of every kind."""
    fresh = stages("fresh")
    members = fresh.make_members(3)
    run = fresh.make_run(members, 2)
    entries = first_entries(fresh, members, run)

    def add(world: World, role: RoleKey, body: object) -> None:
        entries.append(an_entry(world, role, body))

    generated = stages("generated")
    assert generated.finished is not None
    first = generated.finished.members[0]
    add(generated, first.role, generated.key_posting(generated.finished, first).body)
    established = stages("established")
    owner, known = established.authority.issue(Purpose.OWNER, "Owner"), established.committees[0].key
    assert known is not None
    add(established, owner, announce(a_task(), key_id=known.key_id))
    world = stages("waiting")
    model = stages("open").owners[0].model
    assert model is not None
    blob = world.board.upload(model.to_bytes())
    add(world, world.owners[0].role, Model(task=world.owners[0].task_id, iteration=1, model=blob))
    world = stages("open")
    sealed = world.sealed(world.clients[0], 0, a_vector(world.owners[0].task, 0))
    entries.append((world, submit(world, sealed), sealed.membership.message_secret.sign))
    add(world, world.owners[0].role, EndIteration(task=world.owners[0].task_id, iteration=1))
    add(world, world.owners[0].role, EndTask(task=world.owners[0].task_id))
    for stage, make in (("closed", an_aggregate), ("aggregated", a_count_share), ("counted", a_sum_share)):
        world = stages(stage)
        member = world.committees[0].members[0]
        add(world, member.role, make(world, 0, member))
    world = stages("summed")
    entry = PrivacyLedger(task=world.owners[0].task_id, releases=1, zero_out=1, replace=2)
    add(world, world.owners[0].role, entry)
    add(world, world.owners[0].role, RejectModel(task=world.owners[0].task_id, iteration=1))
    entries += changes_of_validators(fresh.keys)
    assert {type(posting.body) for _, posting, _ in entries} == set(_BODIES.values())
    for board, posting, _ in entries:
        copied(board).board.post(posting)
    return entries


def mutate(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Change bytes in one of the ways in which attackers and broken disks do."""
    if not data:
        return chance.randbytes(chance.randrange(9))
    made, start = bytearray(data), chance.randrange(len(data))
    end = min(len(data), start + chance.choice((1, 1, 2, 4, 32, 64, 500)))
    match chance.randrange(9):
        case 0 | 1 | 2:
            made[start] ^= 1 << chance.randrange(8)
        case 3:
            made[start:end] = bytes([chance.choice((0, 0xFF))]) * (end - start)
        case 4:
            del made[start:end]
        case 5:
            made[start:start] = chance.randbytes(end - start)
        case 6:
            del made[start:]
        case 7:
            other = chance.choice(others)
            made[start:end] = other[start:end]
        case _:
            made[start:end] = chance.randbytes(end - start)
    return bytes(made)


def refuses(world: World | CommitteeBoard, data: bytes) -> bool:
    try:
        world.board.chain.offer(data)
    except Rejected:
        return True
    return False


def offer_mutations(corpus: list[Entry], number: int, seed: int) -> None:
    chance, everything = random.Random(seed), [posting.data for _, posting, _ in corpus]
    for _ in range(number):
        world, posting, _ = chance.choice(corpus)
        data = posting.data
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            data = mutate(data, chance, everything)
        if data not in everything:
            assert refuses(world, data), f"Admitted, but not valid: {data.hex()}"


def signed_mutation(entry: Entry, chance: random.Random, contents: list[bytes]) -> bytes:
    """Change the content of a posting behind its author, who signs it again."""
    world, posting, sign = entry
    author = posting.author
    skip = 2 + (32 if isinstance(author, KeyAuthor) else 2 + sum(4 + len(c) for c in author.chain))
    content = posting.content[:skip] + mutate(posting.content[skip:], chance, contents)
    return content + sign(b"anofel/1/posting" + world.board.genesis_hash + content)


def offer_signed_mutations(corpus: list[Entry], number: int, seed: int) -> None:
    """The author signs what it changed, so that the checks behind the signature are reached."""
    chance, contents = random.Random(seed), [posting.content for _, posting, _ in corpus]
    boards = [copied(world) for world, _, _ in corpus]
    for _ in range(number):
        place = chance.randrange(len(corpus))
        if not refuses(boards[place], signed_mutation(corpus[place], chance, contents)):
            # Well-formed, as an ε entry with other numbers: go on with a new copy.
            boards[place] = copied(corpus[place][0])


def offer_mutated_blobs(corpus: list[Entry], number: int, seed: int) -> None:
    """Keys, models, sums and shares that storage holders keep as faithfully as good ones."""
    chance = random.Random(seed)
    fields = {"CommitteeKeyVote": "key", "Model": "model", "Aggregate": "groups", "SumShare": "shares"}
    chosen = [entry for entry in corpus if type(entry[1].body).__name__ in fields]
    for _ in range(number):
        board, posting, sign = chance.choice(chosen)
        assert isinstance(board, World)
        world = fork(board)
        name = fields[type(posting.body).__name__]
        blob = _first_blob(getattr(posting.body, name))
        good = world.board.attachments.read(blob.sha256)
        changed = mutate(good, chance, [bytes(len(good))])
        if changed == good:
            continue
        blob = world.board.upload(changed)
        body = replace(posting.body, **{name: _with_blob(getattr(posting.body, name), blob)})
        if name == "key":
            body = replace(body, shares_id=blob.sha256)
        assert isinstance(posting.author, ChainAuthor)
        role = _Signer(posting.author.chain, sign)
        refused = refuses(world, signed(world, role, body).data)  # type: ignore[arg-type]
        assert refused or name in ("model", "groups"), "only numbers in a model or a sum can change unnoticed"


def _first_blob(named: object) -> Blob:
    """The blob of a field: its own, that of the first group, or the first share."""
    first = named[0] if isinstance(named, tuple) else named
    found = first.sum if isinstance(first, GroupSum) else first
    assert isinstance(found, Blob)
    return found


def _with_blob(named: object, blob: Blob) -> object:
    if not isinstance(named, tuple):
        return blob
    return (replace(named[0], sum=blob) if isinstance(named[0], GroupSum) else blob,)


class _Signer:
    def __init__(self, chain: tuple[bytes, ...], sign: Callable[[bytes], bytes]) -> None:
        self.chain, self.sign = chain, sign


def offer_random_bytes(corpus: list[Entry], number: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(number):
        world, _, _ = chance.choice(corpus)
        head = bytes([1, chance.randrange(16)]) if chance.random() < 0.8 else b""
        assert refuses(world, head + chance.randbytes(chance.choice((0, 1, 50, 400, 3000))))


def test_a_short_run(corpus: list[Entry]) -> None:
    offer_random_bytes(corpus, 1500, 1)
    offer_mutations(corpus, 1500, 2)
    offer_mutated_blobs(corpus, 150, 3)
    offer_signed_mutations(corpus, 800, 4)


@pytest.mark.slow
def test_a_long_run(corpus: list[Entry]) -> None:
    offer_random_bytes(corpus, 30_000, 11)
    offer_mutations(corpus, 60_000, 12)
    offer_mutated_blobs(corpus, 3_000, 13)
    offer_signed_mutations(corpus, 20_000, 14)
