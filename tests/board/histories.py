"""Random valid histories of a board, and their replay from a file in another process.

``choose(n)`` picks a number below n: from Hypothesis, or from a seeded generator.
"""

import hashlib
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from anofel.board import snapshot
from anofel.board.attachments import MemoryAttachments
from anofel.board.chain import Chain
from anofel.board.seat import Seat
from anofel.board.state import Phase, Progress, State
from anofel.board.verification import Verifier
from anofel.committee.context import digest_of_set
from anofel.messages import (
    Aggregate,
    Block,
    CountShare,
    EndIteration,
    EndTask,
    Genesis,
    GroupSum,
    Model,
    PrivacyLedger,
    SumShare,
)
from anofel.proofs.keys import KeyDirectory
from tests.board.oracle import CLASS, GARBAGE, GENERATIONS, OracleBoard, OracleVerifier

Choose = Callable[[int], int]


@cache
def prepared() -> OracleBoard:
    return OracleBoard.make()


def play_history(choose: Choose, num_blocks: int = 24, board: OracleBoard | None = None) -> OracleBoard:
    """Owners, clients and members come, are missing, or leave, as chosen."""
    board = prepared().copy() if board is None else board
    for _ in range(num_blocks):
        bundle = board.bundle
        if choose(3) == 0:
            board.post(board.registration(board.state.nullifiers.size + 1))
        if bundle.phase is Phase.WAITING:
            _post_models(board, choose)
        elif bundle.phase is Phase.OPEN:
            _post_submissions(board, choose)
        elif bundle.phase is Phase.CLOSED:
            _decrypt(board, choose)
        elif len(board.state.bundles) < GENERATIONS and not board.state.waiting_tasks():
            board.announce()
        board.next_block()
    return board


def _post_models(board: OracleBoard, choose: Choose) -> None:
    for owner, name in zip(board.owners, board.task_ids, strict=True):
        task = board.state.tasks[name]
        iteration = board.bundle.iterations + 1
        if task.ended or task.model_iteration == iteration or choose(5) == 0:
            continue
        first = hashlib.sha256(b"first" + name).digest()
        model = (task.next_model if task.summed else task.model) or first
        board.post(board.signed(owner, Model(task=name, iteration=iteration, model=board.blob(model))))
        if task.releases not in {0, *(entry.releases for entry in task.ledger)}:
            entry = PrivacyLedger(task=name, releases=task.releases, zero_out=1, replace=2)
            board.post(board.signed(owner, entry))
        if choose(25) == 0:
            board.post(board.signed(owner, EndTask(task=name)))


def _post_submissions(board: OracleBoard, choose: Choose) -> None:
    bundle = board.bundle
    assert bundle.current is not None
    for _ in range(choose(4)):
        if len(bundle.current.submissions) < CLASS.max_posts:
            number = board.state.nullifiers.size + 1
            tag = 3 * number + choose(3) + (3 * GARBAGE if choose(12) == 0 else 0)
            board.post(board.submission(number, tag, bundle.iterations, bundle=bundle.number))
    for owner, name in zip(board.owners, board.task_ids, strict=True):
        if name not in bundle.current.end_votes and choose(4) == 0:
            board.post(board.signed(owner, EndIteration(task=name, iteration=bundle.iterations)))


def _decrypt(board: OracleBoard, choose: Choose) -> None:
    state = board.state
    bundle = board.bundle
    current = bundle.current
    assert current is not None
    for number, name in enumerate(board.task_ids):
        task = state.tasks[name]
        position = current.positions[task.position]
        for member in board.members[number]:
            if choose(4) == 0:
                continue
            body: Aggregate | CountShare | SumShare | None = None
            place = {"task": name, "iteration": current.number, "member": member.number}
            if position.progress is Progress.CLOSED and member.number not in position.aggregates:
                body = Aggregate(
                    **place,
                    close_hash=current.close_hash,
                    excluded=(),
                    groups=(
                        GroupSum(
                            set_digest=digest_of_set(current.submissions),
                            num_posts=len(current.submissions),
                            sum=board.blob(hashlib.sha256(name).digest()),
                        ),
                    ),
                )
            elif position.progress is Progress.AGGREGATED and member.number not in {
                share.member for share in position.count_shares
            }:
                body = CountShare(**place, agreed=Seat.of(state, task.task_id).agreed_digest, shares=(b"\1",))
            elif position.progress is Progress.COUNTED and member.number not in {
                share.member for share in position.sum_shares
            }:
                share = board.blob(hashlib.sha256(bytes([member.number])).digest())
                body = SumShare(**place, agreed=Seat.of(state, task.task_id).agreed_digest, shares=(share,))
            if body is not None:
                board.post(board.signed(member.role, body))


# Replay


@dataclass
class Recorded:
    """Blocks, and what is needed to verify them."""

    genesis: bytes
    blocks: list[bytes]
    start: bytes | None = None
    """A snapshot after the first block, on an oracle's board."""
    keys: str = ""
    """The directory of the proof keys, on a real board."""
    blobs: dict[bytes, bytes] | None = None


def replay(recorded: Recorded) -> list[str]:
    """Return the hashes of the blocks as the replay derives them, and of the state at the end."""
    genesis = Genesis.from_bytes(recorded.genesis)
    blocks = [Block.from_bytes(data) for data in recorded.blocks]
    if recorded.start is not None:
        state = snapshot.decode(recorded.start, genesis, blocks[0].header)
        chain, blocks = Chain(state, OracleVerifier(genesis.hash, set())), blocks[1:]
    else:
        keys = KeyDirectory.open(Path(recorded.keys))
        verifier = Verifier(
            genesis.hash,
            keys.registration_verifier(threads=1),
            keys.submission_verifier(threads=1),
            MemoryAttachments(recorded.blobs),
        )
        chain = Chain(State.at_genesis(genesis), verifier)
    return [chain.follow(block).hex() for block in blocks]


def record(board: OracleBoard) -> Recorded:
    blocks = [block.to_bytes() for block in board.blocks]
    return Recorded(board.genesis.to_bytes(), blocks, start=board.snapshots[0])


def random_histories(seed: int, number: int) -> list[Recorded]:
    generator = random.Random(seed)
    return [record(play_history(generator.randrange)) for _ in range(number)]


def write(path: Path, recorded: Sequence[Recorded]) -> None:
    path.write_bytes(msgspec.msgpack.encode(list(recorded)))


if __name__ == "__main__":
    for one in msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[Recorded]):
        print("\n".join(replay(one)))
