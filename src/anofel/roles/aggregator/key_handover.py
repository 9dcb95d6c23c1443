"""Step 1.c as a process: a committee hands its key on, to the same members or to others (D-09).

Old members deal, new members receive; the public key stays, the shares are new. Everybody who deals or
receives runs the same command. A party follows the first description that it kept under a name, so that
nobody else can make it deal to other receivers, and so that the same command goes on after the change.

While it waits, a member does what ``Aggregator`` does: an iteration between close and outcome needs the
old shares, and the new ones count after it.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from anofel.board.claims import CommitteeRef
from anofel.board.state import Committee, KeyRun, KeyVote, State
from anofel.board.waits import POSTED
from anofel.committee.interface import CommitteeKey, Handover, HandoverParty, Scheme
from anofel.disk.files import read_small_file, write_new_file
from anofel.errors import InvalidInput, MalformedMessage
from anofel.ids import KeyId, Subject
from anofel.light_client.base import BoardClient
from anofel.messages import HandoverTerms, Run
from anofel.phase1_setup.step1c_committee_key import handover_run
from anofel.roles.aggregator.key_ceremony import nonce_of
from anofel.roles.aggregator.key_run import RunMember, RunResult
from anofel.roles.aggregator.key_secrets import forget_stale, share_name
from anofel.roles.aggregator.role import Aggregator
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import Say

RUNS: Final = "runs"
"""Where the descriptions of handovers are kept."""


class HandoverPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a party was told about a handover; empty where it was told to keep things as they are."""

    name: str
    committee: str
    """The committee's name, in hexadecimal."""
    members: list[str] = []
    threshold: int = 0
    dealers: list[str] = []


class HandoverStale(InvalidInput):
    """The committee handed its key on in another run."""

    code = "handover-stale"


def describe_handover(state: State, plan: HandoverPlan) -> Run:
    """Return the run that a plan stands for on the board as it is. Raises ``InvalidInput``."""
    committee = state.committees.get(KeyId(_bytes(plan.committee)))
    if committee is None:
        raise InvalidInput(f"There is no committee {plan.committee[:16]}… on the board.")
    current = committee.current
    return Run(
        nonce=nonce_of(plan.name),
        scheme=committee.scheme,
        threshold=plan.threshold or current.threshold,
        members=tuple(sorted(Subject(_bytes(member)) for member in plan.members)) or current.members,
        handover=HandoverTerms(key_id=committee.key_id, dealers=_dealers(committee, plan)),
    )


def follow_plan(directory: Path, state: State, plan: HandoverPlan) -> Run:
    """Return the run that this party follows under a name: the first that it kept.

    Raises ``InvalidInput`` if it was told something else before.
    """
    path = directory / RUNS / f"{nonce_of(plan.name).hex()}.json"
    if path.exists():
        try:
            kept, run = msgspec.json.decode(read_small_file(path), type=tuple[HandoverPlan, str])
            described = Run.from_bytes(_bytes(run))
        except (msgspec.MsgspecError, MalformedMessage):
            raise InvalidInput(f"{path} is damaged; choose a new name for the handover.") from None
        if kept != plan:
            raise InvalidInput(f"The name {plan.name!r} stands for another handover; choose a new one.")
        return described
    described = describe_handover(state, plan)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_new_file(path, msgspec.json.encode((plan, described.to_bytes().hex())))
    return described


class KeyHandover(RunMember):
    """One party in one handover: it deals, receives, or both."""

    def __init__(
        self, directory: RoleDirectory, board: BoardClient, run: Run, say: Say = lambda _text: None
    ) -> None:
        super().__init__(directory, board, run, say)
        if run.handover is None:
            raise InvalidInput("The run generates a key; it does not hand one over.")
        self._handover = run.handover
        self._committee = self.state.committees[run.handover.key_id]
        self._rounds = self._desk_key()[0].handover()
        self._aggregator = Aggregator(directory, board, say)

    # The run

    def begin(self) -> RunResult:
        """Start as a dealer with the current share, as a receiver, or as both."""
        current = self._committee.current
        scheme, key = self._desk_key()
        share, subject = None, self.identity.subject
        if subject in current.members and current.members.index(subject) + 1 in self._handover.dealers:
            share = scheme.read_share(key, self.directory.secrets[share_name(current.shares_id)].reveal())
        if share is None and self.member is None:
            raise InvalidInput(
                "You neither deal nor receive in this handover; keep anofel aggregator run running, "
                "which deletes your share when the handover is over."
            )
        run = handover_run(self.described, self.board.genesis.hash, key)
        return self._rounds.begin(run, HandoverParty(share=share, member=self.member))

    @property
    def rounds(self) -> Handover:
        """The rounds of the scheme."""
        return self._rounds

    def check_open(self, run: KeyRun) -> None:
        """Raise ``HandoverStale`` if another handover of the committee came first."""
        if self._committee.pending is not None or self._committee.current.shares_id != run.base:
            raise HandoverStale(
                "Another handover of the committee came first; its shares count. Choose a new name."
            )

    def settle(self, run: KeyRun, vote: KeyVote) -> str:
        """Delete the old share as soon as the new ones count."""
        if self._committee.current.share_epoch < run.share_epoch:
            return self._until_the_new_shares_count()
        forget_stale(self.state, self.directory.secrets, self.identity.subject)
        self.key_id = vote.key_id
        return "nothing"

    def _until_the_new_shares_count(self) -> str:
        task = self.state.tasks.get(self._committee.task) if self._committee.task else None
        if task is None or task.bundle is None:
            return f"the new shares to count ({self.lasting(POSTED)})"
        size = self.state.class_of(self.state.bundles[task.bundle])
        wait = self.lasting(size.train + size.aggregate + size.count + size.sum)
        return f"the iteration under way to end; then the new shares count ({wait})"

    # Meanwhile

    def step(self) -> str:
        """Serve the committee, then go on with the run."""
        self._committee = self.state.committees[self._handover.key_id]
        self._aggregator.step()
        return super().step()

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows."""
        return {**self._aggregator.status(), **super().status(), "run": self.run_id.hex()}

    def _desk_key(self) -> tuple[Scheme, CommitteeKey]:
        committee = self._committee
        reference = CommitteeRef(committee.key_id, committee.scheme, committee.current.shares_id)
        return self.board.keys.read(reference)


def _dealers(committee: Committee, plan: HandoverPlan) -> tuple[int, ...]:
    """Return the numbers of those who deal: who was named, or else the first t."""
    current = committee.current
    if not plan.dealers:
        return tuple(range(1, current.threshold + 1))
    strangers = [dealer for dealer in plan.dealers if _bytes(dealer) not in current.members]
    if strangers:
        raise InvalidInput(f"{strangers[0][:16]}… is not a member of the committee, so it cannot deal.")
    numbers = sorted({current.members.index(_bytes(dealer)) + 1 for dealer in plan.dealers})
    if len(numbers) != current.threshold:
        raise InvalidInput(f"{current.threshold} members deal; {len(numbers)} are named.")
    return tuple(numbers)


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput(f"{text[:16]!r} is not in hexadecimal digits.") from None
