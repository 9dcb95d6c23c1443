"""The light client before nodes that lie: forks are evidence, nonsense is a board that is away."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.board.rules.committees import KEY
from anofel.board.verification import _under
from anofel.errors import PeerUnreachable
from anofel.light_client.client import BoardMisbehaved, LightClient
from anofel.messages import Block, Receipt
from anofel.proofs.keys import KeyDirectory
from tests.board.two_histories import PAGE, Histories, serving, transport
from tests.node.support import SECONDS


def test_a_fork_is_noticed_and_both_blocks_are_kept(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.other
    with pytest.raises(BoardMisbehaved, match="forked") as caught:
        client.sync()
    kept = {path.name: Block.from_bytes(path.read_bytes()) for path in caught.value.evidence.iterdir()}
    assert kept == {"fork-3-ours": histories.honest[2], "fork-3-theirs": histories.other[2]}
    assert client.state.height == 3


def test_a_fork_is_noticed_when_the_node_hides_the_other_block(lying: tuple[Histories, LightClient]) -> None:
    """A signed block that does not follow our signed one is evidence without the block between."""
    histories, client = lying
    histories.blocks = [*histories.honest[:3], histories.other[3]]
    with pytest.raises(BoardMisbehaved, match="forked") as caught:
        client.sync()
    kept = {path.name: Block.from_bytes(path.read_bytes()) for path in caught.value.evidence.iterdir()}
    assert kept == {"fork-3-ours": histories.honest[2], "fork-3-theirs": histories.other[3]}


def test_a_fork_inside_one_answer_is_noticed(keys: KeyDirectory, tmp_path: Path) -> None:
    """Our side of the evidence is on disk, although the answer that holds it was never finished."""
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = [*histories.honest[:3], histories.other[3]]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        shown: list[int] = []
        with pytest.raises(BoardMisbehaved, match="forked") as caught:
            client.sync(on_block=lambda block: shown.append(block.header.height))
        assert (caught.value.evidence / "fork-3-ours").exists()
        assert shown == [1, 2, 3]
        assert client.state.height == client._store.height == 3
        client.close()


def test_a_signed_block_with_a_wrong_root_is_refused(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = [*histories.honest[:3], histories.resigned(histories.honest[3], clients=bytes(32))]
    with pytest.raises(BoardMisbehaved, match="another root of clients") as caught:
        client.sync()
    assert Block.from_bytes((caught.value.evidence / "block-4").read_bytes()) == histories.blocks[3]
    histories.blocks = histories.honest
    assert client.sync() == 1


def test_a_first_block_of_another_board_is_refused(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = [histories.resigned(histories.honest[0], previous=bytes(32))]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        with pytest.raises(BoardMisbehaved, match="does not follow"):
            client.sync()
        client.close()


# Nonsense: nobody signed it, so it is nobody's fault and no evidence


def unsigned(honest: list[Block]) -> list[Block]:
    return [*honest[:3], replace(honest[3], commit=())]


def other_postings(honest: list[Block]) -> list[Block]:
    """The signed header of a block with postings that it does not name."""
    return [*honest[:3], replace(honest[3], postings=(b"something",))]


def too_low(honest: list[Block]) -> list[Block]:
    return [*honest[:3], honest[1]]


@pytest.mark.parametrize("change", [unsigned, other_postings, too_low])
def test_a_block_that_nobody_signed_is_no_evidence(
    lying: tuple[Histories, LightClient], change: Callable[[list[Block]], list[Block]]
) -> None:
    histories, client = lying
    histories.blocks, chain = change(histories.honest), client.chain
    with pytest.raises(PeerUnreachable, match="did not sign|other blocks"):
        client.sync()
    assert not (client.directory / "evidence").exists()
    assert client.chain is chain, "nothing is loaded again for nonsense"
    histories.blocks = histories.honest
    assert client.sync() == 1


NESTED = b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b', "height": 4}'


@pytest.mark.parametrize("path", ["/v1/status", "/v1/blocks"])
@pytest.mark.parametrize(
    "said",
    [
        *(b"", PAGE, NESTED, b"\xff\xfe", b"\x05\0\0\0hello", b"\xff\xff\xff\xff"),
        *(f'{{"height": {height}}}'.encode() for height in ("0", "-1", "1e9", "null", "9" * 30, '"4"')),
    ],
)
def test_nonsense_is_an_unreachable_board(
    lying: tuple[Histories, LightClient], path: str, said: bytes
) -> None:
    histories, client = lying
    histories.blocks = histories.honest  # one more than the client has
    histories.said[path] = said
    with pytest.raises(PeerUnreachable):
        client.sync()
    assert client.state.height == 3
    assert not (client.directory / "evidence").exists()
    del histories.said[path]
    assert client.sync() == 1


def test_a_shorter_history_is_waited_for(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.honest[:2]
    with pytest.raises(PeerUnreachable, match="states 2 blocks, and 3 are verified here"):
        client.sync()
    heard: list[str] = []

    def come_back(what: str) -> None:
        heard.append(what)
        histories.blocks = histories.honest

    client.wait_for(lambda state: state.height == 4, "block 4", seconds=SECONDS, on_wait=come_back)
    assert "3 are verified here" in heard[0]


def test_a_withheld_tip_is_named(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.said["/v1/status"] = b'{"height": 9}'
    with pytest.raises(PeerUnreachable, match=r"have block 4 and does not hand it out; .* \d+ seconds ago"):
        client.sync()
    histories.blocks = histories.honest
    with pytest.raises(PeerUnreachable, match="have block 5"):
        client.sync()
    assert client.state.height == 4, "what it did hand out is taken"


@pytest.mark.parametrize("said", [PAGE, b"", NESTED, b'{"id": "00", "height": 5}', b'{"height": 5}'])
def test_a_posting_is_taken_when_the_node_says_its_name(
    lying: tuple[Histories, LightClient], said: bytes
) -> None:
    histories, client = lying
    posting = histories.world.offer_certifier_key()
    histories.said["/v1/postings"] = said
    with pytest.raises(PeerUnreachable):
        client.post(posting)
    histories.said["/v1/postings"] = json.dumps({"id": posting.id.hex(), "height": 5}).encode()
    client.post(posting)


def test_a_receipt_that_the_holder_did_not_sign_is_none(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    forged = Receipt(holder=0, expires=9, signature=bytes(64))
    for said in (PAGE, b"", forged.to_bytes(), replace(forged, holder=7).to_bytes()):
        histories.said[f"/v1/blobs/{hashlib.sha256(b'blob').hexdigest()}"] = said
        with pytest.raises(PeerUnreachable):
            client.upload(b"blob")


def test_a_blob_in_the_way_of_nonsense_does_not_accuse_the_board() -> None:
    """A key, sum or share whose blob cannot be fetched now is not refused under its rule."""

    def fetch() -> None:
        raise PeerUnreachable("Somebody else answers.")

    with pytest.raises(PeerUnreachable):
        _under(KEY, fetch)
