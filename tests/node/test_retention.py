"""Which blobs are kept, and for how long: one test per rule of ``retention``."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.board.state import (
    AcceptedSubmission,
    Agreement,
    Bundle,
    GroupTotal,
    Iteration,
    PayloadName,
    Phase,
    Position,
    State,
)
from anofel.messages import (
    Aggregate,
    Blob,
    CommitteeKeyVote,
    CountShare,
    DkgRound,
    EndTask,
    GroupSum,
    Model,
    Submission,
    SubmittedPart,
    SumShare,
)
from anofel.node.embedded import EmbeddedNode
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blobs.retention import KeptBlob, kept_by, kept_by_exclusion, payloads_until
from tests.board.test_blobs import has
from tests.node.support import CLASS, LIMITS, BoardOfTest, make_board

BLOB = Blob(sha256=b"b" * 32, length=3, receipts=())
NO = bytes(32)
FOR_EVER = [
    DkgRound(run_id=NO, round=1, sender=1, run=None, body=BLOB),
    CommitteeKeyVote(run_id=NO, member=1, key_id=NO, shares_id=NO, transcript=NO, key=BLOB),
    Model(task=NO, iteration=1, model=BLOB),
    Aggregate(
        task=NO,
        iteration=1,
        member=1,
        close_hash=NO,
        excluded=(),
        groups=(GroupSum(set_digest=NO, num_posts=1, sum=BLOB),),
    ),
    SumShare(task=NO, iteration=1, member=1, agreed=NO, shares=(BLOB,)),
]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> BoardOfTest:
    return make_board(tmp_path_factory.mktemp("retention") / "node", keys)


@pytest.fixture
def state(board: BoardOfTest) -> State:
    """A bundle of two tasks whose first iteration opened at block 10; two clients submitted."""
    state = State.at_genesis(board.genesis)
    current = Iteration(
        number=1, opened_at=10, close_by=14, epoch=0, num_clients=5, client_root=NO, positions=[]
    )
    current.positions = [Position(b"t" * 32), Position(b"u" * 32)]
    for client in (b"1", b"2"):
        payloads = tuple(PayloadName(b"", client * 16 + place * 16, 3) for place in (b"x", b"y"))
        nullifier = client * 32
        current.submissions[nullifier] = AcceptedSubmission(nullifier, NO, NO, NO, b"", payloads)
    state.bundles[0] = Bundle(
        0,
        (b"t" * 32, b"u" * 32),
        size_class=0,
        early_end=False,
        phase=Phase.OPEN,
        iterations=1,
        current=current,
    )
    return state


def test_payloads_are_kept_until_the_last_deadline_and_grace(state: State) -> None:
    entry = SubmittedPart(envelope=b"", payload=BLOB)
    other = SubmittedPart(envelope=b"", payload=replace(BLOB, sha256=b"c" * 32))
    body = Submission(
        bundle=0,
        iteration=1,
        nullifier=NO,
        tag=NO,
        type_commitment=bytes(64),
        proof=b"",
        ballot=b"",
        contributions=(entry, other),
    )
    last = 14 + CLASS.aggregate + CLASS.count + CLASS.sum
    assert payloads_until(state, 0) == last + LIMITS.grace
    assert kept_by(state, body) == [
        KeptBlob(b"b" * 32, last + LIMITS.grace),
        KeptBlob(b"c" * 32, last + LIMITS.grace),
    ]


@pytest.mark.parametrize("body", FOR_EVER, ids=lambda body: type(body).__name__)
def test_everything_else_is_kept_for_ever(state: State, body: Model) -> None:
    assert kept_by(state, body) == [KeptBlob(b"b" * 32, None)]


def test_postings_without_blobs_keep_none(state: State) -> None:
    assert kept_by(state, EndTask(task=NO)) == []
    assert kept_by(state, CountShare(task=NO, iteration=1, member=1, agreed=NO, shares=(b"",))) == []


def test_excluded_payloads_are_kept_for_ever_once_a_committee_agreed(state: State) -> None:
    assert kept_by_exclusion(state) == []
    current = state.bundles[0].current
    assert current is not None
    current.positions[1].aggregates[1] = Agreement(((b"2" * 32, 1),), (GroupTotal(NO, 1, NO),))
    assert kept_by_exclusion(state) == []  # one member's word is not an agreement
    current.positions[1].agreed = current.positions[1].aggregates[1]
    kept = [KeptBlob(b"2" * 16 + b"y" * 16, None)]
    assert kept_by_exclusion(state) == kept
    state.bundles[0].phase, state.bundles[0].ended_at = Phase.ENDED, state.height
    state.remembered.append(0)
    assert kept_by_exclusion(state) == kept  # the agreement that ended the bundle
    state.height += 1
    assert kept_by_exclusion(state) == kept  # a node that starts again there
    state.height += 1
    assert kept_by_exclusion(state) == []


def test_the_node_prunes_by_height_and_keeps_what_is_pinned(tmp_path: Path, keys: KeyDirectory) -> None:
    node = EmbeddedNode(make_board(tmp_path / "node", keys).directory)
    names = []
    for data, expires in ((b"short", 2), (b"long", 5), (b"pinned", 2)):
        names.append(hashlib.sha256(data).digest())
        with node.blobs.begin(names[-1], len(data), expires=expires) as upload:
            upload.write(data)
            upload.finish()
    node._keep([KeptBlob(names[2], None)])
    present = []
    for _ in range(6):
        present.append([has(node.blobs, name) for name in names])
        node.seal()
    # Row h - 1 is what is there while block h is filled.
    assert present[:2] == [[True] * 3] * 2
    assert present[2:5] == [[False, True, True]] * 3
    assert present[5] == [False, False, True]
    node.close()
