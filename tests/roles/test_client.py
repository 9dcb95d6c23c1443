"""The client over a real node: registers, trains, posts once, whatever happens to it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anofel.board.state import Progress
from anofel.disk.keystore import KeyFile
from anofel.messages import Posting
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import write_role
from anofel.primitives import Scope
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.journal import Turn
from anofel.roles.client.receipt import receipt_of
from anofel.roles.client.role import Client
from tests.node.support import SECONDS
from tests.roles.people import TYPE, write_policy, write_table
from tests.roles.recorder import Recorder, recording
from tests.roles.remote_world import CLASS
from tests.roles.stage import Stage, playing, staged
from tests.roles.support import NEVER


@pytest.fixture(scope="module")
def stage(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(keys, tmp_path_factory.mktemp("stage")) as made:
        yield made


def trained_in(clients: list[Client], iteration: int, task: str) -> int:
    """How many of the clients posted an update of a task in an iteration, by their own journals."""
    turns = [
        turn for client in clients if client.settings.wanted.task == task for turn in client.journal.turns()
    ]
    return sum(turn.accepted and not turn.cover for turn in turns if turn.iteration == iteration)


def charges(client: Client) -> list[tuple[int, bool]]:
    return [(made.occasion.iteration, made.released) for made in client.ledger.charges()]


def test_clients_take_part_and_count_as_they_say(stage: Stage) -> None:
    with ExitStack() as stack:
        seen = [stack.enter_context(recording(stage.node.url)) for _ in range(3)]
        said: list[str] = []
        a = stack.enter_context(playing(stage.client(seen[0].url), said.append, once=True))
        b = stack.enter_context(playing(stage.client(), once=True))
        c = stack.enter_context(playing(stage.client(seen[1].url), once=True, cover=True))
        d = stack.enter_context(playing(stage.client(seen[2].url, task="study 1"), once=True))
        poor = stack.enter_context(playing(stage.client(max_epsilon="0.0001"), once=True))
        newcomer = stack.enter_context(playing(stage.client()))
        newcomer.journal.first_iteration(0, 0, 1000)
        for client in (a, b, c, d, poor, newcomer):
            client.register(seconds=SECONDS)
            assert client.is_registered(client.state)
        stage.run(a, b, c, d, poor)
        stage.until_settled(a, b, c, d, poor)
        newcomer.work()
        for iteration in stage.outcomes:
            check_outcomes(stage, [a, b, c, d], iteration)
        for client in (a, b, c, d):
            check_settled(stage, client)
        assert charges(c) == []
        assert {turn.skipped for turn in poor.journal.turns()} - {"late"} == {"floor-not-met"}
        assert charges(poor) == []
        assert newcomer.journal.turns() == []
        assert newcomer.waits_for.startswith(("the next iteration", "its first iteration, which is drawn"))
        check_requests(stage, seen, [a, c, d])
        check_words(said, a)


def check_outcomes(stage: Stage, clients: list[Client], iteration: int) -> None:
    """A sum counts the updates of its task and nothing else; sizes tell nothing."""
    assert len(stage.shapes[iteration]) == 1, "what is trained does not show in any size"
    for (progress, count), task in zip(stage.outcomes[iteration], ("study 0", "study 1"), strict=True):
        trained = trained_in(clients, iteration, task)
        assert count == trained, "a cover post counts nowhere"
        assert progress is (Progress.SUMMED if trained >= 2 else Progress.TOO_FEW)


def check_settled(stage: Stage, client: Client) -> None:
    """The journal has the outcome, the ledger what was released, and nothing links the post to the client."""
    (turn,) = [turn for turn in client.journal.turns() if turn.accepted]
    position = stage.state.tasks[turn.task].position
    assert turn.outcome == stage.outcomes[turn.iteration][position][0].value
    if not client.cover:
        assert charges(client)[-1] == (turn.iteration, turn.outcome == "summed")
    assert not list((client.directory.path / "drafts").iterdir())
    assert [sent.name for sent in client.directory.outbox] == ["registration/0/1"]
    check_receipt(stage, client)


def check_receipt(stage: Stage, client: Client) -> None:
    """The receipt names the registration and the post as the board has them, and nothing secret."""
    text = receipt_of(client.directory)
    receipt, made, genesis = json.loads(text), client.credential, client.board.genesis.hash
    (turn,) = [turn for turn in client.journal.turns() if turn.accepted]
    post = made.msk.iteration_nullifier(made.d, Scope(genesis, turn.bundle, turn.iteration))
    assert receipt["genesis"] == genesis.hex()
    assert receipt["submissions"] == [post.to_bytes().hex()]
    (registration,) = receipt["registrations"]
    assert bytes.fromhex(registration) in stage.state.registered
    assert made.msk.to_secret_bytes().hex().encode() not in text


def check_requests(stage: Stage, seen: list[Recorder], clients: list[Client]) -> None:
    """Two tasks and a cover post: the node sees the same requests, byte by byte except bodies."""
    assert set(seen[0].heads) == set(seen[1].heads) == set(seen[2].heads)
    kinds = [dict.fromkeys(head for head in recorder.heads if head[0] != "GET") for recorder in seen]
    assert list(kinds[0]) == list(kinds[1]) == list(kinds[2])
    assert [method for method, _, _ in kinds[0]] == ["POST", "PUT", "POST"]  # register; upload, submit
    for recorder, client in zip(seen, clients, strict=True):
        (turn,) = [turn for turn in client.journal.turns() if turn.accepted]
        fetched = {path for method, path in recorder.paths if method == "GET"}
        assert {f"/v1/blobs/{model.hex()}" for model in stage.models[turn.iteration]} <= fetched


def check_words(said: list[str], client: Client) -> None:
    """What a client says tells neither when it posts nor what."""
    text = " ".join([*said, json.dumps(client.status())])
    for turn in client.journal.turns():
        nullifier = client.credential.msk.iteration_nullifier(
            client.credential.d, Scope(client.board.genesis.hash, turn.bundle, turn.iteration)
        )
        assert nullifier.to_bytes().hex() not in text
    assert "post" not in " ".join(said)
    assert any("the end of iteration" in words for words in said)


class Killed(BaseException):
    """The process dies here."""


def arm(client: Client, moment: str) -> None:
    """Let the client die at a moment, once."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    board, post = client.board, client.board.post
    if moment == "before the draft":
        client.drafts.keep = die  # type: ignore[method-assign]
    elif moment == "before the upload":
        board.upload = die  # type: ignore[method-assign, assignment]
    elif moment == "before the post":
        board.post = die  # type: ignore[method-assign]
    else:
        board.post = lambda posting: (post(posting), die())[1]  # type: ignore[method-assign, func-returns-value]


MOMENTS = ("before the draft", "before the upload", "before the post", "after the post")


def test_a_client_killed_at_the_worst_moment_posts_once(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an iteration that ends when all have posted, so that nobody is late."""
    with staged(keys, tmp_path, size=replace(CLASS, train=NEVER), early_end=True) as stage:
        kill_everywhere(stage, monkeypatch)


def kill_everywhere(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def soon(heights: range) -> int:
        """A time that has not passed, however slow this machine is."""
        reached = max(stage.state.height, *(client.state.height for client in clients.values()))
        return max(heights.start, reached + 40)

    monkeypatch.setattr("anofel.roles.client.role.draw_height", soon)
    made = {moment: stage.client() for moment in MOMENTS}
    stored: dict[str, Posting] = {}

    def is_expired(posting: Posting, _height: int) -> bool:
        """The receipts in what was stored before the post expired while nobody was there."""
        return stored.get("before the post") == posting

    monkeypatch.setattr("anofel.roles.outbox.is_expired", is_expired)
    seen: set[bytes] = set()
    with ExitStack() as stack:
        players = {moment: ExitStack() for moment in MOMENTS}
        clients = {moment: players[moment].enter_context(playing(made[moment])) for moment in MOMENTS}
        for moment in MOMENTS:
            stack.enter_context(players[moment])
            clients[moment].register(seconds=SECONDS)
            arm(clients[moment], moment)
        alive, before = set(MOMENTS), stage.world.bundle().iterations
        end = time.monotonic() + SECONDS
        while alive or any(not done(client) for client in clients.values()):
            assert time.monotonic() < end, {m: client.waits_for for m, client in clients.items()}
            stage.pump()
            seen |= message_keys(stage, before)
            for moment in MOMENTS:
                if moment not in alive and done(clients[moment]):
                    continue
                try:
                    clients[moment].work()
                except Killed:
                    alive.remove(moment)
                    for sent in clients[moment].directory.outbox:
                        if sent.name.startswith("submission"):
                            stored[moment] = sent.posting
                    players[moment].close()
                    clients[moment] = players[moment].enter_context(playing(made[moment]))

        turns = {moment: last_turn(clients[moment]) for moment in MOMENTS}
        for moment in MOMENTS:
            assert turns[moment].accepted, turns[moment]
        assert "stopped while it trained" in turns["before the draft"].reason, "it sends noise, and no update"
        assert set(stored) == {"before the post", "after the post"}
        stage.world.remote.client.sync()
        seen |= message_keys(stage, before)
        assert len(seen) == 4, "what was signed again with fresh receipts is the same submission"
        for posting in stored.values():
            assert posting.author.message_key in seen  # type: ignore[union-attr]
        assert all(len(charges(client)) == 1 for client in clients.values())
        sent = clients["before the post"].directory.outbox.find(submission_of(turns["before the post"]))
        assert sent is None or sent.posting != stored["before the post"]
        stage.until_settled(*clients.values())
        for moment in MOMENTS:
            (charged,) = charges(clients[moment])
            released = last_turn(clients[moment]).outcome == "summed"
            assert charged[1] == released, (moment, charged)


def submission_of(turn: Turn) -> str:
    return f"submission/{turn.bundle}/{turn.iteration}"


def message_keys(stage: Stage, before: int) -> set[bytes]:
    """The message keys of the current iteration's submissions, if it opened after another."""
    current = stage.world.bundle().current
    if current is None or current.number <= before:
        return set()
    return {accepted.message_key for accepted in current.submissions.values()}


def last_turn(client: Client) -> Turn:
    return client.journal.turns()[-1]


def done(client: Client) -> bool:
    turns = client.journal.turns()
    return bool(turns) and (turns[-1].accepted or bool(turns[-1].skipped))


# The commands


class Commands:
    """``anofel …`` as processes; what they print is JSON."""

    def __init__(self, stage: Stage, directory: Path) -> None:
        self.stage, self.directory = stage, directory

    def start(self, *words: object, key: str = "") -> subprocess.Popen[bytes]:
        options = ["--key-file", f"{key}.key"] if key else []
        return subprocess.Popen(
            [sys.executable, "-m", "anofel", *map(str, words), *options, "--json"],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: object, key: str = "", code: int = 0) -> dict[str, Any]:
        return self.finish(self.start(*words, key=key), code)

    def finish(self, process: subprocess.Popen[bytes], code: int = 0) -> dict[str, Any]:
        """Let everybody else go on until the process ends."""
        while process.poll() is None:
            self.stage.pump()
        out, errors = process.communicate()
        assert process.returncode == code, errors.decode()
        return dict(json.loads(out)) if out else {}


def has_draft(directory: Path) -> bool:
    """Whether a draft is there: its payloads are written first, then the key store is saved."""
    payloads = list((directory / "drafts").glob("[!.]*"))
    try:
        written = max(path.stat().st_mtime_ns for path in payloads)
        return (directory / "secrets.keystore").stat().st_mtime_ns > written
    except (ValueError, FileNotFoundError):  # no payload, or it was posted and dropped
        return False


def test_the_commands_from_init_to_a_post_and_a_kill(stage: Stage, tmp_path: Path) -> None:
    commands, world = Commands(stage, tmp_path), stage.world
    with playing(stage.client()) as other:
        other.register(seconds=SECONDS)  # an anonymity set of one is none
    write_role(tmp_path / "x509", world.authority.issue(Purpose.CERTIFIER, "Registry"))
    write_policy(tmp_path)
    write_table(tmp_path / "patients.csv", seed=77)
    board = ["--board", stage.node.url, "--genesis", world.genesis.hash.hex(), "--keys", stage.keys.path]
    certificate = ["--certificate", "x509/certificate.pem", "--key", "x509/key.pem"]
    commands.run("certifier", "init", "clinic", *board, *certificate, "--policy", "policy.toml", key="clinic")
    commands.run("certifier", "enroll", "clinic", key="clinic")
    commands.run("certifier", "nonce", "clinic", "--subject", "Ward 3", "--type", TYPE, "--out", "nonce.json")
    data = ["--data", "patients.csv", "--schema", "schema.toml", "--type", TYPE, "--task", "study 1"]
    floors = ["--max-epsilon", 1000, "--first-wait", 0, "--max-colluders", 0]
    commands.run("client", "init", "ward3", *board, *data, *floors, key="ward3")
    commands.run("client", "register", "ward3", key="ward3", code=1)  # not certified yet
    commands.run("client", "request", "ward3", "--nonce", "nonce.json", "--out", "request.json", key="ward3")
    shown = ["--request", "request.json", "--data", "patients.csv", "--out", "certificate.json"]
    commands.run("certifier", "certify", "clinic", *shown, key="clinic")
    assert (tmp_path / "certificate.json").stat().st_mode & 0o777 == 0o600
    assert commands.run("certifier", "status", "clinic")["certificates"] == 1
    commands.run("client", "accept", "ward3", "certificate.json", key="ward3")
    assert commands.run("client", "register", "ward3", key="ward3")["anonymity_set"] >= 1
    examined = commands.run("client", "doctor", "ward3", key="ward3")
    assert examined["fit"], examined
    (committees,) = [check["finding"] for check in examined["checks"] if check["check"] == "committees"]
    assert "Every one of these committees needs an honest majority" in committees

    train = commands.start("client", "train", "ward3", key="ward3")
    end = time.monotonic() + SECONDS
    while not has_draft(tmp_path / "ward3"):
        assert time.monotonic() < end
        stage.pump()
    train.kill()
    train.communicate()
    posted = commands.finish(commands.start("client", "train", "ward3", key="ward3"))
    assert posted["posted"]
    with playing((tmp_path / "ward3", KeyFile(tmp_path / "ward3.key"))) as client:
        stage.until_settled(client)
        assert last_turn(client).outcome == "too-few"  # nobody else trained, so nothing was released
        assert (last_turn(client).iteration, False) in charges(client)
    assert not commands.run("client", "leave", "ward3", key="ward3")["left"]
    assert commands.run("client", "leave", "ward3", "--confirm", key="ward3")["left"]
    commands.run("client", "run", "ward3", key="ward3", code=1)
    posts = commands.run("client", "status", "ward3")["posted"]
    # On a slow machine the first process may have posted before the kill; the second takes the next turn.
    assert posts in (1, 2)
