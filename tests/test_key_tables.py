"""The tables of proving keys: a cache that is checked, mended and shared; and keys that a board hands out."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anofel.disk.keystore import KeyFile
from anofel.errors import InvalidKeyFile, PeerUnreachable
from anofel.light_client.client import LightClient
from anofel.network.transport import Transport
from anofel.proofs.export import make_example
from anofel.proofs.keys import STATEMENTS, KeyDirectory, key_file_name, served_name
from anofel.proofs.statements import OwnershipProver
from anofel.roles.certifier.role import OWNERSHIP_KEY
from anofel.roles.client import files as client_files
from anofel.roles.client.files import ClientSettings, init_client, own_keys, read_keys
from anofel.roles.directory import BOARD, RoleDirectory, read_config
from tests.node.support import make_board, running
from tests.roles.people import write_policy, write_schema, write_table

TABLES = "ownership.proving.tables"


@pytest.fixture
def copy(keys: KeyDirectory, tmp_path: Path) -> Path:
    shutil.copytree(keys.path, tmp_path / "keys")
    return tmp_path / "keys"


def opened(path: Path) -> tuple[KeyDirectory, list[str]]:
    heard: list[str] = []
    return KeyDirectory.open(path, heard.append), heard


def proves(keys: KeyDirectory) -> None:
    made = make_example("ownership")
    proof = keys.ownership_prover(threads=1).prove(made.statement, made.witness)
    keys.ownership_verifier().verify(made.statement, proof)


def test_a_key_is_small_and_names_its_tables(keys: KeyDirectory) -> None:
    wire = [keys.proving[name].read() for name in STATEMENTS]
    assert sum(map(len, wire)) <= 2_200_000
    for name, data in zip(STATEMENTS, wire, strict=True):
        tables = (keys.path / f"{name}.proving.tables").read_bytes()
        assert data[-32:] == hashlib.sha256(tables).digest()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (Path.unlink, "were not made yet"),
        (lambda path: path.write_bytes(b""), "are damaged or another key's"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "are damaged or another key's"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "are damaged or another key's"),
        (lambda path: path.write_bytes(flipped(path.read_bytes())), "are damaged or another key's"),
        (
            lambda path: shutil.copy(path.with_name("submission.proving.tables"), path),
            "are damaged or another key's",
        ),
    ],
)
def test_tables_that_are_not_right_are_made_again(
    copy: Path, damage: Callable[[Path], object], why: str
) -> None:
    good = (copy / TABLES).read_bytes()
    damage(copy / TABLES)
    keys, heard = opened(copy)
    proves(keys)
    assert heard == [f"The tables {copy / TABLES} {why}; they were made from the ownership key."]
    assert (copy / TABLES).read_bytes() == good
    proves(keys)
    assert len(heard) == 1
    assert sorted(copy.glob(".*")) == []


def flipped(data: bytes) -> bytes:
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


def test_tables_that_cannot_be_kept_are_used_all_the_same(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anofel.errors import InvalidInput
    from anofel.proofs import keys as module

    def refuse(path: Path, _content: bytes) -> None:
        raise InvalidInput(f"{path} cannot be written: Read-only file system.")

    (copy / TABLES).unlink()
    monkeypatch.setattr(module, "replace_file", refuse)
    keys, heard = opened(copy)
    proves(keys)
    assert "Read-only file system, so they are made anew at every start" in heard[1]


def test_damaged_tables_do_not_hide_a_wrong_key(copy: Path) -> None:
    (copy / "ownership.proving.key").write_bytes(flipped((copy / "ownership.proving.key").read_bytes()))
    keys, heard = opened(copy)
    with pytest.raises(InvalidKeyFile, match="not the pinned one"):
        keys.ownership_prover()
    assert heard == []


def test_a_proving_key_of_another_verification_key_is_refused(
    keys: KeyDirectory, copy: Path, tmp_path: Path
) -> None:
    from anofel._core import keys as core

    made = core.insecure_development_key("ownership")
    proving, tables = made.proving, made.tables
    (copy / "ownership.proving.key").write_bytes(proving)
    (copy / TABLES).write_bytes(tables)
    pins = keys.pins() | {"ownership_proving_key": hashlib.sha256(proving).digest()}
    mixed = KeyDirectory.pinned(copy, pins)
    for check in (mixed.ownership_prover, mixed.check_pairs, mixed.check_proving_keys):
        with pytest.raises(InvalidKeyFile, match="belongs to another verification key"):
            check()


def test_a_lying_key_is_found_by_whoever_makes_the_tables(keys: KeyDirectory, copy: Path) -> None:
    """Its maker put other tables beside it; that they have the id that it names is not enough."""
    tables = (copy / TABLES).read_bytes()
    bad = flipped(tables)
    data = keys.proving["ownership"].read()[:-32] + hashlib.sha256(bad).digest()
    (copy / "ownership.proving.key").write_bytes(data)
    (copy / TABLES).write_bytes(bad)
    pins = keys.pins() | {"ownership_proving_key": hashlib.sha256(data).digest()}
    with pytest.raises(InvalidKeyFile, match="the tables that it names are not its own"):
        KeyDirectory.pinned(copy, pins).check_proving_keys()


def test_two_processes_make_tables_at_once(copy: Path) -> None:
    good = (copy / TABLES).read_bytes()
    (copy / TABLES).unlink()
    code = f"""
from pathlib import Path
from anofel.proofs.keys import KeyDirectory
KeyDirectory.open(Path({str(copy)!r})).ownership_prover(threads=1)
"""
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait(timeout=600) for process in running] == [0, 0, 0]
    assert (copy / TABLES).read_bytes() == good
    assert sorted(copy.glob(".*")) == []


# A board hands keys out


def start_client(path: Path, tmp_path: Path, url: str, genesis: bytes, heard: list[str]) -> None:
    init_client(
        path,
        KeyFile.generate(tmp_path / f"{path.name}.key"),
        board=url,
        genesis_hash=genesis,  # type: ignore[arg-type]
        data=write_table(tmp_path / "patients.csv"),
        schema=write_schema(tmp_path / "schema.toml"),
        keys=None,
        settings={"max_epsilon": "2"},
        say=heard.append,
    )


def test_a_client_fetches_checks_and_expands(keys: KeyDirectory, tmp_path: Path) -> None:
    board, heard = make_board(tmp_path / "node", keys), list[str]()
    path = tmp_path / "ward"
    with running(board.directory) as node:
        start_client(path, tmp_path, node.url, board.genesis.hash, heard)
        assert heard == [
            "Fetching the proof keys from the board.",
            "Checking the proof keys and making their tables, once.",
        ]
        for name in STATEMENTS:
            tables = f"{name}.proving.tables"
            assert (path / BOARD / tables).read_bytes() == (keys.path / tables).read_bytes()
        settings = ClientSettings.of(read_config(path, role="client"))
        assert own_keys(path, settings).pins() == keys.pins()
        proves(own_keys(path, settings))
        # A key that is damaged later is fetched again.
        (path / BOARD / "submission.proving.key").write_bytes(b"")
        with RoleDirectory.open(path, KeyFile(tmp_path / "ward.key"), role="client") as found:
            light = found.connect()
            assert read_keys(settings, light).pins() == keys.pins()
            light.close()
    assert (path / BOARD / "submission.proving.key").read_bytes() == keys.proving["submission"].read()


@pytest.mark.parametrize("wrong", ["submission.proving", "ownership"])
def test_a_client_refuses_a_wrong_key_of_a_board(
    keys: KeyDirectory, tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node, or whoever stands before it, hands out another key."""
    board = make_board(tmp_path / "node", keys)
    genesis = board.genesis

    def answer(
        _self: Transport, _method: str, path: str, read: Callable[[bytes], object], **_: object
    ) -> object:
        if path == "/v1/genesis":
            return read(genesis.to_bytes())
        name, _, proving = path.removeprefix("/v1/keys/").partition(".")
        role = "proving" if proving else "verification"
        data = keys.file(name, role).read()  # type: ignore[arg-type]
        if served_name(name, role) == wrong:  # type: ignore[arg-type]
            data = flipped(data) if len(data) > 5000 else data[:-1]
        try:
            return read(data)
        except Exception as error:
            raise PeerUnreachable(str(error)) from error

    monkeypatch.setattr(Transport, "ask", answer)
    with pytest.raises(PeerUnreachable, match="key is not the one that genesis pins"):
        start_client(tmp_path / "ward", tmp_path, "http://board.example", genesis.hash, [])
    assert not (tmp_path / "ward").exists()


def test_a_client_makes_nothing_without_its_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> object:
        raise PeerUnreachable("nobody answers")

    monkeypatch.setattr(client_files, "remote_genesis", unreachable)
    with pytest.raises(PeerUnreachable, match="nobody answers"):
        start_client(tmp_path / "ward", tmp_path, "http://board.example", bytes(32), [])
    assert not (tmp_path / "ward").exists()


def test_a_light_client_without_a_role_fetches_no_proving_key(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        view = LightClient(tmp_path / "view", Transport(node.url), genesis_hash=board.genesis.hash)
        assert not (tmp_path / "view" / key_file_name("submission", "proving")).exists()
        assert view.proof_keys().pins() == keys.pins()
        view.close()


def test_a_certifier_fetches_the_ownership_key(keys: KeyDirectory, tmp_path: Path) -> None:
    from anofel.roles.certifier.role import init_certifier

    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        init_certifier(
            tmp_path / "clinic",
            KeyFile.generate(tmp_path / "clinic.key"),
            board=node.url,
            genesis_hash=board.genesis.hash,
            role_key=board.certifier(),
            keys=None,
            policy=write_policy(tmp_path),
        )
    assert (tmp_path / "clinic" / OWNERSHIP_KEY).read_bytes() == keys.verification["ownership"].read()


def test_tables_of_a_prover_are_those_of_its_key(keys: KeyDirectory) -> None:
    key = keys.proving["ownership"]
    prover = OwnershipProver.from_bytes(key.read(), key.key_id, threads=1)
    assert prover.to_tables() == (keys.path / TABLES).read_bytes()
    assert prover.verification_key_id == keys.verification["ownership"].key_id
