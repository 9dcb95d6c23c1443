"""What a change of validators does to blocks, to those who follow them, and to those who would cheat."""

from dataclasses import replace

import pytest

from anofel.board import snapshot
from anofel.board.chain import InvalidBlock
from anofel.board.genesis import InvalidGenesis, check_genesis
from anofel.board.validators import LEAVING_BLOCKS
from anofel.messages import Block
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard, Institution
from tests.board.prepared import refused


@pytest.fixture
def board(keys: KeyDirectory) -> CommitteeBoard:
    return CommitteeBoard(keys)


def rotated(board: CommitteeBoard, place: int = 3, since: int = 5) -> Institution:
    """Let everybody decide that a place gets another key; return whose key it was."""
    old = board.seats[place]
    board.seats[place] = old.with_new_key()
    board.everybody_else += (old,)
    change = board.change(place, board.seats[place].entry(board.genesis.nonce), since=since)
    board.decide(change, *[other for other in board.seats if other != place])
    return old


def test_whoever_knows_genesis_follows_every_change(board: CommitteeBoard) -> None:
    come = Institution.new(board.authority, "New")
    rotated(board)
    board.until(6)
    board.decide(board.change(4, come.entry(board.genesis.nonce), since=9), 0, 1, 2)
    board.everybody_else += (come,)
    board.until(9)
    board.seats[4] = come
    board.decide(board.change(0, None, since=12), 1, 2, 3, 4)
    board.until(14)
    chain = board.follower()
    for block in board.blocks:
        chain.follow(block)
    assert chain.state.tip == board.blocks[-1].header.hash(board.genesis.hash)
    assert sorted(chain.state.validators.eras.at(14).validators) == [1, 2, 3, 4]
    assert [era.since for era in chain.state.validators.eras] == [0, 5, 9, 12]
    restored = snapshot.decode(snapshot.encode(chain.state), board.genesis, board.blocks[-1].header)
    assert restored.validators == chain.state.validators


def test_a_change_needs_more_than_two_thirds(board: CommitteeBoard) -> None:
    change = board.change(3, board.seats[3].with_new_key().entry(board.genesis.nonce))
    board.post(board.proposal(0, change))
    board.post(board.signature(1, change))
    assert len(board.state.validators.eras.eras) == 1
    board.post(board.signature(2, change))
    assert board.state.validators.eras.last.since == 5
    assert board.state.validators.open == {}


def test_a_change_that_too_few_sign_lapses_and_blocks_nobody(board: CommitteeBoard) -> None:
    change = board.change(3, board.seats[3].with_new_key().entry(board.genesis.nonce), since=5)
    other = board.change(2, board.seats[2].with_new_key().entry(board.genesis.nonce), since=50)
    board.post(board.proposal(0, change))
    board.post(board.proposal(1, other))
    board.post(board.signature(1, change))
    board.until(3)
    assert len(board.state.validators.open) == 2
    board.until(4)  # the engine had to hear of it with block 3
    assert list(board.state.validators.open) == [other.change_id(board.genesis.hash)]
    with refused(board, "change-unknown"):  # type: ignore[arg-type]
        board.post(board.signature(2, change))
    board.until(8)
    assert len(board.state.validators.eras.eras) == 1
    for author in (0, 2):
        board.post(board.signature(author, other))
    assert board.state.validators.eras.last.since == 50


def test_a_proposer_takes_back_by_proposing_again_and_a_decision_ends_all_others(
    board: CommitteeBoard,
) -> None:
    entries = [board.seats[3].with_new_key().entry(board.genesis.nonce) for _ in range(3)]
    first, second, third = (board.change(3, entry, since=9) for entry in entries)
    board.post(board.proposal(0, first))
    board.post(board.proposal(0, second))
    board.post(board.proposal(1, third))
    assert set(board.state.validators.open) == {c.change_id(board.genesis.hash) for c in (second, third)}
    for author in (0, 2):
        board.post(board.signature(author, third))
    assert board.state.validators.open == {}
    with refused(board, "change-unknown"):  # type: ignore[arg-type]
        board.post(board.signature(2, second))


def test_the_engine_hears_of_a_change_two_blocks_before_it_begins(board: CommitteeBoard) -> None:
    old = rotated(board, since=6)
    heard = {}
    while board.state.height < 7:
        announced = board.state.validators.announced(board.state.height)
        if announced is not None:
            heard[board.state.height] = announced
        board.block()
    (before, after) = heard.pop(4)
    assert not heard
    assert before[3].key == old.secret.public_key().to_bytes()
    assert after[3].key == board.seats[3].secret.public_key().to_bytes()


# The adversary


def last_of(board: CommitteeBoard) -> Block:
    return replace(board.blocks[-1], seal=None)


def test_an_old_key_vouches_for_nothing_after_the_change(board: CommitteeBoard) -> None:
    old = rotated(board, since=5)
    board.until(6)  # block 5 is the first of the new validators
    chain = board.follower()
    for block in board.blocks[:-1]:
        chain.follow(block)
    good = board.blocks[-1]
    secrets = {place: board.secret_at(place, 5) for place in (0, 1)} | {3: old.secret}
    stolen = board.sealed(last_of(board), secrets)
    with pytest.raises(InvalidBlock, match="signature of validator 3"):
        chain.follow(stolen)
    before = board.state.validators.eras.at(4).validators
    as_before = board.sealed(last_of(board), {**secrets, 2: board.seats[2].secret}, before)
    with pytest.raises(InvalidBlock, match="signature of validator"):
        chain.follow(as_before)
    chain.follow(good)


def test_a_new_key_vouches_for_nothing_before_the_change(board: CommitteeBoard) -> None:
    rotated(board, since=6)
    board.until(5)
    chain = board.follower()
    for block in board.blocks[:-1]:
        chain.follow(block)
    secrets = {place: board.seats[place].secret for place in (0, 1, 3)}
    with pytest.raises(InvalidBlock, match="signature of validator 3"):
        chain.follow(board.sealed(last_of(board), secrets))
    chain.follow(board.blocks[-1])


def test_who_left_vouches_for_nothing(keys: KeyDirectory) -> None:
    board = CommitteeBoard(keys, 5)
    board.decide(board.change(4, None, since=3), 0, 1, 2, 3)
    board.until(4)
    chain = board.follower()
    for block in board.blocks[:-1]:
        chain.follow(block)
    seal = board.blocks[-1].seal
    assert seal is not None
    secrets = {place: board.seats[place].secret for place in (0, 1, 4)}
    with pytest.raises(InvalidBlock, match="unknown or repeated vote of validator 4"):
        chain.follow(board.sealed(last_of(board), secrets))
    with pytest.raises(InvalidBlock, match="proposer|not on the board"):
        chain.follow(replace(board.blocks[-1], seal=replace(seal, proposer=4)))
    chain.follow(board.blocks[-1])


def test_signers_cannot_name_other_validators_for_the_next_block(board: CommitteeBoard) -> None:
    """Else a light reader of headers would be led to keys that the board never admitted."""
    board.until(2)
    chain, seal = board.follower(), board.blocks[0].seal
    assert seal is not None
    with pytest.raises(InvalidBlock, match="other validators for the next block"):
        chain.follow(replace(board.blocks[0], seal=replace(seal, next_validators=bytes(32))))
    chain.follow(board.blocks[0])


def test_a_change_of_one_board_is_none_of_another(keys: KeyDirectory) -> None:
    """Signed postings name their board, and what binds a key names it by the nonce of genesis."""
    one = CommitteeBoard(keys)
    other = CommitteeBoard(keys, like=one, interval_ms=2000)
    assert other.base == one.base, "the boards have the same validators"
    change = one.change(3, one.seats[3].with_new_key().entry(one.genesis.nonce))
    one.post(one.proposal(0, change))
    with refused(other, "bad-signature"):  # type: ignore[arg-type]
        other.post(one.proposal(0, change))
    other.post(other.proposal(0, change))
    with refused(other, "bad-signature"):  # type: ignore[arg-type]
        other.post(one.signature(1, change))
    with pytest.raises(InvalidGenesis, match="validator 0 is not"):
        check_genesis(replace(one.genesis, nonce=bytes(32)))


def test_each_validator_has_its_storage_role_in_its_place(board: CommitteeBoard) -> None:
    for holders in (board.genesis.holders[:3], (*board.genesis.holders, board.genesis.holders[0])):
        with pytest.raises(InvalidGenesis, match="one storage holder"):
            check_genesis(replace(board.genesis, holders=holders))


def test_receipts_of_who_left_count_for_a_while_and_then_no_more(keys: KeyDirectory) -> None:
    board = CommitteeBoard(keys, 5)
    board.decide(board.change(4, None, since=3), 0, 1, 2, 3)
    board.until(3)
    known = board.state.validators
    assert [bool(known.holders_at(h, 4)) for h in (3, 2 + LEAVING_BLOCKS, 3 + LEAVING_BLOCKS)] == [
        True,
        True,
        False,
    ]
    assert known.quorum_at(2) == 4
    assert known.quorum_at(3) == known.quorum_at(3 + LEAVING_BLOCKS) == 3
