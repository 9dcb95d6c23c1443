"""A validator's state machine without its engine, asked as the engine asks, does what the chain does."""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.comet.commits import chain_id
from anofel.errors import InvalidInput
from anofel.messages import Posting
from anofel.node.replicated.abci import InitChain, Proposal
from anofel.node.replicated.node import REFUSED, BoardBroken, ReplicatedNode
from anofel.phase1_setup.step1a_certifier_key import revoke_key
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from tests.replicated.support import Offer, Validators, make_validators

MAX = 1 << 20


@pytest.fixture(scope="module")
def validators(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> Validators:
    return make_validators(tmp_path_factory.mktemp("board"), keys, number=4)


@pytest.fixture
def node(validators: Validators, tmp_path: Path) -> Iterator[ReplicatedNode]:
    node = ReplicatedNode(validators.copy(0, tmp_path / "node"))
    yield node
    node.abandon()


def plain_chain(node: ReplicatedNode) -> Chain:
    """The same board as one node fills it."""
    keys = node.files.keys
    return Chain(
        State.at_genesis(node.genesis),
        Verifier(
            node.genesis.hash,
            RegistrationVerifier.from_bytes(keys["registration"]),
            SubmissionVerifier.from_bytes(keys["submission"]),
            DirectoryAttachments(node.blobs.directory),
        ),
    )


def proposal(node: ReplicatedNode, postings: list[bytes], later: int = 1) -> Proposal:
    return Proposal(tuple(postings), node.state.height + 1, node.state.time + later, max_bytes=MAX)


def decide(node: ReplicatedNode, proposed: Proposal) -> bytes:
    decided = node.finalize(proposed)
    assert node.commit() == 0
    return decided.tip


def test_the_first_block_follows_genesis(node: ReplicatedNode) -> None:
    validators = tuple((validator.key, validator.power) for validator in node.genesis.validators)
    begun = InitChain(chain_id(node.genesis), b"", validators)
    assert node.info() == (0, b"")
    assert node.init_chain(begun) == node.genesis.hash
    with pytest.raises(InvalidInput):
        node.init_chain(InitChain("another", b"", validators))
    with pytest.raises(InvalidInput):
        node.init_chain(InitChain(chain_id(node.genesis), b"", validators[:3]))


def test_an_invalid_posting_dies_when_it_is_checked(node: ReplicatedNode, validators: Validators) -> None:
    good, bad = validators.offer(), validators.offer()
    broken = bad.posting.data[:-1] + bytes([bad.posting.data[-1] ^ 1])
    answers = node.check([(good.posting.data, False), (broken, False), (b"nonsense", False)])
    assert [answer.code for answer in answers] == [0, REFUSED, REFUSED]
    assert json.loads(answers[1].data)["code"] == "bad-signature"
    second = validators.signed(good.role, validators.offer_of(good.role).posting.body)
    (again,) = node.check([(second.data, False)])
    assert json.loads(again.data)["code"] == "certifier-has-key"


def test_an_engine_that_was_started_again_is_offered_what_it_forgot(
    node: ReplicatedNode, validators: Validators
) -> None:
    """What waits is no refusal of itself: its author would believe that it was refused."""
    good = validators.offer().posting.data
    assert [node.check([(good, False)])[0].code for _ in range(3)] == [0, 0, 0]
    assert node.may_wait(good)
    assert node.prepare(proposal(node, [good, good])) == [good]
    decide(node, proposal(node, [good]))
    assert node.check([(good, True)])[0].code == REFUSED, "a block has it"
    assert not node.may_wait(good)


def test_a_proposal_with_an_invalid_posting_is_refused_whole(
    node: ReplicatedNode, validators: Validators
) -> None:
    good = validators.offer().posting.data
    broken = good[:-1] + bytes([good[-1] ^ 1])
    before = node.state.tip
    assert not node.process(proposal(node, [good, broken]))
    assert not node.process(proposal(node, [good, good]))
    assert node.process(proposal(node, [good]))
    assert node.state.tip == before
    with pytest.raises(BoardBroken):
        node.finalize(proposal(node, [broken]))


def test_a_proposer_proposes_what_is_valid_and_fits(node: ReplicatedNode, validators: Validators) -> None:
    good = [validators.offer().posting.data for _ in range(3)]
    broken = good[0][:-1] + bytes([good[0][-1] ^ 1])
    asked = proposal(node, [good[0], broken, good[0], good[1], good[2]])
    assert node.prepare(asked) == good
    assert node.prepare(Proposal(tuple(good), 1, asked.time, max_bytes=len(good[0]) + 4)) == good[:1]
    assert node.process(Proposal(tuple(good), 1, asked.time))


def test_proposals_that_come_to_nothing_leave_no_trace(node: ReplicatedNode, validators: Validators) -> None:
    offers = [validators.offer().posting.data for _ in range(3)]
    for posting in offers:
        node.prepare(proposal(node, [posting], later=3))
        node.process(proposal(node, [posting, offers[0]], later=2))
    expected = plain_chain(node)
    expected.begin(node.state.time + 1)
    expected.offer(offers[2])
    assert decide(node, proposal(node, [offers[2]])) == expected.seal().hash(node.genesis.hash)


def test_a_validator_goes_on_where_it_stopped(validators: Validators, tmp_path: Path) -> None:
    directory = validators.copy(1, tmp_path / "node")
    node = ReplicatedNode(directory)
    tips = [decide(node, proposal(node, [validators.offer().posting.data])) for _ in range(3)]
    node.finalize(proposal(node, []))  # decided, not committed
    node.abandon()
    node = ReplicatedNode(directory)
    assert node.info() == (3, tips[-1])
    fourth = decide(node, proposal(node, []))
    node.close()
    node = ReplicatedNode(directory)
    assert node.info() == (4, fourth)
    assert (node.height, node.store.filled) == (0, 4), "no block is shown before it has a seal"
    node.abandon()


def test_the_engine_keeps_all_blocks_or_those_without_a_seal(
    node: ReplicatedNode, validators: Validators
) -> None:
    for _ in range(3):
        decide(node, proposal(node, []))  # it asserts that 0 is answered, all blocks
    node.config = replace(node.config, engine_blocks=1)
    node.finalize(proposal(node, []))
    assert node.commit() == 1, "no block has a seal here"


HISTORIES = st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=6)
"""Random valid histories of certifiers: keys that come and go, in blocks of any size."""


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(blocks=HISTORIES)
def test_the_same_postings_give_the_same_headers(
    validators: Validators, tmp_path_factory: pytest.TempPathFactory, blocks: list[list[int]]
) -> None:
    node = ReplicatedNode(validators.copy(2, tmp_path_factory.mktemp("history") / "node"))
    embedded = plain_chain(node)
    offers: list[Offer] = []
    try:
        for kinds in blocks:
            postings: list[Posting] = []
            for kind in kinds:
                if kind == 0 and offers:
                    offer = offers.pop()
                    postings.append(validators.signed(offer.role, revoke_key(offer.secret.public_key())))
                else:
                    offers.append(validators.offer())
                    postings.append(offers[-1].posting)
            data = [posting.data for posting in postings]
            asked = proposal(node, data, later=len(kinds))
            embedded.begin(asked.time)
            assert [
                result.data for result in embedded.offer_many(data) if isinstance(result, Posting)
            ] == data
            assert [answer.code for answer in node.check([(one, False) for one in data])] == [0] * len(data)
            assert node.prepare(asked) == data
            assert node.process(asked)
            assert decide(node, asked) == embedded.seal().hash(node.genesis.hash)
    finally:
        node.abandon()


def test_a_blob_that_nobody_has_is_waited_for_and_ends_nothing(
    node: ReplicatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anofel.board.attachments import AttachmentMissing
    from anofel.ids import BlobHash

    name, calls = BlobHash(hashlib.sha256(b"late").digest()), []

    def seal() -> str:
        calls.append(time.monotonic())
        if len(calls) < 3:
            raise AttachmentMissing(name)
        return "sealed"

    def nobody(_number: int, sha256: BlobHash, _expires: int) -> None:
        raise AttachmentMissing(sha256)

    monkeypatch.setattr("anofel.node.replicated.node.WAIT_SECONDS", 0.01)
    monkeypatch.setattr(node.holders, "_get", nobody)
    assert node._with_blobs(node.state, seal) == "sealed"
