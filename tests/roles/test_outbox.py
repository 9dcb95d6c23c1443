"""What is sent was stored; what was stored is the only thing that is sent."""

from pathlib import Path

import pytest

from anofel.board.light_client import LightClient
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.keys import KeyDirectory
from anofel.messages import Posting
from anofel.roles.outbox import RESEND_BLOCKS, DamagedOutbox, Outbox
from anofel.transport import Transport
from tests.node.support import BoardOfTest, make_board, running

NAME = "certifier-key/first"


@pytest.fixture
def board(keys: KeyDirectory, tmp_path: Path) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def view(board: BoardOfTest, url: str, path: Path) -> LightClient:
    return LightClient(path, Transport(url, attempts=1, patience=10), genesis_hash=board.genesis.hash)


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
    assert [sent.name for sent in again.unanswered()] == [NAME]
    with running(board.directory) as node:
        client = view(board, node.url, tmp_path / "view")
        sent = again.send(client, NAME, never)
        assert sent.posting.data == posting.data
        assert not sent.is_refused
        client.wait_for(lambda state: len(state.certifiers) == 1, "the posting", seconds=20)
        assert again.send(client, NAME, never).answer == sent.answer  # fresh: not sent again
        reached = sent.answer.height + RESEND_BLOCKS if sent.answer else 0
        client.wait_for(lambda state: state.height >= reached, "blocks", seconds=20)
        assert again.send(client, NAME, never).answer != sent.answer  # the same bytes, taken again
        client.sync()
        assert len(client.state.certifiers) == 1
        client.close()
    assert again.unanswered() == []


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
