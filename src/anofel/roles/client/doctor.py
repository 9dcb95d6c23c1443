"""Is this client fit to take part? One line per check, nothing posted, nothing charged, nothing changed."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from anofel.board.seat import addressee_of
from anofel.errors import AnofelError
from anofel.learning.build import trainer_of
from anofel.learning.certified import dataset_digest
from anofel.light_client.base import BoardClient
from anofel.phase2_training.step4_local_training import rehearse
from anofel.roles.certifier.policy import load_schema
from anofel.roles.client.files import JOURNAL, SCHEMA, ClientSettings, credential, load_data, read_keys
from anofel.roles.client.journal import Journal
from anofel.roles.client.role import Client
from anofel.roles.client.task import CheckedTask, find_task
from anofel.roles.client.turn import MARGIN
from anofel.roles.directory import RoleDirectory

MAX_CLOCK_SECONDS: Final = 60
MIN_FREE_BYTES: Final = 1 << 30
EVERY_COMMITTEE: Final = (
    "Every one of these committees needs an honest majority: each opens its bit of your post, so that many "
    "of its members can tell whether you trained for its task"
)


@dataclass(frozen=True)
class Diagnosis:
    """One check."""

    check: str
    ok: bool
    finding: str


class Doctor:
    """Looks a client over."""

    def __init__(self, directory: RoleDirectory, board: BoardClient) -> None:
        """Open a client, certified or not."""
        self.directory, self.board = directory, board
        self.settings = ClientSettings.of(directory.config)

    def examine(self) -> list[Diagnosis]:
        """Make every check; one that fails does not keep the others from being made."""
        checks: dict[str, Callable[[], str]] = {
            "board": self._board,
            "clock": self._clock,
            "disk": self._disk,
            "keys": self._keys,
            "schema": self._schema,
            "certificate": self._certificate,
            "task": self._task,
            "committees": self._committees,
            "trainer": self._trainer,
            "expected wait": self._wait,
            "bytes per iteration": self._bytes,
        }
        return [_find(name, check) for name, check in checks.items()]

    def _board(self) -> str:
        try:
            observe = Client(self.directory, self.board).observe  # what a block decides is not to be missed
        except AnofelError:
            observe = None
        self.board.sync(on_block=observe)
        state = self.board.state
        return f"block {state.height} verified; {len(state.clients)} clients in epoch {state.epoch}"

    def _clock(self) -> str:
        off = int(time.time()) - self.board.state.time
        if abs(off) > MAX_CLOCK_SECONDS + self.board.genesis.interval_ms // 1000:
            raise _Sick(f"this machine's clock is {off} seconds from the board's")
        return f"{off} seconds from the board's last block"

    def _disk(self) -> str:
        free = shutil.disk_usage(self.directory.path).free
        if free < MIN_FREE_BYTES:
            raise _Sick(f"{free:,} bytes are free; {MIN_FREE_BYTES:,} should be")
        return f"{free:,} bytes are free"

    def _keys(self) -> str:
        keys = read_keys(self.settings, self.board)
        keys.check_pairs()
        return f"proof keys are the board's ({keys.origin})"

    def _schema(self) -> str:
        return f"{len(load_data(self.directory.path, self.settings))} rows fit the schema"

    def _certificate(self) -> str:
        made = credential(self.directory.secrets)
        made.verify()
        if dataset_digest(load_data(self.directory.path, self.settings)) != made.d:
            raise _Sick("the data is not the certified data any more")
        listed = self.board.state.certifiers.get(made.certifier.to_bytes())
        if listed is None or not listed.in_force:
            raise _Sick("the board does not list the certifier's key")
        return "valid for this data, by a certifier that the board lists"

    def _checked(self) -> CheckedTask:
        schema = load_schema(self.directory.path / SCHEMA)
        path, wanted = self.directory.path / JOURNAL, self.settings.wanted
        chosen = Journal(path).chosen_task(wanted.task) if path.exists() else None
        return find_task(self.board.state, wanted, chosen, schema, self.settings.dataset_type)

    def _task(self) -> str:
        checked = self._checked()
        self.settings.floors.check_task(checked.plan, len(self.board.state.clients))
        floors, privacy = self.settings.floors, checked.task.privacy
        one, whole = (floors.epsilon(checked.plan, count) for count in (1, privacy.max_releases))
        colluders = privacy.min_clients - floors.honest(checked.plan)
        return (
            f"'{checked.name}': ε = {one:.3f} per iteration, {whole:.3f} for all ({floors.relation}, with "
            f"{colluders} colluders among {privacy.min_clients} clients)"
        )

    def _committees(self) -> str:
        """Name every member of every committee of the bundle: each committee opens a bit of every post.

        Those who handed the key over are named too: it is the same key, and old shares can be kept.
        """
        state, bundle = self.board.state, self._checked().bundle(self.board.state)
        if bundle is None:
            raise _Sick("the task is in no bundle yet")
        lines = []
        for name in bundle.tasks:
            for shares in state.committee_of(state.tasks[name]).generations:
                members = "; ".join(
                    f"{member.name}, by {member.issuer}" for member in state.members_of(shares)
                )
                whose = f"{shares.threshold} of {len(shares.members)} for task {name.hex()[:8]}…"
                lines.append(f"{whose}, shares of epoch {shares.share_epoch}: {members}")
        self.settings.trust.check_bundle(state, bundle)
        return f"{'; and '.join(lines)}. {EVERY_COMMITTEE}"

    def _trainer(self) -> str:
        task, own = self._checked().task, self.settings.trainer
        rehearse(task, trainer_of(task, own), load_data(self.directory.path, self.settings))
        if own:
            return f"'{own}' is your own: code that runs here with your rights and sees your data"
        return f"the package's own, for the kind '{task.model.kind}'"

    def _wait(self) -> str:
        """From an iteration's opening to the post, on average; and the most boundaries before the first."""
        bundle = self._checked().bundle(self.board.state)
        if bundle is None:
            raise _Sick("the task is in no bundle yet")
        size, seconds = self.board.state.class_of(bundle), self.board.genesis.interval_ms / 1000
        if size.post_from > size.train - MARGIN:
            raise _Sick("the bundle leaves no time to post")
        mean = (size.post_from + size.train - MARGIN) / 2 * seconds
        return (
            f"{mean:.0f} s on average from an opening to the post; the model must train within "
            f"{size.post_from * seconds:.0f} s; up to {self.settings.first_wait} openings before the first"
        )

    def _bytes(self) -> str:
        state = self.board.state
        bundle = self._checked().bundle(state)
        if bundle is None:
            raise _Sick("the task is in no bundle yet")
        up = 0
        for name in bundle.tasks:
            task = state.tasks[name]
            committee = state.committee_of(task)
            addressee = addressee_of(committee, task, committee.current)
            scheme, key = self.board.keys.read(addressee.committee)
            up += scheme.payload_bytes(key, addressee.limits)
        down = sum(8 * state.tasks[name].facts.limits.length for name in bundle.tasks)
        return f"about {up:,} up and {down:,} down for models, whatever task it trains"


class _Sick(AnofelError):
    """A check that fails."""

    code = "not-fit"


def _find(name: str, check: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(name, True, check())
    except AnofelError as error:
        return Diagnosis(name, False, str(error))


def as_records(findings: list[Diagnosis]) -> list[dict[str, Any]]:
    """Return the findings for printing."""
    return [{"check": f.check, "ok": f.ok, "finding": f.finding} for f in findings]
