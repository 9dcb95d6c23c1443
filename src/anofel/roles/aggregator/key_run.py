"""Step 1.c as a process: one member in one run, of key generation or of a handover, over the board.

What a crash leaves behind: the secret state of the last round is in the key store before its message
is sent, and the share before the key is posted. So the same command goes on where it stood.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from anofel.board.key_runs import complete_rounds, max_rounds, min_rounds, num_speakers, round_messages
from anofel.board.state import KeyRun, KeyVote
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import (
    ESTIMATE,
    GeneratedKey,
    HandedOverKey,
    HandoverResult,
    KeyProgress,
    Report,
    RoundMessage,
    RoundResult,
    SecretHandoverState,
    SecretKeyShare,
    SecretRoundState,
)
from anofel.disk.keystore import Keystore
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import KeyId, RunId
from anofel.light_client.base import BoardClient
from anofel.messages import CommitteeKeyVote, DkgRound, Run
from anofel.phase1_setup.step1c_committee_key import (
    established_by,
    post_key,
    post_round,
    posted_round,
)
from anofel.pki.certificates import Purpose
from anofel.roles.aggregator.key_secrets import run_name, share_name
from anofel.roles.directory import RoleDirectory
from anofel.roles.outbox import Sent
from anofel.roles.role import CertifiedRole, Say

RoundState = SecretRoundState | SecretHandoverState
RunResult = RoundResult | HandoverResult
End = GeneratedKey | HandedOverKey


class Rounds(Protocol):
    """Key generation or a handover, after its beginning."""

    def advance(self, state: Any, messages: Sequence[RoundMessage]) -> RunResult | End:
        """Go on with all messages of a round. Raises ``KeyGenerationFailed``."""
        ...

    def resume(self, data: bytes) -> RoundState:
        """Read a stored state."""
        ...


def telling(say: Say) -> Report:
    """Say how long a member's computation will take, and how far it is."""

    def report(progress: KeyProgress) -> None:
        if progress.phase == ESTIMATE:
            say(
                f"Making the key takes about {progress.seconds:.0f} seconds of computation on this machine, "
                "several times as long with bad luck."
            )
        elif progress.done == progress.total:
            say(f"Done in this round: {progress.total} {progress.phase}.")

    return report


class KeptRun:
    """The secret state of a run in the key store: kept before anything of it is sent."""

    def __init__(
        self, secrets: Keystore, run_id: RunId, rounds: Rounds, begin: Callable[[], RunResult]
    ) -> None:
        self._secrets, self._name = secrets, run_name(run_id)
        self._rounds, self._begin = rounds, begin
        self._current: RoundState | None = None

    def __bool__(self) -> bool:
        return self._name in self._secrets

    def current(self) -> RoundState:
        """Return the state of the round under way; begin if there is none."""
        if self._current is None and self:
            self._current = self._rounds.resume(self._secrets[self._name].reveal())
        return self.keep(self._begin()) if self._current is None else self._current

    def keep(self, result: RunResult) -> RoundState:
        """Keep the state of the next round."""
        self._secrets[self._name] = result.state.to_bytes()
        self._secrets.save()
        self._current = result.state
        return result.state

    def keep_share(self, share: SecretKeyShare) -> None:
        """Keep the share before anybody learns that we have it."""
        name = share_name(share.shares_id)
        if name not in self._secrets:
            self._secrets[name] = share.to_bytes()
            self._secrets.save()


class RunRefused(AnofelError):
    """The board refused a message of a run for good, so the run cannot go on."""

    code = "run-refused"


class RunMember(CertifiedRole):
    """One member in one run."""

    purpose = Purpose.AGGREGATOR

    def __init__(
        self, directory: RoleDirectory, board: BoardClient, run: Run, say: Say = lambda _text: None
    ) -> None:
        super().__init__(directory, board, say)
        self.described = run
        self.run_id = run.run_id(board.genesis.hash)
        subject = self.identity.subject
        self.member = run.members.index(subject) + 1 if subject in run.members else None
        """Our number among those who end with a share; None if we only deal."""
        self.key_id: KeyId | None = None
        """The committee's name, once everything is done."""

    # What key generation and handovers do differently

    @abstractmethod
    def begin(self) -> RunResult:
        """Start the run."""

    @property
    @abstractmethod
    def rounds(self) -> Rounds:
        """The rounds of the scheme."""

    @abstractmethod
    def settle(self, run: KeyRun, vote: KeyVote) -> str:
        """Do what is left once t members posted the same key and our share is kept."""

    def check_open(self, run: KeyRun) -> None:
        """Raise if the run can no longer be finished."""

    def earlier_message(self, number: int) -> RoundMessage | None:  # noqa: ARG002 - none, over the board
        """Return our message of a round that we left without the board, if we did."""
        return None

    def check_earlier(self, number: int, posted: Mapping[int, bytes]) -> None:
        """Raise if a round that we left without the board is another one on the board."""

    # Steps

    @cached_property
    def kept(self) -> KeptRun:
        """The secret state of this run."""
        return KeptRun(self.directory.secrets, self.run_id, self.rounds, self.begin)

    @property
    def is_done(self) -> bool:
        """Whether the key is established and our share, if we get one, is kept."""
        return self.key_id is not None

    def step(self) -> str:
        """Send the message of the round that is under way. Raises ``KeyGenerationFailed`` with culprits."""
        run = self.state.runs.get(self.run_id)
        if run is None:
            first = self._message(self.kept.current(), 0)
            return self._post_round(first) if first else "the others to begin the run, by the same command"
        if run.done:
            return self._finish(run)
        self.check_open(run)
        current = self.kept.current()
        for number in range(current.round + 1):
            message, posted = self._message(current, number), posted_round(run, number)
            if message is not None and message.sender not in posted:
                return self._post_round(message)
            if complete_rounds(run) <= number:
                total = num_speakers(run.run, number)
                left = total - len(posted)
                return f"{left} of {total} members to post round {number}, by the same command"
            self.check_earlier(number, posted)
        return self._advance(run, current)

    def _message(self, current: RoundState, number: int) -> RoundMessage | None:
        """Return our message of the round that is under way or of an earlier one, if we speak in it."""
        return current.message if number == current.round else self.earlier_message(number)

    def _post_round(self, message: RoundMessage) -> str:
        def make() -> DkgRound:
            return post_round(self.described, message, self.board.upload(message.body))

        _demand(self.send(f"key-round/{self.run_id.hex()}/{message.round}", make))
        return self.posted(f"our message of round {message.round}")

    def _advance(self, run: KeyRun, current: RoundState) -> str:
        try:
            result = self.rounds.advance(current, self.messages(run, current.round))
        except KeyGenerationFailed as error:
            if not error.culprits:  # a long run keeps no messages; the board does
                self.judge(run)
            raise
        if isinstance(result, GeneratedKey | HandedOverKey):
            return self._post_key(run, result)
        least, most = min_rounds(run.run), max_rounds(run.run)
        whole = f"a run has {least}" if least == most else f"a run has at least {least}, numbered from 0"
        self.say(f"Round {current.round} is complete; {whole}.")
        following = self.kept.keep(result)
        if following.message is None:
            return f"the others to post round {following.round}"
        return self._post_round(following.message)

    def judge(self, run: KeyRun) -> None:
        """Raise ``KeyGenerationFailed`` with the culprits that the messages on the board show, if they do."""

    def messages(self, run: KeyRun, number: int) -> list[RoundMessage]:
        """Read the messages of a round."""
        return round_messages(run, number, self.board.attachments.read)

    def _post_key(self, run: KeyRun, made: End) -> str:
        waits = f"{run.run.threshold} members to post the key"
        if made.share is None or self.member is None:
            return waits  # we dealt, and others go on
        self.kept.keep_share(made.share)
        member = self.member
        if member in run.votes:
            return waits

        def make() -> CommitteeKeyVote:
            blob = self.board.upload(made.key.to_bytes())
            genesis = self.board.genesis.hash
            return post_key(run.run, member, made.key, made.transcript, blob, genesis=genesis)

        _demand(self.send(f"committee-key/{self.run_id.hex()}", make))
        return waits

    def _finish(self, run: KeyRun) -> str:
        """Others may have established the key while we were away; our share and our posting still count."""
        vote = established_by(run)
        if vote is None:
            raise InvalidInput("The run ended without a key; choose a new name and run it again.")
        if self._is_past(run, vote) or self.member is None:
            return self.settle(run, vote)
        has_share = share_name(vote.shares_id) in self.directory.secrets
        if not has_share or (self.member not in run.votes and self.kept):
            current = self.kept.current() if self.kept else None
            if current is None or complete_rounds(run) <= current.round:
                raise InvalidInput("The run ended, and this member has no share in its key.")
            return self._advance(run, current)
        return self.settle(run, vote)

    def _is_past(self, run: KeyRun, vote: KeyVote) -> bool:
        """Whether the committee has shares of a later run."""
        return self.state.committees[vote.key_id].current.share_epoch > run.share_epoch


def _demand(sent: Sent) -> None:
    if sent.answer is not None and sent.is_refused:
        raise RunRefused(
            f"The board refused our part in the run ({sent.answer.refused}): {sent.answer.detail}"
        )
