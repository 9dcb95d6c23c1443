"""One changed bit anywhere in a history is found, and the right place is named."""

import random
from dataclasses import fields, replace
from pathlib import Path

import pytest

from anofel._core import messages as core
from anofel.board.chain import InvalidBlock
from anofel.messages import Block, Header, Posting, Vote
from anofel.proofs.keys import KeyDirectory
from tests.audit.replay import Replay, fields_of, flip
from tests.board.committee import CommitteeBoard

CHANGES = ("ChangeValidators", "SignChange")
"""What one node alone cannot have in its history."""
KINDS = [name for _, name, _ in core.kinds() if name not in CHANGES]
FLIPS = 600


@pytest.fixture(scope="module")
def replay(history: Path) -> Replay:
    return Replay.of(history)


def refusal(replay: Replay, block: Block, height: int) -> InvalidBlock:
    chain = replay.chain_before(height)
    with pytest.raises(InvalidBlock) as caught:
        chain.follow(block)
    return caught.value


def with_posting(block: Block, place: int, data: bytes) -> Block:
    postings = list(block.postings)
    postings[place] = data
    return replace(block, postings=tuple(postings))


@pytest.mark.parametrize("kind", KINDS)
def test_a_flip_in_any_field_of_a_posting_names_the_posting(replay: Replay, kind: str) -> None:
    height, place = replay.first(kind)
    block = replay.blocks[height - 1]
    posting = Posting.from_bytes(block.postings[place])
    for field, span in fields_of(posting).items():
        changed = flip(posting.data, span[len(span) // 2])
        error = refusal(replay, with_posting(block, place, changed), height)
        assert (error.height, error.posting) == (height, place), field
        assert error.rejected is not None


@pytest.mark.parametrize("kind", CHANGES)
def test_a_flip_in_a_change_of_validators_is_found_whoever_signs_the_block(
    keys: KeyDirectory, kind: str
) -> None:
    board = CommitteeBoard(keys)
    board.decide(board.change(1, board.seats[1].with_new_key().entry(board.genesis.nonce)), 0, 2, 3)
    board.until(3)
    replay = Replay.following(board.follower(), board.blocks)
    height, place = replay.first(kind)
    block, secrets = replay.blocks[height - 1], {n: board.secret_at(n, height) for n in board.seats}
    posting = Posting.from_bytes(block.postings[place])
    for field, span in fields_of(posting).items():
        changed = with_posting(block, place, flip(posting.data, span[len(span) // 2]))
        assert refusal(replay, changed, height).height == height, field  # the seal covers the postings
        error = refusal(replay, board.sealed(changed, secrets), height)
        assert (error.height, error.posting) == (height, place), field
        assert error.rejected is not None


@pytest.mark.parametrize("field", [field.name for field in fields(Header)])
def test_a_flip_in_any_field_of_a_header_names_the_block(replay: Replay, field: str) -> None:
    block = replay.blocks[3]
    value = getattr(block.header, field)
    changed = flip(value, 7) if isinstance(value, bytes) else value ^ 1
    error = refusal(replay, replace(block, header=replace(block.header, **{field: changed})), 4)
    assert (error.height, error.posting) == (4, None)


def test_a_flip_in_a_vote_names_the_block(replay: Replay) -> None:
    block = replay.blocks[3]
    (vote,) = block.commit
    changed = Vote(validator=0, signature=flip(vote.signature, 40))
    assert refusal(replay, replace(block, commit=(changed,)), 4).height == 4
    assert refusal(replay, replace(block, commit=()), 4).height == 4
    assert refusal(replay, replace(block, commit=(vote, vote)), 4).height == 4


def test_a_posting_left_out_or_moved_names_the_block(replay: Replay) -> None:
    height, _ = replay.first("Registration")
    block = replay.blocks[height - 1]
    assert refusal(replay, replace(block, postings=block.postings[:-1]), height).height == height
    moved = (*block.postings[-2:], *block.postings[:-2])
    assert refusal(replay, replace(block, postings=moved), height).height == height


@pytest.mark.slow
def test_hundreds_of_flips_anywhere_are_found(replay: Replay) -> None:
    generator = random.Random(20_261_116)  # the same flips in every run
    places = [
        (block.header.height, place)
        for block in replay.blocks
        for place in range(-2, len(block.postings))  # -2 is the header, -1 the votes
    ]
    for _ in range(FLIPS):
        height, place = generator.choice(places)
        block = replay.blocks[height - 1]
        encoded = {-2: block.header.to_bytes(), -1: block.commit[0].to_bytes()}.get(place)
        data = encoded or block.postings[place]
        changed = flip(data, generator.randrange(len(data)), generator.randrange(8))
        if place == -2:
            error = refusal(replay, replace(block, header=Header.from_bytes(changed)), height)
        elif place == -1:
            error = refusal(replay, replace(block, commit=(Vote.from_bytes(changed),)), height)
        else:
            error = refusal(replay, with_posting(block, place, changed), height)
            assert error.posting == place
        assert error.height == height
