"""One bad run, sum, ε or file does not end an audit: it is a finding, and the rest is still checked."""

import json
import random
import sqlite3
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from anofel.audit import Auditor, AuditReport
from anofel.audit import sources as audit_sources
from anofel.audit.report import MAX_FINDINGS, MAX_ITERATIONS, Finding
from anofel.audit.runs import RunAudit
from anofel.board import snapshot
from anofel.board.state import KeyRun, KeyVote
from anofel.board.verification import Verifier
from anofel.cli import app
from anofel.committee.errors import KeyGenerationFailed
from anofel.errors import AnofelError, PeerUnreachable
from anofel.messages import Block, CommitteeKeyVote, Posting
from anofel.node.signed import SIGNED, SignedFile, promised_by
from anofel.phase1_setup.step1d_announcement import ledger_entry
from anofel.proofs.keys import KeyDirectory
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from anofel.storage.replay import replay
from tests.audit.test_audit import copy, edit
from tests.board import recorded
from tests.board.prepared import fork
from tests.board.world import TIME, World

__all__ = ["copy"]


def auditor_of(world: World, seen: tuple[int, bytes] | None = None) -> Auditor:
    return Auditor(
        world.genesis,
        registration=world.keys.registration_verifier(threads=1),
        submission=world.keys.submission_verifier(threads=1),
        attachments=world.board.attachments,
        seen=seen,
    )


def report_of(world: World) -> AuditReport:
    auditor = auditor_of(world)
    auditor.follow(world.board.blocks)
    return auditor.finish()


# One bad thing beside good ones


@pytest.fixture
def false_run(stages: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> str:
    """The messages of one run make no key, though its members posted one and the board took it."""
    run_id, honest = next(iter(stages.released.board.state.runs)), RunAudit._observe

    def observe(audit: RunAudit, run: KeyRun) -> KeyVote:
        if run.run_id == run_id:
            raise KeyGenerationFailed("Member 2 dealt shares that do not fit.", (2,))
        return honest(audit, run)

    monkeypatch.setattr(RunAudit, "_observe", observe)
    return f"run {run_id.hex()}"


def test_a_false_run_is_a_finding_of_that_run_alone(stages: SimpleNamespace, false_run: str) -> None:
    world = stages.released
    report = report_of(world)
    assert [(finding.rule, finding.about) for finding in report.findings] == [("committee", false_run)]
    assert report.height == world.board.blocks[-1].header.height
    assert [record.outcome for record in report.iterations] == ["summed", "summed"]
    assert report.sums_recomputed == 2
    assert len(report.committees) == 2


def test_all_findings_are_listed_in_their_order(stages: SimpleNamespace, false_run: str) -> None:
    world = fork(stages.released)
    before = len(world.board.blocks)
    for owner in world.owners:
        entry = ledger_entry(owner.task, owner.task_id, 1)
        world.board.post_as(owner.role, replace(entry, zero_out=entry.zero_out * 9 // 10))
    world.board.next_block()
    world.board.next_block()
    first, *findings = report_of(world).findings
    assert first.about == false_run
    assert [(finding.height, finding.posting) for finding in findings] == [(before + 1, 0), (before + 1, 1)]
    assert [finding.about for finding in findings] == ["task 'study 0'", "task 'study 1'"]


def test_a_block_that_does_not_follow_ends_the_audit_and_is_listed_last(
    stages: SimpleNamespace, false_run: str
) -> None:
    world = stages.released
    blocks = list(world.board.blocks)
    blocks[-1] = replace(blocks[-1], header=replace(blocks[-1].header, tasks=bytes(32)))
    auditor = auditor_of(world)
    auditor.follow(blocks)
    report = auditor.finish()
    assert [finding.about for finding in report.findings] == [false_run, f"block {len(blocks)}"]
    assert report.height == len(blocks) - 1
    assert report.tip == blocks[-1].header.previous.hex()
    assert any("was not checked" in note for note in report.notes)


def unreachable(blocks: list[Block]) -> Iterator[Block]:
    yield from blocks
    raise PeerUnreachable("The board cannot be reached.")


def test_a_peer_that_goes_away_is_no_finding(stages: SimpleNamespace) -> None:
    auditor = auditor_of(stages.released)
    with pytest.raises(PeerUnreachable):
        auditor.follow(unreachable(stages.released.board.blocks))


def test_a_peer_that_goes_away_hides_no_finding(stages: SimpleNamespace, false_run: str) -> None:
    auditor = auditor_of(stages.released)
    auditor.follow(unreachable(stages.released.board.blocks))
    report = auditor.finish()
    assert [finding.about for finding in report.findings] == [false_run]
    assert any("cannot be reached" in note for note in report.notes)


def test_a_finding_does_not_hide_that_the_history_is_truncated(
    stages: SimpleNamespace, false_run: str
) -> None:
    world = stages.released
    last = world.board.blocks[-1].header
    auditor = auditor_of(world, seen=(last.height, last.hash(world.genesis.hash)))
    auditor.follow(world.board.blocks[:-1])
    findings = auditor.finish().findings
    assert [(finding.rule, finding.about) for finding in findings] == [
        ("committee", false_run),
        ("checkpoint", f"block {last.height}"),
    ]


# Files


def invoke(directory: Path) -> Result:
    return CliRunner().invoke(app, ["audit", str(directory), "--json"])


def test_the_command_lists_all_findings_with_the_first_in_front(copy: Path) -> None:
    store = BlockStore(copy, read_only=True)
    bodies = [Posting.from_bytes(data).body for block in store.blocks(1) for data in block.postings]
    last = store.height
    store.close()
    rounds = [body.body.sha256 for body in bodies if type(body).__name__ == "DkgRound"]
    blobs = DirectoryAttachments(copy / "blobs")
    for name in rounds[:2]:
        blobs.remove(name)
    result = invoke(copy)
    document = json.loads(result.stdout)
    assert isinstance(result.exception, AnofelError)
    assert result.exception.exit_code == 1
    assert document["ok"] is False
    report = document["report"]
    assert report["height"] == last, "the audit went on to the last block"
    first = report["findings"][0]
    assert (first["height"], first["rule"], first["reason"]) == (1, "blob", document["reason"])
    assert str(result.exception) == document["reason"]
    about = {finding["about"] for finding in report["findings"]}
    assert {f"blob {name.hex()}" for name in rounds[:2]} <= about
    assert any(name.startswith("run ") for name in about), "without its messages the run cannot be recomputed"
    assert report["sums_recomputed"] == 4
    shown = CliRunner().invoke(app, ["audit", str(copy)]).output
    assert "broke rules" in shown
    assert "kept every rule" not in shown


@pytest.fixture
def empty(copy: Path) -> Path:
    """A board before its first block: what lies beside the blocks is checked all the same, and at once."""
    for table in ("posting", "vote", "block"):
        edit(copy, f"DELETE FROM {table}")
    return copy


def test_another_genesis_file_beside_the_blocks_is_found(empty: Path) -> None:
    genesis = empty / "genesis.bin"
    data = genesis.read_bytes()
    for wrong in (data[:-1], b"", data[:40] + bytes([data[40] ^ 1]) + data[41:]):
        genesis.write_bytes(wrong)
        document = json.loads(invoke(empty).stdout)
        assert [finding["rule"] for finding in document["report"]["findings"]] == ["files"]
        assert "genesis.bin" in document["reason"]
    genesis.unlink()
    genesis.mkdir()
    assert "cannot be read" in json.loads(invoke(empty).stdout)["reason"]
    genesis.rmdir()
    assert invoke(empty).exit_code == 0


def test_a_snapshot_that_is_not_of_its_block_is_found(copy: Path) -> None:
    with audit_sources.open_source(str(copy)) as source:
        verifier = Verifier(source.genesis.hash, source.registration, source.submission, source.attachments)
    store = BlockStore(copy)
    state = replay(store, verifier).state
    store.keep_snapshot(state.height, snapshot.encode(state))
    assert invoke(copy).exit_code == 0
    state.epoch += 1
    store.keep_snapshot(state.height, snapshot.encode(state))
    store.close()
    document = json.loads(invoke(copy).stdout)
    assert [finding["rule"] for finding in document["report"]["findings"]] == ["files"]
    assert "snapshot" in document["reason"]


def test_a_signed_block_that_the_database_lacks_is_found(empty: Path) -> None:
    store, path = BlockStore(empty, read_only=True), empty / SIGNED
    promised = promised_by(store)
    store.close()
    SignedFile.make(path, promised).close()
    assert invoke(empty).exit_code == 0
    for wrong in (replace(promised, height=promised.height + 1), replace(promised, hash=bytes(32))):
        SignedFile.make(path, wrong).close()
        document = json.loads(invoke(empty).stdout)
        assert [finding["rule"] for finding in document["report"]["findings"]] == ["files"]
        assert "its blocks lack it" in document["reason"]
    path.write_bytes(b"garbage")
    assert "damaged" in json.loads(invoke(empty).stdout)["reason"]


def test_postings_that_wait_for_a_block_are_named(copy: Path) -> None:
    store = BlockStore(copy)
    store.add_pending([Posting.from_bytes(next(iter(store.blocks(1))).postings[0])], TIME)
    store.close()
    result = invoke(copy)
    assert result.exit_code == 0, result.output
    assert any("1 postings wait for a block" in note for note in json.loads(result.stdout)["notes"])


def one_sentence(directory: Path) -> None:
    result = invoke(directory)
    assert isinstance(result.exception, AnofelError), result.exception
    assert "\n" not in str(result.exception)
    assert result.exception.exit_code == 1


@pytest.mark.parametrize("name", ["registration.verification.key", "submission.verification.key"])
def test_a_damaged_key_file_is_one_sentence(copy: Path, name: str) -> None:
    path = copy / name
    data = path.read_bytes()
    for wrong in (b"", data[: len(data) // 2], bytes(len(data))):
        path.write_bytes(wrong)
        one_sentence(copy)
    path.unlink()
    one_sentence(copy)
    path.mkdir()
    one_sentence(copy)


def test_a_blob_that_cannot_be_read_is_one_sentence(copy: Path) -> None:
    store = BlockStore(copy, read_only=True)
    bodies = [Posting.from_bytes(data).body for block in store.blocks(1) for data in block.postings]
    store.close()
    name = next(body.key.sha256 for body in bodies if isinstance(body, CommitteeKeyVote))
    path = DirectoryAttachments(copy / "blobs").path(name)
    path.unlink()
    path.mkdir()
    one_sentence(copy)
    assert "cannot be read" in str(invoke(copy).exception)


def test_a_database_that_is_cut_anywhere_is_one_sentence(history: Path, copy: Path) -> None:
    whole = settled(history, copy)
    for cut in (0, 1, 100, 4096, len(whole) // 3, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        (copy / "board.sqlite").write_bytes(whole[:cut])
        one_sentence(copy)


@pytest.mark.parametrize("times", [5, pytest.param(300, marks=pytest.mark.slow)])
def test_damage_anywhere_in_the_database_never_ends_in_a_traceback(
    history: Path, copy: Path, times: int
) -> None:
    whole, generator = settled(history, copy), random.Random(20_261_118)  # the same damage in every run
    for _ in range(times):
        at, length = generator.randrange(len(whole)), generator.choice((1, 16, 4096))
        damaged = whole[:at] + generator.randbytes(length) + whole[at + length :]
        (copy / "board.sqlite").write_bytes(damaged)
        result = invoke(copy)
        assert result.exit_code == 0 or isinstance(result.exception, AnofelError), result.exception


def settled(history: Path, copy: Path) -> bytes:
    """The whole database in one file."""
    for path in copy.glob("board.sqlite*"):
        path.unlink()
    with (
        sqlite3.connect(history / "board.sqlite") as source,
        sqlite3.connect(copy / "board.sqlite") as target,
    ):
        source.backup(target)
    source.close()
    target.close()
    with sqlite3.connect(copy / "board.sqlite") as target:
        target.execute("PRAGMA journal_mode = DELETE")
    target.close()
    return (copy / "board.sqlite").read_bytes()


@pytest.mark.parametrize("garbage", [b"", b"\0", b"garbage" * 50])
def test_a_garbage_genesis_is_one_sentence(copy: Path, garbage: bytes) -> None:
    edit(copy, "UPDATE genesis SET data = ?", garbage)
    one_sentence(copy)


def test_a_flipped_bit_anywhere_in_genesis_is_one_sentence(copy: Path) -> None:
    with sqlite3.connect(copy / "board.sqlite") as connection:
        ((data,),) = connection.execute("SELECT data FROM genesis").fetchall()
    connection.close()
    generator = random.Random(7)
    for _ in range(10):
        at = generator.randrange(len(data))
        edit(
            copy, "UPDATE genesis SET data = ?", data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        )
        one_sentence(copy)


# Clocks


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5 * 365 * 86_400, "1825 days apart"), (30, None), (-30, None), (7200, "2 hours apart")],
)
def test_a_clock_that_differs_from_block_time_is_said(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, words: str | None
) -> None:
    world = World(keys)
    world.board.next_block()
    recorded.write(world, tmp_path / "board")
    monkeypatch.setattr(time, "time", lambda: world.board.state.time + seconds)
    result = invoke(tmp_path / "board")
    assert result.exit_code == 0, "a difference of clocks is no broken rule"
    said = [note for note in json.loads(result.stdout)["notes"] if "clock" in note]
    assert (words is None and said == []) or (words is not None and words in said[0])


# Memory


def test_an_audit_does_not_grow_with_the_number_of_blocks(keys: KeyDirectory) -> None:
    world = World(keys)
    for _ in range(1200):
        world.board.next_block()
    blocks, auditor = world.board.blocks, auditor_of(world)
    auditor.follow(blocks[:200])
    tracemalloc.start()
    auditor.follow(blocks[200:210])
    before, _ = tracemalloc.get_traced_memory()
    auditor.follow(blocks[210:])
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert auditor.finish().height == 1200
    assert after - before < 990 * 64, "a hash of every block would take more"


def test_nothing_is_kept_of_what_has_its_outcome(stages: SimpleNamespace) -> None:
    auditor = auditor_of(stages.released)
    auditor.follow(stages.released.board.blocks)
    assert auditor._sums._checked_sums == {}
    assert set(auditor._sums._moving) == {0}


def test_a_report_lists_so_many_and_counts_the_rest() -> None:
    report = AuditReport(board="", genesis="", height=0, tip="")
    for height in range(MAX_FINDINGS + 5):
        report.add_finding(Finding(height, None, "rule", "about", "reason"))
    assert (len(report.findings), report.findings_left_out) == (MAX_FINDINGS, 5)
    assert report.findings[0].height == 0
    for number in range(MAX_ITERATIONS + 5):
        report.add_iteration(number)  # type: ignore[arg-type]
    assert (len(report.iterations), report.iterations_left_out) == (MAX_ITERATIONS, 5)
    assert report.iterations[-1] == MAX_ITERATIONS + 4


def test_blobs_of_a_node_make_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    blobs = {hashlib.sha256(data).digest(): data for data in (bytes([n]) * 100 for n in range(10))}
    fetched: list[bytes] = []

    def fetch(_transport: object, _genesis: object, name: bytes, path: Path) -> None:
        fetched.append(name)
        path.write_bytes(blobs[name])

    monkeypatch.setattr(audit_sources, "fetch_blob", fetch)
    scratch = audit_sources._Scratch(tmp_path, None, None, 250)  # type: ignore[arg-type]
    for name, data in blobs.items():
        assert scratch.read(name) == data
        assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 250
    last = list(blobs)[-1]
    scratch.read(last)
    assert fetched.count(last) == 1
    scratch.read(fetched[0])
    assert fetched.count(fetched[0]) == 2
