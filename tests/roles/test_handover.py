"""A committee refreshes its shares and changes a member, each party a process, over a real node."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from anofel.board.state import Committee, CommitteeShares, Phase, Progress, State
from anofel.errors import InvalidInput
from anofel.messages import HandoverTerms
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.key_handover import HandoverPlan, describe_handover, follow_plan
from anofel.roles.aggregator.key_secrets import share_name
from anofel.roles.directory import RoleDirectory, unlock_with
from anofel.roles.owner import initial_model
from tests.board.world import a_vector
from tests.node.support import SECONDS
from tests.roles.support import Deployment, Process, deployed, write_task

OLD = ("member-a", "member-b", "member-c")
NEW = ("member-a", "member-b", "member-d")


@pytest.fixture
def world(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("handover"), keys) as made:
        yield made


def secrets_of(world: Deployment, name: str) -> set[str]:
    """The names of what a member's key store holds beside its certificate."""
    unlock = unlock_with(world.path / f"{name}.key", None)
    with RoleDirectory.open(world.path / name, unlock, role="aggregator") as directory:
        return set(directory.secrets) - {"role-key"}


def refresh(world: Deployment, name: str, committee: str, *options: str) -> Process:
    return world.start("aggregator", "refresh", name, "--committee", committee, *options, "--json")


def test_a_committee_refreshes_then_changes_a_member_and_goes_on(world: Deployment) -> None:
    subjects = {name: world.init("aggregator", name) for name in (*OLD, "member-d")}
    described = [part for name in OLD for part in ("--member", subjects[name])]
    options = ["--name", "first", "--threshold", "2", *described, "--json"]
    running = [world.start("aggregator", "keygen", name, *options) for name in OLD]
    committee = {process.finish()["committee"] for process in running}.pop()
    key_id = bytes.fromhex(committee)
    world.view.sync()
    first = world.view.state.committees[key_id].current

    # A refresh; one member is killed in the middle and started again.
    running = [refresh(world, name, committee, "--name", "spring") for name in OLD]
    world.wait(lambda state: any(run.base and run.posted for run in state.runs.values()), "the first message")
    running[1].kill()
    running[1] = refresh(world, OLD[1], committee, "--name", "spring")
    ended = [process.finish() for process in running]
    assert [(end["members"], end["threshold"]) for end in ended] == [(3, 2)] * 3
    world.view.sync()
    second = world.view.state.committees[key_id].current
    assert (second.share_epoch, second.members) == (1, first.members)
    assert second.shares_id != first.shares_id
    for name in OLD:
        assert secrets_of(world, name) == {share_name(second.shares_id)}, "the old share is deleted"
    again = refresh(world, OLD[0], committee, "--name", "spring").finish()
    assert again == ended[0], "what is done stays done"

    # Somebody begins a handover that nobody joins.
    lost = refresh(world, OLD[0], committee, "--name", "lost")
    world.wait(lambda state: len(state.runs) == 3, "a lonely message")
    lost.kill()

    # An iteration is closed when the members hand over to others: it gets its outcome by the old shares.
    task = write_task(world.path / "owner.toml")
    world.offer_certifier_key()
    world.register(3)
    world.init("owner", "owner")
    announce = ("owner", "announce", "owner", str(world.path / "owner.toml"), "--committee", committee)
    task_id = bytes.fromhex(world.run(*announce, "--early-end", "--json")["task"])
    owner = world.start("owner", "run", "owner", "--end-after", "3")
    expected, rule = initial_model(task), rule_of(task)

    def post(iteration: int) -> None:
        nonlocal expected
        bundle = world.wait_open(task_id, iteration)
        assert world.view.state.tasks[task_id].model == expected.digest()
        updates = [a_vector(task, 10 * iteration + place) for place in range(3)]
        for client, update in zip(world.clients, updates, strict=True):
            world.submit(bundle, client, update)
        expected = rule.apply(expected, np.sum(updates, axis=0, dtype=np.int64), 3, 1)

    # New shares count between two iterations; the owner opens the next one when it is back.
    post(1)
    world.wait(lambda _: world.bundle(task_id).phase is Phase.CLOSED, "the end of the posts")
    assert owner.stop() == 0
    parties = ["--name", "summer", "--dealer", subjects["member-a"], "--dealer", subjects["member-c"]]
    for name in NEW:
        parties += ["--member", subjects[name]]
    running = [refresh(world, name, committee, *parties) for name in (*NEW, "member-c")]
    assert world.wait_outcome(task_id, 1).progress is Progress.SUMMED
    ended = [process.finish() for process in running]
    assert ended[3]["member"] is None, "who leaves ends without a share"
    world.view.sync()
    third = world.view.state.committees[key_id].current
    assert third.share_epoch == 2
    assert set(third.members) == {bytes.fromhex(subjects[name]) for name in NEW}
    assert secrets_of(world, "member-c") == set()
    assert secrets_of(world, "member-d") == {share_name(third.shares_id)}

    # What came too late, and who has no part, is told so.
    for name, handover, words in (
        ("member-a", "lost", "Another handover of the committee came first"),
        ("member-c", "autumn", "neither deal nor receive"),
    ):
        late = refresh(world, name, committee, "--name", handover)
        late.process.communicate(timeout=SECONDS)
        assert late.process.returncode == 1
        assert words in " ".join(late.log.read_text().split())

    # The next iteration is opened by the new members, the newcomer among them.
    b, d = (world.start("aggregator", "run", name) for name in ("member-b", "member-d"))
    owner = world.start("owner", "run", "owner", "--end-after", "3")
    post(2)
    second_outcome = world.wait_outcome(task_id, 2)
    assert (second_outcome.progress, second_outcome.count) == (Progress.SUMMED, 3)
    world.wait_open(task_id, 3)
    assert world.view.state.tasks[task_id].model == expected.digest()
    assert [process.stop() for process in (b, d, owner)] == [0, 0, 0]
    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", world.node.url], capture_output=True, text=True
    )
    assert audited.returncode == 0, audited.stderr


def plan(**changes: object) -> HandoverPlan:
    return HandoverPlan(**{"name": "spring", "committee": "aa" * 32, **changes})  # type: ignore[arg-type]


def board_with(members: tuple[bytes, ...]) -> State:
    """A board with one committee, as far as a plan looks at it."""
    shares = CommitteeShares(bytes(32), b"\x01" * 32, members, 2, 0)
    return SimpleNamespace(committees={b"\xaa" * 32: Committee(b"\xaa" * 32, 0, shares)})  # type: ignore[return-value]


A, B, C, D = (bytes([letter]) * 32 for letter in range(4))


def test_a_plan_keeps_what_it_does_not_name() -> None:
    state = board_with((A, B, C))
    run = describe_handover(state, plan())
    assert (run.members, run.threshold) == ((A, B, C), 2)
    assert run.handover == HandoverTerms(key_id=b"\xaa" * 32, dealers=(1, 2))
    changed = describe_handover(state, plan(members=[D.hex(), A.hex(), B.hex()], dealers=[C.hex(), A.hex()]))
    assert (changed.members, changed.handover.dealers) == ((A, B, D), (1, 3))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"committee": "bb" * 32}, "no committee bbbb"),
        ({"dealers": [D.hex(), A.hex()]}, "not a member of the committee"),
        ({"dealers": [A.hex()]}, "2 members deal; 1 are named"),
        ({"name": ""}, "needs a name"),
        ({"committee": "x"}, "hexadecimal"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        describe_handover(board_with((A, B, C)), plan(**changes))


def test_a_name_stands_for_the_first_plan_also_when_the_committee_has_changed(tmp_path: Path) -> None:
    first = follow_plan(tmp_path, board_with((A, B, C)), plan())
    assert follow_plan(tmp_path, board_with((A, B, D)), plan()) == first
    with pytest.raises(InvalidInput, match="another handover"):
        follow_plan(tmp_path, board_with((A, B, C)), plan(threshold=3))
    next((tmp_path / "runs").iterdir()).write_bytes(b"{")
    with pytest.raises(InvalidInput, match="damaged"):
        follow_plan(tmp_path, board_with((A, B, C)), plan())
