"""A board with two tasks in a bundle, where the test plays everybody but the clients."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from anofel.board.state import Bundle, Phase, Progress
from anofel.disk.keystore import KeyFile
from anofel.learning.certified import dataset_digest
from anofel.messages import Class
from anofel.phase1_setup.step1b_certification import fresh_nonce, issue_certificate, request_certificate
from anofel.phase1_setup.step1d_announcement import end_iteration
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import CertificateDocument
from anofel.roles.client import turn
from anofel.roles.client.files import ClientSettings, accept_certificate, load_data, master_secret
from anofel.roles.client.role import Client
from anofel.roles.directory import RoleDirectory
from anofel.roles.owner import initial_model
from anofel.roles.role import Say
from anofel.tasks.task import Task
from tests.board.world import Owner, a_task
from tests.node.support import SECONDS, NodeProcess, running
from tests.roles.people import make_client, open_client
from tests.roles.remote_world import (
    CLASS,
    INTERVAL_MS,
    RemoteBoard,
    RemoteWorld,
    connect,
    make_remote_board,
)

RELEASES = {"max_releases": 100}
TASKS = tuple(a_task(f"study {number}", privacy=RELEASES) for number in range(2))


class Stage:
    """A board with two tasks in a bundle; the test plays committees and owners."""

    def __init__(
        self, world: RemoteWorld, node: NodeProcess, keys: KeyDirectory, directory: Path, own: str
    ) -> None:
        self.world, self.node, self.keys, self.directory = world, node, keys, directory
        self.own = own
        """The trainer of the custom tasks."""
        self.bundle_number = 0
        self.number = 0
        self.outcomes: dict[int, list[tuple[Progress, int | None]]] = {}
        self.models: dict[int, list[bytes]] = {}
        self.shapes: dict[int, set[object]] = {}
        """The sizes of everything in the submissions of an iteration."""

    def client(self, board: str = "", **settings: object) -> tuple[Path, KeyFile]:
        """A new client with a certificate of the test's certifier."""
        self.number += 1
        made = make_client(
            self.directory / f"client-{self.number}",
            self.keys,
            board=board or self.node.url,
            genesis=self.world.genesis.hash,
            seed=self.number,
            **{"task": "study 0", **settings},  # type: ignore[arg-type]
        )
        with open_client(*made) as directory:
            certify(self.world, directory, self.keys)
        return made

    @property
    def state(self):  # type: ignore[no-untyped-def]
        return self.world.board.state

    def pump(self) -> None:
        """Let committees and owners do what is due."""
        world = self.world
        world.remote.client.sync()
        bundle = world.bundle(self.bundle_number)
        if bundle.phase is Phase.CLOSED:
            self._finish()
        elif bundle.phase is Phase.WAITING:
            for owner in self.owners():
                if owner.model is None:
                    custom = owner.task.model.kind == "custom"
                    owner.model = initial_model(owner.task, self.own if custom else "")
                if world.task_state(owner).model_iteration <= bundle.iterations:
                    world.post_model(owner)
        elif bundle.phase is Phase.OPEN and bundle.early_end:
            self._end_if_all_posted(bundle)
        time.sleep(0.05)

    def _end_if_all_posted(self, bundle: Bundle) -> None:
        current = bundle.current
        assert current is not None
        if len(current.submissions) == current.num_clients:
            for owner in self.owners():
                if owner.task_id not in current.end_votes:
                    body = end_iteration(owner.task_id, bundle.iterations)
                    self.world.board.post_as(owner.role, body)

    def owners(self) -> list[Owner]:
        """The owners of the current bundle whose tasks are live."""
        states = [(owner, self.world.task_state(owner)) for owner in self.world.owners]
        return [owner for owner, task in states if task.bundle == self.bundle_number and not task.ended]

    def _finish(self) -> None:
        world, number = self.world, self.bundle_number
        here = [owner for owner in world.owners if world.task_state(owner).bundle == number]
        world.remote.wait(lambda: bool(world.bundle(number).current.close_hash), "the block after the close")
        for step in (world.aggregate, world.count_share, world.sum_share):
            for owner, committee in zip(here, world.committees, strict=True):
                if not world.position(owner).progress.is_outcome:
                    for member in committee.members[: committee.threshold]:
                        step(owner, committee, member)
            world.remote.next_block()
        self._note_outcomes(here)

    def _note_outcomes(self, here: Sequence[Owner]) -> None:
        """Wait for the outcomes of the closed iteration and write them down."""
        world, number = self.world, self.bundle_number
        world.remote.wait(lambda: world.bundle(number).phase is not Phase.CLOSED, "the outcome")
        for owner in here:
            if world.position(owner).progress is Progress.SUMMED:
                world.recover(owner)
        current = world.bundle(number).current
        self.outcomes[current.number] = [(p.progress, p.count) for p in current.positions]
        self.models[current.number] = [self.state.tasks[name].model for name in world.bundle(number).tasks]
        self.shapes[current.number] = {
            (
                tuple(p.length for p in post.payloads),
                tuple(len(p.envelope) for p in post.payloads),
                len(post.ballot),
            )
            for post in current.submissions.values()
        }

    def run(self, *clients: Client, seconds: float = SECONDS) -> None:
        """Run clients side by side, everybody else included, until each client is done."""
        failures: list[BaseException] = []

        def run(client: Client) -> None:
            try:
                client.run(seconds=seconds)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.pump()
        assert not failures, failures

    def until_settled(self, *clients: Client, seconds: float = SECONDS) -> None:
        """Go on until every client knows what became of its turns."""
        end = time.monotonic() + seconds
        while any(client.journal.unfinished() for client in clients):
            assert time.monotonic() < end, "The iteration did not end."
            self.pump()
            for client in clients:
                client.board.sync(on_block=client.observe)


def certify(world: RemoteWorld, directory: RoleDirectory, keys: KeyDirectory) -> None:
    settings = ClientSettings.of(directory.config)
    secret, nonce = world.certifier_secret, fresh_nonce()
    d = dataset_digest(load_data(directory.path, settings))
    request = request_certificate(
        master_secret(directory.secrets),
        d,
        settings.dataset_type,
        certifier=secret.public_key(),
        nonce=nonce,
        prover=keys.ownership_prover(threads=1),
    )
    certificate = issue_certificate(
        request, secret=secret, nonce=nonce, verifier=keys.ownership_verifier(threads=1)
    )
    document = CertificateDocument.of(world.genesis.hash, secret.public_key(), request, certificate)
    accept_certificate(directory, settings, document)


@contextmanager
def ample_margin(size: Class) -> Iterator[None]:
    """Let clients draw early times, so that a post is not late because the machine is busy."""
    with patch.object(turn, "MARGIN", max(turn.MARGIN, (size.train - size.post_from) * 5 // 6)):
        yield


@contextmanager
def staged(
    keys: KeyDirectory,
    directory: Path,
    tasks: Sequence[Task] = TASKS,
    own: str = "",
    *,
    kind: type[Stage] = Stage,
    size: Class = CLASS,
    members: int = 2,
    early_end: bool = False,
    host: str = "127.0.0.1",
    interval_ms: int = INTERVAL_MS,
) -> Iterator[Stage]:
    """Run a node, establish two committees, which open with two members, and announce two tasks."""
    made = make_remote_board(directory / "node", keys, size, interval_ms)
    with running(directory / "node", "--host", host) as node, ample_margin(size):
        view = connect(node.url, directory / "view", made.genesis.hash)
        world = RemoteWorld(keys, made, RemoteBoard(view))
        world.offer_certifier_key()
        for task in tasks:
            world.announce(world.establish(members, 2), task, early_end=early_end)
        world.remote.wait(lambda: bool(world.board.state.bundles), "the bundle")
        yield kind(world, node, keys, directory, own)
        view.close()


@contextmanager
def playing(made: tuple[Path, KeyFile], say: Say = lambda _text: None, **options: bool) -> Iterator[Client]:
    with open_client(*made) as directory:
        board = directory.connect()
        try:
            yield Client(directory, board, say, **options)  # type: ignore[arg-type]
        finally:
            board.close()
