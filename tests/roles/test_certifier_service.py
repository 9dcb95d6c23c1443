"""Attacks on a certifier that serves: crashes, strangers, files that are too large, silent crowds."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from anofel.disk.keystore import KeyFile
from anofel.errors import InvalidInput
from anofel.network.transport import Refused, Transport
from anofel.node.api_problems import BadRequest
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import (
    InvitationDocument,
    NonceDocument,
    PermitDocument,
    RequestDocument,
    ShowingDocument,
)
from anofel.roles.certifier.log import CertificationRefused
from anofel.roles.certifier.policy import Policy
from anofel.roles.certifier.role import CertifierOffice
from anofel.roles.certifier.service import MAX_CONNECTIONS, MAX_SHOWN_BYTES, TICKET_SECONDS, Tickets
from anofel.roles.client import request as client_request
from anofel.roles.client.files import credential
from anofel.roles.directory import RoleDirectory
from anofel.studies.load import load_file
from anofel.studies.table import MemoryFile
from tests.node.support import SECONDS
from tests.roles.people import TYPE, make_certifier, make_client, open_client, write_policy, write_table

GENESIS = bytes(range(32))
BOARD = "http://board.example"
MARK = b"Patient 0"
"""Stands in every file of patients."""


@dataclass
class Served:
    """A certifier as a process of its own."""

    process: subprocess.Popen[bytes]
    path: Path
    home: Path
    """Everything that it can write to: its directory and its temporary files."""
    url: str

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", int(self.url.rsplit(":", 1)[1])

    def invite(self) -> InvitationDocument:
        return CertifierOffice.open(self.path).invite("Ward 3", TYPE)

    def plain_text(self, mark: bytes = MARK) -> list[Path]:
        return [path for path in self.home.rglob("*") if path.is_file() and mark in path.read_bytes()]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def served(home: Path, keys: KeyDirectory, role: RoleKey, **policy: object) -> Iterator[Served]:
    path, unlock = make_certifier(home, keys, role, board=BOARD, genesis=GENESIS, **policy)
    (home / "tmp").mkdir()
    process = start(home, path, unlock)
    try:
        assert process.stdout is not None
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = process.stdout.readline()
            assert line
            text += line
        yield Served(process, path, home, json.loads(text)["url"])
    finally:
        process.kill()
        process.communicate()


def start(home: Path, path: Path, unlock: KeyFile) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "anofel", "certifier", "run", path, "--port", "0", "--json"]
    environment = {**os.environ, "TMPDIR": str(home / "tmp")}
    return subprocess.Popen(
        [*command, "--key-file", unlock.path], stdout=subprocess.PIPE, env=environment, cwd=Path.cwd()
    )


@pytest.fixture(scope="module")
def role_key() -> RoleKey:
    return TestAuthority.create().issue(Purpose.CERTIFIER, "Clinic")


@pytest.fixture
def client(tmp_path: Path, keys: KeyDirectory) -> Iterator[RoleDirectory]:
    opened = open_client(*make_client(tmp_path / "client", keys, board=BOARD, genesis=GENESIS))
    yield opened
    opened.close()


def data_of(client: RoleDirectory) -> Path:
    return Path(str(client.config.settings["data"]))


def ask(server: Served, client: RoleDirectory) -> tuple[InvitationDocument, RequestDocument]:
    """An invited client up to the point where it announces what it shows."""
    invitation = server.invite()
    transport = Transport(server.url, attempts=1)
    nonce = NonceDocument.from_bytes(transport.post("/v1/nonces", invitation.to_bytes()))
    return invitation, client_request.make_request(client, nonce)


def permitted(server: Served, client: RoleDirectory) -> tuple[ShowingDocument, PermitDocument]:
    invitation, request = ask(server, client)
    showing = ShowingDocument.of(invitation, request, data_of(client))
    answer = Transport(server.url, attempts=1).post("/v1/requests", showing.to_bytes())
    return showing, PermitDocument.from_bytes(answer)


def head(path: str, length: int, method: str = "PUT") -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: c",
        "Connection: close",
        "Content-Type: application/octet-stream",
    )
    return ("\r\n".join((*lines, f"Content-Length: {length}", "", ""))).encode()


def answer(connection: socket.socket) -> bytes:
    """Everything that comes until the peer closes."""
    connection.settimeout(SECONDS)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


# (b) Nothing survives a crash


def test_a_kill_in_the_middle_of_an_upload_leaves_no_plain_text(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key, max_bytes=32 << 20) as server:
        data_of(client).write_bytes(data_of(client).read_bytes() + b"\n" * (16 << 20))
        invitation, request = ask_anyway(server, client)
        showing = ShowingDocument.of(invitation, request, data_of(client))
        permit = PermitDocument.from_bytes(Transport(server.url).post("/v1/requests", showing.to_bytes()))
        with socket.create_connection(server.address) as connection:
            connection.sendall(head(f"/v1/data/{permit.ticket.hex()}", showing.length))
            connection.sendall(data_of(client).read_bytes()[: 12 << 20])  # more than any socket buffers
            server.kill()
        assert server.plain_text() == []


def ask_anyway(server: Served, client: RoleDirectory) -> tuple[InvitationDocument, RequestDocument]:
    """A request for the rows without the empty lines behind them; only the file itself would show it."""
    good = data_of(client).read_bytes()
    data_of(client).write_bytes(good.rstrip(b"\n") + b"\n")
    try:
        return ask(server, client)
    finally:
        data_of(client).write_bytes(good)


def test_a_kill_while_data_is_judged_leaves_no_plain_text(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key, check="tests.roles.checks:die") as server:
        showing, permit = permitted(server, client)
        with socket.create_connection(server.address) as connection:
            connection.sendall(head(f"/v1/data/{permit.ticket.hex()}", showing.length))
            connection.sendall(data_of(client).read_bytes())
            assert answer(connection) == b""
        assert server.process.wait(SECONDS) == -signal.SIGKILL
        assert server.plain_text() == []


def test_the_process_never_dumps_its_memory(tmp_path: Path, keys: KeyDirectory, role_key: RoleKey) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server:
        limits = Path(f"/proc/{server.process.pid}/limits")
        if not limits.exists():
            pytest.skip("no /proc")
        (line,) = [line for line in limits.read_text().splitlines() if line.startswith("Max core file size")]
        assert line.split()[4:6] == ["0", "0"]


# (a) Strangers


def test_a_file_without_a_ticket_is_refused_before_its_body_comes(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server:
        for ticket in ("00" * 32, "nonsense", "%00"):
            with socket.create_connection(server.address) as connection:
                connection.sendall(head(f"/v1/data/{ticket}", 1 << 20))  # and nothing of the body
                assert b"403" in (said := answer(connection)).split(b"\r\n", 1)[0]
                assert b"ticket-unknown" in said
        with socket.create_connection(server.address) as connection:
            connection.sendall(head("/v1/certificates", 1 << 20, "POST"))
            assert b"404" in answer(connection).split(b"\r\n", 1)[0]
        # An honest client is served all the same.
        client_request.request_by_http(client, Transport(server.url), server.invite())
        credential(client.secrets).verify()


def test_what_is_wrong_with_a_request_is_said_before_the_file_is_sent(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server:
        transport = Transport(server.url, attempts=1)
        invitation, request = ask(server, client)
        showing = ShowingDocument.of(invitation, request, data_of(client))
        other = CertifierOffice.open(server.path).invite("Ward 4", TYPE)
        proof = bytes(len(request.proof))
        for wrong, code in (
            (replace(showing, token=bytes(32)), "not-invited"),
            (replace(showing, token=other.token), "not-invited"),
            (replace(showing, ending=".exe"), "malformed-document"),
            (replace(showing, request=b"{}"), "malformed-document"),
            (replace(showing, request=replace(request, nonce=bytes(32)).to_bytes()), "nonce-unknown"),
            (replace(showing, request=replace(request, dt=8).to_bytes()), "dataset-type"),
            (replace(showing, request=replace(request, proof=proof).to_bytes()), "invalid-proof"),
        ):
            with pytest.raises(Refused) as caught:
                transport.post("/v1/requests", wrong.to_bytes())
            assert caught.value.code == code
        transport.post("/v1/requests", showing.to_bytes())


# Sizes


def test_a_file_that_is_too_large_is_refused_by_the_policy(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    size = data_of(client).stat().st_size
    with served(tmp_path / "certifier", keys, role_key, max_bytes=size - 1) as server:
        with pytest.raises(Refused, match=f"has {size} bytes; the policy allows {size - 1}") as caught:
            client_request.request_by_http(client, Transport(server.url, attempts=1), server.invite())
        assert caught.value.code == "file-too-large"
        write_policy(tmp_path / "certifier", max_bytes=size)
        client_request.request_by_http(client, Transport(server.url), server.invite())


def test_a_file_that_is_longer_than_announced_is_refused_before_its_body_comes(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server:
        showing, permit = permitted(server, client)
        for length, status in ((showing.length + 1, b"413"), (showing.length - 1, b"400")):
            with socket.create_connection(server.address) as connection:
                connection.sendall(head(f"/v1/data/{permit.ticket.hex()}", length))
                assert status in answer(connection).split(b"\r\n", 1)[0]


def test_rule_12_also_for_files_and_for_what_they_unpack_to(tmp_path: Path) -> None:
    table = write_table(tmp_path / "patients.csv")
    policy = Policy.load(write_policy(tmp_path, max_bytes=table.stat().st_size - 1)).of(TYPE)
    with pytest.raises(CertificationRefused) as caught:
        policy.inspect(table, "Ward 3")
    assert caught.value.code == "file-too-large"
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, age=np.zeros(1 << 20))
    policy = Policy.load(write_policy(tmp_path, max_bytes=1 << 20)).of(TYPE)
    assert bomb.stat().st_size < 1 << 20
    with pytest.raises(CertificationRefused) as caught:
        policy.inspect(bomb, "Ward 3")
    assert caught.value.code == "file-too-large"
    for name in ("garbage.npz", "garbage.parquet"):
        (tmp_path / name).write_bytes(b"garbage" * 20)
        with pytest.raises(InvalidInput):
            policy.inspect(tmp_path / name, "Ward 3")


def test_a_parquet_file_says_how_many_rows_it_unpacks_to(tmp_path: Path) -> None:
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path = tmp_path / "many.parquet"
    parquet.write_table(arrow.table({"age": arrow.array(np.zeros(1 << 20))}), path)
    with pytest.raises(CertificationRefused) as caught:
        Policy.load(write_policy(tmp_path, max_rows=100)).of(TYPE).inspect(path, "Ward 3")
    assert caught.value.code == "row-count"


def test_a_parquet_file_whose_texts_stand_once_is_measured_by_its_cells(tmp_path: Path) -> None:
    """A dictionary holds a long text once; the pages that are counted hold its number."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path, rows = tmp_path / "bomb.parquet", 20_000
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * rows, arrow.int32()), ["x" * (1 << 20)])
    parquet.write_table(arrow.table({"age": texts}), path, store_schema=False)
    assert path.stat().st_size < 1 << 20
    said = parquet.ParquetFile(path).metadata
    assert sum(said.row_group(number).total_byte_size for number in range(said.num_row_groups)) < 1 << 22
    policy = Policy.load(write_policy(tmp_path, max_rows=rows, max_bytes=1 << 26)).of(TYPE)
    with pytest.raises(CertificationRefused) as caught:
        policy.inspect(path, "Ward 3")
    assert caught.value.code == "file-too-large"


def test_a_parquet_file_is_measured_by_its_rows_before_it_is_decoded(tmp_path: Path) -> None:
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path = tmp_path / "bomb.parquet"
    parquet.write_table(arrow.table({"age": arrow.array(np.ones(1 << 20))}), path)
    assert path.stat().st_size < 1 << 20
    policy = Policy.load(write_policy(tmp_path, min_rows=1, max_rows=1 << 20, max_bytes=1 << 20)).of(TYPE)
    with pytest.raises(CertificationRefused) as caught:
        policy.inspect(path, "Ward 3")
    assert caught.value.code == "file-too-large"
    parquet.write_table(arrow.table({"age": [[1, 2], [3]]}), path)
    with pytest.raises(InvalidInput, match="lists"):
        policy.inspect(path, "Ward 3")
    parquet.write_table(arrow.table({"age": [1, 2], "name": ["a", None]}), path)
    policy = Policy.load(write_policy(tmp_path, min_rows=1)).of(TYPE)
    with pytest.raises(InvalidInput, match="needs column"):
        policy.inspect(path, "Ward 3")


@pytest.mark.parametrize("dtype", ["|V0", "<f8"])
def test_an_array_that_claims_more_than_is_there_is_refused(tmp_path: Path, dtype: str) -> None:
    """Room for an array is made by its header; cells of no bytes take room once they are read."""
    header, path = io.BytesIO(), tmp_path / "bomb.npz"
    said = {"descr": dtype, "fortran_order": False, "shape": (1 << 34,)}
    np.lib.format.write_array_header_1_0(header, said)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("age.npy", header.getvalue())
    with pytest.raises(CertificationRefused) as caught:
        Policy.load(write_policy(tmp_path)).of(TYPE).inspect(path, "Ward 3")
    assert caught.value.code == "file-too-large"


def test_a_file_in_memory_reads_as_one_on_disk(tmp_path: Path) -> None:
    schema = Policy.load(write_policy(tmp_path)).of(TYPE).schema
    table = write_table(tmp_path / "patients.csv")
    shown = MemoryFile("data.csv", table.read_bytes())
    assert "Patient" not in repr(shown)
    assert np.array_equal(load_file(shown, schema).features, load_file(table, schema).features)
    content = io.BytesIO()
    np.savez(content, age=np.arange(3))
    with pytest.raises(InvalidInput, match="needs column"):
        load_file(MemoryFile("data.npz", content.getvalue()), schema)
    with pytest.raises(InvalidInput, match="must end in"):
        load_file(MemoryFile("data.txt", b""), schema)


# Crowds


def test_silent_connections_do_not_lock_a_certifier(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server, contextlib.ExitStack() as stack:
        for _ in range(2 * MAX_CONNECTIONS):
            stack.enter_context(socket.create_connection(server.address))
        client_request.request_by_http(client, Transport(server.url), server.invite())
        credential(client.secrets).verify()


# (c, d) Tickets


def a_showing(token: int) -> ShowingDocument:
    return ShowingDocument(token=bytes([token]) * 32, request=b"", ending=".csv", length=5)


REQUEST = RequestDocument(nonce=b"", mpk=b"", d=b"", dt=TYPE, proof=b"")


def test_a_ticket_ends_and_is_good_for_one_upload_at_a_time() -> None:
    now = [0.0]
    tickets = Tickets(lambda: now[0])
    ticket = tickets.add(a_showing(1), REQUEST).ticket.hex()
    with tickets.using(ticket) as held:
        assert (held.length, held.ending) == (5, ".csv")
        with pytest.raises(BadRequest, match="being received already"), tickets.using(ticket):
            raise AssertionError
    with tickets.using(ticket):
        pass  # a retry after a lost answer
    now[0] = TICKET_SECONDS + 1
    with pytest.raises(CertificationRefused), tickets.using(ticket):
        raise AssertionError


def test_an_invitation_has_one_ticket() -> None:
    tickets = Tickets()
    first = tickets.add(a_showing(1), REQUEST).ticket.hex()
    tickets.add(a_showing(1), REQUEST)
    with pytest.raises(CertificationRefused), tickets.using(first):
        raise AssertionError


def test_what_arrives_is_bounded_and_what_is_announced_takes_no_room() -> None:
    tickets = Tickets()
    mine, theirs = (tickets.add(a_showing(number), REQUEST).ticket.hex() for number in (1, 2))
    with tickets.using(mine) as held, tickets.using(theirs) as other:
        tickets.take(held, MAX_SHOWN_BYTES - 1)
        tickets.take(other, 1)
        with pytest.raises(BadRequest) as caught:
            tickets.take(other, 1)
        assert (caught.value.status, caught.value.code) == (503, "certifier-busy")
    with tickets.using(theirs) as held:
        tickets.take(held, MAX_SHOWN_BYTES)


def test_uploads_of_several_clients_are_judged_one_after_the_other(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey
) -> None:
    with served(tmp_path / "certifier", keys, role_key) as server, contextlib.ExitStack() as stack:
        clients = []
        for number in range(3):
            made = make_client(tmp_path / f"c{number}", keys, board=BOARD, genesis=GENESIS, seed=number)
            clients.append(stack.enter_context(open_client(*made)))
        desk = CertifierOffice.open(server.path)
        threads = [
            threading.Thread(
                target=client_request.request_by_http,
                args=(client, Transport(server.url), desk.invite(f"Ward {number}", TYPE)),
            )
            for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for client in clients:
            credential(client.secrets).verify()
