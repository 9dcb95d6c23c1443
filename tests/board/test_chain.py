"""What a chain refuses to start with, and what it forgets."""

import traceback
from dataclasses import replace

import pytest

from anofel.board import verification
from anofel.board.cache import BoundedCache
from anofel.board.chain import Chain
from anofel.board.genesis import InvalidGenesis, check_genesis
from anofel.board.rule import RULES, Rejected
from anofel.board.state import State
from anofel.errors import InvalidInput
from anofel.messages import Genesis
from anofel.pki.certificates import Purpose
from tests.board.oracle import OracleBoard, OracleVerifier
from tests.board.prepared import Stages, a_submission, fork
from tests.board.world import Authority


@pytest.fixture(scope="module")
def board() -> OracleBoard:
    return OracleBoard.make()


def changed(genesis: Genesis, name: str, value: object) -> Genesis:
    """Genesis with one field, field of a limit or field of the class changed."""
    if hasattr(genesis, name):
        return replace(genesis, **{name: value})
    if hasattr(genesis.limits, name):
        return replace(genesis, limits=replace(genesis.limits, **{name: value}))
    return replace(genesis, classes=(replace(genesis.classes[0], **{name: value}),))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("version", 2, "version is 2"),
        ("roots", (), "no certificate roots"),
        ("roots", (b"garbage",), "root"),
        ("quorum", 0, "quorum"),
        ("quorum", 2, "quorum"),
        ("bundle_size", 0, "a bundle has"),
        ("bundle_size", 17, "a bundle has"),
        ("bundle_wait", 0, "leftovers wait"),
        ("validators", (), "needs validators"),
        ("classes", (), "size class"),
        ("root_window", 0, "no room"),
        ("max_postings", 0, "no room"),
        ("max_postings", 65_536, "at most 65535 postings"),
        ("max_block_bytes", 0, "no room"),
        ("max_length", 0, "parameters"),
        ("max_posts", 1, "posts"),
        ("max_posts", (1 << 14) + 1, "posts"),
        ("train", 0, "at least one block"),
        ("aggregate", 0, "at least one block"),
        ("count", 0, "at least one block"),
        ("sum", 0, "at least one block"),
        ("model", 0, "at least one block"),
        ("post_from", 3, "posting begins before"),
    ],
)
def test_a_genesis_that_cannot_work_is_refused(
    board: OracleBoard, name: str, value: object, match: str
) -> None:
    with pytest.raises(InvalidGenesis, match=match):
        check_genesis(changed(board.genesis, name, value))


def test_validators_differ_and_storage_holders_are_certified(board: OracleBoard) -> None:
    genesis = board.genesis
    with pytest.raises(InvalidGenesis, match="a validator stands in it twice"):
        check_genesis(replace(genesis, validators=genesis.validators * 2))
    stranger = Authority().issue(Purpose.STORAGE, "Stranger")
    with pytest.raises(InvalidGenesis, match="a storage holder is not"):
        check_genesis(replace(genesis, holders=(stranger.chain,)))


def test_rules_of_another_version_are_not_followed(board: OracleBoard) -> None:
    genesis = replace(board.genesis, rules=2)
    with pytest.raises(InvalidInput, match="follows rules 2"):
        Chain(State.at_genesis(genesis), OracleVerifier(genesis.hash, set()))


def test_a_refusal_collects_no_frames(board: OracleBoard) -> None:
    """A client that sends the same bad posting again and again takes no memory."""
    posting = board.registration(1, proof=0)
    lengths = []
    for _ in range(5):
        with pytest.raises(Rejected) as caught:
            board.chain.offer(posting.data)
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(set(lengths)) == 1


def test_a_forgotten_verdict_is_made_again(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts that are pushed out while a batch is verified are not missed."""
    world = stages("open")
    postings = [a_submission(world, client, None) for client in range(3)]
    fork(world).board.post(postings[0])
    verifier = world.board.chain.verifier
    small: BoundedCache[bytes, Rejected | None] = BoundedCache(1)
    monkeypatch.setattr(verifier, "_verdicts", small)
    fork(world).board.post(postings[0])
    results = world.board.chain.offer_many([posting.data for posting in postings])
    assert [result.id for result in results] == [posting.id for posting in postings]


def test_a_cache_forgets_the_oldest_by_weight() -> None:
    cache: BoundedCache[int, bytes] = BoundedCache(10, len)
    for key, length in ((1, 4), (2, 4), (3, 4), (2, 6)):
        cache[key] = bytes(length)
    assert [key in cache for key in (1, 2, 3)] == [False, True, True]
    cache[4] = bytes(11)  # heavier than all that may be kept: it stays alone, for the one who just made it
    assert len(cache) == 1
    assert cache[4] == bytes(11)


def test_kept_certificates_are_bounded_in_bytes(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role-holder with a long name posts at many block times; memory does not follow."""
    monkeypatch.setattr(verification, "MAX_CHAIN_BYTES", 40_000)
    world = stages("fresh")
    role = world.authority.issue(Purpose.CERTIFIER, "x" * 60)
    verifier = OracleVerifier(world.genesis.hash, set())
    verifier._chains = BoundedCache(verification.MAX_CHAIN_BYTES, verification._identity_bytes)
    state = world.board.state
    for _ in range(50):
        state.time += 1
        verifier._identity(state, role.chain, (Purpose.CERTIFIER,))
    assert 2 <= len(verifier._chains) <= 40_000 // verification._KEY_BYTES


def test_proofs_are_verified_once(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    world = stages("open")
    posting = a_submission(world, 0, None)
    calls: list[int] = []
    original = verification.submission_item
    monkeypatch.setattr(verification, "submission_item", lambda claim: (calls.append(1), original(claim))[1])
    for _ in range(3):
        fork(world).board.post(posting)
    assert len(calls) == 1


def test_a_refusal_names_its_rule() -> None:
    rule = RULES["block-full"]
    rejected = Rejected(rule, "Details.", "Somebody")
    again = rejected.again()
    assert (again.code, again.rule, again.detail, again.culprit) == (
        "block-full",
        rule,
        "Details.",
        "Somebody",
    )
    assert str(again) == f"Refused by rule {rule.number}: {rule.sentence} Details."
