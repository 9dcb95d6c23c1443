"""The client (steps 1.b and 3 to 5): registers anonymously, trains, and posts once in an iteration.

``step`` looks at the verified board and does the next thing that is due; ``run`` repeats it. Every
decision is written down before anything follows from it, so a client that is killed at any point
goes on where it was: what was drawn stays drawn, what was charged stays charged, and what may have
been sent is sent again with the same bytes, or not at all.
"""

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from anofel.board.attachments import AttachmentMissing
from anofel.board.seat import Sitting
from anofel.board.state import Progress, State
from anofel.board.waits import duration
from anofel.errors import AnofelError, InvalidInput, PeerUnreachable
from anofel.light_client.base import BoardClient, WaitedTooLong
from anofel.messages import Block, Class, Posting
from anofel.network.transport import Refused
from anofel.phase1_setup.step1b_registration import register
from anofel.phase2_training.step3_models import fetch_models
from anofel.phase2_training.step5_submission import post_submission
from anofel.primitives import Commitment
from anofel.privacy.protect import NoiseTooWide
from anofel.roles.certifier.policy import load_schema
from anofel.roles.client.draft import Drafts
from anofel.roles.client.files import (
    JOURNAL,
    SCHEMA,
    ClientSettings,
    credential,
    load_certified,
    open_ledger,
    read_keys,
    salt_of,
)
from anofel.roles.client.journal import Journal, Turn
from anofel.roles.client.task import CheckedTask, NoTask, TaskRefused, check_task, find_task
from anofel.roles.client.turn import (
    SEAL_AHEAD,
    NoWindow,
    PostMaker,
    Underway,
    draw_height,
    is_member,
    window,
)
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import Role, Say
from anofel.stopping import pause

DRAFTS: Final = "drafts"
REGISTER_AGAIN: Final = frozenset({"unknown-certifier-root", "wrong-epoch"})
"""Refusals of a registration that lay too long: a new one is made."""


class HasLeft(AnofelError):
    """The client left and takes part no longer."""

    code = "has-left"


class RegistrationRefused(AnofelError):
    """The board refused the registration. ``code`` is the board's."""

    code = "registration-refused"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Client(Role):
    """One client, in its directory, on its board."""

    maker_class: type[PostMaker] = PostMaker
    """What makes its posts."""

    def __init__(
        self,
        directory: RoleDirectory,
        board: BoardClient,
        say: Say = lambda _text: None,
        *,
        cover: bool = False,
        once: bool = False,
    ) -> None:
        """Open the journal, the ledger and the drafts. Raises ``NotCertified``, ``HasLeft``.

        With ``cover`` it posts without training. With ``once`` it is done when it took its turn in one
        iteration.
        """
        super().__init__(directory, board, say)
        self.cover, self.once = cover, once
        self.settings = ClientSettings.of(directory.config)
        self.credential = credential(directory.secrets)
        self.journal = Journal(directory.path / JOURNAL)
        if self.journal.has_left:
            raise HasLeft("This client has left; make a new one with anofel client init.")
        self.ledger = open_ledger(directory.path, self.settings, is_new=not self.journal.turns())
        self.drafts = Drafts(directory.path / DRAFTS, directory.secrets)
        self._schema = load_schema(directory.path / SCHEMA)
        self._keys = read_keys(self.settings, board, self.say)
        self._maker: PostMaker | None = None
        self._underway: Underway | None = None
        self._fetched = (0, 0)
        self._has_looked = False
        self._taken_before = len(self.turns_taken())
        self._settle()  # a crash may have come between a block and what it decides

    # Step 1.b: registration

    def is_registered(self, state: State) -> bool:
        """Whether the board holds this client's commitment in the current epoch."""
        made, epoch = self.credential, state.epoch
        if f"salt/{epoch}" not in self.directory.secrets:
            return False
        salt = salt_of(self.directory.secrets, epoch)
        try:
            state.clients.position(Commitment(made.d, made.msk, made.dt, salt))
        except ValueError:
            return False
        return True

    def register(self, *, seconds: float) -> int:
        """Register and wait until the board shows it; returns the size of the anonymity set. Safe to repeat.

        Raises ``RegistrationRefused``, ``WaitedTooLong``.
        """
        self._load_rows()
        deadline = time.monotonic() + seconds
        while True:
            self.board.sync(on_block=self.observe)
            if self.is_registered(self.state):
                return len(self.state.clients)
            self.waits_for = self._register()
            if time.monotonic() >= deadline:
                raise WaitedTooLong(f"Waited {seconds:.0f} seconds for {self.waits_for} in vain.")
            self.say(f"Waiting for {self.waits_for}; given up after {duration(seconds)}.")
            pause(self.board.poll_seconds())

    def _register(self) -> str:
        if not self._certifier_is_listed(self.state):
            return "the certifier's key on the board, which anofel certifier enroll posts"
        self.send_registration()
        return self.posted("its registration")

    def _certifier_is_listed(self, state: State) -> bool:
        found = state.certifiers.get(self.credential.certifier.to_bytes())
        return found is not None and found.in_force

    def send_registration(self) -> None:
        """Post the registration of this epoch; a stored one is sent again as it is."""
        epoch, outbox = self.board.state.epoch, self.directory.outbox
        for attempt in range(1, 100):
            name = f"registration/{epoch}/{attempt}"
            sent = outbox.send(self.board, name, self._make_registration)
            if sent.answer is None or not sent.answer.refused:
                return
            if sent.answer.refused not in REGISTER_AGAIN:
                raise RegistrationRefused(sent.answer.refused, sent.answer.detail)
        raise RegistrationRefused(
            "registration-refused", "The board refused the registration again and again."
        )

    def _make_registration(self) -> Posting:
        state = self.board.state
        return register(
            state,
            self.credential,
            salt=salt_of(self.directory.secrets, state.epoch),
            prover=self._keys.registration_prover(threads=1),
        )

    # Steps 3 to 5

    def work(self) -> None:
        """Follow the board to its last block, then take one step."""
        self._load_rows()
        super().work()

    def _load_rows(self) -> None:
        """Load and check the rows before the first request: a gap between two would show their number."""
        if not self.cover and not self._has_looked:
            self._has_looked = True
            with suppress(AnofelError):  # what is wrong is said when the turn comes
                self.maker.load_rows()

    def observe(self, block: Block) -> None:  # noqa: ARG002 - the state after it is what counts
        """Settle after each block what it decides."""
        self._settle()

    def find_task(self) -> CheckedTask:
        """Find the task of this client. Raises ``NoTask``, ``TaskRefused``."""
        wanted = self.settings.wanted
        chosen = self.journal.chosen_task(wanted.task)
        return find_task(self.state, wanted, chosen, self._schema, self.credential.dt)

    def step(self) -> str:
        """Do the next thing that is due on the board as it was last synced."""
        self._settle()
        state = self.state
        if (begun := self._begun()) is not None:  # under the root of its iteration, whatever came since
            return self._take_turn(*begun)
        if not self.is_registered(state):
            return self._register()
        try:
            checked = self.find_task()
        except (NoTask, TaskRefused, InvalidInput) as error:  # others may announce what they like
            return f"a task, until its owner announces it ({error})"
        sitting = Sitting.find(state, state.tasks[checked.posted.task_id].bundle)
        if sitting is None or not sitting.is_open:
            self._get_ready(checked)
            return self._next_iteration(checked)
        self._fetch_models(sitting)
        turn = self._begin(checked, sitting)
        return self._take_turn(turn, sitting) if turn else self._first_iteration(sitting.size)

    def _next_iteration(self, checked: CheckedTask) -> str:
        """Say that none is open; what comes first, and how long that can last, is on the board for all."""
        bundle = self.state.tasks[checked.posted.task_id].bundle
        if bundle is None:
            return f"the next iteration ({self.lasting(self.board.genesis.bundle_wait)} to form a bundle)"
        size = self.state.class_of(self.state.bundles[bundle])
        wait = self.lasting(size.aggregate + size.count + size.sum + size.model)
        return f"the next iteration ({wait}; owners and aggregators that run shorten it)"

    def _first_iteration(self, size: Class) -> str:
        whole = size.train + size.aggregate + size.count + size.sum + size.model
        wait = self.lasting((self.settings.first_wait + 1) * whole)
        return f"its first iteration, which is drawn at random ({wait}; first_wait = 0 shortens it)"

    def _end_of(self, turn: Turn) -> str:
        """What is waited for from the opening on: nothing that is said tells when the client posts."""
        size = self.state.class_of(self.state.bundles[turn.bundle])
        return f"the end of iteration {turn.iteration} ({self.lasting(size.train)})"

    def _begun(self) -> tuple[Turn, Sitting] | None:
        """The turn of an open iteration, whatever became of its task or the settings since."""
        for turn in self.journal.unfinished():
            sitting = Sitting.find(self.state, turn.bundle)
            if sitting is not None and sitting.is_open and sitting.number == turn.iteration:
                return turn, sitting
        return None

    @property
    def is_done(self) -> bool:
        """Whether the one iteration is over that was asked for; a client that was late tries the next."""
        return self.once and len(self.turns_taken()) > self._taken_before

    def turns_taken(self) -> list[Turn]:
        """The iterations that this client took part in or decided against, from the journal."""
        turns = self.journal.turns()
        return [turn for turn in turns if turn.accepted or turn.skipped not in ("", "late")]

    def _fetch_models(self, sitting: Sitting) -> None:
        """Download what every client of the bundle downloads, also one that does not post this time."""
        if self._fetched != sitting.turn:
            fetch_models(self.board, sitting)
            self._fetched = sitting.turn

    def _begin(self, checked: CheckedTask, sitting: Sitting) -> Turn | None:
        """Draw the time of the post and keep it; None if this newcomer still waits."""
        bundle, current = sitting.bundle, sitting.iteration
        if f"salt/{current.epoch}" not in self.directory.secrets:
            return None
        salt = salt_of(self.directory.secrets, current.epoch)
        if not is_member(sitting, self.credential, salt):
            return None
        drawn = current.number + secrets.randbelow(self.settings.first_wait + 1)
        if current.number < self.journal.first_iteration(current.epoch, bundle.number, drawn):
            return None
        charge = secrets.token_hex(16)
        turn = Turn(bundle.number, current.number, checked.posted.task_id, self.cover, charge, 0)
        try:
            turn = replace(turn, post_at=draw_height(window(sitting)))
            if self.state.height >= turn.post_at:
                turn = replace(turn, skipped="late", reason="The client came after the drawn time.")
        except NoWindow as error:
            turn = replace(turn, skipped=error.code, reason=str(error))
        if self.settings.wanted.task:
            self.journal.choose_task(self.settings.wanted.task, turn.task)
        self.journal.begin(turn)
        return turn

    def _take_turn(self, turn: Turn, sitting: Sitting) -> str:
        self._fetch_models(sitting)
        if turn.skipped:
            return f"the end of iteration {turn.iteration}, which it skips ({turn.skipped})"
        if turn.accepted:
            return self._end_of(turn)
        if self.directory.outbox.find(_submission(turn)) is not None:
            return self._post(turn)
        if not self.drafts.has(turn.bundle, turn.iteration):
            if self._underway is None or self._underway.turn != (turn.bundle, turn.iteration):
                return self._begin_post(turn, sitting)
            if self.state.height < turn.post_at - SEAL_AHEAD:
                return self._end_of(turn)
            try:
                self._seal(turn, self._underway, sitting)
            except NoiseTooWide as error:  # by the mechanism alone, whatever the data
                return self._skip(turn, error.code, str(error))
        return self._post_in_time(turn, sitting)

    def _begin_post(self, turn: Turn, sitting: Sitting) -> str:
        """Charge the iteration and begin to train, or to make a cover post; sealed when its time comes."""
        salt = salt_of(self.directory.secrets, sitting.iteration.epoch)
        try:
            if turn.cover:
                self._underway = self.maker.cover(self.board, sitting, salt)
            else:
                checked = check_task(self.state.tasks[turn.task], self._schema, self.credential.dt)
                if not self.ledger.holds(turn.charge):
                    self.settings.trust.check_bundle(self.state, sitting.bundle)
                self._underway = self.maker.begin(self.board, sitting, checked, salt, turn.charge)
        except (PeerUnreachable, Refused, AttachmentMissing):
            raise
        except AnofelError as error:
            if self.ledger.holds(turn.charge):  # from the charge on the client goes on trying to post
                self.say(f"Tries again in iteration {turn.iteration} ({error.code}): {error}")
                return self._end_of(turn)
            return self._skip(turn, error.code, str(error))
        return self._end_of(turn)

    def _seal(self, turn: Turn, underway: Underway, sitting: Sitting) -> None:
        """Encrypt what training made, or zero, and keep it: a retry sends the same bytes.

        Raises ``NoiseTooWide``. Nothing else refuses here: update and noise fit, each by itself.
        """
        sealed, failure = underway.seal(len(sitting.iteration.submissions) + 1)
        self._underway = None
        self.journal.excuse(turn, failure)  # always one write; said when the iteration is over
        self.drafts.keep(sealed)

    def _post_in_time(self, turn: Turn, sitting: Sitting) -> str:
        height = self.state.height
        if height > turn.post_at + 1:
            heights = window(sitting)
            rest = range(max(heights.start, height), heights.stop)
            if not rest:
                return self._skip(turn, "late", "The client was not there at the drawn time.")
            turn = replace(turn, post_at=draw_height(rest))
            self.journal.move(turn, turn.post_at)
        if height < turn.post_at:
            return self._end_of(turn)
        if sitting.is_full:
            return self._skip(turn, "iteration-full", "Others filled the iteration; nothing was sent.")
        self.linger(self.board.genesis.interval_ms / 1000 * secrets.randbelow(1000) / 1000)
        return self._post(turn)

    def linger(self, seconds: float) -> None:
        """Wait a drawn part of a block before the first request of a post."""
        pause(seconds)

    def _post(self, turn: Turn) -> str:
        self.journal.begin_sending(turn)
        sent = self.directory.outbox.send(self.board, _submission(turn), lambda: self._sign(turn))
        if sent.answer is not None and sent.answer.refused:
            return self._skip(turn, sent.answer.refused, sent.answer.detail)
        return self._end_of(turn)

    def _sign(self, turn: Turn) -> Posting:
        """Store the payloads and sign; the outbox keeps the bytes before they are sent.

        Where receipts expired, this is done again with the same draft: the same ciphertexts, proof and
        nullifier, with fresh receipts. Another update is never made.
        """
        return post_submission(self.board, self.drafts.read(turn.bundle, turn.iteration))

    def _skip(self, turn: Turn, code: str, reason: str) -> str:
        self.journal.skip(turn, code, reason)
        self.say(f"Skips iteration {turn.iteration} ({code}): {reason}")
        return f"the end of iteration {turn.iteration}, which it skips ({code})"

    @property
    def maker(self) -> PostMaker:
        """What makes posts; loaded when it is first needed."""
        if self._maker is None:
            self._maker = self.maker_class(
                credential=self.credential,
                load_rows=lambda: load_certified(self.directory.path, self.settings, self.credential.d),
                prover=self._keys.submission_prover(threads=1),
                ledger=self.ledger,
                floors=self.settings.floors,
                trainer=self.settings.trainer,
            )
        return self._maker

    def _get_ready(self, checked: CheckedTask) -> None:
        """Load what the first turn needs while there is time, so that it is not late."""
        if not self.cover:
            with suppress(AnofelError):  # what is wrong is said when the turn comes
                self.maker.get_ready(checked)

    def _settle(self) -> None:
        """Note what the board decided about unfinished turns.

        What nobody can decrypt is not charged: too few clients, or a failure before the count was open.
        From then on n − t members may open in private what fails in public (D-21).
        """
        for turn in self.journal.unfinished():
            sitting = Sitting.find(self.board.state, turn.bundle)
            if sitting is None or sitting.number < turn.iteration:
                continue
            current = sitting.iteration
            if current.number > turn.iteration:
                self._settle_past(turn)
                continue
            self._note_acceptance(turn, sitting)
            position = next((p for p in current.positions if p.task_id == turn.task), None)
            if position is not None and position.progress.is_outcome:
                if not position.is_release:
                    self.ledger.refund(turn.charge)
                self._finish(turn, position.progress.value)

    def _settle_past(self, turn: Turn) -> None:
        """Note what became of an iteration that was over before anybody looked, by the task's outcomes."""
        task = self.board.state.tasks.get(turn.task)
        outcomes = () if task is None else task.outcomes
        past = next((outcome for outcome in outcomes if outcome.iteration == turn.iteration), None)
        sent = self.directory.outbox.find(_submission(turn))
        if not turn.accepted and sent is not None and self.board.holds(sent.posting.id):
            self.journal.accept(turn)
        if past is None:
            self._finish(turn, "unknown")
            return
        if past.count is None or past.progress is Progress.TOO_FEW:  # as for a position that is here
            self.ledger.refund(turn.charge)
        self._finish(turn, past.progress.value)

    def _note_acceptance(self, turn: Turn, sitting: Sitting) -> None:
        if not turn.accepted and self._is_on_board(turn, sitting):
            self.journal.accept(turn)

    def _is_on_board(self, turn: Turn, sitting: Sitting) -> bool:
        """By its nullifier; where headers are followed, by the name of the posting in the outbox."""
        sent = self.directory.outbox.find(_submission(turn))
        held = None if sent is None else self.board.holds(sent.posting.id)
        if held is not None:
            return held
        nullifier = self.credential.msk.iteration_nullifier(self.credential.d, sitting.scope)
        return nullifier.to_bytes() in sitting.iteration.submissions

    def _finish(self, turn: Turn, outcome: str) -> None:
        """The turn is over for good; what would link it to this client is deleted.

        A charge is taken back if nothing of the update ever left this machine: nobody can send it now.
        """
        stored = self.directory.outbox.find(_submission(turn))
        if stored is None and not turn.cover and not self.journal.may_be_sent(turn):
            self.ledger.refund(turn.charge)
        if self._underway is not None and self._underway.turn == (turn.bundle, turn.iteration):
            self._underway = None
        if turn.reason and not turn.skipped:
            self.say(f"Sent no update in iteration {turn.iteration}, only noise: {turn.reason}")
        self.drafts.drop(turn.bundle, turn.iteration)
        self.directory.outbox.forget(_submission(turn))
        self.journal.finish(turn, outcome)

    def status(self) -> dict[str, Any]:
        """Say where this client stands; nothing in it names a posting."""
        turns, state = self.journal.turns(), self.board.state
        return {
            "height": state.height,
            "registered": self.is_registered(state),
            "anonymity_set": len(state.clients),
            "waits_for": self.waits_for,
            "posted": sum(turn.accepted for turn in turns),
            "skipped": sum(bool(turn.skipped) for turn in turns),
            "iterations": [
                {
                    "bundle": turn.bundle,
                    "iteration": turn.iteration,
                    "cover": turn.cover,
                    "posted": turn.accepted,
                    "skipped": turn.skipped,
                    "reason": turn.reason,
                    "outcome": turn.outcome,
                }
                for turn in turns
            ],
        }


def _submission(turn: Turn) -> str:
    return f"submission/{turn.bundle}/{turn.iteration}"
