"""Whom a client trusts with its bundle: its own settings, never the owner's words (D-22).

What must hold before it takes part, numbered as in ``docs/client.md``:

4. At least as many tasks of the bundle are live as the client demands: in a bundle of one, a post names its
   task.
5. Every task of the bundle opens its count for no fewer posts than the client demands, and for two more than
   the colluders it reckons with, since each committee opens a bit of every post.
6. Every member of every committee of the bundle, and everybody who held its key before, is one that the
   client allows, if it allows only some.
7. In every committee of the bundle no t members, and no t who held its key before a handover, can open
   anything without one that the client requires, if it requires any.
11. The client has said with how many colluders it reckons. Where these may be all others, nothing hides for
    which task it posts; who wants that says ``all``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from cryptography import x509

from anofel.board.seat import Sitting
from anofel.board.state import Bundle, CommitteeMember, CommitteeShares, Progress, State
from anofel.errors import InvalidInput
from anofel.ids import TaskId
from anofel.privacy.ledger import FloorNotMet

Colluders = int | Literal["all"] | None
"""How many clients of a sum are reckoned with as the owner's own; None if nobody said so."""

_ISSUED_BY = " @ "


UNSAID: Final = (
    "Nobody told this client with how many clients of a sum it should reckon as the owner's own, so it "
    "trains nothing: if they are all others, nothing hides for which task it posts. Write max_colluders = … "
    'in role.toml (--max-colluders); "all" if you accept that.'
)


@dataclass(frozen=True)
class Aggregators:
    """Some aggregators, by what their certificates say: parts of the subject, and of the issuer's name."""

    words: str
    subject: frozenset[tuple[str, str]]
    issuer: frozenset[tuple[str, str]]

    @classmethod
    def parse(cls, words: str) -> Self:
        """Read ``O=Clinic A`` or ``O=Clinic A @ CN=Health CA,O=State``. Raises ``InvalidInput``."""
        subject, _, issuer = words.partition(_ISSUED_BY)
        try:
            made = cls(words, _parts(subject), _parts(issuer) if issuer else frozenset())
        except ValueError:
            made = None
        if made is None or not made.subject:
            raise InvalidInput(
                f"'{words}' names no aggregators; write parts of a subject, and of its issuer after ' @ ': "
                "O=Clinic A @ CN=Health CA."
            )
        return made

    def hold(self, member: CommitteeMember) -> bool:
        """Whether a member is one of them."""
        try:
            return _has(member.name, self.subject) and _has(member.issuer, self.issuer)
        except ValueError:  # a name that cannot be read is nobody's
            return False


def _parts(name: str) -> frozenset[tuple[str, str]]:
    found = x509.Name.from_rfc4514_string(name)
    return frozenset((part.oid.dotted_string, str(part.value)) for part in found)


def _has(name: str, wanted: frozenset[tuple[str, str]]) -> bool:
    """Whether a name has the wanted parts, each once: beside a second one of its kind a part says nothing."""
    kinds = {kind for kind, _ in wanted}
    return wanted == {part for part in _parts(name) if part[0] in kinds}


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What a client demands of a bundle."""

    min_bundle: int = 2
    min_clients: int = 2
    max_colluders: Colluders = None
    allowed: tuple[Aggregators, ...] = ()
    required: tuple[Aggregators, ...] = ()

    def check_bundle(self, state: State, bundle: Bundle) -> None:
        """Refuse a bundle that hides too little, or that strangers could open. Raises ``FloorNotMet``."""
        if self.max_colluders is None:  # (11)
            raise FloorNotMet(UNSAID)
        colluders = 0 if self.max_colluders == "all" else self.max_colluders
        sitting = Sitting.find(state, bundle.number)
        if sitting is None or not sitting.is_open:
            live = [task.task_id for task in state.live_tasks(bundle)]
        else:
            positions = sitting.iteration.positions
            live = [position.task_id for position in positions if position.progress is not Progress.ABSENT]
        if len(live) < self.min_bundle:  # (4)
            raise FloorNotMet(
                f"The bundle holds {len(live)} live tasks; this client demands {self.min_bundle} "
                "(min_bundle)."
            )
        for task_id in live:  # (5)
            least = state.tasks[task_id].facts.limits.min_clients
            demanded = max(self.min_clients, colluders + 2)
            if least < demanded:
                raise FloorNotMet(
                    f"The task {task_id.hex()[:8]}… of the bundle opens counts of {least} posts; "
                    f"this client demands {demanded}."
                )
        for task_id in bundle.tasks:
            for shares in state.committee_of(state.tasks[task_id]).generations:
                self._check_holders(state, shares, task_id)

    def _check_holders(self, state: State, shares: CommitteeShares, task_id: TaskId) -> None:
        """Check one generation of shares: a handover keeps the key, so whoever kept old ones still opens."""
        members = state.members_of(shares)
        where = f"The committee of task {task_id.hex()[:8]}… (shares of epoch {shares.share_epoch})"
        strangers = [member.name for member in members if self.allowed and not _among(self.allowed, member)]
        if strangers:  # (6)
            raise FloorNotMet(f"{where} has members that this client does not allow: {', '.join(strangers)}.")
        others = sum(not _among(self.required, member) for member in members)
        if self.required and others >= shares.threshold:  # (7)
            raise FloorNotMet(
                f"{where} opens what {shares.threshold} of its {len(members)} members want, and {others} of "
                "them are none that this client requires."
            )


def _among(known: Sequence[Aggregators], member: CommitteeMember) -> bool:
    return any(some.hold(member) for some in known)
