"""What all roles share: look at the verified state, do what is due, wait one interval.

``step`` decides from the state alone and may be repeated at any time; a process that is killed and
started again goes on where the board stands.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

from anofel.board.attachments import AttachmentMissing
from anofel.board.state import State
from anofel.board.waits import POSTED, duration
from anofel.errors import PeerUnreachable
from anofel.light_client.base import BoardClient, WaitedTooLong
from anofel.messages import Block, Body, ChainAuthor, make_posting
from anofel.network.transport import Refused
from anofel.pki.certificates import Identity, Purpose, RoleKey, verify_chain
from anofel.roles.directory import RoleDirectory
from anofel.roles.outbox import Sent
from anofel.stopping import pause

PATIENCE_SECONDS: Final = 3600.0
"""How long a role bears a board that does not answer."""
ROLE_KEY: Final = "role-key"
"""The secret that holds a role's X.509 key and chain."""

Say = Callable[[str], None]


class Role(ABC):
    """One party at work; ``run`` is its process, ``step`` its one decision."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say = lambda _text: None) -> None:
        self.directory = directory
        self.board = board
        self._say = say
        self._said = ""
        self.waits_for = "the board"
        """What ``status`` shows."""
        self._given_up = ""
        """After which time the wait ends, for people."""

    @property
    def state(self) -> State:
        """The state after the last verified block."""
        return self.board.state

    # What a role decides

    @abstractmethod
    def step(self) -> str:
        """Do what is due now, and say what is waited for."""

    def observe(self, block: Block) -> None:  # noqa: B027 - most roles need the last state only
        """Look at the state after each new block, also at those that were missed."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return False

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows."""
        return {
            "height": self.state.height,
            "waits_for": self.waits_for,
            "refused": [
                {"posting": name, "code": answer.refused, "detail": answer.detail}
                for name, answer in self.directory.outbox.refused().items()
            ],
        }

    # How it runs

    def run(self, *, seconds: float | None = None, patience: float = PATIENCE_SECONDS) -> None:
        """Work until done. Raises ``WaitedTooLong`` after ``seconds``.

        No unsigned word of a node ends a role: what is missing is said and waited for. Raises
        ``PeerUnreachable`` after ``patience`` seconds without one step, so that whoever runs this starts it
        again.
        """
        start = answered = time.monotonic()
        self._given_up = "" if seconds is None else f"; given up after {duration(seconds)}"
        while True:
            try:
                self.work()
                answered = time.monotonic()
            except (PeerUnreachable, AttachmentMissing, Refused) as error:
                waited = time.monotonic() - answered
                if waited >= patience:
                    raise PeerUnreachable(f"Waited {waited:.0f} seconds for the board. {error}") from error
                self.say(f"Waiting for the board: {error}")
            if self.is_done:
                return
            if seconds is not None and time.monotonic() - start >= seconds:
                raise WaitedTooLong(f"Waited {seconds:.0f} seconds for {self.waits_for} in vain.")
            pause(self.board.poll_seconds())

    def work(self) -> None:
        """Follow the board to its last block, then take one step."""
        self.board.sync(on_block=self.observe)
        self.waits_for = self.step()
        self.say(
            f"Waiting for {self.waits_for}{self._given_up}." if not self.is_done else "Nothing is left to do."
        )
        trouble = self.board.watch.trouble
        self.directory.keep_status(
            {"time": int(time.time()), **self.status(), "trouble": trouble.sentence if trouble else ""}
        )

    def lasting(self, blocks: int) -> str:
        """Say how long a wait of this board can be, in blocks and in time."""
        return self.board.lasting(blocks)

    def posted(self, what: str) -> str:
        """Say that something of ours is on its way to the board."""
        return f"{what} to be on the board ({self.lasting(POSTED)})"

    def say(self, text: str) -> None:
        """Tell people something, once in a row."""
        if text != self._said:
            self._said = text
            self._say(text)


class CertifiedRole(Role):
    """A role with an X.509 certificate: it signs what it posts."""

    purpose: ClassVar[Purpose]
    overtaken: ClassVar[frozenset[str]] = frozenset()
    """Refusals that only say that others were faster: what was sent is not needed, and nothing is wrong."""

    def __init__(self, directory: RoleDirectory, board: BoardClient, say: Say = lambda _text: None) -> None:
        super().__init__(directory, board, say)
        self._role = RoleKey.from_secret_bytes(directory.secrets[ROLE_KEY].reveal())
        board.uploads_as = self._role
        self.identity: Identity = verify_chain(
            self._role.chain, board.genesis.roots, self.purpose, int(time.time())
        )
        """Who this is on the board."""

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows."""
        found = super().status()
        kept = [entry for entry in found["refused"] if entry["code"] not in self.overtaken]
        return {**found, "refused": kept}

    def send(self, name: str, make: Callable[[], Body]) -> Sent:
        """Post under a name, once (``Outbox``); a refusal for good is said with its code."""
        sent = self.directory.outbox.send(
            self.board,
            name,
            lambda: make_posting(
                make(), ChainAuthor(self._role.chain), self.board.genesis.hash, self._role.sign
            ),
        )
        if sent.answer is not None and sent.is_refused and sent.answer.refused not in self.overtaken:
            self.say(f"The board refused {name} ({sent.answer.refused}): {sent.answer.detail}")
        return sent
