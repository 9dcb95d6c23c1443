"""Key generation by files: members hand each other round files, then post what was made."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import RoundMessage
from anofel.errors import InvalidInput
from anofel.framing import Reader, Writer
from anofel.messages import ChainAuthor, EndTask, Posting, Run, make_posting
from anofel.pki.certificates import Purpose, RoleKey
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.key_ceremony import describe_run
from anofel.roles.aggregator.key_files import BadRoundFile, Exchange, FileCeremony, Standing, make_round_file
from anofel.roles.aggregator.key_secrets import share_name
from anofel.roles.directory import RoleDirectory, unlock_with
from anofel.roles.role import ROLE_KEY
from tests.node.support import make_board
from tests.roles.support import Deployment, deployed

NAMES = ("member-a", "member-b", "member-c")


@pytest.fixture
def world(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("files"), keys) as made:
        yield made


def step(world: Deployment, name: str, run: Run, folder: Path) -> Standing:
    """One look at the folder, by a process that was just started."""
    unlock = unlock_with(world.path / f"{name}.key", None)
    with RoleDirectory.open(world.path / name, unlock, role="aggregator") as directory:
        return FileCeremony(directory, world.board.genesis, run, folder).step()


def carry(folders: dict[str, Path]) -> None:
    """Somebody brings everybody's files to everybody."""
    for source in folders.values():
        for target in folders.values():
            for path in source.iterdir():
                if not (target / path.name).exists():
                    shutil.copy(path, target)


def test_members_make_a_key_by_files_and_post_it_later(world: Deployment) -> None:
    subjects = [world.init("aggregator", name) for name in NAMES]
    run = describe_run("by hand", [bytes.fromhex(subject) for subject in subjects], 2, "lattice")
    folders = {name: world.path / f"folder-{name}" for name in NAMES}
    for folder in folders.values():
        folder.mkdir()
    options = ["--name", "by hand", "--threshold", "2", "--json"]
    for subject in subjects:
        options += ["--member", subject]
    first = world.run(
        "aggregator", "keygen", NAMES[0], *options, "--files", str(folders[NAMES[0]]),
        "--genesis", str(world.board.directory / "genesis.bin"),
    )  # fmt: skip
    assert (first["round"], first["committee"], len(first["missing"])) == (0, None, 2)

    standings: dict[str, Standing] = {}
    while not all(standing.key_id for standing in standings.values()) or not standings:
        carry(folders)
        standings = {name: step(world, name, run, folders[name]) for name in NAMES}
    made = {standing.key_id for standing in standings.values()}
    assert len(made) == 1
    world.view.sync()
    assert not world.view.state.runs, "the board has heard nothing yet"

    running = [world.start("aggregator", "keygen", name, *options) for name in NAMES]
    ended = {process.finish()["committee"] for process in running}
    assert {bytes.fromhex(committee) for committee in ended} == made
    world.view.sync()
    current = world.view.state.committees[next(iter(made))].current  # type: ignore[index]
    for name in NAMES:
        unlock = unlock_with(world.path / f"{name}.key", None)
        with RoleDirectory.open(world.path / name, unlock, role="aggregator") as directory:
            assert set(directory.secrets) == {"role-key", share_name(current.shares_id)}


class Table:
    """Three members with certificates at a table, and a member's view of the exchange."""

    def __init__(self, keys: KeyDirectory, path: Path) -> None:
        self.board = make_board(path / "node", keys)
        self.genesis = self.board.genesis
        self.roles = sorted((self.role(f"Member {n}") for n in range(3)), key=lambda role: role.subject)
        self.run = describe_run("table", [role.subject for role in self.roles], 2, "lattice")
        self.run_id = self.run.run_id(self.genesis.hash)
        self.exchange = Exchange(path, self.genesis, self.run)

    def role(self, name: str, purpose: Purpose = Purpose.AGGREGATOR) -> RoleKey:
        start = self.genesis.time
        return self.board.authority.issue(purpose, name, start - 3600, start + 86_400)

    def message(self, **changes: object) -> RoundMessage:
        whole = RoundMessage(run_id=self.run_id, round=0, sender=2, body=b"a message")
        return replace(whole, **changes)

    def file(self, role: RoleKey | None = None, run: Run | None = None, **changes: object) -> bytes:
        author = role or self.roles[1]
        return make_round_file(author, self.genesis.hash, run or self.run, self.message(**changes))


@pytest.fixture(scope="module")
def table(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(keys, tmp_path_factory.mktemp("table"))


def refused(table: Table, data: bytes, words: str) -> None:
    with pytest.raises(BadRoundFile, match=words) as caught:
        table.exchange.keep(data, Path("usb/file.round"))
    assert "usb/file.round" in str(caught.value)


def test_a_whole_file_is_taken_and_kept(table: Table) -> None:
    assert table.exchange.keep(table.file(round=5), Path("f")) is not None
    assert table.exchange.keep(table.file(round=5), Path("copy of f")) is not None
    assert table.exchange.messages(5) == {2: table.message(round=5)}
    assert table.exchange.messages(6) == {}


def test_a_file_that_is_cut_or_changed_is_refused_with_its_name(table: Table) -> None:
    whole = table.file()
    refused(table, whole[:-1], r"not a whole round file.*\(1\)")
    refused(table, whole + b"x", r"not a whole round file.*\(1\)")
    refused(table, whole[:-1] + b"x", r"member 2 was changed on its way \(1\)")


def test_a_file_with_another_posting_is_refused(table: Table) -> None:
    role = table.roles[1]
    posting = make_posting(EndTask(task=bytes(32)), ChainAuthor(role.chain), table.genesis.hash, role.sign)
    refused(table, Writer().framed(posting.data).framed(b"").done(), r"another posting.*\(1\)")


def test_a_file_that_its_author_did_not_sign_is_refused(table: Table) -> None:
    reader = Reader(table.file())
    posting, body = Posting.from_bytes(reader.framed()), reader.framed()
    forged = posting.data[:-1] + bytes([posting.data[-1] ^ 1])
    refused(table, Writer().framed(forged).framed(body).done(), r"of member 2: .*\(2\)")
    refused(table, make_round_file(table.roles[1], bytes(32), table.run, table.message()), r"\(2\)")


def test_a_file_of_somebody_without_the_role_is_refused(table: Table) -> None:
    refused(table, table.file(table.role("Owner", Purpose.OWNER)), r"of member 2: .*\(2\)")


def test_a_file_of_another_member_or_of_a_stranger_is_refused(table: Table) -> None:
    refused(table, table.file(table.roles[0]), r"is not member 2 of the run \(3\)")
    refused(table, table.file(table.role("Stranger")), r"CN=Stranger.* is not member 2 of the run \(3\)")
    refused(table, table.file(sender=4), r"is not member 4 of the run \(3\)")


def test_a_file_that_describes_another_run_under_the_same_name_is_refused(table: Table) -> None:
    refused(table, table.file(run=replace(table.run, threshold=3)), r"member 2 describes another run \(3\)")


def test_a_member_that_gives_two_messages_in_a_round_is_named(table: Table) -> None:
    table.exchange.keep(table.file(round=7), Path("f"))
    refused(
        table, table.file(round=7, body=b"another"), r"member 2 gave two different messages of round 7.*\(4\)"
    )


def test_a_file_of_another_run_is_left_alone(table: Table) -> None:
    other = table.file(run_id=b"\x07" * 32, round=1)
    assert table.exchange.keep(other, Path("f")) is None


def test_a_member_that_posts_another_message_than_its_file_is_named(table: Table) -> None:
    table.exchange.keep(table.file(round=8), Path("f"))
    table.exchange.check_posted(8, {})
    with pytest.raises(KeyGenerationFailed, match="posted another message of round 8") as caught:
        table.exchange.check_posted(8, {2: bytes(32)})
    assert caught.value.culprits == (2,)


def test_what_is_in_the_way_of_an_exchange_is_said(table: Table, tmp_path: Path) -> None:
    unlock, path = unlock_with(tmp_path / "key", None, new=True), tmp_path / "role"
    RoleDirectory.create(
        path,
        unlock,
        role="aggregator",
        board="http://127.0.0.1:1",
        genesis_hash=table.genesis.hash,
        secrets={ROLE_KEY: table.roles[0].to_secret_bytes()},
    )
    with RoleDirectory.open(path, unlock, role="aggregator") as directory:
        with pytest.raises(InvalidInput, match="not a folder"):
            FileCeremony(directory, table.genesis, table.run, tmp_path / "none").step()
        with pytest.raises(InvalidInput, match="not that of this role's board"):
            FileCeremony(directory, replace(table.genesis, name="other"), table.run, tmp_path)
        strangers = replace(table.run, members=table.run.members[1:])
        with pytest.raises(InvalidInput, match="not among the members"):
            FileCeremony(directory, table.genesis, strangers, tmp_path)
