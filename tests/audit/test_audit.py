"""``anofel audit`` over directories: what it reports, what it finds, and how it ends."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel.audit import AuditFailed, Auditor, AuditReport
from anofel.audit.sources import open_source
from anofel.cli import app
from anofel.errors import AnofelError
from anofel.light_client.header_store import HeaderStore
from anofel.messages import Model, Posting
from anofel.storage.blocks import BlockStore
from tests.audit.replay import flip


def audit(directory: Path, seen: tuple[int, bytes] | None = None, now: int = 0) -> AuditReport:
    with open_source(str(directory)) as source:
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
            seen=seen,
        )
        auditor.follow(source.blocks)
        return auditor.finish(now)


def run(directory: Path, seen: tuple[int, bytes] | None = None) -> dict[str, object]:
    """Audit, and fail with the first finding."""
    report = audit(directory, seen)
    if not report.ok:
        raise AuditFailed.of(report.findings[0])
    return report.document()


@pytest.fixture
def copy(history: Path, tmp_path: Path) -> Path:
    path = tmp_path / "board"
    shutil.copytree(history, path)
    return path


def edit(directory: Path, statement: str, *values: object) -> None:
    """Change the file of a board behind its back."""
    with sqlite3.connect(directory / "board.sqlite", isolation_level=None) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def test_an_honest_history_is_accepted_and_described(history: Path) -> None:
    result = CliRunner().invoke(app, ["audit", str(history), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert set(report["postings"]) == {
        *(
            "Aggregate",
            "CertifierKeyOffer",
            "CommitteeKeyVote",
            "CountShare",
            "DkgRound",
            "EndIteration",
            "EndTask",
        ),
        *(
            "Model",
            "PrivacyLedger",
            "Registration",
            "RejectModel",
            "RevokeCertifier",
            "Submission",
            "SumShare",
            "TaskAnnouncement",
        ),
    }
    outcomes = {(entry["task"], entry["iteration"]): entry["outcome"] for entry in report["iterations"]}
    assert outcomes == {
        ("study 0", 1): "summed",
        ("study 1", 1): "summed",
        ("study 0", 2): "summed",
        ("study 1", 2): "too-few",
    }
    rejected = {(entry["task"], entry["iteration"]): entry["rejected"] for entry in report["iterations"]}
    assert [name for name, is_rejected in rejected.items() if is_rejected] == [("study 1", 1)]
    assert [task["rejected"] for task in report["tasks"]] == [[], [1]]
    assert any("study 1: its owner rejected the models of the iterations 1" in x for x in report["notes"])
    assert report["sums_recomputed"] == 4
    assert report["sums_pruned"] == 0
    assert report["blobs_checked"] > 20
    assert [note for note in report["notes"] if "TEST board" in note] == report["notes"][:2]


def test_the_report_is_readable(history: Path) -> None:
    result = CliRunner().invoke(app, ["audit", str(history)])
    assert result.exit_code == 0
    for text in ("kept every rule", "study 0", "too-few", "2 of 3", "recomputed", "This is a TEST board"):
        assert text in result.output


def test_the_tables_of_the_report_fit_60_columns_and_break_no_word(history: Path) -> None:
    terminal = {"COLUMNS": "60", "LINES": "40", "TTY_COMPATIBLE": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "anofel", "audit", str(history)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **terminal}, check=True)
    lines = done.stdout.partition("Note:")[0].splitlines()
    assert max(map(len, lines)) <= 60
    shown = [line.split() for line in lines]
    assert ["iteration", "outcome", "count", "posts", "out", "by", "by", "the", "sum", "was"] in shown
    assert ["task", "rule", "contributions", "releases", "ε", "ended"] in shown
    assert [words[-1] for words in shown if words[1:2] == ["summed"]] == ["recomputed"] * 3
    assert [line for line in lines if line.startswith("Iterations of")] == [
        "Iterations of study 0",
        "Iterations of study 1",
    ]


def test_payloads_that_are_missing_too_early_are_found_and_pruned_ones_are_said(copy: Path) -> None:
    store = BlockStore(copy, read_only=True)
    for block in store.blocks(1):
        for data in block.postings:
            for contribution in getattr(Posting.from_bytes(data).body, "contributions", ()):
                name = contribution.payload.sha256.hex()
                (copy / "blobs" / name[:2] / name[2:4] / name).unlink()
    store.close()
    with pytest.raises(AuditFailed, match="is not here") as caught:
        run(copy)
    assert caught.value.rule == "blob"
    report = audit(copy, now=1000).document()
    assert report["findings"] == []
    assert report["sums_pruned"] == 4
    assert any("pruned" in note for note in report["notes"])


@pytest.mark.parametrize("kind", ["CommitteeKeyVote", "Submission"])
def test_a_damaged_blob_is_found(copy: Path, kind: str) -> None:
    store = BlockStore(copy, read_only=True)
    bodies = [Posting.from_bytes(data).body for block in store.blocks(1) for data in block.postings]
    store.close()
    body = next(body for body in bodies if type(body).__name__ == kind)
    blob = body.key if kind == "CommitteeKeyVote" else body.contributions[0].payload
    path = copy / "blobs" / blob.sha256.hex()[:2] / blob.sha256.hex()[2:4] / blob.sha256.hex()
    path.write_bytes(flip(path.read_bytes(), 100))
    with pytest.raises(AuditFailed, match="damaged") as caught:
        run(copy)
    assert caught.value.rule == "blob"


def test_a_missing_last_model_is_found(copy: Path) -> None:
    store = BlockStore(copy, read_only=True)
    bodies = [Posting.from_bytes(data).body for block in store.blocks(1) for data in block.postings]
    store.close()
    name = [body.model.sha256 for body in bodies if isinstance(body, Model)][-1].hex()
    (copy / "blobs" / name[:2] / name[2:4] / name).unlink()
    with pytest.raises(AuditFailed, match=name) as caught:
        run(copy)
    assert caught.value.rule == "blob"


def test_a_missing_key_is_found(copy: Path) -> None:
    shutil.rmtree(copy / "blobs")
    with pytest.raises(AuditFailed, match="is not here") as caught:
        run(copy)
    assert caught.value.height == 1


Change = Callable[[Path], None]


def row(directory: Path, query: str) -> bytes:
    with sqlite3.connect(directory / "board.sqlite") as connection:
        ((value,),) = connection.execute(query).fetchall()
    connection.close()
    assert isinstance(value, bytes)
    return value


@pytest.mark.parametrize(
    ("table", "column", "where"),
    [
        ("block", "hash", "height = 1"),
        ("block", "header", "height = 1"),
        ("vote", "vote", "height = 1"),
        ("posting", "id", "height = 1 AND place = 2"),
        ("posting", "data", "height = 1 AND place = 2"),
    ],
)
def test_a_changed_stored_value_is_found(copy: Path, table: str, column: str, where: str) -> None:
    value = row(copy, f"SELECT {column} FROM {table} WHERE {where}")
    edit(copy, f"UPDATE {table} SET {column} = ? WHERE {where}", flip(value, len(value) // 2))
    with pytest.raises(AuditFailed) as caught:
        run(copy)
    assert caught.value.height == 1


def test_a_changed_genesis_is_found(copy: Path) -> None:
    value = row(copy, "SELECT data FROM genesis")
    edit(copy, "UPDATE genesis SET data = ?", flip(value, 20))
    with pytest.raises(AnofelError):
        run(copy)


def test_a_hole_in_the_history_is_found(copy: Path) -> None:
    edit(copy, "DELETE FROM block WHERE height = 2")
    with pytest.raises(AuditFailed, match="Block 2 is missing"):
        run(copy)


def test_a_truncated_history_is_found_by_a_checkpoint(copy: Path, history: Path) -> None:
    store = BlockStore(history, read_only=True)
    last = store.height
    header = store.header(last)
    assert header is not None
    seen = (last, header.hash(store.genesis.hash))
    store.close()
    for table in ("posting", "vote", "block"):
        edit(copy, f"DELETE FROM {table} WHERE height > 2")
    run(copy)
    with pytest.raises(AuditFailed, match="truncated"):
        run(copy, seen)
    with pytest.raises(AuditFailed, match="rewritten"):
        run(copy, (2, hashlib.sha256(b"another block").digest()))


def test_the_command_fails_with_the_place_and_the_reason(copy: Path) -> None:
    value = row(copy, "SELECT data FROM posting WHERE height = 1 AND place = 0")
    changed = flip(value, len(value) - 1)
    identifier = Posting.from_bytes(changed).id
    edit(copy, "UPDATE posting SET data = ?, id = ? WHERE height = 1 AND place = 0", changed, identifier)
    result = CliRunner().invoke(app, ["audit", str(copy), "--json"])
    document = json.loads(result.stdout)
    assert isinstance(result.exception, AuditFailed)
    assert result.exception.exit_code == 1
    assert (document["ok"], document["height"], document["posting"]) == (False, 1, 0)
    assert document["rule"] == "posting 3"
    assert "signed" in document["reason"]


def test_switched_off_protections_are_refused(history: Path) -> None:
    with open_source(str(history)) as source, pytest.raises(AuditFailed, match="switches protections off"):
        Auditor(
            replace(source.genesis, insecure="no-proofs"),
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
        )


def test_an_unknown_directory_is_one_clear_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["audit", str(tmp_path)])
    assert isinstance(result.exception, AnofelError)
    assert "holds no board" in str(result.exception)


def test_a_view_that_follows_headers_is_one_clear_sentence(tmp_path: Path) -> None:
    HeaderStore(tmp_path).close()
    result = CliRunner().invoke(app, ["audit", str(tmp_path)])
    assert isinstance(result.exception, AnofelError)
    assert "keeps no postings" in str(result.exception)
