"""O_PAFL: the oracle of the paper (§2), with its five queries, over the steps that ship.

    "O_PAFL maintains the state of the system, including the set of registered clients and aggregators, and
    any additional information recorded on the board. Since the goal is to protect clients from the model
    owner S, we assume A controls S and any subset of clients and aggregators."

What we read into it:

1. Time passes when the adversary says so (``advance``, ``access``); in a block, at drawn times.
2. A client that is told to train runs until that iteration is over, as ``anofel client train`` does.
3. The certifiers and the first key of each committee are honest. What is corrupted is handed over whole.
4. The adversary posts the models, since it is S: ``choose_model``.
"""

import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from anofel.board.seat import Seat, Sitting
from anofel.board.state import Bundle, Phase, Progress, State
from anofel.errors import AnofelError
from anofel.games.node import Node, PartyBoard
from anofel.games.parties import LoadedKeys, Party, PartyPlace, PlayedClient, Sybil, certify, make_directory
from anofel.games.setting import MEMBERS, TASKS, THRESHOLD, GameSetting, GameVenue, Patients
from anofel.games.sight import IterationSeen, SeenOutcome
from anofel.games.weak import NOTHING_PUT_BACK, Weakening
from anofel.light_client.client import LightClient
from anofel.models.integer_model import IntegerModel
from anofel.phase1_setup.step1a_certifier_key import revoke_key
from anofel.phase1_setup.step1d_announcement import end_iteration, end_task
from anofel.phase3_access.step8prime_model import next_model
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import MasterSecret
from anofel.privacy.ledger import Charge
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.files import ROLE
from anofel.roles.client.journal import Turn
from anofel.roles.directory import RoleDirectory
from anofel.simulation.committees import STEPS, SimulatedCommittee, SimulatedMember, establish
from anofel.simulation.parts import CommitteeSettings
from anofel.simulation.people import SimulatedCertifier, SimulatedOwner

PartyKind = Literal["client", "committee"]
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - directories of their own are made there


ChooseModel = Callable[[int, IntegerModel], IntegerModel]
"""Takes the number of a task and its next model."""


def _left_alone(_task: int, model: IntegerModel) -> IntegerModel:
    return model


class QueryRefused(AnofelError):
    """The oracle does not answer this query now; the message says why."""

    code = "query-refused"


@dataclass(frozen=True)
class ClientAux:
    """What registers a client: "its certified dataset and the certification information"."""

    rows: Patients = field(repr=False)
    task: int = 0
    first_wait: int = 0
    cover: bool = False
    """Whether it posts without training (``anofel client run --cover``)."""
    max_epsilon: str = "1000000000"
    max_colluders: int = 0
    """With how many of a sum's clients it reckons as the owner's own (D-22)."""
    sybil: bool = False
    """Whether it is the adversary's own: corrupt from the beginning, it posts zero vectors with bit 1."""
    person: str = ""
    """Who registers with one master key on every board; empty for somebody new."""


@dataclass(frozen=True)
class Released:
    """What ``access`` returns: "the updated model (after aggregating all submitted updates)"."""

    outcomes: tuple[SeenOutcome, ...]
    models: tuple[IntegerModel, ...]


@dataclass(frozen=True, repr=False)
class CorruptedClient:
    """Everything that a client's machine holds."""

    path: Path
    secrets: dict[str, bytes]
    turns: list[Turn]
    charges: list[Charge]
    outbox: list[str]
    said: list[str]


class Oracle:
    """One system; use it as a context manager, since its parties have directories."""

    def __init__(
        self,
        keys: LoadedKeys,
        setting: GameSetting | None = None,
        weakening: Weakening = NOTHING_PUT_BACK,
    ) -> None:
        self.keys, self.weakening = keys, weakening
        self.setting = GameSetting() if setting is None else setting
        self.choose_model: ChooseModel = _left_alone
        """The server's choice of the next model of a task."""
        self.seen: list[IterationSeen] = []
        """The iterations so far, as everybody sees them."""
        self.parties: dict[bytes, Party] = {}
        """Registered clients by their commitments, in the order of their registrations."""
        self.participants: list[set[bytes]] = []
        """Who posted in each iteration; for the winning conditions alone."""
        self.instructed: list[set[bytes]] = []
        """Who was told to train in each iteration."""
        self.committees: list[SimulatedCommittee] = []
        self.own_committees: set[int] = set()
        """Those that A registered itself, with a key of its own making."""
        self._owners: list[SimulatedOwner] = []
        """S, once for each task."""
        self._models: list[IntegerModel] = []
        """The current model of each task."""
        self._place: Path
        """Where the parties have their directories, while this is a context."""
        self._is_accessed, self._registered, self._editions = True, 0, 0
        self._people: dict[str, bytes] = {}
        """The master secrets of those who register more than once; nobody but the game reads them."""
        self._other: Oracle | None = None
        self._around: AbstractContextManager[Any] = weakening.around(self)

    def __enter__(self) -> Self:
        self._around.__enter__()
        where = _MEMORY if _MEMORY.is_dir() else None
        self._place = Path(tempfile.mkdtemp(prefix="anofel-game-", dir=where))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._other is not None:
            self._other.__exit__(kind, error, trace)
        for party in self.parties.values():
            party.client.directory.close()
        shutil.rmtree(self._place, ignore_errors=True)
        self._around.__exit__(kind, error, trace)

    # (setup, 1^λ)

    def setup(self) -> State:
        """(setup, 1^λ): "creating the bulletin board, the public parameters" … "invoked only once".

        λ is that of the curves and of the keys. Raises ``QueryRefused``.
        """
        if hasattr(self, "node"):
            raise QueryRefused("The system is set up once.")
        self._parts = self.setting.parts()
        self._venue = GameVenue(self._parts, cast(KeyDirectory, self.keys))
        self.node = Node(self._venue.board)
        self._certifier = SimulatedCertifier(self._venue)
        self._operator: RoleKey | None = None
        self.node.next_block()
        return self.node.followed.state

    # (register, p, aux)

    def register(self, party: PartyKind, aux: ClientAux | None = None) -> bytes:
        """(register, p, aux): "anytime and as many times as desired".

        Returns how the board knows the party: a client's commitment, or the id of a committee's key.
        """
        if party == "committee":
            return self._register_committee()
        if aux is None:
            raise QueryRefused("A client is registered with its dataset.")
        return self._register_client(aux)

    def _register_committee(self) -> bytes:
        number = len(self.committees)
        if number == TASKS:
            raise QueryRefused(f"The bundle of a game holds {TASKS} tasks, each with a committee.")
        shape = CommitteeSettings(members=MEMBERS, threshold=THRESHOLD)
        committee = establish(self._venue, f"Committee {number + 1}", shape)
        self.committees.append(self.weakening.committee(committee.scheme, committee.key, committee.members))
        self.node.next_block()
        if len(self.committees) == TASKS:
            self._announce()
        return bytes(committee.key.key_id)

    def _announce(self) -> None:
        """S announces its tasks, one for each committee; they form the bundle."""
        for number, (part, committee) in enumerate(zip(self._parts, self.committees, strict=True)):
            name, key_id = f"Owner {number + 1}", committee.key.key_id
            self._owners.append(SimulatedOwner.announcing(self._venue, name, part, key_id, early_end=True))
        self._begin_models()
        self.node.next_block()

    def _begin_models(self) -> None:
        """The first models differ, or all would be one blob."""
        first = [part.first_model() for part in self._parts]
        self._models = [replace(model, values=model.values + number) for number, model in enumerate(first)]

    def announce_again(self, setting: GameSetting | None = None) -> None:
        """S ends its tasks and announces them anew, or others: another bundle, with the same clients."""
        self.setting = self.setting if setting is None else setting
        for owner in self._owners:
            self.node.board.post_as(owner.role, end_task(owner.task_id))
        self.node.next_block()
        self._editions += 1
        self._parts = self.setting.parts(self._editions)
        board, committees = self.node.board, self.committees
        self._owners = [
            owner.announced(board, part, committee.key.key_id, early_end=True)
            for owner, part, committee in zip(self._owners, self._parts, committees, strict=True)
        ]
        self._begin_models()
        self.node.next_block()
        self.node.next_block()

    def end_early(self) -> None:
        """All owners of the bundle ask for the end of the open iteration, as only S together may."""
        for owner in self._owners:
            self.node.board.post_as(owner.role, end_iteration(owner.task_id, self.bundle.iterations))

    def begin_epoch(self) -> None:
        """An operator revokes the certifier and begins an epoch; everybody is certified again."""
        if self._operator is None:
            self._operator, _ = self._venue.appoint(Purpose.OPERATOR, "Operator")
        self.node.board.post_as(self._operator, revoke_key(self._certifier.key, new_epoch=True))
        self._certifier = SimulatedCertifier(self._venue)
        self.node.next_block()
        for party in self.parties.values():
            certify(party.client.directory, self._certifier, self.keys.provers)
            self.crash(party.commitment)  # a client that is certified again is started again

    def other_board(self) -> "Oracle":
        """A second system, on which the same people register with the same keys and rows; made once."""
        if self._other is None:
            self._other = Oracle(self.keys, self.setting)
            self._other.__enter__()
            self._other._people = self._people
            self._other.setup()
            for _ in range(TASKS):
                self._other.register("committee")
        return self._other

    def _register_client(self, aux: ClientAux) -> bytes:
        self._registered += 1
        number = self._registered
        path = self._place / f"client-{number}"
        settings: dict[str, Any] = {
            "owner": self._owners[aux.task].subject.hex() if self._owners else "",
            "max_epsilon": aux.max_epsilon,
            "relation": "replace",
            "max_colluders": self.weakening.colluders(aux.max_colluders),
            "first_wait": aux.first_wait,
        }
        if aux.person:
            known = self._people.setdefault(aux.person, MasterSecret.generate().to_secret_bytes())
        master = MasterSecret.from_bytes(known) if aux.person else MasterSecret.generate()
        unlock = make_directory(path, aux.rows, self.node.board.genesis_hash, settings, master)
        with RoleDirectory.open(path / "role", unlock, role=ROLE) as directory:
            certify(directory, self._certifier, self.keys.provers)
        place = PartyPlace(
            path,
            unlock,
            cover=aux.cover,
            kind=Sybil if aux.sybil else self.weakening.client,
            source="" if self.weakening.proxy else f"192.0.2.{number}",
        )
        said = list[str]()
        client = self._start(place, said)
        client.seen_by.now = self.node.height + secrets.randbelow(1000) / 1000
        client.send_registration()
        self._block()
        made = Party(f"client {number}", aux.task, aux.rows, place, client, said, is_honest=not aux.sybil)
        self.parties[made.commitment] = made
        return made.commitment

    def _start(self, place: PartyPlace, said: list[str]) -> PlayedClient:
        board = PartyBoard(self.node, cast(KeyDirectory, self.keys), place.source)
        directory = RoleDirectory.open(place.path / "role", place.unlock, role=ROLE)
        return place.kind(directory, cast(LightClient, board), said.append, cover=place.cover)

    # (train, cl, aux)

    def train(self, client: bytes) -> None:
        """(train, cl, aux): "instructs a (registered) client to train the model using its dataset".

        ``client`` is its commitment, which is aux in AnoFel. Opens the next iteration if none is open. In
        a new epoch a client registers again before it trains.
        """
        party = self._party(client)
        if not party.client.is_registered(self.node.followed.state):
            party.client.seen_by.now = self.node.height + secrets.randbelow(1000) / 1000
            party.client.send_registration()
            self._block()
        if self.bundle.phase is not Phase.OPEN:
            self._open()
        self.instructed[-1].add(client)
        party.client.cover = party.place.cover
        party.runs = True

    def cover(self, client: bytes) -> None:
        """Let a client post without training, unless it was told to train (``anofel client run --cover``)."""
        party = self._party(client)
        if not party.runs:
            party.client.cover = party.runs = True

    def _party(self, client: bytes) -> Party:
        found = self.parties.get(client)
        if found is None:
            raise QueryRefused("No client is registered with this commitment.")
        return found

    def _open(self) -> None:
        """S posts the models that open the next iteration (step 1.d)."""
        if len(self.committees) < TASKS:
            raise QueryRefused("Register the committees first.")
        following = self.bundle.iterations + 1
        self._begin_seen(following)
        self._models = [self.choose_model(number, model) for number, model in enumerate(self._models)]
        for owner, model in zip(self._owners, self._models, strict=True):
            owner.post_model(self.node.board, following, model)
        self.node.next_block()
        sitting = Sitting.of(self.node.followed.state, self.bundle.number)
        seen = self.seen[-1]
        seen.opened_at, seen.client_root = sitting.iteration.opened_at, sitting.iteration.client_root
        seen.models = tuple(model.to_bytes() for model in self._models)

    def _begin_seen(self, number: int) -> None:
        self.seen.append(IterationSeen(number))
        self.participants.append(set())
        self.instructed.append(set())
        self._is_accessed = False

    # (access)

    def access(self) -> Released:
        """(access): "only once and only at the end of that iteration"; the iteration goes on to its end.

        Raises ``QueryRefused`` if none was begun since the last time.
        """
        self.close()
        for _ in range(STEPS):
            for task, committee in enumerate(self.committees):
                committee.act(self.node.board, self.seat(task))
            self._block()
        return self._finish()

    def pass_by(self) -> Released:
        """Let the iteration end without asking for the model: no aggregator acts, the outcome is *failed*.

        An adversary may ask for less than everything; for one that looks at posts alone it saves what the
        committees would compute.
        """
        self.close()
        while self.bundle.phase is Phase.CLOSED:
            self._block()
        return self._finish()

    def close(self) -> None:
        """Let time pass until nobody can post any more."""
        if self._is_accessed:
            raise QueryRefused("Every iteration is accessed once, and none was begun since.")
        while self.bundle.phase is Phase.OPEN:
            self._block()
        self._note_participants()

    def _finish(self) -> Released:
        outcomes = tuple(self._outcome(number) for number in range(TASKS))
        self._block()  # those who run see the outcome
        for party in self.parties.values():
            party.runs = False
        self._is_accessed = True
        self._end_seen(outcomes)
        return Released(outcomes, tuple(self._models))

    def seat(self, task: int) -> Seat:
        """Where a task stands on the board."""
        return self._owners[task].seat(self.node.board)

    def _outcome(self, task: int) -> SeenOutcome:
        seat = self.seat(task)
        opened_anyway = getattr(self.committees[task], "open_little", None)
        if seat.position.progress is Progress.TOO_FEW and seat.position.count is None and opened_anyway:
            return SeenOutcome(seat.position.progress.value, opened_anyway(seat))
        total = None
        if seat.position.progress is Progress.SUMMED:
            opened = self.node.board.openings.open_sum(seat)
            total = None if opened is None else opened.vector
            if opened is not None and opened.made is not None:
                self._models[task] = next_model(self.node.board, seat)
        return SeenOutcome(seat.position.progress.value, seat.position.count, total)

    def _note_participants(self) -> None:
        accepted = {post.posting.id for post in self.node.posts}
        for commitment, party in self.parties.items():
            if accepted.intersection(party.client.seen_by.sent):
                self.participants[-1].add(commitment)

    def _end_seen(self, outcomes: tuple[SeenOutcome, ...]) -> None:
        seen, node = self.seen[-1], self.node
        seen.requests = sorted(node.requests, key=lambda request: request.time)
        seen.posts, seen.refused = node.posts, node.refused
        seen.closed_at, seen.outcomes = node.height, outcomes
        node.requests, node.posts, node.refused = [], [], []
        for party in self.parties.values():
            party.client.seen_by.sent.clear()

    # (corrupt, p, aux)

    def corrupt(self, party: bytes) -> CorruptedClient:
        """(corrupt, p, aux) for a client: aux is "the dataset commitment". It is honest no longer."""
        found = self._party(party)
        found.is_honest = False
        client, stored = found.client, found.client.directory.secrets
        return CorruptedClient(
            path=found.place.path,
            secrets={name: stored[name].reveal() for name in stored},
            turns=client.journal.turns(),
            charges=client.ledger.charges(),
            outbox=client.directory.outbox.names(),
            said=list(found.said),
        )

    def corrupt_aggregators(self, committee: int, members: int) -> tuple[SimulatedMember, ...]:
        """(corrupt, p, aux) for aggregators: "any AG can have at most n − t corrupt parties".

        Of a committee that A registered itself it has everything. Returns the members with their shares and
        their role keys. Raises ``QueryRefused`` beyond n − t.
        """
        chosen = self.committees[committee]
        if committee in self.own_committees:
            return chosen.members
        most = self.weakening.corruptible(chosen.key.shape.num_members, chosen.key.shape.threshold)
        if members > most:
            raise QueryRefused(f"At most {most} members of this committee are corrupted.")
        return chosen.members[:members]

    # Another variant

    def weaken(self, weakening: Weakening) -> None:
        """Go on with other clients and committees on the same board; those that are there are retired.

        A set-up is dear, and what is put back concerns who registers from now on. The conditions are about
        the iterations from now on, too.
        """
        self._around.__exit__(None, None, None)
        for party in self.parties.values():
            party.client.directory.close()
        self.parties, self.seen, self.participants, self.instructed = {}, [], [], []
        self.choose_model, self._people, self.own_committees = _left_alone, {}, set()
        self.weakening, self._around = weakening, weakening.around(self)
        self._around.__enter__()
        if self._other is not None:  # what is replaced while a game lasts is replaced for both boards
            self._other.weaken(replace(weakening, around=NOTHING_PUT_BACK.around))
            self._other._people = self._people
        self.committees = [weakening.committee(c.scheme, c.key, c.members) for c in self.committees]
        self._certifier = SimulatedCertifier(self._venue)  # the one before knows the rows of the retired
        self.node.next_block()

    # Time

    def advance(self, blocks: int = 1) -> None:
        """Let time pass."""
        for _ in range(blocks):
            self._block()

    def cut(self, client: bytes, *, is_cut: bool = True) -> None:
        """Cut a client's line, or mend it: nothing of it reaches the node."""
        self._party(client).client.seen_by.is_cut = is_cut

    def crash(self, client: bytes) -> None:
        """Kill a client's process and start it again: machines are the adversary's to disturb."""
        party = self._party(client)
        party.client.directory.close()
        sent = party.client.seen_by.sent
        party.client = self._start(party.place, party.said)
        party.client.seen_by.sent.extend(sent)

    def _block(self) -> None:
        """Let everybody who runs act in this block, at a time of its own, and seal it."""
        running = [party for party in self.parties.values() if party.runs]
        times = sorted((secrets.randbelow(1000) / 1000, number) for number in range(len(running)))
        for offset, number in times:
            running[number].poll(self.node.height + offset)
        self.node.next_block()

    @property
    def bundle(self) -> Bundle:
        """The bundle that holds the tasks."""
        bundles = self.node.followed.state.bundles
        if not bundles:
            raise QueryRefused("Register the committees first.")
        return bundles[max(bundles)]
