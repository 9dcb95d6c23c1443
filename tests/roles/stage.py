"""A board with two tasks in a bundle, where the test plays everybody but the clients."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anofel.board.state import Phase, Progress
from anofel.keys import KeyDirectory
from anofel.keystore import KeyFile
from anofel.learning.certified import dataset_digest
from anofel.phase1_setup.certification import fresh_nonce, issue_certificate, request_certificate
from anofel.roles.certificate_files import CertificateDocument
from anofel.roles.client import Client
from anofel.roles.client_files import ClientSettings, accept_certificate, load_data, master_secret
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import Say
from tests.board.world import a_task
from tests.node.support import NodeProcess, running
from tests.roles.people import TYPE, make_client, open_client
from tests.roles.remote_world import Authority, RemoteWorld, connect, make_remote_board

RELEASES = {"max_releases": 100}


class Stage:
    """A board with two tasks in a bundle; the test plays committees and owners."""

    def __init__(self, world: RemoteWorld, node: NodeProcess, keys: KeyDirectory, directory: Path) -> None:
        self.world, self.node, self.keys, self.directory = world, node, keys, directory
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
        if world.bundle().phase is Phase.CLOSED:
            self._finish()
        elif world.bundle().phase is Phase.WAITING:
            for owner in world.owners:
                if owner.model is None:
                    world.post_first_model(owner)
                elif world.task_state(owner).model_iteration <= world.bundle().iterations:
                    world.post_model(owner)
        time.sleep(0.05)

    def _finish(self) -> None:
        world = self.world
        world.remote.wait(lambda: world.bundle().current.close_hash)  # known one block after the close
        for step in (world.aggregate, world.count_share, world.sum_share):
            for owner, committee in zip(world.owners, world.committees, strict=True):
                if not world.position(owner).progress.is_outcome:
                    for member in committee.members[: committee.threshold]:
                        step(owner, committee, member)
            world.remote.next_block()
        world.remote.wait(lambda: world.bundle().phase is not Phase.CLOSED)
        for owner in world.owners:
            if world.position(owner).progress is Progress.SUMMED:
                world.recover(owner)
        current = world.bundle().current
        self.outcomes[current.number] = [(p.progress, p.count) for p in current.positions]
        self.models[current.number] = [self.state.tasks[name].model for name in world.bundle().tasks]
        self.shapes[current.number] = {
            (
                tuple(p.length for p in post.payloads),
                tuple(len(p.envelope) for p in post.payloads),
                len(post.ballot),
            )
            for post in current.submissions.values()
        }

    def run(self, *clients: Client, seconds: float = 150) -> None:
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

    def until_settled(self, *clients: Client, seconds: float = 90) -> None:
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
    document = CertificateDocument(
        genesis=world.genesis.hash,
        certifier=secret.public_key().to_bytes(),
        d=d.to_bytes(),
        mpk=request.mpk.to_bytes(),
        dt=TYPE,
        certificate=certificate.to_secret_bytes(),
    )
    accept_certificate(directory, settings, document)


@contextmanager
def staged(keys: KeyDirectory, directory: Path) -> Iterator[Stage]:
    """Run a node, establish two committees and announce two tasks."""
    authority = Authority()
    genesis = make_remote_board(directory / "node", keys, authority)
    with running(directory / "node") as node:
        view = connect(node.url, directory / "view", genesis.hash)
        world = RemoteWorld(keys, authority, view)
        world.offer_certifier_key()
        for number in range(2):
            world.announce(world.establish(2, 2), a_task(f"study {number}", privacy=RELEASES))
        world.remote.wait(lambda: bool(world.board.state.bundles))
        yield Stage(world, node, keys, directory)
        view.close()


@contextmanager
def playing(made: tuple[Path, KeyFile], say: Say = lambda _text: None, **options: bool) -> Iterator[Client]:
    with open_client(*made) as directory:
        board = directory.connect()
        try:
            yield Client(directory, board, say, **options)  # type: ignore[arg-type]
        finally:
            board.close()
