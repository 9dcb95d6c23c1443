"""Two seals of one height are a fork; other roots under a seal are the word of whoever passed it on."""

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from anofel.board.framing import frame, unframe
from anofel.board.validators import Eras
from anofel.errors import PeerUnreachable
from anofel.light_client.base import BoardClient, BoardMisbehaved
from anofel.light_client.client import LightClient
from anofel.light_client.evidence import ChangedValidators, NoEvidence, check_block, check_fork, shown_by
from anofel.light_client.header_client import HeaderClient
from anofel.messages import Block
from anofel.network.transport import Transport
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard
from tests.board.served import ServedWorld, serving
from tests.board.test_validators import rotated
from tests.board.world import TIME
from tests.node.support import SECONDS
from tests.replicated.test_header_client import ServedCommittee

Client = Callable[..., BoardClient]
EVERY_CLIENT = pytest.mark.parametrize("kind", [LightClient, HeaderClient])


def a_board(keys: KeyDirectory, like: CommitteeBoard | None = None) -> ServedCommittee:
    """A board of eight blocks; like another one: of the same validators, who forked it at block 5."""
    made = CommitteeBoard(keys, like=like)
    if like is not None:
        made.genesis = like.genesis
        made.chain = made.follower()
        made.chain.begin(TIME + 1)
    made.until(2)
    served = ServedCommittee(made, keys)  # type: ignore[arg-type]
    served.lie = honest
    served.until(5)
    if like is not None:
        made.state.time += 7
    served.until(9)
    return served


@pytest.fixture
def board(keys: KeyDirectory) -> ServedCommittee:
    return a_board(keys)


@pytest.fixture
def fork(board: ServedCommittee, keys: KeyDirectory) -> ServedCommittee:
    made = a_board(keys, board.world)  # type: ignore[arg-type]
    same = [ours.header == theirs.header for ours, theirs in zip(board.blocks, made.blocks, strict=True)]
    assert same == [True] * 4 + [False] * 4
    return made


def transport(url: str) -> Transport:
    return Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS)


def roots_of_its_own(served: ServedWorld, path: str, answer: bytes) -> bytes:
    """Show the newest header with another root, and name it as the last block."""
    forged = with_other_root(served.blocks[-1])
    if path.startswith("/v1/status"):
        tip = forged.header.hash(served.world.genesis.hash).hex()
        return json.dumps({"height": len(served.blocks), "tip": tip}).encode()
    if path.startswith("/v1/headers"):
        return frame(replace(forged, postings=()))
    if path.startswith(("/v1/names", "/v1/blocks")):
        last = served.blocks[-1].header.height
        shown = [with_other_root(one) if one.header.height == last else one for one in unframe(answer)]
        return b"".join(map(frame, shown))
    return answer


def with_other_root(block: Block) -> Block:
    return replace(block, header=replace(block.header, tasks=bytes(32)))


def honest(served: ServedWorld, path: str, answer: bytes) -> bytes:
    """A node as it is, which also says the hash of its last block."""
    if not path.startswith("/v1/status"):
        return answer
    last = served.blocks[-1].header
    tip = last.hash(served.world.genesis.hash).hex()
    return json.dumps({"height": last.height, "tip": tip}).encode()


@EVERY_CLIENT
def test_other_roots_under_a_seal_accuse_nobody(board: ServedCommittee, tmp_path: Path, kind: Client) -> None:
    """Whoever stands between a client and a node can put them there; it says so before and after."""
    with serving(board) as url:
        client = kind(tmp_path / "view", transport(url), genesis_hash=board.world.genesis.hash)
        for lie in (roots_of_its_own, honest, roots_of_its_own, honest):
            board.lie = lie
            for _ in range(2):
                with suppress(PeerUnreachable):
                    client.sync()
        board.until(board.world.board.state.height + 2)
        for _ in range(3):
            with suppress(PeerUnreachable):  # it held a header whose roots were a lie
                client.sync()
        assert client.state.height >= len(board.blocks) - 1
        client.close()
    assert not (tmp_path / "view" / "evidence").exists()


@EVERY_CLIENT
@pytest.mark.parametrize("hidden", [False, True])
def test_two_seals_of_a_height_are_evidence_that_anyone_can_check(
    board: ServedCommittee, fork: ServedCommittee, tmp_path: Path, kind: Client, hidden: bool
) -> None:
    """Met at a node that shows its last block, or that hides it and shows the one after it."""
    genesis = board.world.genesis
    board.blocks, last = board.blocks[:7], fork.blocks[7]
    fork.blocks = [*board.blocks, last] if hidden else fork.blocks[:7]
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(serving(one)) for one in (board, fork))
        client = kind(tmp_path / "view", transport(ours), genesis_hash=genesis.hash)
        client.sync()
        client.transport = transport(theirs)
        with pytest.raises(BoardMisbehaved, match="signed two different blocks 7") as caught:
            client.sync()
        (shown,) = shown_by(caught.value.evidence, genesis, client.verifier)
        assert shown.sentence == "The validators signed two different blocks 7."
        client.close()


def test_what_is_no_fork_is_no_evidence(board: ServedCommittee, fork: ServedCommittee) -> None:
    """Each half of a pair is looked at: who shows it may have changed what no seal covers."""
    genesis, (seventh, eighth) = board.world.genesis, board.blocks[6:8]
    other_seventh, other_eighth = fork.blocks[6:8]
    for theirs in (other_seventh, other_eighth, with_other_root(other_seventh)):
        assert "two different blocks 7" in check_fork(seventh, theirs, genesis)
    for pair in (
        (seventh, seventh),
        (seventh, with_other_root(seventh)),
        (with_other_root(seventh), seventh),
        (seventh, eighth),
        (with_other_root(seventh), eighth),
        (seventh, board.blocks[5]),
        (seventh, replace(other_seventh, seal=seventh.seal)),
    ):
        with pytest.raises(NoEvidence):
            check_fork(*pair, genesis)


def test_a_fork_of_validators_who_came_later_is_shown_too(keys: KeyDirectory, tmp_path: Path) -> None:
    """The evidence says how they follow from those of genesis; who leaves that out shows nothing."""
    world = CommitteeBoard(keys)
    rotated(world, since=4)
    world.until(6)
    forked = world.fork()
    forked.state.time += 7
    ours, theirs = (ServedCommittee(one, keys) for one in (world, forked))  # type: ignore[arg-type]
    for one in (ours, theirs):
        one.lie = honest
        one.until(9)
    with ExitStack() as stack:
        url, other = (stack.enter_context(serving(one)) for one in (ours, theirs))
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=world.genesis.hash)
        client.sync()
        client.transport = transport(other)
        with pytest.raises(BoardMisbehaved, match="signed two different blocks 8") as caught:
            client.sync()
        (shown,) = shown_by(caught.value.evidence, world.genesis, client.verifier)
        assert shown.sentence == "The validators signed two different blocks 8."
        told = caught.value.evidence / "fork-8-validators"
        whole = ChangedValidators.from_bytes(told.read_bytes())
        for less in (
            msgspec.structs.replace(whole, boundaries=[]).to_bytes(),
            msgspec.structs.replace(whole, eras=Eras(whole.eras.eras[:1])).to_bytes(),
            msgspec.structs.replace(whole, eras=Eras(whole.eras.eras[1:])).to_bytes(),
            b"nothing",
        ):
            told.write_bytes(less)
            with pytest.raises(NoEvidence):
                list(shown_by(caught.value.evidence, world.genesis, client.verifier))
        told.unlink()
        with pytest.raises(NoEvidence):
            list(shown_by(caught.value.evidence, world.genesis, client.verifier))
        client.close()


def test_another_state_under_the_same_block_is_no_fork(
    board: ServedCommittee, keys: KeyDirectory, tmp_path: Path
) -> None:
    """Validators who sign a false state show it by one block; there is no second one."""
    world: CommitteeBoard = board.world.board  # type: ignore[assignment]
    genesis, last = world.genesis, board.blocks[-1]
    with serving(board) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=genesis.hash)
        client.sync()
        board.until(world.state.height + 1)
        false = replace(board.blocks[-1], header=replace(board.blocks[-1].header, previous=bytes(32)))
        secrets = {place: world.secret_at(place, false.header.height) for place in range(4)}
        board.blocks[-1] = world.sealed(false, secrets)
        with pytest.raises(BoardMisbehaved, match="does not follow") as caught:
            client.sync()
        names = {path.name for path in caught.value.evidence.iterdir()}
        assert names == {f"block-{last.header.height + 1}"}
        assert list(shown_by(caught.value.evidence, genesis, client.verifier))
        client.close()


def test_a_block_with_other_postings_is_no_evidence(board: ServedCommittee) -> None:
    """Neither are postings that the header names and the seal does not."""
    block, genesis = board.blocks[6], board.world.genesis
    check_block(block, genesis)
    with pytest.raises(NoEvidence, match="signed other postings"):
        check_block(replace(block, postings=(b"slander",)), genesis)
    with pytest.raises(NoEvidence, match="header names"):
        check_block(replace(block, header=replace(block.header, postings=bytes(32))), genesis)
