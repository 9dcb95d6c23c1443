"""A client that follows the headers of several validators: their changes, roots that lag, evidence."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from anofel.board import roots
from anofel.board.framing import frame, unframe
from anofel.errors import AnofelError, PeerUnreachable
from anofel.light_client.base import BoardMisbehaved
from anofel.light_client.evidence import NoEvidence, PostingEvidence, check_posting
from anofel.light_client.header_client import HeaderClient
from anofel.messages.postings import posting_id
from anofel.network.transport import Transport
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard, Institution
from tests.board.served import ServedWorld, serving
from tests.board.test_validators import rotated
from tests.node.support import SECONDS


class ServedCommittee(ServedWorld):
    """The nodes of several validators, who serve the same."""

    def until(self, height: int) -> None:
        board = self.world.board
        while board.state.height < height:
            self.blocks.append(board.block())  # type: ignore[attr-defined]
            self.note()


@pytest.fixture
def board(keys: KeyDirectory) -> CommitteeBoard:
    made = CommitteeBoard(keys)
    made.until(2)
    return made


@pytest.fixture
def served(board: CommitteeBoard, keys: KeyDirectory) -> ServedCommittee:
    return ServedCommittee(board, keys)  # type: ignore[arg-type]


@contextmanager
def following(served: ServedCommittee, view: Path) -> Iterator[HeaderClient]:
    with serving(served) as url:
        transport = Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS)
        client = HeaderClient(view, transport, genesis_hash=served.world.genesis.hash)
        yield client
        client.close()


def test_roots_count_when_the_next_block_vouches_for_them(
    board: CommitteeBoard, served: ServedCommittee, tmp_path: Path
) -> None:
    served.until(5)
    with following(served, tmp_path / "view") as client:
        client.sync()
        assert client.state.height == 3, "block 4 is the newest, and nothing vouches for its roots yet"
        assert client.faulty == 1

        def forge(_world: ServedWorld, path: str, answer: bytes) -> bytes:
            """Another root in the newest header; its seal does not cover it."""
            if not path.startswith("/v1/names"):
                return answer
            *before, last = unframe(answer)
            forged = replace(last, header=replace(last.header, tasks=bytes(32)))
            return b"".join(map(frame, [*before, forged]))

        served.until(6)
        served.lie = forge
        client.sync()
        assert client.state.height == 4, "the forged header waits"
        served.lie = lambda _world, _path, answer: answer
        served.until(8)
        for _ in range(3):
            try:
                client.sync()
            except PeerUnreachable:
                continue
        assert client.state.height == 6
        assert roots.tasks(client.state) == board.blocks[5].header.tasks
        assert not (client.directory / "evidence").exists()


def test_it_follows_every_change_of_validators(
    board: CommitteeBoard, served: ServedCommittee, tmp_path: Path
) -> None:
    with following(served, tmp_path / "view") as client, following(served, tmp_path / "late") as late:
        client.sync()
        rotated(board, since=6)
        come = Institution.new(board.authority, "New")
        served.until(7)
        client.sync()
        board.decide(board.change(4, come.entry(board.genesis.nonce), since=10), 0, 1, 2)
        board.everybody_else += (come,)
        served.until(10)
        board.seats[4] = come
        served.until(16)
        client.sync()  # it did not see the state that announced the last change
        late.sync()
        for one in (client, late):
            assert one.state.height == 14
            assert [era.since for era in one.state.validators.eras] == [0, 6, 10]
            assert sorted(one.state.validators.eras.at(14).validators) == [0, 1, 2, 3, 4]
    with following(served, tmp_path / "view") as again:
        served.until(18)
        again.sync()
        assert again.state.height == 16


def test_validators_of_a_nodes_own_choice_are_refused(
    board: CommitteeBoard, served: ServedCommittee, keys: KeyDirectory, tmp_path: Path
) -> None:
    """The node serves a board of strangers who say that they took over."""
    strangers = CommitteeBoard(keys, like=board)
    strangers.genesis = board.genesis
    strangers.until(2)
    other = ServedCommittee(strangers, keys)  # type: ignore[arg-type]
    rotated(board, since=6)
    served.until(9)
    for place in range(4):
        strangers.seats[place] = strangers.seats[place].with_new_key()
    forged = [
        strangers.sealed(block, {p: s.secret for p, s in strangers.seats.items()}) for block in board.blocks
    ]
    other.blocks, other.outlines = forged, served.outlines
    with following(other, tmp_path / "view") as client:
        with pytest.raises(PeerUnreachable):
            client.sync()
        assert client.state.height == 0


def test_a_bad_posting_is_evidence_with_the_seal_of_the_next_block(
    board: CommitteeBoard, served: ServedCommittee, tmp_path: Path
) -> None:
    rotated(board, since=6)
    served.until(7)
    with following(served, tmp_path / "view") as client:
        client.sync()
        change = board.change(2, None, since=20)
        good = board.proposal(0, change)
        bad = good.data[:-1] + bytes([good.data[-1] ^ 1])
        board._postings.append(bad)
        board.chain._ids.append(posting_id(bad))
        served.until(10)
        with pytest.raises(BoardMisbehaved, match="breaks a rule") as caught:
            client.sync()
        (path,) = caught.value.evidence.iterdir()
        evidence = PostingEvidence.from_bytes(path.read_bytes())
        assert "breaks a rule" in check_posting(evidence, board.genesis, client.verifier)
        with pytest.raises(NoEvidence, match="vouches"):
            alone = msgspec.structs.replace(evidence.block, following=evidence.block.block)
            check_posting(msgspec.structs.replace(evidence, block=alone), board.genesis, client.verifier)
        with pytest.raises(AnofelError):
            check_posting(msgspec.structs.replace(evidence, boundaries=[]), board.genesis, client.verifier)
