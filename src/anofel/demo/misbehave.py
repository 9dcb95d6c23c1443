"""Three cheaters, as processes: two clients and an aggregator that also do their honest work.

    python -m anofel.demo.misbehave client DIRECTORY KEY-FILE

What each tries, and what the board, or for the liar every member of its committee, must answer:

====================================================== ==========================
a second submission in one iteration                   ``nullifier-spent``
a registration with a certificate of one's own         ``unknown-certifier-root``
the same, under the board's own certifier root         ``bad-registration-proof``
another client's submission, in the next iteration     ``bad-submission-proof``
a share of a count with a wrong proof                  ``bad-count-share``
a share of a sum that was tampered with                ``bad-sum-share``
garbage in place of an encrypted update                ``payload-refused``
====================================================== ==========================

Every answer is written to ``tried.jsonl`` in the cheater's directory; what comes at a wrong moment is
tried again.
"""

import hashlib
import json
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from anofel.board.seat import Seat, Sitting
from anofel.board.state import Phase
from anofel.committee.errors import PayloadRefused
from anofel.disk.keystore import KeyFile
from anofel.disk.state_files import decode_state
from anofel.errors import AnofelError
from anofel.ids import Nullifier, TaskId
from anofel.light_client.base import BoardClient
from anofel.messages import Block, ChainAuthor, KeyAuthor, Posting, Registration, Submission, make_posting
from anofel.network.transport import Refused
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.phase2_training.step5_submission import (
    post_submission,
    prepare_submission,
    seal_submission,
)
from anofel.phase3_access.step8_partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    DatasetDigest,
    MasterSecret,
    MessageSecret,
    Salt,
)
from anofel.roles.aggregator.role import Aggregator, Duty
from anofel.roles.client.files import salt_of
from anofel.roles.client.journal import Turn
from anofel.roles.client.role import Client
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import Role, Say
from anofel.stopping import Stopped, stoppable

TRIED: Final = "tried.jsonl"

DOUBLE: Final = "a second submission in one iteration"
FORGED: Final = "a registration with a forged certificate"
FORGED_ROOT: Final = "a forged certificate under the board's certifier root"
REPLAYED: Final = "another client's submission, replayed in the next iteration"
BAD_COUNT: Final = "an aggregator's share of a count with a wrong proof"
BAD_SUM: Final = "an aggregator's share of a sum, tampered with"
LIE: Final = "garbage in place of an encrypted update"
AS_IT_WAS: Final = "the very bytes of another client's posting, once more"

EXPECTED: Final = {
    DOUBLE: "nullifier-spent",
    FORGED: "unknown-certifier-root",
    FORGED_ROOT: "bad-registration-proof",
    REPLAYED: "bad-submission-proof",
    BAD_COUNT: "bad-count-share",
    BAD_SUM: "bad-sum-share",
    LIE: PayloadRefused.code,
}
"""What is tried, and the code with which the board, or every member, must refuse it."""
ACCEPTED: Final = "accepted"
"""Instead of a code: what must be refused was taken."""


@dataclass(frozen=True)
class Try:
    """One attempt and the board's answer; without a code the board knew the posting and took nothing new."""

    what: str
    code: str
    detail: str
    height: int


def read_tries(directory: Path) -> list[Try]:
    """Read what a cheater tried."""
    try:
        lines = (directory / TRIED).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [decode_state(line, Try, TRIED) for line in lines if line.endswith("}")]


class Tries:
    """What a cheater tried so far, in its directory."""

    def __init__(self, board: BoardClient, directory: Path) -> None:
        self._board, self._path = board, directory / TRIED
        self._done = {tried.what for tried in read_tries(directory)}

    def is_done(self, what: str) -> bool:
        """Whether the board gave the answer that counts."""
        return what in self._done

    def post(self, what: str, posting: Posting) -> None:
        """Post and write the answer down; an answer that only says "not now" is tried again later."""
        expected = EXPECTED.get(what, "")
        try:
            self._board.post(posting)
            tried = Try(what, ACCEPTED if expected else "", "The board took it.", self._height)
        except Refused as refusal:
            tried = Try(what, refusal.code, refusal.detail, self._height)
        if tried.code in (expected, ACCEPTED):
            self.note(tried)

    def note(self, tried: Try) -> None:
        """Write an answer down that counts."""
        self._done.add(tried.what)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(tried)) + "\n")

    @property
    def _height(self) -> int:
        return self._board.state.height


class CheatingClient(Client):
    """A client that trains, and tries to count twice, to get in unseen and to speak for others."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say, **options: Any) -> None:
        super().__init__(directory, board, say, **options)
        self.tries = Tries(board, directory.path)
        self._captured: Posting | None = None
        self._spare: tuple[int, Posting] | None = None
        """A second submission, made beside the first, for one iteration."""

    def step(self) -> str:
        """Do what is due, then cheat."""
        waits_for = super().step()
        if self.is_registered(self.state):
            self._forge()
            self._replay()
            self._post_late()
        return waits_for

    def observe(self, block: Block) -> None:
        """Keep a submission of somebody else."""
        super().observe(block)
        for data in block.postings if self._captured is None else ():
            posting = Posting.from_bytes(data)
            body = posting.body
            if isinstance(body, Submission) and not self._is_ours(body):
                self._captured = posting

    def _is_ours(self, body: Submission) -> bool:
        scope = Sitting.of(self.state, body.bundle).scope
        ours = self.credential.msk.iteration_nullifier(self.credential.d, scope)
        return body.nullifier == ours.to_bytes()

    def _forge(self) -> None:
        """Register what a certifier of our own certified."""
        if self.tries.is_done(FORGED) and self.tries.is_done(FORGED_ROOT):
            return
        state, secret = self.state, MessageSecret.generate()
        certifier, msk = CertifierSecret.generate(), MasterSecret.generate()
        d, dt = DatasetDigest.of_chunks([secrets.token_bytes(32)]), self.credential.dt
        credential = Credential(
            msk, d, dt, certifier.public_key(), certifier.certify(d, msk.public_key(), dt)
        )
        tree = CertifierTree()
        tree.append([certifier.public_key()])
        forged = make_registration(
            credential,
            salt=Salt.generate(),
            certifiers=tree,
            genesis=state.genesis_hash,
            epoch=state.epoch,
            message_secret=secret,
            prover=self._keys.registration_prover(threads=1),
        )
        assert isinstance(forged.body, Registration)
        under_root = replace(forged.body, certifier_root=state.certifier_tree.root().to_bytes())
        self.tries.post(FORGED, forged)
        self.tries.post(FORGED_ROOT, make_posting(under_root, forged.author, state.genesis_hash, secret.sign))

    def _replay(self) -> None:
        """Post somebody else's submission again: as it is, and in the next iteration under our own key."""
        captured = self._captured
        if captured is None or self.tries.is_done(REPLAYED):
            return
        body = captured.body
        assert isinstance(body, Submission)
        bundle = self.state.bundles[body.bundle]
        if bundle.phase is Phase.OPEN and bundle.iterations > body.iteration:
            if not self.tries.is_done(AS_IT_WAS):
                self.tries.post(AS_IT_WAS, captured)
            secret = MessageSecret.generate()
            author = KeyAuthor(secret.public_key().to_bytes())
            again = replace(body, iteration=bundle.iterations)
            self.tries.post(REPLAYED, make_posting(again, author, self.state.genesis_hash, secret.sign))

    def _begin_post(self, turn: Turn, sitting: Sitting) -> str:
        waits_for = super()._begin_post(turn, sitting)
        if not self.tries.is_done(DOUBLE):
            self._spare = (turn.iteration, self._second(sitting))
        return waits_for

    def _post(self, turn: Turn) -> str:
        waits_for = super()._post(turn)
        iteration, spare = self._spare or (0, None)
        if spare is not None and iteration == turn.iteration and not self.tries.is_done(DOUBLE):
            self.tries.post(DOUBLE, spare)
        return waits_for

    def _post_late(self) -> None:
        """Too late for the drawn time: an honest client skips the iteration, this one posts, and again."""
        turns = self.journal.turns()
        if not turns or turns[-1].skipped != "late" or self.tries.is_done(DOUBLE):
            return
        sitting = Sitting.of(self.state, turns[-1].bundle)
        if sitting.is_open and sitting.number == turns[-1].iteration:
            with suppress(Refused):
                self.board.post(self._second(sitting))
            self.tries.post(DOUBLE, self._second(sitting))

    def _second(self, sitting: Sitting) -> Posting:
        """Make one more submission of this iteration, with a fresh key and a fresh proof."""
        prepared = prepare_submission(
            self.board,
            sitting,
            self.credential,
            salt=salt_of(self.directory.secrets, sitting.iteration.epoch),
            target=None,
            prover=self.maker.prover,
        )
        return post_submission(self.board, seal_submission(prepared, None))


class LyingClient(Client):
    """A client whose update is garbage, until its committee leaves it out; then it trains like everybody."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say, **options: Any) -> None:
        super().__init__(directory, board, say, **options)
        self.tries = Tries(board, directory.path)
        self._told: tuple[int, int, TaskId, Nullifier] | None = None
        """Bundle, iteration, task and nullifier of the lie."""

    def _sign(self, turn: Turn) -> Posting:
        if turn.cover or self.tries.is_done(LIE):
            return super()._sign(turn)
        draft = self.drafts.read(turn.bundle, turn.iteration)
        place = self.state.tasks[turn.task].position
        payloads = [*draft.payloads]
        payloads[place] = _garbage(payloads[place])
        self._told = turn.bundle, turn.iteration, turn.task, draft.membership.nullifier
        return post_submission(self.board, replace(draft, payloads=tuple(payloads)))

    def observe(self, block: Block) -> None:
        """Look at what the committee agreed on."""
        super().observe(block)
        if self._told is None or self.tries.is_done(LIE):
            return
        bundle, iteration, task, nullifier = self._told
        seat = Seat.of(self.state, task)
        agreed = seat.position.agreed
        if (seat.bundle.number, seat.number) == (bundle, iteration) and agreed is not None:
            is_excluded = nullifier in {excluded for excluded, _ in agreed.excluded}
            code, detail = (
                (PayloadRefused.code, "Its committee left it out.")
                if is_excluded
                else (ACCEPTED, "It was added.")
            )
            self.tries.note(Try(LIE, code, detail, self.state.height))


def _garbage(payload: bytes) -> bytes:
    """Other words of the same length, before the same proof; the same again if it is asked twice."""
    start = len(payload) // 16
    return hashlib.shake_128(payload).digest(start) + payload[start:]


class CheatingAggregator(Aggregator):
    """A member that first posts shares which it did not compute as it should."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say) -> None:
        super().__init__(directory, board, say)
        self.tries = Tries(board, directory.path)

    def _send_count_share(self, duty: Duty) -> None:
        if not self.tries.is_done(BAD_COUNT):
            share = share_of_count(self.board, duty.seat, self._share(duty))
            self._try(BAD_COUNT, replace(share, shares=tuple(map(_spoilt, share.shares))))
        super()._send_count_share(duty)

    def _send_sum_share(self, duty: Duty) -> None:
        if not self.tries.is_done(BAD_SUM):
            shares = tuple(map(_spoilt, share_of_sum(self.board, duty.seat, self._share(duty))))
            self._try(BAD_SUM, post_sum_share(self.board, duty.seat, duty.member, shares))
        super()._send_sum_share(duty)

    def _try(self, what: str, body: Any) -> None:
        author = ChainAuthor(self._role.chain)
        self.tries.post(what, make_posting(body, author, self.board.genesis.hash, self._role.sign))


def _spoilt(content: bytes) -> bytes:
    """Change one bit."""
    return content[:-1] + bytes([content[-1] ^ 1])


def main(kind: str, path: Path, key_file: Path) -> None:
    """Cheat until SIGTERM."""
    makers: dict[str, Callable[[RoleDirectory, BoardClient, Say], Role]] = {
        "client": CheatingClient,
        "liar": LyingClient,
        "aggregator": CheatingAggregator,
    }

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    with (
        suppress(Stopped),
        stoppable(),
        RoleDirectory.open(path, KeyFile(key_file), role="client" if kind == "liar" else kind) as directory,
    ):
        board = directory.connect(say)
        try:
            makers[kind](directory, board, say).run()
        finally:
            board.close()


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except AnofelError as error:
        sys.stderr.write(f"anofel: {error}\n")
        sys.exit(error.exit_code)
