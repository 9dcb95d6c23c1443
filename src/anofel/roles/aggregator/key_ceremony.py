"""Step 1.c as a process: a member makes a committee's key with the others, over the board (AnoFel §4.3.1).

Everybody names the same members, threshold, scheme and run; from that the description of the run
follows, so nobody has to open it for the others. A run that failed is never continued: choose a new name.
"""

import hashlib
from collections.abc import Mapping, Sequence

from anofel.board.key_runs import complete_rounds
from anofel.board.state import KeyRun, KeyVote
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import KeyGeneration, RoundMessage
from anofel.errors import InvalidInput
from anofel.ids import Subject
from anofel.light_client.base import BoardClient
from anofel.messages import Run
from anofel.phase1_setup.step1c_committee_key import generation_run
from anofel.roles.aggregator.key_files import Exchange
from anofel.roles.aggregator.key_run import RunMember, RunResult, telling
from anofel.roles.aggregator.key_secrets import forget_stale
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import Say


def nonce_of(name: str) -> bytes:
    """Return the nonce that a run's name stands for. Raises ``InvalidInput``."""
    if not name:
        raise InvalidInput("A run needs a name that its members agreed on.")
    return hashlib.sha256(b"anofel/1/key-ceremony" + name.encode()).digest()


def describe_run(name: str, members: Sequence[Subject], threshold: int, scheme: str) -> Run:
    """Return the run that a name and its members stand for; the order of the members does not matter."""
    if scheme not in schemes.NAMES:
        raise InvalidInput(f"{scheme!r} is no scheme; there are {', '.join(schemes.NAMES)}.")
    return Run(
        nonce=nonce_of(name),
        scheme=schemes.NAMES.index(scheme),
        threshold=threshold,
        members=tuple(sorted(members)),
        handover=None,
    )


class KeyCeremony(RunMember):
    """One member in one run of key generation."""

    def __init__(
        self, directory: RoleDirectory, board: BoardClient, run: Run, say: Say = lambda _text: None
    ) -> None:
        super().__init__(directory, board, run, say)
        if self.member is None:
            raise InvalidInput("You are not among the members of this run.")
        self._number = self.member
        scheme = schemes.by_name(schemes.NAMES[run.scheme])
        self._generation: KeyGeneration = scheme.key_generation(telling(say))
        self._exchange = Exchange(directory.path, board.genesis, run)

    def begin(self) -> RunResult:
        """Start the run."""
        return self._generation.begin(generation_run(self.described, self.board.genesis.hash), self._number)

    @property
    def rounds(self) -> KeyGeneration:
        """The rounds of the scheme."""
        return self._generation

    def judge(self, run: KeyRun) -> None:
        """Look through all rounds for whoever made the run fail. Raises ``KeyGenerationFailed``."""
        rounds = [self.messages(run, number) for number in range(complete_rounds(run))]
        try:
            self._generation.observe(generation_run(self.described, self.board.genesis.hash), rounds)
        except KeyGenerationFailed as error:
            if error.culprits:
                raise

    def earlier_message(self, number: int) -> RoundMessage | None:
        """Return our message of a round that went by files."""
        return self._exchange.message(number, self._number)

    def check_earlier(self, number: int, posted: Mapping[int, bytes]) -> None:
        """Raise ``KeyGenerationFailed`` if somebody gave one message as a file and posted another."""
        self._exchange.check_posted(number, posted)

    def settle(self, run: KeyRun, vote: KeyVote) -> str:  # noqa: ARG002 - nothing depends on the run
        """Forget the state of the run; the share is kept."""
        forget_stale(self.state, self.directory.secrets, self.identity.subject)
        self.key_id = vote.key_id
        return "nothing"
