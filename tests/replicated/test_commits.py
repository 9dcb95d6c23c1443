"""What CometBFT hashes and signs, against commits that a real engine made (``vectors/comet.json``)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.board.chain import InvalidBlock, verify_commit, verify_signed
from anofel.board.validators import Eras
from anofel.comet.commits import EngineHeader, data_hash, merkle, validators_hash
from anofel.comet.wire import Fields, MalformedWire, message, number, octets, read_uvarint, uvarint
from anofel.messages import Block, Genesis, Header, Vote
from anofel.node.replicated.engine import _moment, _read_seal
from tests.board.naive_roots import tree_hash

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "comet.json").read_text())
GENESIS = Genesis.from_bytes(bytes.fromhex(VECTORS["genesis"]))
ERAS = Eras.of(GENESIS)
NOW = ERAS.last.validators
COMMITS = VECTORS["commits"]
ZERO = bytes(32)


def block_of(signed: dict) -> Block:  # type: ignore[type-arg]
    """Our block, whose roots no seal covers."""
    time, _ = _moment(signed["header"]["time"])
    roots = dict.fromkeys(
        ("postings", "certifiers", "clients", "nullifiers", "committees", "tasks", "bundles"), ZERO
    )
    header = Header(
        height=int(signed["header"]["height"]),
        time=time,
        previous=bytes.fromhex(signed["header"]["app_hash"]),
        epoch=0,
        rules=1,
        **roots,
    )
    return Block(header=header, commit=(), seal=_read_seal(signed, NOW), postings=())


@pytest.mark.parametrize("signed", COMMITS, ids=lambda signed: signed["header"]["height"])
def test_hashes_and_signatures_are_those_of_the_engine(signed: dict) -> None:  # type: ignore[type-arg]
    block = block_of(signed)
    assert block.seal is not None
    engine = EngineHeader.of(GENESIS, NOW, block.header, block.seal)
    assert engine.hash().hex().upper() == signed["commit"]["block_id"]["hash"]
    assert validators_hash(GENESIS.validators).hex().upper() == signed["header"]["validators_hash"]
    assert data_hash(()).hex().upper() == signed["header"]["data_hash"]
    verify_signed(GENESIS, ERAS, block)
    assert Block.from_bytes(block.to_bytes()) == block


def forgeries(block: Block) -> dict[str, Block]:
    header, seal = block.header, block.seal
    assert seal is not None
    assert seal.last is not None
    first = seal.votes[0]

    def votes(*changed: object) -> Block:
        return replace(block, seal=replace(seal, votes=changed))  # type: ignore[arg-type]

    return {
        "another height": replace(block, header=replace(header, height=header.height + 1)),
        "another time": replace(block, header=replace(header, time=header.time + 1)),
        "another block before": replace(block, header=replace(header, previous=ZERO)),
        "other postings": replace(block, seal=replace(seal, data=ZERO)),
        "another round": replace(block, seal=replace(seal, round=seal.round + 1)),
        "another proposer": replace(block, seal=replace(seal, proposer=(seal.proposer + 1) % 4)),
        "an unknown proposer": replace(block, seal=replace(seal, proposer=9)),
        "another engine's block before": replace(
            block, seal=replace(seal, last=replace(seal.last, parts=seal.last.parts + 1))
        ),
        "no block before": replace(block, seal=replace(seal, last=None)),
        "a signature of another": votes(replace(first, validator=3), *seal.votes[1:3]),
        "another time of a vote": votes(replace(first, nanos=first.nanos ^ 1), *seal.votes[1:]),
        "a vote counted twice": votes(first, first, seal.votes[1]),
        "an unknown validator": votes(replace(first, validator=7), *seal.votes[1:]),
        "two of four votes": votes(*seal.votes[:2]),
        "no votes": votes(),
        "no seal": replace(block, seal=None),
        "votes of another engine": replace(block, commit=(Vote(validator=0, signature=bytes(64)),)),
    }


FORGERIES = forgeries(block_of(COMMITS[1]))


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_seal_is_refused(what: str) -> None:
    with pytest.raises(InvalidBlock):
        verify_commit(GENESIS, ERAS, FORGERIES[what])


def test_three_of_four_votes_are_enough() -> None:
    block = block_of(COMMITS[1])
    assert block.seal is not None
    verify_commit(GENESIS, ERAS, replace(block, seal=replace(block.seal, votes=block.seal.votes[:3])))


def test_postings_that_were_not_signed_are_refused() -> None:
    block = replace(block_of(COMMITS[1]), postings=(b"another",))
    verify_commit(GENESIS, ERAS, block)  # the header alone is right
    with pytest.raises(InvalidBlock, match="signed other postings"):
        verify_signed(GENESIS, ERAS, block)


@given(st.lists(st.binary(max_size=40), max_size=40))
def test_the_tree_is_that_of_rfc_6962(leaves: list[bytes]) -> None:
    assert merkle(leaves) == tree_hash(leaves)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_the_wire_format_reads_what_it_writes(value: int, data: bytes) -> None:
    assert read_uvarint(uvarint(value), 0) == (value, len(uvarint(value)))
    found = Fields(number(1, value) + octets(2, data) + message(3, data) + message(3, b""))
    assert (found.number(1), found.octets(2), found.every(3)) == (value, data, [data, b""])


@pytest.mark.parametrize("data", ["0a", "0a05aa", "80", "0d0000", "ffffffffffffffffffffff01", "0b"])
def test_what_is_no_message_is_refused(data: str) -> None:
    with pytest.raises(MalformedWire):
        Fields(bytes.fromhex(data))
