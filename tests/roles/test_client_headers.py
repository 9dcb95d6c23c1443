"""The client in header mode over a real node, of either engine: registers, trains, posts, sees its post."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.disk.keystore import KeyFile
from anofel.light_client import following
from anofel.light_client.client import LightClient
from anofel.light_client.header_client import HeaderClient
from anofel.light_client.header_store import FILE
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.files import ClientSettings
from anofel.roles.client.role import Client
from anofel.roles.client.task import TaskRefused
from anofel.roles.client.turn import PostMaker
from anofel.roles.directory import RoleConfig
from tests.board.world import LIMITS
from tests.node.support import SECONDS
from tests.replicated import support as replicated
from tests.roles.recorder import recording
from tests.roles.remote_world import CLASS, RemoteBoard, RemoteWorld, connect
from tests.roles.stage import TASKS, Stage, ample_margin, open_client, staged

POLLS = "/v1/status", "/v1/names", "/v1/outline", "/v1/leaves", "/v1/blocks"


@contextmanager
def following_headers(made: tuple[Path, KeyFile], **options: bool) -> Iterator[Client]:
    with open_client(*made) as directory:
        board = directory.connect(follow="headers")
        try:
            yield Client(directory, board, **options)  # type: ignore[arg-type]
        finally:
            board.close()


def take_part(stage: Stage) -> None:
    with ExitStack() as stack:
        seen = [stack.enter_context(recording(stage.node.url)) for _ in range(2)]
        a = stack.enter_context(following_headers(stage.client(seen[0].url), once=True))
        b = stack.enter_context(following_headers(stage.client(seen[1].url, task="study 1"), once=True))
        c = stack.enter_context(following_headers(stage.client(), once=True))
        for client in (a, b, c):
            client.register(seconds=SECONDS)
            assert client.is_registered(client.state)
        stage.run(a, b, c)
        stage.until_settled(a, b, c)
        for client in (a, b, c):
            assert isinstance(client.board, HeaderClient)
            (turn,) = [turn for turn in client.journal.turns() if turn.accepted]
            position = stage.state.tasks[turn.task].position
            assert turn.outcome == stage.outcomes[turn.iteration][position][0].value
            assert client.board.checked >= 1
            assert not list((client.directory.path / "drafts").iterdir())
            assert [sent.name for sent in client.directory.outbox] == ["registration/0/1"]
        counted = [count for outcomes in stage.outcomes.values() for _, count in outcomes]
        assert sum(count or 0 for count in counted) <= 3
        kinds = [
            {path.partition("?")[0] for method, path in one.paths if method == "GET"} - {"/v1/genesis"}
            for one in seen
        ]
        polls = [{kind for kind in each if kind.startswith(POLLS)} for each in kinds]
        plain = [{kind for kind in each if kind.startswith(POLLS[:4])} for each in polls]
        assert plain[0] == plain[1] == set(POLLS[:4]), "two tasks, the same questions"
        for each in polls:
            assert all(kind in POLLS[:4] or "/postings/" in kind for kind in each), "no block was fetched"


def test_clients_in_header_mode_take_part(keys: KeyDirectory, tmp_path: Path) -> None:
    with staged(keys, tmp_path) as stage:
        take_part(stage)


@pytest.mark.slow
def test_clients_in_header_mode_take_part_under_the_engine(keys: KeyDirectory, tmp_path: Path) -> None:
    replicated.needs_engine()
    made = replicated.make_validators(
        tmp_path, keys, number=1, interval_ms=500, limits=LIMITS, classes=(CLASS,)
    )
    with replicated.running(made, 0) as nodes, ample_margin(CLASS):
        view = connect(nodes[0].url, tmp_path / "view", made.genesis.hash)
        world = RemoteWorld(keys, made, RemoteBoard(view))  # type: ignore[arg-type]
        world.offer_certifier_key()
        for task in TASKS:
            world.announce(world.establish(2, 2), task)
        world.remote.wait(lambda: bool(world.board.state.bundles), "the bundle")
        take_part(Stage(world, nodes[0], keys, tmp_path, ""))
        view.close()


def test_the_size_of_the_board_says_how_it_is_followed(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(keys, tmp_path) as stage:
        made = stage.client()
        with open_client(*made) as directory:
            board = directory.connect(follow="size")
            assert isinstance(board, LightClient), "a small board"
            assert not (directory.path / "board" / FILE).exists()
            board.close()
            monkeypatch.setattr(following, "LARGE_BOARD", 0)
            said: list[str] = []
            large = directory.connect(said.append, follow="size")
            assert isinstance(large, HeaderClient), "it grew"
            assert any("followed by its headers" in sentence for sentence in said)
            assert json.dumps(large.state.height)
            large.close()
            again = directory.connect(follow="size")
            assert isinstance(again, HeaderClient)
            again.close()


def test_what_headers_do_not_tell_is_not_guessed() -> None:
    """The noise of some tasks depends on the number of posts; whoever demands names follows every posting."""
    maker = PostMaker(credential=None, load_rows=None, prover=None, ledger=None, floors=None, trainer="")  # type: ignore[arg-type]
    checked = SimpleNamespace(plan=SimpleNamespace(spec=SimpleNamespace(adaptive=True)))
    with pytest.raises(TaskRefused, match='follow = "all"'):
        maker.begin(SimpleNamespace(counts_posts=False), None, checked, None, "")  # type: ignore[arg-type]
    config = RoleConfig(role="client", board="http://a", genesis="00" * 32)
    for said, follows in (
        ({}, "size"),
        ({"allowed_aggregators": "O=A"}, "all"),
        ({"follow": "headers"}, "headers"),
    ):
        settings = {"data": "rows.csv", "max_epsilon": "1", **said}
        assert ClientSettings.of(replace(config, settings=settings)).follow == follows
