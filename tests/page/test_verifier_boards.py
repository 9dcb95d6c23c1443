"""Boards of many kinds in the verifier page: what it finds, an audit finds, in the same words.

Skipped where the machine has no Chromium, or where the page was not built (``make verifier``).
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anofel.audit import Auditor, AuditReport
from anofel.audit.archive import write_archive
from anofel.audit.sources import open_source
from anofel.board.attachments import MemoryAttachments
from anofel.board.state import Phase, Progress
from anofel.board.verification import Verifier
from anofel.messages import Block, Genesis
from anofel.phase1_setup.step1d_announcement import end_iteration
from anofel.phase2_training.step5_submission import post_submission
from anofel.phase3_access.step6_homomorphic_sum import collect, state_aggregate
from anofel.pki.certificates import CertificateRefused, Purpose, verify_chain
from anofel.proofs.keys import KeyDirectory
from tests.audit.replay import flip
from tests.board.committee import CommitteeBoard
from tests.board.world import CLASS, TIME, World, a_vector
from tests.page.authorities import chains
from tests.page.chromium import (
    BAD,
    CHROMIUM,
    GOOD,
    PATIENCE,
    VERIFIER,
    base64_of,
    check_file,
    engine_in,
    findings,
    launched,
)
from tests.page.task_documents import changed

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not VERIFIER.exists(), reason="the verifier page was not built (make verifier)"),
]
CLIENTS = 18
"""More than one batch of payloads, so that a second worker helps."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as opened:
        yield opened


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page()
    opened.set_default_timeout(10 * PATIENCE)
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.goto(VERIFIER.as_uri())
    yield opened
    opened.close()
    assert not trouble


def archive_of(path: Path, keys: KeyDirectory, genesis: Genesis, blocks: list[Block], blobs: Any) -> Path:
    with path.open("wb") as out:
        write_archive(
            out,
            genesis=genesis.to_bytes(),
            registration=keys.verification["registration"].path.read_bytes(),
            submission=keys.verification["submission"].path.read_bytes(),
            blocks=iter(blocks),
            attachments=blobs,
        )
    return path


def exported(world: World, path: Path) -> Path:
    return archive_of(path, world.keys, world.genesis, world.board.blocks, world.board.attachments)


def audited(archive: Path) -> AuditReport:
    with open_source(str(archive)) as source:
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
            seen=None,
        )
        auditor.follow(source.blocks)
        return auditor.finish(0)


def same_findings(page: Any, archive: Path) -> list[str]:
    """Check an archive in the page and by an audit; return the rules that both name, with the same words."""
    expected = [(one.height, one.posting, one.rule, one.reason) for one in audited(archive).findings]
    verdict = check_file(page, "board.anofel", archive.read_bytes())
    assert findings(page) == expected
    assert verdict == (BAD if expected else GOOD)
    return [rule for _, _, rule, _ in expected]


def started(keys: KeyDirectory, clients: int, **task: dict[str, Any]) -> World:
    """A board with an open iteration."""
    world = World(keys, classes=(replace(CLASS, max_posts=32),))
    world.set_up(num_clients=clients, early_end=True, **task)
    return world


def closed(world: World, weight: int | None = None) -> None:
    """Half of the clients train each task; then the iteration is over."""
    for number, client in enumerate(world.clients):
        target = number % 2
        task = world.owners[target].task
        update = a_vector(task, number)
        if weight is not None:
            update[task.model.parameters] = weight if target else -weight
        world.board.post(world.submission(client, target, update))
    for owner in world.owners:
        world.board.post_as(owner.role, end_iteration(owner.task_id, 1))
    world.blocks_until(Phase.CLOSED)


def test_a_board_of_weighted_means_and_groups_passes(page: Any, keys: KeyDirectory, tmp_path: Path) -> None:
    world = started(
        keys,
        CLIENTS,
        weights={"most": 20},
        metrics={"names": ["accuracy"]},
        groups={"number": 3, "combine": "median"},
        privacy={"expected_clients": 6},
    )
    closed(world, weight=6000)
    world.run_phase3()
    for owner in world.owners:
        assert world.position(owner).progress is Progress.SUMMED
        assert owner.model is not None
        before = owner.model.digest()
        assert world.recover(owner).digest() != before
        world.post_model(owner)
    world.board.next_block()
    assert same_findings(page, exported(world, tmp_path / "board.anofel")) == []
    added = page.inner_text("#figures").split()
    assert added[added.index("again") + 1] == "2"


def test_a_sum_that_t_members_made_up_is_found(page: Any, keys: KeyDirectory, tmp_path: Path) -> None:
    world = started(keys, 4)
    closed(world)
    owner = world.owners[0]
    seat = world.seat(owner)
    collected = collect(world.board, seat)
    blob = world.board.upload(flip(collected.totals[0].to_bytes(), 100))
    for member in world.committees[0].members[:2]:
        body = state_aggregate(world.board, seat, member.number, collected)
        world.board.post_as(member.role, replace(body, groups=(replace(body.groups[0], sum=blob),)))
    world.board.next_block()
    assert world.position(owner).progress is Progress.AGGREGATED
    assert same_findings(page, exported(world, tmp_path / "board.anofel")) == ["aggregate"]


def test_a_proof_of_somebody_else_is_found_though_the_validator_took_it(
    page: Any, keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = started(keys, 2)
    first, second = (world.sealed(client, None, None) for client in world.clients)
    stolen = replace(first, membership=replace(first.membership, proof=second.membership.proof))
    with monkeypatch.context() as patched:
        patched.setattr(Verifier, "_batch", staticmethod(lambda *_: None))
        world.board.post(post_submission(world.board, stolen))
        world.board.next_block()
    [rule] = same_findings(page, exported(world, tmp_path / "board.anofel"))
    assert rule == "submission 7"


def test_the_blocks_of_several_validators_are_checked(page: Any, keys: KeyDirectory, tmp_path: Path) -> None:
    board = CommitteeBoard(keys)
    board.decide(board.change(1, board.seats[1].with_new_key().entry(board.genesis.nonce)), 0, 2, 3)
    board.until(4)
    blobs = MemoryAttachments({})
    good = archive_of(tmp_path / "good", keys, board.genesis, board.blocks, blobs)
    assert same_findings(page, good) == []
    seal = board.blocks[1].seal
    assert seal is not None
    forged = replace(seal.votes[0], signature=flip(seal.votes[0].signature, 5))
    for votes in (seal.votes[:2], (forged, *seal.votes[1:])):
        lie = replace(board.blocks[1], seal=replace(seal, votes=votes))
        bad = archive_of(tmp_path / "bad", keys, board.genesis, [board.blocks[0], lie], blobs)
        assert same_findings(page, bad) == ["block"]


VERIFY = """(cases) => cases.map(([chain, root, purpose, time]) => {
  try {
    $certificates.verifyChain(chain.map(bytes), [bytes(root)], purpose, time);
    return true;
  } catch { return false; }
})"""


def test_authorities_of_every_kind_are_judged_as_the_board_judges_them(browser: Any) -> None:
    cases = list(chains())
    expected = []
    for chain, root in cases:
        try:
            verify_chain(chain, [root], Purpose.OWNER, TIME)
            expected.append(True)
        except CertificateRefused:
            expected.append(False)
    assert {True, False} == set(expected)
    page = engine_in(browser)
    asked = [[[base64_of(der) for der in chain], base64_of(root), "owner", TIME] for chain, root in cases]
    assert page.evaluate(VERIFY, asked) == expected
    page.close()


READ = """(documents) => documents.map((text) => {
  try { $task.readTask(new TextEncoder().encode(text)); return true; } catch { return false; }
})"""


def test_tasks_are_read_and_refused_as_the_board_does(browser: Any) -> None:
    documents = changed(400, seed=20)
    page = engine_in(browser)
    found = page.evaluate(READ, [data.decode() for data, _ in documents])
    page.close()
    differ = [
        json.loads(data) for (data, is_read), here in zip(documents, found, strict=True) if is_read != here
    ]
    assert differ == []
