"""The run of a demo from genesis to audit: starts every role, lets some come late, die and cheat."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from anofel.board.validators import SAFE
from anofel.demo.data import DemoStudy, central_quality, load_studies, write_files
from anofel.demo.misbehave import ACCEPTED
from anofel.demo.plan import CERTIFIERS, Options
from anofel.demo.processes import Process, Processes
from anofel.demo.stage import Stage
from anofel.demo.watch import DemoWatch
from anofel.disk.files import Secret, write_new_file
from anofel.errors import AnofelError
from anofel.light_client.client import WaitedTooLong
from anofel.roles.certifier.role import CertifierOffice
from anofel.roles.directory import read_status
from anofel.stopping import interruptible, pause
from anofel.tasks.task import Task

TICK_SECONDS: Final = 0.25
WAIT_SECONDS: Final = 180.0
"""The longest that one step may take."""
KEY_SECONDS: Final = 3600.0
"""The longest that the committees may take for their keys: a scheme may need many tries."""
KILLED_BLOCKS: Final = 3
"""How long the killed client stays dead."""
LATE_ITERATION: Final = 2
KILL_ITERATION: Final = 3
MISBEHAVE: Final = "anofel.demo.misbehave"


class DemoFailed(AnofelError):
    """The demo did not come to its end; the message says why."""

    code = "demo-failed"


class Screen(Protocol):
    """What shows the run to people."""

    def step(self, text: str) -> None:
        """A step of the set-up begins; the one before is done."""

    def event(self, text: str, *, kind: str = "") -> None:
        """Something happened; ``kind`` is ``refused``, ``outcome``, ``trouble`` or empty."""

    def refresh(self, demo: "Demo") -> None:
        """Some time passed."""


class Demo:
    """One run in one directory."""

    def __init__(self, options: Options, screen: Screen) -> None:
        options.check()
        self.options, self._screen = options, screen
        self.stage = Stage(options)
        self.layout = self.stage.layout
        self.processes = Processes(self.layout.logs)
        self.studies: list[DemoStudy] = []
        self.tasks: dict[str, Task] = {}
        self.central: dict[str, dict[str, float]] = {}
        """By study: the quality of a model that was trained on all rows at one place."""
        self.watch: DemoWatch | None = None
        self.url = ""
        """Where the board answers; its page is there too."""
        self.audit: dict[str, Any] = {}
        self.began = time.monotonic()
        self._scenes: list[Iterator[None]] = []
        self._told: set[object] = set()
        self._looked = 0.0
        self._look_seconds = options.interval_ms / 1000
        """How often the board is looked at and shown."""

    @property
    def seconds(self) -> float:
        """How long the demo runs."""
        return time.monotonic() - self.began

    def run(self) -> None:
        """Play the whole piece. Whatever happens, no process is left behind."""
        try:
            self._prepare()
            self._set_up()
            self._train()
            self._end()
        finally:
            self.processes.stop()
            if self.watch is not None:
                self.watch.close()

    # Before the first process

    def _prepare(self) -> None:
        self._screen.step("Fetching the studies")
        with interruptible():
            self.studies = load_studies(self.options, lambda text: self._screen.event(text, kind="trouble"))
        self._screen.step("Making development proof keys (insecure) and the board's genesis")
        self.stage.make_board()
        self._screen.step("Writing tasks and dealing out the patients' rows")
        self.tasks = {study.name: write_files(study, self.options, self.layout) for study in self.studies}

    # Phase 1

    def _set_up(self) -> None:
        self._screen.step("Starting the board")
        nodes = [self._run_node(place) for place in range(len(self.layout.nodes))]
        urls = [str(self._document(node, "the board to answer")["url"]) for node in nodes]
        url = self.url = urls[0]
        self._screen.event(f"Watch the board in a browser: {url}/")
        self.watch = DemoWatch(self.layout, url, self.stage.genesis.hash)
        self.stage.make_roles(self.studies, urls[:-1] if self._can_lose_one else urls)
        self._screen.step("Two certifiers enrol; two committees make their keys, without a dealer")
        enrolled = [self._start(name, "certifier", "enroll", ends=True) for name in CERTIFIERS]
        keys = {study.name: self._generate_keys(study) for study in self.studies}
        self._finish(enrolled, "the certifiers to enrol")
        self._screen.step(f"Certifying the data of {self._num_early} clients")
        self._certify()
        for study, number in self._clients(late=False):
            self._run_client(study, number)
        for study in self.studies:
            self.central[study.name] = central_quality(study, self.tasks[study.name])
        self._screen.step("Clients register anonymously; the committees finish their keys")
        made = {
            name: self._finish(group, "the committees' keys", KEY_SECONDS) for name, group in keys.items()
        }
        self._screen.step("Owners announce; clients look at the tasks and load what they need")
        self._announce({name: documents[0]["committee"] for name, documents in made.items()})

    def _run_node(self, place: int) -> Process:
        """Run a node of the board; a validator runs its own engine, at the ports of its network.toml."""
        port = () if self.options.validators else ("--port", "0")
        where = str(self.layout.nodes[place])
        return self.processes.start(self._node(place), "node", "run", where, *port, "--json")

    def _node(self, place: int) -> str:
        return f"validator-{place}" if self.options.validators else "board"

    @property
    def _can_lose_one(self) -> bool:
        """Whether the board bears that a validator dies; nobody is given that one's address."""
        return self.options.validators >= SAFE

    def _generate_keys(self, study: DemoStudy) -> list[Process]:
        names = [study.member(number) for number in range(1, self.options.committee + 1)]
        words = ["--name", study.name, "--threshold", str(self.options.threshold)]
        words += ["--scheme", self.options.scheme]
        for name in names:
            words += ["--member", self.stage.subject(name)]
        return [self._start(name, "aggregator", "keygen", *words, ends=True) for name in names]

    def _certify(self) -> None:
        """Certifiers serve by HTTP; every early client shows its data to one of them."""
        running = {name: self._start(name, "certifier", "run", "--port", "0") for name in CERTIFIERS}
        self._certifier_urls = {
            name: str(self._document(process, "the certifiers to answer")["url"])
            for name, process in running.items()
        }
        asked = [self._request(study, number) for study, number in self._clients(late=False)]
        self._finish(asked, "the certificates")

    def _request(self, study: DemoStudy, number: int) -> Process:
        """Let a client ask the certifier that knows it."""
        name, certifier = study.client(number), CERTIFIERS[number % len(CERTIFIERS)]
        invitation = self.layout.data / f"{name}.invitation.json"
        made = CertifierOffice.open(self.layout.role(certifier)).invite(name, study.number)
        write_new_file(invitation, Secret(made.to_bytes() + b"\n"))
        words = ("--certifier", self._certifier_urls[certifier], "--invitation", str(invitation))
        return self._start(name, "client", "request", *words, ends=True)

    def _announce(self, committees: dict[str, str]) -> None:
        announced = [
            self._start(
                study.owner,
                "owner",
                "announce",
                str(self.layout.task(study.name)),
                "--committee",
                committees[study.name],
                ends=True,
            )
            for study in self.studies
        ]
        for study in self.studies:
            for number in range(1, self.options.committee + 1):
                self._run_aggregator(study, number)
        self._finish(announced, "the announcements")
        early = [study.client(number) for study, number in self._clients(late=False)]
        self._until(lambda: all(self._is_ready(name) for name in early), "the registrations")

    def _is_ready(self, client: str) -> bool:
        """Whether a client is registered and waits for an iteration to open."""
        status = read_status(self.layout.role(client), role="client")
        return bool(status.get("registered")) and str(status.get("waits_for")).startswith(
            "the next iteration"
        )

    # Phases 2 and 3

    def _train(self) -> None:
        self._screen.step("Training")
        for study in self.studies:
            rows = str(self.layout.rows(study.owner))
            self._start(study.owner, "owner", "run", "--validation", rows, ends=True)
        self._scenes = [self._join_late(study, number) for study, number in self._clients(late=True)]
        self._scenes.append(self._kill(self.studies[-1], 2))
        if self._can_lose_one:
            self._scenes.append(self._kill_validator(self.options.validators - 1))
        owners = [self.processes.find(study.owner) for study in self.studies]
        last, since = 0, time.monotonic()
        while any(owner.code is None for owner in owners):
            self._tick()
            iteration = self.watching.iteration
            if iteration > last:
                last, since = iteration, time.monotonic()
            if iteration > 2 * self.options.iterations + 4:
                raise DemoFailed(
                    "Too many iterations had too few posts: this machine is too slow or too busy."
                )
            if time.monotonic() - since > WAIT_SECONDS:
                raise WaitedTooLong(
                    f"Waited {WAIT_SECONDS:.0f} seconds for the end of iteration {last} in vain."
                )

    def _join_late(self, study: DemoStudy, number: int) -> Iterator[None]:
        while self.watching.iteration < min(LATE_ITERATION, max(1, self.options.iterations - 1)):
            yield
        request = self._request(study, number)
        while request.code is None:
            yield
        self._run_client(study, number)
        self._screen.event(f"{study.client(number)} joins late and registers.")

    def _kill(self, study: DemoStudy, number: int) -> Iterator[None]:
        watch, wanted = self.watching, min(KILL_ITERATION, self.options.iterations)
        while watch.iteration < wanted or not watch.is_open:
            yield
        self.processes.find(study.client(number)).kill()
        self._screen.event(f"{study.client(number)} is killed (kill -9) in iteration {watch.iteration}.")
        height = watch.board.state.height
        while watch.board.state.height < height + KILLED_BLOCKS:
            yield
        self._run_client(study, number)
        self._screen.event(f"{study.client(number)} is started again with the same command.")

    def _kill_validator(self, place: int) -> Iterator[None]:
        watch, name = self.watching, self._node(place)
        while not watch.is_open:
            yield
        self.processes.find(name).kill()
        self._screen.event(f"{name} is killed (kill -9); the others make blocks without it.")
        height = watch.board.state.height
        while watch.board.state.height < height + KILLED_BLOCKS:
            yield
        self._run_node(place)
        self._screen.event(f"{name} is started again and fetches what it missed.")

    def _end(self) -> None:
        """Stop everybody, then audit: what is on the board's disk, or what one of several nodes answers."""
        self._screen.step("Stopping the roles")
        self._tick()
        watch = self.watching
        nodes = {self._node(place) for place in range(len(self.layout.nodes))}
        self.processes.stop([name for name in self.processes.names if name not in nodes])
        watch.poll(self.studies, self.cheaters)
        if not self.options.validators:
            self.processes.stop()
        self._screen.step("Auditing the board from genesis")
        where = self.url if self.options.validators else str(self.layout.root)
        process = self.processes.start("audit", "audit", where, "--json", ends=True)
        self.audit = self._finish([process], "the audit", watching=False)[0]
        self.processes.stop()
        if any(tried.code == ACCEPTED for tried in watch.tries):
            raise DemoFailed("Something was taken that must be refused.")

    # Who is who

    @property
    def _num_early(self) -> int:
        return (self.options.clients - self.options.late) * len(self.studies)

    def _clients(self, *, late: bool) -> list[tuple[DemoStudy, int]]:
        first_late = self.options.clients - self.options.late + 1
        numbers = range(first_late, self.options.clients + 1) if late else range(1, first_late)
        return [(study, number) for study in self.studies for number in numbers]

    @property
    def cheaters(self) -> list[str]:
        """The first client and the first aggregator of the first study, and the liar."""
        return [self.studies[0].client(1), self.studies[0].member(1), self.liar]

    @property
    def liar(self) -> str:
        """The third client of the last study; the second is the one that is killed."""
        return self.studies[-1].client(3)

    def _run_client(self, study: DemoStudy, number: int) -> None:
        self._run_role("client", study.client(number))

    def _run_aggregator(self, study: DemoStudy, number: int) -> None:
        self._run_role("aggregator", study.member(number))

    def _run_role(self, role: str, name: str) -> None:
        if name in self.cheaters:
            kind = "liar" if name == self.liar else role
            words = (kind, str(self.layout.role(name)), str(self.layout.key_file(name)))
            self.processes.start_module(name, MISBEHAVE, *words)
        elif role == "client":
            self._start(name, role, "run")
        else:
            self._start(name, role, "run", json=False)

    # Processes and waiting

    def _start(
        self, name: str, role: str, command: str, *words: str, ends: bool = False, json: bool = True
    ) -> Process:
        """``anofel ROLE COMMAND`` in a role's directory."""
        where, key = str(self.layout.role(name)), str(self.layout.key_file(name))
        last = ("--json",) if json else ()
        return self.processes.start(name, role, command, where, *words, "--key-file", key, *last, ends=ends)

    def _document(self, process: Process, what: str) -> dict[str, Any]:
        self._until(lambda: process.document() is not None, what)
        return process.document() or {}

    def _finish(
        self, group: list[Process], what: str, seconds: float = WAIT_SECONDS, *, watching: bool = True
    ) -> list[dict[str, Any]]:
        """Wait until all of them ended well; return what they printed."""
        self._until(lambda: all(one.code is not None for one in group), what, seconds, watching=watching)
        for process in group:
            process.check()
        return [process.document() or {} for process in group]

    def _until(
        self,
        condition: Callable[[], bool],
        what: str,
        seconds: float = WAIT_SECONDS,
        *,
        watching: bool = True,
    ) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise WaitedTooLong(f"Waited {seconds:.0f} seconds for {what} in vain.")
            self._tick(watching=watching)

    def _tick(self, *, watching: bool = True) -> None:
        """Let a moment pass: look at the processes and the board, move the scenes, show it."""
        self.processes.check()
        if time.monotonic() - self._looked >= self._look_seconds:
            self._looked = time.monotonic()
            if watching and self.watch is not None:
                self.watch.poll(self.studies, self.cheaters)
                self._tell(self.watch)
            self._screen.refresh(self)
        for scene in list(self._scenes):
            if next(scene, self) is self:
                self._scenes.remove(scene)
        pause(TICK_SECONDS)

    def _tell(self, watch: DemoWatch) -> None:
        """Report what is new on the board."""
        for tried in watch.tries:
            if tried.what not in self._told:
                self._told.add(tried.what)
                self._screen.event(
                    f"{tried.what}: {tried.code or 'known, not counted again'}", kind="refused"
                )
        for place, result in watch.results.items():
            is_measured = result.outcome != "summed" or result.metrics is not None
            if place not in self._told and is_measured:
                self._told.add(place)
                quality = "".join(f", {name} {value:.3f}" for name, value in (result.metrics or {}).items())
                of = "" if result.count is None else f" of {result.count}"
                words = f"iteration {result.iteration}, {result.task}: {result.outcome}{of}{quality}"
                self._screen.event(words, kind="outcome")

    @property
    def watching(self) -> DemoWatch:
        """What is seen of the board; only once there is one."""
        if self.watch is None:
            raise AssertionError("The board of the demo has not begun.")
        return self.watch
