"""The leaks that can be put back, by name (``--weaken``)."""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from anofel.board import block_end, seat, statements, verification
from anofel.board.claims import SubmissionClaim
from anofel.board.interface import Board, BoardView
from anofel.board.seat import Seat, Sitting
from anofel.errors import InvalidInput, InvalidProof, PeerUnreachable
from anofel.games.collusion import open_count
from anofel.games.parties import PlayedClient
from anofel.games.setting import FEW_ROWS, POST_FROM, WINDOW
from anofel.games.weak import Weakening, replaced
from anofel.ids import TaskId
from anofel.messages import Blob, KeyAuthor, Posting, Submission, make_posting
from anofel.models.parameters import Integers
from anofel.phase1_setup import step1b_registration
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase2_training import step5_submission
from anofel.phase2_training.step5_submission import Membership, post_submission
from anofel.primitives import Epoch, MessageSecret, Scope
from anofel.privacy import protect
from anofel.privacy.plan import Plan
from anofel.privacy.protect import NoiseTooWide
from anofel.roles.client import role as client_role
from anofel.roles.client import turn as client_turn
from anofel.roles.client.journal import Turn
from anofel.roles.client.task import CheckedTask, check_task
from anofel.roles.client.turn import Underway
from anofel.simulation.committees import SimulatedCommittee

MODULUS: Final = (1 << 255) - 19
"""Of the group in which the additive tag lives; any group shows the same."""
PEDERSEN: Final = (9, 4)
"""Two generators."""
COMMITTEES: Final = 20
"""As many aggregator sets there are to choose from, where a client chooses."""
CHOSEN: Final = 3


def is_large(client: PlayedClient) -> bool:
    """Whether a client has many rows: what its machine, its data or its time shows of it."""
    return len(client.maker.load_rows().dataset) > 10 * FEW_ROWS


def is_small(client: PlayedClient) -> bool:
    """Whether a client has few rows."""
    return len(client.maker.load_rows().dataset) <= FEW_ROWS


class PostsWhenReady(PlayedClient):
    """Posts as soon as it has trained; many rows take longer."""

    def _begin(self, checked: CheckedTask, sitting: Sitting) -> Turn | None:
        turn = super()._begin(checked, sitting)
        if turn is None or turn.skipped:
            return turn
        delay = WINDOW - 1 if is_large(self) else 0
        return self._moved(turn, sitting.iteration.opened_at + POST_FROM + delay)

    def _moved(self, turn: Turn, height: int) -> Turn:
        self.journal.move(turn, height)
        return replace(turn, post_at=height)


class PostsInOrder(PostsWhenReady):
    """Posts at a time that follows from its place among the registered."""

    def _begin(self, checked: CheckedTask, sitting: Sitting) -> Turn | None:
        turn = PlayedClient._begin(self, checked, sitting)
        if turn is None or turn.skipped:
            return turn
        place = sitting.clients.position(self.own_commitment()) % WINDOW
        return self._moved(turn, sitting.iteration.opened_at + POST_FROM + place)

    def linger(self, seconds: float) -> None:
        """Send at once."""


class OwnMoment(PlayedClient):
    """Sends at the same moment of every block, each client at one of its own."""

    def linger(self, seconds: float) -> None:  # noqa: ARG002 - the drawn time is what is left away
        """Wait for the moment of this client; what comes after it waits for the next block."""
        digest = hashlib.sha256(self.credential.msk.public_key().to_bytes()).digest()
        moment, now = digest[0] / 256, self.seen_by.now
        self.seen_by.now = int(now) + moment + (moment < now % 1)


class UploadsWhenReady(PlayedClient):
    """Stores its payloads when they are made, not when it posts: with few rows, long before."""

    _early: dict[bytes, Blob]

    def _take_turn(self, turn: Turn, sitting: Sitting) -> str:
        underway = self._underway
        if underway is not None and underway.turn == sitting.turn and is_small(self):
            self._seal(turn, underway, sitting)
            draft = self.drafts.read(turn.bundle, turn.iteration)
            self._early = {payload: self.seen_by.upload(payload) for payload in draft.payloads}
        return super()._take_turn(turn, sitting)

    def _sign(self, turn: Turn) -> Posting:
        if not is_small(self):
            return super()._sign(turn)
        draft = self.drafts.read(turn.bundle, turn.iteration)
        return post_submission(cast(Board, _Uploaded(self.seen_by, self._early)), draft)


class _Uploaded:
    """A board that has the payloads already."""

    def __init__(self, board: Any, stored: dict[bytes, Any]) -> None:
        self._board, self._stored = board, stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._board, name)

    def upload(self, data: bytes, *, ticket: bytes = b"") -> Any:  # noqa: ARG002 - they are there
        return self._stored[data]


class SaysItsVersion(PlayedClient):
    """Names its program in every message; not everybody has the same."""

    def work(self) -> None:
        """Follow the board, with longer messages where the program is another one."""
        self.seen_by.overhead = len("version 0.9.12") if is_large(self) else len("version 0.9")
        super().work()


class ForgetsWhenKilled(PlayedClient):
    """Keeps no draft: what was begun before a crash is given up."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for turn in self.journal.unfinished():
            self.journal.skip(turn, "crashed", "")


class MalformedWhenLarge(PlayedClient):
    """Posts what the board refuses if it has many rows."""

    def _sign(self, turn: Turn) -> Posting:
        posting = super()._sign(turn)
        if not is_large(self):
            return posting
        draft = self.drafts.read(turn.bundle, turn.iteration)
        assert isinstance(posting.body, Submission)
        spoilt = replace(posting.body, ballot=posting.body.ballot[:-1] + b"\0")
        shown = draft.membership
        author = KeyAuthor(shown.message_key)
        return make_posting(spoilt, author, self.board.genesis.hash, shown.message_secret.sign)


class OwnAggregators(PlayedClient):
    """Chooses aggregator sets once, and says in every post which: "a client will have a fixed AG"."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        others = secrets.SystemRandom().sample(range(1, COMMITTEES), CHOSEN - 1)
        self.seen_by.beside = lambda _posting: bytes(sorted([0, *others]))


class PedersenTag(PlayedClient):
    """Makes its tag with the paper's hash, which is additive: H(msk ‖ a) = g^msk · h^a."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        msk = int.from_bytes(self.credential.msk.to_secret_bytes(), "little")

        def tag(posting: Posting) -> bytes:
            g, h = PEDERSEN
            made = pow(g, msk, MODULUS) * pow(h, public_a(posting), MODULUS) % MODULUS
            return made.to_bytes(32, "little")

        self.seen_by.beside = tag


def public_a(posting: Posting) -> int:
    """A = H(pk_sig), which everybody computes from a posting."""
    assert isinstance(posting.author, KeyAuthor)
    return int.from_bytes(hashlib.sha256(posting.author.message_key).digest(), "little")


class OneKey(PlayedClient):
    """Signs every post with the same key."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._key = MessageSecret.generate()

    def _begin_post(self, turn: Turn, sitting: Sitting) -> str:
        with replaced(step5_submission, "MessageSecret", _Always(self._key)):
            return super()._begin_post(turn, sitting)


class _Always:
    def __init__(self, value: Any) -> None:
        self._value = value

    def generate(self) -> Any:
        return self._value


@contextmanager
def one_scope(_oracle: Any) -> Iterator[None]:
    """Let nullifiers say nothing of the iteration, at clients and at the board."""

    class OneScope:
        def __new__(cls, genesis: bytes, bundle: int, _iteration: int) -> Any:
            return Scope(genesis, bundle, 0)

    with replaced(step5_submission, "Scope", OneScope), replaced(seat, "Scope", OneScope):
        yield


def own_model(board: BoardView, sitting: Sitting) -> dict[TaskId, bytes]:
    """Read the model of one's own task alone."""
    own = getattr(board, "own_owner", "")
    tasks = [board.state.tasks[name] for name in sitting.bundle.tasks]
    return {
        task.task_id: board.attachments.read(task.model)
        for task in tasks
        if task.model is not None and task.owner.hex() == own
    }


class ReadsOwnModel(PlayedClient):
    """Reads the model of its own task alone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.board.own_owner = self.settings.wanted.owner  # type: ignore[attr-defined]


@contextmanager
def models_by_need(_oracle: Any) -> Iterator[None]:
    """Let clients read what they need."""
    with replaced(client_role, "fetch_models", own_model), replaced(client_turn, "fetch_models", own_model):
        yield


class OwnRoot(PlayedClient):
    """Proves under the state of the board that it likes (sid): here the one that its registration made."""

    def _begin_post(self, turn: Turn, sitting: Sitting) -> str:
        own = sitting.clients.at_size(sitting.clients.position(self.own_commitment()) + 1)
        _ROOTS_IN_USE.add(own.root().to_bytes())
        real = step5_submission.prove_membership

        def prove(credential: Credential, **options: Any) -> Membership:
            return real(credential, **{**options, "clients": own})

        with replaced(step5_submission, "prove_membership", prove):
            return super()._begin_post(turn, sitting)


_ROOTS_IN_USE: Final[set[bytes]] = set()


@contextmanager
def any_root(oracle: Any) -> Iterator[None]:
    """Let the board accept a proof under any of its roots, as the paper's does: the message says which."""
    real = statements.submission_item

    def under_any(claim: SubmissionClaim) -> Any:
        for root in (claim.client_root, *_ROOTS_IN_USE):
            item = real(replace(claim, client_root=root))
            with suppress(InvalidProof):
                oracle.node.board.chain.verifier.submission.verify(*item)
                return item
        return real(claim)

    with replaced(verification, "submission_item", under_any):
        yield


@contextmanager
def one_board(_oracle: Any) -> Iterator[None]:
    """Let nullifiers be the same in every task and on every board."""

    class OneBoard:
        def __new__(cls, _genesis: bytes, _bundle: int, _iteration: int) -> Any:
            return Scope(bytes(32), 0, 0)

    with replaced(step5_submission, "Scope", OneBoard), replaced(seat, "Scope", OneBoard):
        yield


@contextmanager
def one_epoch(_oracle: Any) -> Iterator[None]:
    """Let registration nullifiers say nothing of the epoch, at clients and at the board."""

    class OneEpoch:
        def __new__(cls, genesis: bytes, _epoch: int) -> Any:
            return Epoch(genesis, 0)

    with replaced(step1b_registration, "Epoch", OneEpoch), replaced(statements, "Epoch", OneEpoch):
        yield


class TrainsAgain(PlayedClient):
    """Whose post was lost trains again before it sends it again; with many rows that takes too long."""

    _lost = 0

    def _post(self, turn: Turn) -> str:
        if is_large(self) and 0 < self.state.height - self._lost < 2 * WINDOW:
            return "its training"
        try:
            return super()._post(turn)
        except PeerUnreachable:
            self._lost = self.state.height
            raise


class SkipsWithFewRows(PlayedClient):
    """Takes no part if it has few rows: a floor that looks at the data."""

    def _begin(self, checked: CheckedTask, sitting: Sitting) -> Turn | None:
        turn = super()._begin(checked, sitting)
        if turn is not None and not turn.skipped and is_small(self):
            self.journal.skip(turn, "few-rows", "")
            return replace(turn, skipped="few-rows")
        return turn


class RefundsWhenItFails(PlayedClient):
    """Takes a charge back if its training failed, so its budget lasts longer."""

    def _seal(self, turn: Turn, underway: Underway, sitting: Sitting) -> None:
        failed = underway.training is not None and bool(underway.training.take().failure)
        super()._seal(turn, underway, sitting)
        if failed:
            self.ledger.refund(turn.charge)


@contextmanager
def ends_at_once(_oracle: Any) -> Iterator[None]:
    """Let an iteration end as soon as all owners ask for it, whoever could still post."""

    def ends(sitting: Sitting) -> bool:
        state, current = sitting.state, sitting.iteration
        return {task.task_id for task in state.live_tasks(sitting.bundle)} <= current.end_votes

    with replaced(block_end, "_ends_early", ends):
        yield


class TrainsByRows(PlayedClient):
    """Trains another task of the bundle than it was told if it has many rows."""

    def find_task(self) -> CheckedTask:
        """Take the other task."""
        checked = super().find_task()
        if not is_large(self):
            return checked
        other = next(task for task in self.state.tasks.live() if task.task_id != checked.posted.task_id)
        return check_task(other, self._schema, self.credential.dt)


class OpensAnything(SimulatedCommittee):
    """Opens the count of whatever was submitted, however little it is."""

    def open_little(self, seat: Seat) -> int | None:
        """Return the count of an iteration that had too few posts."""
        return open_count(self.key, self.members[: self.key.shape.threshold], seat, list(seat.posts()))


def no_noise(plan: Plan, position: int | None = None) -> Integers:  # noqa: ARG001 - as draw_noise
    """Add nothing to an update."""
    return np.zeros(plan.dimension, dtype=np.int64)


@contextmanager
def without_noise(_oracle: Any) -> Iterator[None]:
    """Let clients send what they computed."""
    with replaced(protect, "draw_noise", no_noise):
        yield


class SkipsWhenItFails(PlayedClient):
    """Posts nothing if its training failed."""

    def _seal(self, turn: Turn, underway: Underway, sitting: Sitting) -> None:
        if underway.training is not None and underway.training.take().failure:
            raise NoiseTooWide("Training failed, so nothing is sent.")
        super()._seal(turn, underway, sitting)


CATALOGUE: Final = (
    Weakening(
        name="open-anything",
        about="A committee opens the count of whatever was submitted, however few posts there are.",
        is_papers=True,
        committee=OpensAnything,
    ),
    Weakening(
        name="corrupt-majority",
        about="The adversary may corrupt t members of a committee, one more than n − t.",
        corruptible=lambda _members, threshold: threshold,
    ),
    Weakening(
        name="end-at-once",
        about="An iteration ends when its owners ask for it, and a client posts when it has trained.",
        client=PostsWhenReady,
        around=ends_at_once,
    ),
    Weakening(
        name="task-by-rows",
        about="A client with many rows trains another task of the bundle than it was told.",
        client=TrainsByRows,
    ),
    Weakening(
        name="believes-owner",
        about="A client reckons with as many colluders as the owner says: none.",
        colluders=lambda _own: 0,
    ),
    Weakening(name="no-noise", about="Clients add no noise.", around=without_noise),
    Weakening(
        name="skip-when-training-fails",
        about="A client posts nothing if its training failed.",
        client=SkipsWhenItFails,
    ),
    Weakening(
        name="skip-with-few-rows",
        about="A client with few rows takes no part.",
        client=SkipsWithFewRows,
    ),
    Weakening(
        name="refund-when-training-fails",
        about="A client takes its charge back if its training failed.",
        client=RefundsWhenItFails,
    ),
    Weakening(
        name="post-when-ready",
        about="A client posts when it has trained, not at a drawn time.",
        client=PostsWhenReady,
    ),
    Weakening(
        name="post-in-order",
        about="Clients post in the order in which they registered.",
        client=PostsInOrder,
    ),
    Weakening(
        name="own-moment",
        about="A client sends at its own moment of a block, always the same.",
        client=OwnMoment,
    ),
    Weakening(
        name="upload-when-ready",
        about="A client stores its payloads when they are made, not when it posts.",
        client=UploadsWhenReady,
    ),
    Weakening(
        name="version-in-requests", about="Messages name the program that sends them.", client=SaysItsVersion
    ),
    Weakening(
        name="no-drafts", about="A client that was killed gives its iteration up.", client=ForgetsWhenKilled
    ),
    Weakening(
        name="trains-again",
        about="A client whose post was lost trains again before it sends it again.",
        client=TrainsAgain,
    ),
    Weakening(
        name="malformed-when-large",
        about="A client with many rows makes posts that the board refuses.",
        client=MalformedWhenLarge,
    ),
    Weakening(
        name="own-aggregators",
        about="A client names the aggregator sets that it chose once for all.",
        is_papers=True,
        client=OwnAggregators,
    ),
    Weakening(
        name="pedersen-tag",
        about="The tag is made with an additive hash.",
        is_papers=True,
        client=PedersenTag,
    ),
    Weakening(
        name="own-root",
        about="A client proves under the state of the board that it chose, here that of its registration.",
        is_papers=True,
        client=OwnRoot,
        around=any_root,
    ),
    Weakening(name="one-key", about="A client signs all its posts with one key.", client=OneKey),
    Weakening(
        name="one-nullifier",
        about="The nullifier does not depend on the iteration.",
        around=one_scope,
    ),
    Weakening(
        name="one-board",
        about="The nullifier depends neither on the iteration, nor on the bundle, nor on the board.",
        around=one_board,
    ),
    Weakening(
        name="one-epoch",
        about="The nullifier of a registration does not depend on the epoch.",
        around=one_epoch,
    ),
    Weakening(
        name="own-model-only",
        about="A client reads the model of its task, not every model of the bundle.",
        client=ReadsOwnModel,
        around=models_by_need,
    ),
    Weakening(name="no-proxy", about="Clients reach the node without a proxy.", proxy=False),
)


def weakening_named(name: str) -> Weakening:
    """Return a weakening. Raises ``InvalidInput``."""
    for found in CATALOGUE:
        if found.name == name:
            return found
    names = ", ".join(found.name for found in CATALOGUE)
    raise InvalidInput(f"There is no weakening '{name}'; there are {names}.")
