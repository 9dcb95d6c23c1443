"""What takes long delays neither rounds nor other authors: the queue, votes, flushes, looks at the page."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.board.rule import Rejected
from anofel.board.rules.certifiers import POSSESSION
from anofel.board.state import State
from anofel.board.verification import Candidate, Verifier
from anofel.comet.wire import message, octets, read_uvarint, uvarint
from anofel.node.own_page import OwnPage
from anofel.node.replicated import node as node_module
from anofel.node.replicated import slow as slow_module
from anofel.node.replicated.abci import CHECK_TX, ECHO, FLUSH, AbciServer, CheckedTx, InitChain, Proposal
from anofel.node.replicated.engine import Taken, find_engine
from anofel.node.replicated.files import read_transport_key
from anofel.node.replicated.node import LATER, ReplicatedNode
from anofel.node.replicated.service import ReplicatedService
from anofel.node.replicated.slow import MOST_WAITING, SlowChecks, wait
from anofel.proofs.keys import KeyDirectory
from tests.node.support import SECONDS, wait_until
from tests.replicated.support import Validators, make_validators, needs_engine
from tests.replicated.test_machine import decide, proposal


@pytest.fixture(scope="module")
def validators(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> Validators:
    return make_validators(tmp_path_factory.mktemp("board"), keys, number=4)


@pytest.fixture
def node(validators: Validators, tmp_path: Path) -> Iterator[ReplicatedNode]:
    node = ReplicatedNode(validators.copy(0, tmp_path / "node"))
    yield node
    node.abandon()


def candidate(node: ReplicatedNode, data: bytes) -> Candidate:
    chain = node._committed.fork()
    chain.begin(node.state.time + 1)
    (found,) = chain.check_all([data])
    assert isinstance(found, Candidate)
    return found


def test_authors_take_turns_and_only_a_few_postings_of_each_wait(
    node: ReplicatedNode, validators: Validators
) -> None:
    honest, liar = validators.offer().posting, validators.offer()
    others = [liar.posting] + [
        validators.signed(liar.role, validators.offer().posting.body) for _ in range(MOST_WAITING + 4)
    ]
    go, order = threading.Event(), []

    def verify(_state: State, found: Candidate) -> None:
        go.wait(SECONDS)
        order.append(found.posting.id)

    checks = SlowChecks(verify)
    try:
        # the rules would refuse the liar's at once; what counts here is who signed
        lies = [
            Candidate(one, candidate(node, liar.posting.data).author, candidate(node, honest.data).claim)
            for one in others
        ]
        begun = [checks.begin(node.state, one) for one in lies]
        assert begun.count(None) >= 3
        last = checks.begin(node.state, candidate(node, honest.data))
        assert last is not None
        go.set()
        assert wait([last], SECONDS)
        assert order.index(honest.id) <= 2, "one of the liar's was under way, and one was before"
        waiting = [one for one in begun if one is not None]
        assert wait(waiting, SECONDS)
        assert checks.under_way(honest.id) is None
    finally:
        checks.close()


def test_what_took_long_is_held_back_as_long_again(
    node: ReplicatedNode, validators: Validators, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(slow_module, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def takes_seven(_state: State, _found: Candidate) -> None:
        clock.now += 7

    posting = candidate(node, validators.offer().posting.data)
    checks = SlowChecks(takes_seven)
    try:
        running = checks.begin(node.state, posting)
        assert running is not None
        running.result(SECONDS)
        clock.now += 6.9
        assert not checks.is_ripe(posting.posting.id)
        clock.now += 0.2
        assert checks.is_ripe(posting.posting.id)
    finally:
        checks.close()


class _Slow:
    """Makes every posting one that takes long to verify, until it is let go."""

    def __init__(self, node: ReplicatedNode, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.known = threading.Event(), set[bytes]()
        confirm, verifier = Verifier.confirm, node._committed.verifier

        def slowly(found: Verifier, state: State, candidates: list[Candidate]) -> list[Rejected | None]:
            if threading.current_thread().name == "anofel-verify":
                self.go.wait(SECONDS)
                self.known.update(one.posting.id for one in candidates)
            else:
                assert {one.posting.id for one in candidates} <= self.known, (
                    "a round verified what takes long"
                )
            return confirm(found, state, candidates)

        monkeypatch.setattr(Verifier, "confirm", slowly)
        monkeypatch.setattr(verifier, "is_slow", lambda one: one.posting.id not in self.known)


def test_a_vote_does_not_wait_for_what_takes_long(
    node: ReplicatedNode, validators: Validators, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proposer may propose what only it verified: the others vote against it soon, and for it later."""
    slow = _Slow(node, monkeypatch)
    monkeypatch.setattr(node_module, "PROCESS_SECONDS", 0.2)
    asked = proposal(node, [validators.offer().posting.data])
    assert not node.process(asked)
    assert not slow.known, "the vote was there before the posting was verified"
    (answer,) = node.check([(asked.postings[0], False)])
    assert answer.code == LATER
    assert node.prepare(asked) == []
    slow.go.set()
    running = node.verification_of(asked.postings[0])
    if running is not None:
        running.result(SECONDS)
    wait_until(lambda: node.process(asked))
    decide(node, asked)


def test_a_proposal_costs_one_false_posting(
    node: ReplicatedNode, validators: Validators, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    monkeypatch.setattr(Verifier, "_check_possession", lambda _self, claim: tried.append(claim) or _refuse())
    offers = [validators.offer() for _ in range(5)]
    chain = node._committed.fork()
    chain.begin(node.state.time + 1)
    data = [offer.posting.data for offer in offers]
    refused = chain.admit_until_refused(data, [Rejected(POSSESSION)] * 5)
    assert refused is not None
    assert len(tried) == 1, "the others are not looked at"


def _refuse() -> None:
    raise Rejected(POSSESSION)


class _Engineless:
    """An application whose checks last until they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def check(self, offered: list[tuple[bytes, bool]]) -> list[CheckedTx]:
        assert self.go.wait(SECONDS)
        return [CheckedTx() for _ in offered]

    def info(self) -> tuple[int, bytes]:
        return 0, b""

    def init_chain(self, begun: InitChain) -> bytes:
        raise NotImplementedError

    def prepare(self, proposal: Proposal) -> list[bytes]:
        raise NotImplementedError

    process = finalize = commit = prepare  # type: ignore[assignment]


def test_a_flush_waits_for_the_checks_before_it_and_for_no_others(tmp_path: Path) -> None:
    def framed(kind: int, body: bytes = b"") -> bytes:
        one = message(kind, body)
        return uvarint(len(one)) + one

    async def play() -> None:
        app = _Engineless()
        server = AbciServer(app, 1, lambda error: pytest.fail(str(error)))
        await server.start(tmp_path / "abci")
        checking = await asyncio.open_unix_connection(tmp_path / "abci")
        deciding = await asyncio.open_unix_connection(tmp_path / "abci")
        checking[1].write(framed(CHECK_TX, octets(1, b"a posting")) + framed(FLUSH))
        await asyncio.sleep(0.2)
        deciding[1].write(framed(FLUSH) + framed(ECHO, b"") + framed(FLUSH))
        async with asyncio.timeout(30):
            for _ in range(3):
                await _answer(deciding[0])
        assert not app.go.is_set()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await _answer(checking[0])
        app.go.set()
        async with asyncio.timeout(30):
            assert (await _answer(checking[0]))[0] >> 3 == CHECK_TX + 1
            assert (await _answer(checking[0]))[0] >> 3 == FLUSH + 1
        for _, writer in (checking, deciding):
            writer.close()
        await server.stop()

    async def _answer(reader: asyncio.StreamReader) -> bytes:
        length = await reader.readexactly(1)
        found, _ = read_uvarint(length, 0)
        return await reader.readexactly(found)

    asyncio.run(play())


def test_a_posting_that_is_being_checked_is_not_called_accepted(
    validators: Validators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine says of a posting that it has it from the moment that it begins to check it.

    What was verified is offered again by the node itself, at the same moment as by its author.
    """
    needs_engine()
    good = validators.offer().posting.data
    broken = good[:-1] + bytes([good[-1] ^ 1])

    async def play() -> None:
        directory = validators.copy(1, tmp_path / "node")
        service = ReplicatedService(ReplicatedNode(directory), find_engine(), read_transport_key(directory))
        asked = []

        def offer(posting: bytes) -> Taken | None:
            """In the engine's cache the first time, whatever comes of its check."""
            asked.append(posting)
            if len(asked) % 2:
                return None
            answer = service.node.check([(posting, False)])[0]
            return Taken(answer.code, answer.data)

        monkeypatch.setattr(service.rpc, "offer", offer)
        with pytest.raises(Rejected) as caught:
            await service.post(broken)
        assert caught.value.code == "bad-signature"
        assert not (await service.post(good)).again
        assert (await service.post(good)).again, "this time it waits for a block"
        assert len(asked) == 5
        await service.stop()

    asyncio.run(play())


def test_no_question_of_the_engine_waits_for_a_look_at_the_page(
    validators: Validators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_engine()
    go = threading.Event()

    def slow_facts(_page: OwnPage, state: State) -> int:
        assert go.wait(SECONDS)
        return state.height

    monkeypatch.setattr(OwnPage, "_gather", slow_facts)

    async def play() -> None:
        directory = validators.copy(1, tmp_path / "node")
        node = ReplicatedNode(directory)
        service = ReplicatedService(node, find_engine(), read_transport_key(directory))
        looking = asyncio.ensure_future(service.read(OwnPage(service)._gather))
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            await loop.run_in_executor(service.abci.rounds, decide, node, proposal(node, []))
        go.set()
        assert await looking == 0, "it looked at a fork, which no block changes"
        await service.stop()

    asyncio.run(play())


def test_a_check_that_lacks_a_blob_delays_no_other_posting_and_leaves_no_trace(
    node: ReplicatedNode, validators: Validators, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anofel.board.attachments import AttachmentMissing
    from anofel.ids import BlobHash

    name, asked = BlobHash(bytes(32)), []
    good, lacking = validators.offer().posting, validators.offer().posting
    confirm = Verifier.confirm

    def lacks(found: Verifier, state: State, candidates: list[Candidate]) -> list[Rejected | None]:
        if any(one.posting.id == lacking.id for one in candidates):
            raise AttachmentMissing(name)
        return confirm(found, state, candidates)

    monkeypatch.setattr(Verifier, "confirm", lacks)
    monkeypatch.setattr(node.holders, "fetch", lambda sha256, *_: asked.append(sha256))
    codes = [answer.code for answer in node.check([(good.data, False), (lacking.data, False)])]
    assert codes == [0, LATER]
    assert asked
    assert set(asked) == {name}
    monkeypatch.undo()
    assert [answer.code for answer in node.check([(lacking.data, False)])] == [0]
    assert [answer.code for answer in node.check([(lacking.data, False), (good.data, False)])] == [0, 0]
