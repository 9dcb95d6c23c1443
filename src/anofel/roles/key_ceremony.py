"""Step 1.c as a process: a member makes a committee's key with the others, over the board (AnoFel §4.3.1).

Everybody names the same members, threshold, scheme and run; from that the description of the run
follows, so nobody has to open it for the others. A run that failed is never continued: choose a new name.

What a crash leaves behind: the secret state of the last round is in the key store before its message
is sent, and the share before the key is posted.
"""

import hashlib
from collections.abc import Sequence

from anofel.board.light_client import LightClient
from anofel.board.rules.committees import num_rounds
from anofel.board.state import KeyRun
from anofel.certificates import Purpose
from anofel.committee import schemes
from anofel.committee.interface import (
    GeneratedKey,
    KeyGeneration,
    RoundMessage,
    RoundResult,
    SecretKeyShare,
    SecretRoundState,
)
from anofel.errors import InvalidInput
from anofel.messages import CommitteeKey, DkgRound, Run
from anofel.phase1_setup.committee_keys import generation_run, is_complete, post_key, post_round, posted_round
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import CertifiedRole, Say


def describe_run(name: str, members: Sequence[bytes], threshold: int, scheme: str) -> Run:
    """Return the run that a name and its members stand for; the order of the members does not matter."""
    if scheme not in schemes.NAMES:
        raise InvalidInput(f"{scheme!r} is no scheme; there are {', '.join(schemes.NAMES)}.")
    if not name:
        raise InvalidInput("A run needs a name that its members agreed on.")
    return Run(
        nonce=hashlib.sha256(b"anofel/1/key-ceremony" + name.encode()).digest(),
        scheme=schemes.NAMES.index(scheme),
        threshold=threshold,
        members=tuple(sorted(members)),
        handover=None,
    )


def share_name(shares_id: bytes) -> str:
    """Return the name of a share in the key store."""
    return f"share/{shares_id.hex()}"


class KeyCeremony(CertifiedRole):
    """One member in one run of key generation."""

    purpose = Purpose.AGGREGATOR

    def __init__(
        self, directory: RoleDirectory, board: LightClient, run: Run, say: Say = lambda _text: None
    ) -> None:
        super().__init__(directory, board, say)
        if self.identity.subject not in run.members:
            raise InvalidInput("You are not among the members of this run.")
        self._described = run
        self._run_id = run.run_id(board.genesis.hash)
        self._member = run.members.index(self.identity.subject) + 1
        self._generation: KeyGeneration = schemes.by_name(schemes.NAMES[run.scheme]).key_generation()
        self._secret = f"run/{self._run_id.hex()}"
        self._current: SecretRoundState | None = None
        self.key_id: bytes | None = None
        """The committee's name, once t members posted the same key."""

    @property
    def is_done(self) -> bool:
        """Whether the key is established and our share is kept."""
        return self.key_id is not None

    def step(self) -> str:
        """Send the message of the round that is under way. Raises ``KeyGenerationFailed`` with culprits."""
        run = self.state.runs.get(self._run_id)
        if run is not None and run.done:
            return self._finish(run)
        current = self._resume()
        if run is None or not self._has_posted(run, current.round):
            self._send_round(current)
            return f"our message of round {current.round} to be on the board"
        if not is_complete(self.state, run, current.round):
            missing = len(run.run.members) - len(posted_round(run, current.round))
            return f"{missing} of {len(run.run.members)} members to post round {current.round}"
        return self._advance(run, current)

    def _resume(self) -> SecretRoundState:
        """Return the state of the round under way, from the key store; begin if there is none."""
        if self._current is None and self._secret in self.directory.secrets:
            self._current = self._generation.resume(self.directory.secrets[self._secret].reveal())
        if self._current is None:
            run = generation_run(self._described, self.board.genesis.hash)
            return self._keep(self._generation.begin(run, self._member))
        return self._current

    def _keep(self, result: RoundResult) -> SecretRoundState:
        """Keep a state before anything of it is sent."""
        self.directory.secrets[self._secret] = result.state.to_bytes()
        self.directory.secrets.save()
        self._current = result.state
        return result.state

    def _has_posted(self, run: KeyRun, number: int) -> bool:
        return self._member in run.posted.get(number, {})

    def _send_round(self, current: SecretRoundState) -> None:
        message = current.message

        def make() -> DkgRound:
            return post_round(self._described, message, self.board.upload(message.body))

        self.send(f"key-round/{self._run_id.hex()}/{message.round}", make)

    def _advance(self, run: KeyRun, current: SecretRoundState) -> str:
        result = self._generation.advance(current, self._messages(run, current.round))
        if isinstance(result, RoundResult):
            self.say(f"Round {current.round} of {num_rounds(run.run)} is complete.")
            self._send_round(self._keep(result))
            return f"our message of round {result.message.round} to be on the board"
        return self._post_key(run, result)

    def _messages(self, run: KeyRun, number: int) -> list[RoundMessage]:
        return [
            RoundMessage(
                run_id=self._run_id, round=number, sender=sender, body=self.board.attachments.read(name)
            )
            for sender, name in sorted(posted_round(run, number).items())
        ]

    def _post_key(self, run: KeyRun, made: GeneratedKey) -> str:
        self._keep_share(made.share)

        def make() -> CommitteeKey:
            blob = self.board.upload(made.key.to_bytes())
            return post_key(
                run.run, self._member, made.key, made.transcript, blob, genesis=self.board.genesis.hash
            )

        self.send(f"committee-key/{self._run_id.hex()}", make)
        return f"{run.run.threshold} members to post the key"

    def _keep_share(self, share: SecretKeyShare) -> None:
        """Keep the share before anybody learns that we have it."""
        name = share_name(share.shares_id)
        if name not in self.directory.secrets:
            self.directory.secrets[name] = share.to_bytes()
            self.directory.secrets.save()

    def _finish(self, run: KeyRun) -> str:
        """Others may have established the key while we were away; our share and our posting still count."""
        secrets, found = self.directory.secrets, self._established()
        if found is None:
            raise InvalidInput("The run ended without a key; choose a new name and run it again.")
        key_id, shares_id = found
        if share_name(shares_id) not in secrets or self._member not in run.votes:
            current = self._resume() if self._secret in secrets else None
            if current is None or not is_complete(self.state, run, current.round):
                raise InvalidInput("The run ended, and this member has no share in its key.")
            return self._advance(run, current)
        if self._secret in secrets:
            del secrets[self._secret]
            secrets.save()
        self.key_id = key_id
        return "nothing"

    def _established(self) -> tuple[bytes, bytes] | None:
        for committee in self.state.committees.values():
            if committee.current.run_id == self._run_id:
                return committee.key_id, committee.current.shares_id
        return None
