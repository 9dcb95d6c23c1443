"""What the rules of admission cannot see, and an audit does: runs, sums, bounds, ε."""

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from anofel.audit import Auditor, AuditReport, Finding
from anofel.board.attachments import Attachments, MemoryAttachments
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.state import Phase, Progress
from anofel.phase1_setup.step1d_announcement import ledger_entry
from anofel.phase3_access.step6_homomorphic_sum import collect, state_aggregate
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blobs.retention import payloads_until
from tests.audit.replay import flip
from tests.board.prepared import an_aggregate, fork, submit
from tests.board.world import World, a_vector

IN_THE_VECTOR = 32 + 4 + 4
"""A sum of the lattice scheme begins with the set's digest and the number of posts; then comes the vector."""


def audit(world: World, attachments: Attachments | None = None, now: int = 0) -> AuditReport:
    auditor = Auditor(
        world.genesis,
        registration=world.keys.registration_verifier(threads=1),
        submission=world.keys.submission_verifier(threads=1),
        attachments=attachments or world.board.attachments,
    )
    auditor.follow(world.board.blocks)
    return auditor.finish(now)


def found(world: World, rule: str) -> Finding:
    """The one finding of an audit, in the last block; the audit went on to the end."""
    report, last = audit(world), world.board.blocks[-1].header.height
    assert [(finding.rule, finding.height) for finding in report.findings] == [(rule, last)]
    assert report.height == last
    return report.findings[0]


def test_an_honest_board_is_accepted(stages: SimpleNamespace) -> None:
    world = fork(stages.released)
    for owner in world.owners:
        world.board.post_as(owner.role, ledger_entry(owner.task, owner.task_id, 1))
    world.board.next_block()
    report = audit(world)
    assert [record.outcome for record in report.iterations] == ["summed", "summed"]
    assert all("Aggregator" in name for record in report.committees for name in record.members)


def test_a_key_that_its_run_did_not_make_is_found(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board's own node looks away; whoever replays its blocks does not, and goes on."""
    world = World(keys)
    finished = world.generate()
    with monkeypatch.context() as patched:
        patched.setattr(CommitteeKeys, "check_made", lambda *_: None)
        world.post_keys(replace(finished, ends=[replace(end, transcript=bytes(32)) for end in finished.ends]))
        world.board.next_block()
    finding = found(world, "committee 5")
    assert finding.about == f"run {finished.run.run_id(world.board.genesis_hash).hex()}"
    assert finding.posting is not None


def test_a_sum_that_t_members_made_up_is_found(stages: SimpleNamespace) -> None:
    world = fork(stages.closed)
    owner, seat = world.owners[0], world.seat(world.owners[0])
    collected = collect(world.board, seat)
    blob = world.board.upload(flip(collected.totals[0].to_bytes(), IN_THE_VECTOR))
    for member in world.committees[0].members[:2]:
        body = state_aggregate(world.board, seat, member.number, collected)
        world.board.post_as(member.role, replace(body, groups=(replace(body.groups[0], sum=blob),)))
    world.board.next_block()
    assert world.position(owner).progress is Progress.AGGREGATED
    assert "not the sum of the accepted payloads" in found(world, "aggregate").reason


# False exclusions, and payloads that are not there


def payloads_of(world: World, number: int = 0) -> dict[bytes, bytes]:
    """The nullifiers of the iteration and the names of their payloads for one committee."""
    current = world.bundle().current
    assert current is not None
    return {name: post.payloads[number].sha256 for name, post in sorted(current.submissions.items())}


def excluding(stages: SimpleNamespace, how_many: int) -> tuple[World, list[bytes]]:
    """The first committee agrees to exclude payloads that are well-formed."""
    world = fork(stages.closed)
    victims, committee = list(payloads_of(world))[:how_many], world.committees[0]
    for liar in committee.members[: committee.threshold]:
        world.board.post_as(liar.role, an_aggregate(world, 0, liar, leave_out=victims))
    world.board.next_block()
    return world, victims


def without(world: World, names: Iterable[bytes]) -> MemoryAttachments:
    kept = MemoryAttachments(dict(world.board.attachments.items()))
    for name in names:
        kept.remove(name)
    return kept


def grow_past_pruning(world: World) -> None:
    until = payloads_until(world.board.state, 0)
    while world.board.blocks[-1].header.height <= until:
        world.board.next_block()


def test_exclusions_that_leave_too_few_posts_are_checked(stages: SimpleNamespace) -> None:
    world, _ = excluding(stages, 3)
    assert world.position(world.owners[0]).progress is Progress.TOO_FEW
    assert "not the sum of the accepted payloads" in found(world, "aggregate").reason


def test_a_false_exclusion_is_found_after_the_others_were_pruned(stages: SimpleNamespace) -> None:
    world, victims = excluding(stages, 1)
    agreed_at, payloads = world.board.blocks[-1].header.height, payloads_of(world)
    grow_past_pruning(world)
    pruned = without(world, [name for post, name in payloads.items() if post not in victims])
    report = audit(world, pruned)
    (finding,) = report.findings
    assert (finding.rule, finding.height) == ("aggregate", agreed_at)
    assert victims[0].hex() in finding.reason
    assert report.sums_pruned == 1


def test_an_excluded_payload_that_is_gone_is_found(stages: SimpleNamespace) -> None:
    """It is kept for ever, so that the exclusion can be checked."""
    world, _ = excluding(stages, 1)
    payloads = payloads_of(world)
    grow_past_pruning(world)
    report = audit(world, without(world, payloads.values()))
    (finding,) = report.findings
    assert finding.rule == "blob"
    assert next(iter(payloads.values())).hex() in finding.reason


def test_payloads_that_are_missing_before_their_time_are_found(stages: SimpleNamespace) -> None:
    world = fork(stages.released)
    gone = list(payloads_of(world).values())[1:3]
    attachments = without(world, gone)
    until = payloads_until(world.board.state, 0)
    assert world.board.blocks[-1].header.height <= until
    report = audit(world, attachments)
    (finding,) = report.findings
    assert (finding.rule, finding.about) == ("blob", "task 'study 0'")
    assert any(name.hex() in finding.reason for name in gone)
    assert report.sums_pruned == 0
    assert not audit(world, attachments, until).ok
    moved_on = audit(world, attachments, until + 1)
    assert moved_on.ok, "the board went on while it was read, and pruned them"
    assert any("were not checked" in note for note in moved_on.notes)
    grow_past_pruning(world)
    report = audit(world, attachments)
    assert (report.ok, report.sums_pruned) == (True, 1)


def test_a_malformed_payload_that_was_excluded_is_no_finding(keys: KeyDirectory) -> None:
    world = World(keys)
    world.set_up(num_clients=3)
    for number, client in enumerate(world.clients):
        sealed = world.sealed(client, 0, a_vector(world.owners[0].task, number))
        if number == 0:
            sealed = replace(sealed, payloads=(b"\xff" * len(sealed.payloads[0]), sealed.payloads[1]))
        world.board.post(submit(world, sealed))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    assert audit(world).ok
    agreed, payloads = world.position(world.owners[0]).agreed, payloads_of(world)
    assert agreed is not None
    ((excluded, _reason),) = agreed.excluded
    grow_past_pruning(world)
    report = audit(world, without(world, [name for post, name in payloads.items() if post != excluded]))
    assert (report.findings, report.sums_pruned) == ([], 1)


def test_an_epsilon_that_is_too_small_is_found(stages: SimpleNamespace) -> None:
    world = fork(stages.released)
    owner = world.owners[0]
    entry = ledger_entry(owner.task, owner.task_id, 1)
    world.board.post_as(owner.role, replace(entry, zero_out=entry.zero_out * 9 // 10))
    world.board.next_block()
    assert "claims" in found(world, "ledger").reason
