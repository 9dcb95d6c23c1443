"""The same postings in the same order give the same headers, whoever makes the blocks: every kind of posting.

A history is played by the chain of an embedded node. A validator's state machine is then asked for each of
its blocks as the engine asks, with proposals that come to nothing in between.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from anofel.board import snapshot
from anofel.board.claims import RegistrationClaim, SubmissionClaim
from anofel.board.engines import Engine
from anofel.board.roots import era_digest
from anofel.board.state import State
from anofel.board.verification import Candidate, Verifier
from anofel.messages import Block, ChangeValidators, Genesis, Posting, SignChange, receipt_bytes
from anofel.messages.postings import Body
from anofel.node.files import NodeConfig
from anofel.node.replicated import node as node_module
from anofel.node.replicated.abci import Proposal
from anofel.node.replicated.engine import EngineKeys
from anofel.node.replicated.files import write_validator
from anofel.node.replicated.network import Neighbour, Network, node_id
from anofel.node.replicated.node import LATER, ReplicatedNode
from anofel.phase1_setup.step1a_certifier_key import revoke_key
from anofel.pki.certificates import Identity, Purpose
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blobs import retention
from anofel.storage.blocks import BlockStore
from tests.board import recorded
from tests.board.committee import Institution
from tests.board.histories import play_history
from tests.board.oracle import OracleBoard, OracleVerifier
from tests.board.prepared import run_handover
from tests.board.world import Authority, World
from tests.node.support import SECONDS, wait_until

NONCE = bytes(range(32))
FOR_EVER = 1 << 40
MAX = 1 << 24


def changes(seat: Institution) -> dict[str, object]:
    """What makes a genesis one of a board under CometBFT; one validator, so one holder signs receipts."""
    return {
        "engine": int(Engine.COMETBFT),
        "nonce": NONCE,
        "validators": (seat.validator(NONCE),),
        "holders": (seat.storage.chain,),
    }


def directory_of(directory: Path, seat: Institution, genesis: Genesis, keys: KeyDirectory) -> Path:
    transport = MessageSecret.generate()
    peer = f"{node_id(transport.public_key().to_bytes())}@127.0.0.1:26656"
    network = Network(
        listen="127.0.0.1:26656",
        validator=[Neighbour(name="Clinic", peer=peer, url="http://127.0.0.1:8471")],
    )
    write_validator(
        directory,
        genesis,
        network,
        engine=EngineKeys(seat.secret, transport),
        validator=seat.role,
        storage=seat.storage,
        keys=keys,
        config=NodeConfig(),
    )
    return directory


def settled(node: ReplicatedNode, data: bytes) -> int:
    """Offer a posting until its verification is over; return the answer's code."""
    code = LATER
    end = time.monotonic() + SECONDS
    while code == LATER and time.monotonic() < end:
        code = node.check([(data, False)])[0].code
        running = node.verification_of(data)
        if running is not None:
            running.result(SECONDS)
    return code


def decide_as_the_engine(node: ReplicatedNode, block: Block) -> None:
    """One height: checks, a proposal of another moment that comes to nothing, the one that is decided."""
    data = list(block.postings)
    assert [settled(node, one) for one in data] == [0] * len(data)
    header = block.header
    asked = Proposal(block.postings, header.height, header.time, max_bytes=MAX)
    wait_until(lambda: node.prepare(asked) == data)  # what took long to verify is held back as long again
    assert node.process(Proposal(block.postings[: len(data) // 2], header.height, header.time + 1))
    node.process(Proposal(block.postings[::-1], header.height, header.time))
    assert node.process(asked)
    decided = node.finalize(asked)
    assert decided.tip == header.hash(node.genesis.hash)
    node.commit()


class Counted:
    """How often each proof and each receipt was verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proofs, self.signatures = Counter[bytes](), Counter[bytes]()
        self._count(monkeypatch, "_confirm_registrations", RegistrationClaim)
        self._count(monkeypatch, "_confirm_submissions", SubmissionClaim)
        single, verify = Verifier._check_single, Identity.verify

        def check_single(verifier: Verifier, candidate: Candidate) -> None:
            self._note([candidate])
            single(verifier, candidate)

        def check_signature(identity: Identity, message: bytes, signature: bytes) -> None:
            self.signatures[message] += 1
            verify(identity, message, signature)

        monkeypatch.setattr(Verifier, "_check_single", check_single)
        monkeypatch.setattr(Identity, "verify", check_signature)

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str, kind: type) -> None:
        method: Callable[..., None] = getattr(Verifier, name)

        def confirm(verifier: Verifier, candidates: list[Candidate], verdicts: dict[bytes, object]) -> None:
            self._note([one for one in candidates if type(one.claim.proof) is kind], batched=True)
            method(verifier, candidates, verdicts)

        monkeypatch.setattr(Verifier, name, confirm)

    def _note(self, candidates: list[Candidate], *, batched: bool = False) -> None:
        for one in candidates:
            is_batched = isinstance(one.claim.proof, RegistrationClaim | SubmissionClaim)
            if one.claim.proof is not None and is_batched == batched:
                self.proofs[one.posting.id] += 1


def play(keys: KeyDirectory) -> tuple[Institution, World]:
    """A history with every kind of posting: what one node's recording has, a handover, a second validator."""
    authority = Authority()
    seat, other = Institution.new(authority, "Clinic"), Institution.new(authority, "Registry")
    world = World(keys, authority, **changes(seat))
    world.storage = world.board._storage = seat.storage
    return seat, go_on(recorded.play(keys, world), seat, other)


def go_on(world: World, seat: Institution, other: Institution) -> World:
    """What one node's recording lacks: a handover, changes of validators, an epoch."""
    finished = run_handover(world, 0, world.committees[0].members)
    for member in finished.members:
        world.board.post(world.key_posting(finished, member))
    world.board.next_block()
    state = world.board.state
    change = ChangeValidators(
        base=era_digest(state.validators.eras.last),
        place=1,
        entry=other.entry(NONCE),
        since=state.height + 3,
    )
    world.board.post_as(seat.role, change)
    for _ in range(4):
        world.board.next_block()
    assert len(world.board.state.validators.eras.at(world.board.state.height).validators) == 2
    leave = ChangeValidators(
        base=era_digest(world.board.state.validators.eras.last),
        place=1,
        entry=None,
        since=world.board.state.height + 4,
    )
    world.board.post_as(seat.role, leave)
    world.board.next_block()
    sign = SignChange(change=leave.change_id(world.board.genesis_hash))
    world.board.post_as(other.role, sign)
    world.board.next_block()
    operator = world.authority.issue(Purpose.OPERATOR, "Operator")
    key = world.certifier_secret.public_key()
    world.board.post_as(operator, revoke_key(key, new_epoch=True))
    world.board.next_block()
    return world


@pytest.fixture(scope="module")
def whole(keys: KeyDirectory) -> tuple[Institution, World]:
    return play(keys)


def with_blobs(node: ReplicatedNode, blobs: Mapping[bytes, bytes]) -> None:
    for name, data in blobs.items():
        upload = node.blobs.begin(name, len(data), expires=FOR_EVER)  # type: ignore[arg-type]
        upload.write(data)
        upload.finish()


def test_every_kind_of_posting_gives_the_headers_of_one_node_and_is_verified_once(
    whole: tuple[Institution, World], keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat, world = whole
    blocks = world.board.blocks
    postings = [Posting.from_bytes(data) for block in blocks for data in block.postings]
    assert {type(posting.body) for posting in postings} == set(get_args(Body)), "every kind is tried"
    counted = Counted(monkeypatch)
    node = ReplicatedNode(directory_of(tmp_path / "node", seat, world.genesis, keys))
    try:
        with_blobs(node, dict(world.board.attachments.items()))
        for block in blocks:
            decide_as_the_engine(node, block)
    finally:
        node.abandon()
    proven = {posting.id for posting in postings if counted.proofs[posting.id]}
    kinds = {type(posting.body).__name__ for posting in postings if posting.id in proven}
    assert {"Registration", "Submission", "CountShare", "SumShare", "Aggregate", "Model"} <= kinds
    assert {counted.proofs[name] for name in proven} == {1}, "no proof is verified twice"
    named = Counter(
        receipt_bytes(world.genesis.hash, blob.sha256, blob.length, receipt.expires)
        for posting in postings
        for blob in retention.blobs_of(posting.body)
        for receipt in blob.receipts
    )
    assert named
    for message, number in named.items():
        assert 1 <= counted.signatures[message] <= number, "blocks have times, a receipt's signature has none"


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_random_histories_give_the_headers_of_one_node(
    keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Owners, clients and members come, are missing or leave; an oracle says which proofs are valid."""
    seat, board = oracle_board(keys)
    played = play_history(lambda n: data.draw(st.integers(0, n - 1)), board=board.copy())
    directory = directory_of(tmp_path_factory.mktemp("random") / "node", seat, played.genesis, keys)
    store = BlockStore(directory, played.genesis)
    store.append(played.blocks[0], played.snapshots[0])  # its committees were put there by hand
    store.close()
    with pytest.MonkeyPatch.context() as patch:
        genesis = played.genesis
        patch.setattr(
            node_module, "Verifier", lambda *_: OracleVerifier(genesis.hash, played.bad_blobs, genesis)
        )
        node = ReplicatedNode(directory)
    try:
        for block in played.blocks[1:]:
            decide_as_the_engine(node, block)
        _same(node.state, played)
    finally:
        node.abandon()


def _same(state: State, played: OracleBoard) -> None:
    assert snapshot.encode(state) == played.snapshots[-1]


_ORACLE: list[tuple[Institution, OracleBoard]] = []


def oracle_board(keys: KeyDirectory) -> tuple[Institution, OracleBoard]:
    if not _ORACLE:
        authority = Authority()
        seat = Institution.new(authority, "Clinic")
        made = OracleBoard.make(authority, {**changes(seat), **keys.pins()})
        made.storage = seat.storage
        _ORACLE.append((seat, made))
    return _ORACLE[0]
