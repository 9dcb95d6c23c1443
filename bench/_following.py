"""What following a board costs one client in an iteration: every posting, or headers and a sample.

Real submissions are made once, and stand in for as many as there are posts. Who follows every posting
verifies them again and again, in one batch each time, with nothing kept of the time before, up to
``FOLLOWED`` posts in all; rows for more say "from" and are computed. Who follows headers fetches blocks with
as many names over loopback, verifies and keeps them; the real submissions lie among them at random, and the
draw, which is by chance alone, is among these. Bytes are those of the answers. The client tree grows apart.
"""

import math
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from _table import Row

from anofel.board.chain import Chain, verify_commit
from anofel.board.log import merkle_root
from anofel.board.rule import Rejected
from anofel.board.verification import Verifier
from anofel.light_client import header_client, sample
from anofel.light_client.header_client import HeaderClient
from anofel.messages.postings import posting_id
from anofel.network.transport import Transport
from anofel.primitives import ClientTree, Commitment
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard
from tests.board.prepared import a_submission, fork
from tests.board.served import ServedWorld, serving
from tests.board.world import CLASS, World, a_task

KIB: Final = 1 << 10
SIZES: Final = (100, 1_000, 10_000, 100_000)
FOLLOWED: Final = 10_000
"""So many posts are followed one by one; more would take minutes and tell nothing new."""
IN_A_BLOCK: Final = 1_000
POSTS: Final = 48
"""So many real submissions are made."""


def cpu(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Processor seconds of this process; of a thread, where a node in another one works meanwhile."""
    start = clock()
    work()
    return clock() - start


class Following:
    """A board whose first iteration is open, with real submissions in its next block."""

    def __init__(self, keys: KeyDirectory, posts: int) -> None:
        self.keys, self.posts = keys, posts
        size = replace(CLASS, max_posts=posts, train=10_000)
        self.world = World(keys, classes=(size,))
        self.world.offer_certifier_key()
        for _ in range(2):
            self.world.establish()
        self.world.board.next_block()
        privacy = {"max_posts": posts, "min_clients": 2}
        for number, made in enumerate(self.world.committees):
            self.world.announce(made, a_task(f"study {number}", privacy=privacy, model={"scale_bits": 12}))
        self.world.add_clients(posts)
        self.world.board.next_block()
        for owner in self.world.owners:
            self.world.post_first_model(owner)
        self.world.board.next_block()
        self.before = fork(self.world)
        made_by_all = (a_submission(self.world, number, number % 2) for number in range(posts))
        self.submissions = [posting.data for posting in made_by_all]

    def fresh(self) -> Verifier:
        """Return a verifier that has read the committees' keys, and verified the first submission alone."""
        verifier = Verifier(
            self.world.genesis.hash,
            self.keys.registration_verifier(threads=1),
            self.keys.submission_verifier(threads=1),
            self.world.board.attachments,
        )
        Chain(fork(self.before).board.state, verifier).offer(self.submissions[0])
        return verifier

    def follow(self, number: int) -> float:
        """Verify so many submissions, as many at a time as are real; return the processor seconds."""
        spent = 0.0
        for _ in range(math.ceil(number / (self.posts - 1))):
            chain = Chain(fork(self.before).board.state, self.fresh())
            others = self.submissions[1:]
            results: list[Any] = []
            spent += cpu(lambda c=chain, o=others, r=results: r.extend(c.offer_many(o)))  # type: ignore[misc]
            assert not any(isinstance(result, Rejected) for result in results)
        return spent * number / (math.ceil(number / (self.posts - 1)) * (self.posts - 1))


def rows_of_following(
    keys: KeyDirectory, sizes: Sequence[int] = SIZES, *, posts: int = POSTS, followed: int = FOLLOWED
) -> list[Row]:
    made = Following(keys, posts)
    served = ServedWorld(made.world, keys)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, serving(served) as url:
        client = HeaderClient(Path(scratch) / "view", Transport(url), genesis_hash=made.world.genesis.hash)
        client.sync()
        _add_block(served, made.submissions)
        with patch.object(header_client, "draw", lambda _number, _expected: []):
            client.sync()
        block = served.blocks[-1]
        header = min(cpu(lambda: verify_commit(made.world.genesis, client._eras, block)) for _ in range(20))
        rows += [
            Row("following: a header with one vote", header * 1000, "ms"),
            Row("following: a header with the seal of four validators", _sealed(keys) * 1000, "ms"),
            Row("following: bytes of a submission", len(block.to_bytes()) / posts / KIB, "KiB"),
        ]
        one = 0.0
        for number in sizes:
            if number <= followed:
                one = made.follow(number) / number
                how = f"{number:,} posts: processor, every posting"
            else:
                how = f"{number:,} posts: processor, every posting (from {followed:,})"
            rows.append(Row(how, one * number, "s"))
            rows.append(
                Row(
                    f"{number:,} posts: bytes, every posting",
                    len(block.to_bytes()) / posts * number / KIB,
                    "KiB",
                )
            )
            client.verifier = made.fresh()
            rows += _rows_of_headers(client, served, number, made.submissions[1:])
        client.close()
    return rows


def _sealed(keys: KeyDirectory) -> float:
    board = CommitteeBoard(keys)
    board.until(3)
    eras, block = board.state.validators.eras, board.blocks[-1]
    return min(cpu(lambda: verify_commit(board.genesis, eras, block)) for _ in range(20))


def _add_block(served: ServedWorld, postings: Sequence[bytes]) -> None:
    """Add a signed block with these postings, of which the state hears nothing."""
    block, world = served.next_block(), served.world
    header = replace(block.header, postings=merkle_root([posting_id(data) for data in postings]))
    signature = world.validator.sign(header.vote_bytes(world.genesis.hash))
    vote = replace(block.commit[0], signature=signature)
    served.blocks[-1] = replace(block, header=header, commit=(vote,), postings=tuple(postings))
    world.board.state.tip = header.hash(world.genesis.hash)
    served.note()


def _rows_of_headers(
    client: HeaderClient, served: ServedWorld, number: int, submissions: Sequence[bytes]
) -> list[Row]:
    """Let a client in header mode follow blocks with so many names, and draw as it does."""
    real = random.sample(submissions, min(len(submissions), number))
    others = [secrets.token_bytes(32) for _ in range(number - len(real))]
    begun = len(served.blocks)
    for first in range(0, number, IN_A_BLOCK):
        here, rest = (
            ([], others[first : first + IN_A_BLOCK]) if first else (real, others[: IN_A_BLOCK - len(real)])
        )
        postings = [*here, *rest]
        random.shuffle(postings)
        _add_block(served, postings)
    places = [place for place, data in enumerate(served.blocks[begun].postings) if data in set(real)]
    drawn = random.sample(places, min(sample.SAMPLE, len(places)))
    outline = len(served.outlines.outline(len(served.blocks), None))
    asked, judging = Counter[str](), 0.0

    def count(_served: ServedWorld, path: str, answer: bytes) -> bytes:
        kind = "names" if path.startswith("/v1/names") else "drawn" if "/postings/" in path else "state"
        asked[kind] += len(answer)
        return answer

    def draw(_number: int, _expected: int) -> list[int]:
        nonlocal drawn
        now, drawn = drawn, []
        return now

    def judge(*arguments: Any) -> Rejected | None:
        nonlocal judging
        start = time.thread_time()
        try:
            return sample.judge(*arguments)
        finally:
            judging += time.thread_time() - start

    checked, served.lie = client.checked, count
    with patch.object(header_client, "draw", draw), patch.object(header_client, "judge", judge):
        spent = cpu(client.sync, time.thread_time)
    served.lie = lambda _served, _path, answer: answer
    assert client.state.height == len(served.blocks)
    judged = client.checked - checked
    leaves = [Commitment.from_bytes(secrets.token_bytes(31) + b"\0") for _ in range(number)]
    grown = cpu(lambda: ClientTree().append(leaves))
    what = f"{number:,} posts"
    return [
        Row(f"{what}: processor, headers: names and state", spent - judging, "s"),
        Row(f"{what}: processor, headers: {judged} drawn", judging, "s"),
        Row(f"{what}: processor, headers: as many new leaves, once", grown, "s"),
        Row(f"{what}: bytes, headers: names", asked["names"] / KIB, "KiB"),
        Row(f"{what}: bytes, headers: drawn", asked["drawn"] / KIB, "KiB"),
        Row(f"{what}: bytes, headers: state, whole", outline / KIB, "KiB"),
    ]
