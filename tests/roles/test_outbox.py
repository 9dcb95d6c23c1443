"""What is sent was stored; what was stored is the only thing that is sent."""

import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.board.state import LedgerEntry, Phase
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.light_client.client import LightClient
from anofel.messages import Blob, ChainAuthor, Posting, Receipt, make_posting
from anofel.network.transport import Refused, Transport
from anofel.phase1_setup.step1d_announcement import post_model
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from anofel.roles.outbox import RESEND_BLOCKS, DamagedOutbox, Outbox, is_expired
from anofel.roles.outbox_pruning import forget_old
from tests.node.support import SECONDS, BoardOfTest, make_board, running
from tests.transport.nonsense import NONSENSE
from tests.transport.servers import Middlebox

NAME = "certifier-key/first"


@pytest.fixture
def board(keys: KeyDirectory, tmp_path: Path) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def view(board: BoardOfTest, url: str, path: Path) -> LightClient:
    return LightClient(
        path, Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS), genesis_hash=board.genesis.hash
    )


def never() -> Posting:
    raise AssertionError("A second posting was made under one name.")


def test_after_a_crash_the_same_bytes_are_sent_again(board: BoardOfTest, tmp_path: Path) -> None:
    outbox, posting = Outbox(tmp_path / "outbox"), board.posting()
    with running(board.directory) as node:
        client = view(board, node.url, tmp_path / "view")
    with pytest.raises(PeerUnreachable):  # stored, and then the board was not there
        outbox.send(client, NAME, lambda: posting)
    client.close()
    again = Outbox(tmp_path / "outbox")
    assert [sent.name for sent in again if sent.answer is None] == [NAME]
    with running(board.directory) as node:
        client = view(board, node.url, tmp_path / "view")
        sent = again.send(client, NAME, never)
        assert sent.posting.data == posting.data
        assert not sent.is_refused
        client.wait_for(lambda state: len(state.certifiers) == 1, "the posting", seconds=SECONDS)
        reached = sent.answer.height + RESEND_BLOCKS if sent.answer else 0
        client.wait_for(lambda state: state.height >= reached, "blocks", seconds=SECONDS)
        assert again.send(client, NAME, never).answer != sent.answer  # the same bytes, taken again
        client.sync()
        assert len(client.state.certifiers) == 1
        client.close()
    assert all(sent.answer is not None for sent in again)


def test_a_refusal_for_good_is_kept_with_its_code(board: BoardOfTest, tmp_path: Path) -> None:
    outbox, role = Outbox(tmp_path / "outbox"), board.certifier()
    with running(board.directory) as node:
        client = view(board, node.url, tmp_path / "view")
        outbox.send(client, NAME, lambda: board.posting(role))
        refused = outbox.send(client, "certifier-key/second", lambda: board.posting(role))
        client.close()
    assert refused.is_refused
    for reopened in (outbox, Outbox(tmp_path / "outbox")):
        codes = {name: answer.refused for name, answer in reopened.refused().items()}
        assert codes == {"certifier-key/second": "certifier-has-key"}
    assert outbox.send(client, "certifier-key/second", never) == refused  # nobody is asked again


@pytest.mark.parametrize("kind", ["forbidden", "not found", "a page", "another's code", "no height"])
def test_nonsense_is_not_kept_as_a_refusal(board: BoardOfTest, tmp_path: Path, kind: str) -> None:
    outbox, posting = Outbox(tmp_path / "outbox"), board.posting()
    with running(board.directory) as node, Middlebox(node.url, []) as box:
        client = view(board, box.url, tmp_path / "view")
        box.left["POST /v1/postings"] = [NONSENSE[kind]]
        with pytest.raises(PeerUnreachable):
            outbox.send(client, NAME, lambda: posting)
        assert outbox.refused() == {}
        assert [sent.name for sent in outbox if sent.answer is None] == [NAME]
        assert not outbox.send(client, NAME, never).is_refused
        client.close()
    assert len({request for kind, request in box.requests if kind == "POST /v1/postings"}) == 1


def test_an_answer_that_no_rule_of_the_board_gave_is_forgotten(board: BoardOfTest, tmp_path: Path) -> None:
    outbox, fake, posting = Outbox(tmp_path / "outbox"), FakeBoard(1), board.posting()
    fake.refusal = Refused("certifier-has-key", "It has one.", 422)
    assert outbox.send(fake, NAME, lambda: posting).is_refused  # type: ignore[arg-type]
    (path,) = (tmp_path / "outbox").glob("*.json")
    assert Outbox(tmp_path / "outbox").refused()
    path.write_bytes(path.read_bytes().replace(b"certifier-has-key", b"http-404"))
    assert Outbox(tmp_path / "outbox").refused() == {}


@pytest.mark.parametrize(
    ("code", "status"),
    [("block-full", 422), ("receipt-expired", 422), ("certifier-has-key", 503), ("busy", 422)],
)
def test_what_may_pass_is_not_kept(board: BoardOfTest, tmp_path: Path, code: str, status: int) -> None:
    outbox, fake, posting = Outbox(tmp_path / "outbox"), FakeBoard(1), board.posting()
    fake.refusal = Refused(code, "Not now.", status)
    with pytest.raises(Refused):
        outbox.send(fake, NAME, lambda: posting)  # type: ignore[arg-type]
    assert outbox.refused() == {}


def test_names_and_damaged_postings(board: BoardOfTest, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    for name in ("", "../up", "a//b", "a.b", "A"):
        with pytest.raises(InvalidInput, match="no name"):
            outbox.find(name)
    assert outbox.find(NAME) is None
    (tmp_path / "outbox").mkdir()
    (tmp_path / "outbox" / "certifier-key.first.posting").write_bytes(b"half of")
    with pytest.raises(DamagedOutbox):
        outbox.find(NAME)


class FakeBoard:
    """A verified height, and what the node says to each posting."""

    def __init__(self, height: int) -> None:
        self.state = SimpleNamespace(height=height)
        self.taken: list[Posting] = []
        self.refusal: Refused | None = None

    def post(self, posting: Posting) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.taken.append(posting)


def a_model(board: BoardOfTest, expires: int) -> Posting:
    now = int(time.time())
    role = board.authority.issue(Purpose.OWNER, "Owner", now - 3600, now + 3600)
    blob = Blob(
        sha256=bytes(32), length=1, receipts=(Receipt(holder=0, expires=expires, signature=bytes(64)),)
    )
    body = post_model(bytes(32), 1, blob)
    return make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign)


def test_a_posting_whose_receipts_expired_is_made_again(board: BoardOfTest, tmp_path: Path) -> None:
    outbox, name = Outbox(tmp_path / "outbox"), "model/first"
    fake = FakeBoard(5)
    send = partial(outbox.send, fake, name)  # type: ignore[arg-type]
    old, new = a_model(board, 10), a_model(board, 30)
    fake.refusal = Refused("receipt-expired", "A receipt has expired.", 422)
    with pytest.raises(Refused):  # the node is ahead of us, or it lies: by our own height it is not expired
        send(lambda: old)
    fake.refusal, fake.state.height = None, 10
    assert send(never).posting == old, "a receipt is good at its height"
    fake.state.height = 11
    assert send(lambda: new).posting == new
    assert fake.taken == [old, new]
    fake.state.height = 10 + RESEND_BLOCKS
    assert send(never).posting == new
    assert fake.taken == [old, new], "it was taken lately, so it is not sent again"
    fake.state.height = 11 + RESEND_BLOCKS
    assert send(never).posting == new
    assert fake.taken == [old, new, new]
    assert not is_expired(board.posting(), 1 << 30), "most postings name no blob"


# Pruning


TASK, RUN = b"\x01" * 32, b"\x02" * 32


def a_state(*, iterations: int = 3, phase: Phase = Phase.OPEN, ended: bool = False, done: bool = True):  # type: ignore[no-untyped-def]
    task = SimpleNamespace(bundle=0, releases=2, ended=ended, ledger=[LedgerEntry(2, 0, 0)])
    return SimpleNamespace(
        tasks={TASK: task},
        bundles={0: SimpleNamespace(iterations=iterations, phase=phase)},
        runs={RUN: SimpleNamespace(done=done)},
    )


NAMES = [
    "task",
    *(
        f"{kind}/{TASK.hex()}/{n}"
        for kind in ("aggregate", "count-share", "model", "sum-share")
        for n in (2, 3)
    ),
    *(f"ledger/{TASK.hex()}/{n}" for n in (1, 2)),
    f"key-round/{RUN.hex()}/0",
    f"committee-key/{RUN.hex()}",
    f"aggregate/{'07' * 32}/1",
    f"end-task/{TASK.hex()}",
]


@pytest.fixture
def full(board: BoardOfTest, tmp_path: Path) -> Outbox:
    outbox, posting, fake = Outbox(tmp_path / "outbox"), board.posting(), FakeBoard(1)
    for name in NAMES:
        outbox.send(fake, name, lambda: posting)  # type: ignore[arg-type]
    return outbox


def forgotten(outbox: Outbox, state, secrets: frozenset[str] = frozenset()) -> set[str]:  # type: ignore[no-untyped-def]
    before = set(outbox.names())
    gone = set(forget_old(outbox, state, secrets))
    assert gone == before - set(outbox.names())
    return {"/".join(name.split("/")[::2]) for name in gone}


def test_postings_of_iterations_go_when_a_later_one_opened(full: Outbox) -> None:
    assert forgotten(full, a_state(done=False)) == {
        "aggregate/2",
        "count-share/2",
        "model/2",
        "sum-share/2",
        "ledger/1",
    }
    assert forgotten(full, a_state(done=False)) == set()


def test_postings_of_a_bundle_that_ended_go(full: Outbox) -> None:
    gone = forgotten(full, a_state(phase=Phase.ENDED, ended=True, done=False))
    assert {"aggregate/3", "sum-share/3", "ledger/2"} <= gone
    assert set(full.names()) == {
        "task",
        f"end-task/{TASK.hex()}",
        f"aggregate/{'07' * 32}/1",
        f"key-round/{RUN.hex()}/0",
        f"committee-key/{RUN.hex()}",
    }


def test_messages_of_a_run_go_with_its_secret_state(full: Outbox) -> None:
    assert not forgotten(full, a_state(iterations=1), frozenset({f"run/{RUN.hex()}"})) & {"key-round/0"}
    assert {"key-round/0", "committee-key"} <= forgotten(full, a_state(iterations=1))
