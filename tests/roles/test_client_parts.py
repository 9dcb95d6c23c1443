"""Parts of the client alone: times, tasks, settings, the journal, the departure."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anofel.board.announcement import facts_of
from anofel.board.seat import Sitting
from anofel.board.state import CommitteeMember, CommitteeShares, Phase, Position, Progress, TaskState
from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.certified import dataset_digest
from anofel.messages import TaskAnnouncement
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.phase1_setup.step1d_announcement import announce
from anofel.primitives import DatasetType
from anofel.privacy.announced import value_bound
from anofel.privacy.ledger import FloorNotMet, Floors, Ledger, Occasion
from anofel.privacy.plan import Plan
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import CertificateDocument
from anofel.roles.client.files import (
    ClientSettings,
    accept_certificate,
    init_client,
    load_data,
    master_secret,
    open_ledger,
)
from anofel.roles.client.journal import Journal, Turn
from anofel.roles.client.leave import AlreadyLeft, leave_board
from anofel.roles.client.role import Client
from anofel.roles.client.task import CheckedTask, NoTask, TaskRefused, Wanted, check_task, find_task
from anofel.roles.client.trust import Aggregators, Trust
from anofel.roles.client.turn import NoWindow, Underway, check_model, draw_height
from anofel.roles.directory import RoleConfig
from anofel.tasks.task import Task
from tests.board.world import CLASS
from tests.patients import make_task
from tests.roles.people import make_client, open_client, write_schema, write_table

KEY = bytes(32)
TYPE = DatasetType(7)


def test_a_directory_is_no_file_that_a_certifier_reads(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a directory, and a certifier reads one file"):
        init_client(
            tmp_path / "client",
            None,  # type: ignore[arg-type]
            board="http://127.0.0.1:1",
            genesis_hash=None,  # type: ignore[arg-type]
            data=tmp_path,
            schema=write_schema(tmp_path / "schema.toml"),
            keys=None,
            settings={},
        )


# Times


def test_heights_are_drawn_uniformly() -> None:
    heights = range(120, 130)
    counts = Counter(draw_height(heights) for _ in range(20_000))
    assert set(counts) == set(heights)
    expected = 2000
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    assert statistic < 38.9  # chi-square, 9 degrees of freedom: one run in 80,000 is above


def test_no_window_is_said() -> None:
    with pytest.raises(NoWindow):
        draw_height(range(10, 10))


# Tasks


def posted(announced: TaskAnnouncement) -> TaskState:
    return TaskState(
        task_id=KEY,
        owner=KEY,
        announcement=announced,
        facts=facts_of(Task.from_bytes(announced.document), CLASS),
        size_class=0,
        announced_at=1,
    )


def checked() -> CheckedTask:
    task = make_task()
    return check_task(posted(announce(task, key_id=KEY)), task.schema, TYPE)


def test_a_task_whose_numbers_follow_from_its_document_is_taken() -> None:
    assert checked().name == "test"


def test_rule_1_every_number_follows_from_the_document() -> None:
    """The client's own copy of the board derives them; a posting has no place for others."""
    task = make_task(privacy={"max_releases": 9})
    found = posted(announce(task, key_id=KEY))
    assert found.facts.limits.bound == value_bound(task.privacy, task.model.scale_bits)
    assert (found.facts.max_releases, found.facts.limits.length) == (9, task.length)


def test_rule_2_the_schema_is_the_clients() -> None:
    task = make_task()
    other = make_task(schema={"unused": ["note", "remark"]}).schema
    with pytest.raises(TaskRefused, match="another schema"):
        check_task(posted(announce(task, key_id=KEY)), other, TYPE)


def test_rule_3_the_type_counts() -> None:
    task = make_task(task={"dataset_type": 8})
    with pytest.raises(TaskRefused, match="type 7"):
        check_task(posted(announce(task, key_id=KEY)), task.schema, TYPE)


# Which task: what the client named, and nothing else


def on_board(*names: str, owner: bytes = KEY, first: int = 0, ended: bool = False) -> dict[bytes, TaskState]:
    """Tasks of these names, with ids that begin with their number."""
    made = {}
    for number, name in enumerate(names, start=first):
        task_id = bytes([number]) * 32
        task = posted(announce(make_task(task={"name": name}), key_id=KEY))
        made[task_id] = replace(task, task_id=task_id, owner=owner, ended=ended)
    return made


def look_for(tasks: dict[bytes, TaskState], chosen: bytes | None = None, **wanted: str) -> bytes:
    state = SimpleNamespace(tasks=tasks, bundles={})
    found = find_task(state, Wanted(**wanted), chosen, make_task().schema, TYPE)  # type: ignore[arg-type]
    return found.posted.task_id


def test_a_client_that_names_nothing_joins_nothing() -> None:
    with pytest.raises(NoTask, match="none was named"):
        look_for(on_board("only"))


def test_a_task_is_found_by_its_name_or_its_id() -> None:
    tasks = on_board("one", "two")
    assert look_for(tasks, task="two") == bytes([1]) * 32
    assert look_for(tasks, task="01" * 8) == bytes([1]) * 32
    with pytest.raises(NoTask, match="no task called 'three'"):
        look_for(tasks, task="three")
    with pytest.raises(NoTask, match="2 tasks are called 'one'"):
        look_for(on_board("one", "one"), task="one")


def test_a_task_called_like_an_id_does_not_pass_for_it() -> None:
    digits = "3fa91c0255de7701aa"
    with pytest.raises(NoTask, match="no task called"):
        look_for(on_board(digits), task=digits)


def test_a_name_goes_on_to_mean_the_task_of_the_first_turn() -> None:
    """Somebody announces a task of the same name when the first has ended: the client does not follow."""
    ended, other = on_board("study", ended=True), on_board("study", first=1)
    with pytest.raises(NoTask, match="has ended; name another"):
        look_for(ended | other, chosen=bytes(32), task="study")
    assert look_for(on_board("study") | other, chosen=bytes(32), task="study") == bytes(32)


def test_an_owner_can_be_named_instead_of_a_task() -> None:
    mine, other = bytes([7]) * 32, bytes([8]) * 32
    tasks = on_board("one", owner=other) | on_board("two", "three", owner=mine, first=1)
    assert look_for(tasks, owner="07" * 8) == bytes([1]) * 32
    with pytest.raises(NoTask, match="fits this client's data"):
        look_for(tasks, owner="09" * 8)
    with pytest.raises(NoTask, match="no task called 'one'"):
        look_for(tasks, task="one", owner="07" * 8)


def test_a_model_of_another_shape_is_refused() -> None:
    import numpy as np

    task = checked()
    size = task.plan.dimension
    for parameters, bits in (
        ({"w": np.zeros(size)}, task.task.model.scale_bits),
        ({"w": np.zeros(size + 1)}, task.task.model.scale_bits),
        ({"w": np.zeros(size)}, task.task.model.scale_bits + 1),
    ):
        with pytest.raises(TaskRefused):
            layout = Layout.of(trainer_of(task.task).initial())
            check_model(IntegerModel.from_parameters(parameters, bits).to_bytes(), task, layout)


# Settings


@pytest.mark.parametrize(
    "change",
    [
        {"max_epsilon": "none"},
        {"max_epsilon": "-1"},
        {"max_epsilon": True},
        {"unit": "paper"},
        {"relation": "add"},
        {"min_clients": 1},
        {"min_anonymity_set": 0},
        {"first_wait": -1},
        {"max_colluders": -1},
        {"max_colluders": "some"},
        {"min_bundle": 0},
        {"owner": "clinic"},
        {"ledger": 3},
        {"ledger": "here.sqlite"},
        {"dataset_type": 2**32},
        {"data": 3},
        {"trainer": 3},
        {"max_coluders": 3},  # misspelt: it must not silently mean its default
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, object]) -> None:
    values = {"data": "x.csv", "keys": "keys", "max_epsilon": "2", **change}
    config = RoleConfig(role="client", board="http://b", genesis="00" * 32, settings=values)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        ClientSettings.of(config)


def test_a_client_needs_a_ceiling_for_epsilon(keys: KeyDirectory, tmp_path: Path) -> None:
    from anofel.disk.keystore import KeyFile

    with pytest.raises(InvalidInput, match="max_epsilon"):
        init_client(
            tmp_path / "role",
            KeyFile.generate(tmp_path / "key"),
            board="http://b",
            genesis_hash=KEY,
            data=write_table(tmp_path / "patients.csv"),
            schema=write_schema(tmp_path / "schema.toml"),
            keys=keys.path,
            settings={},
        )
    assert not (tmp_path / "role").exists()


# The journal


def test_what_was_drawn_stays_drawn(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    assert (tmp_path / "journal.sqlite").stat().st_mode & 0o777 == 0o600
    assert journal.first_iteration(0, 0, 5) == 5
    assert journal.first_iteration(0, 0, 2) == 5
    assert journal.begin(Turn(0, 5, KEY, False, "a", 40)).post_at == 40
    again = Journal(tmp_path / "journal.sqlite")
    turn = again.begin(Turn(0, 5, KEY, True, "b", 77))
    assert (turn.post_at, turn.cover, turn.charge) == (40, False, "a")
    again.skip(turn, "late", "too late")
    assert [turn.skipped for turn in journal.unfinished()] == ["late"]
    again.finish(turn, "summed")
    assert journal.unfinished() == []
    assert journal.turns()[0].post_at == 0  # nothing tells any more when the client posted


# What a turn costs


@pytest.mark.parametrize(
    ("progress", "count", "charged"),
    [
        (Progress.SUMMED, 3, True),
        (Progress.UNDECODABLE, 3, True),
        (Progress.FAILED, 3, True),  # n − t members may have opened the sum in private
        (Progress.FAILED, None, False),
        (Progress.TOO_FEW, 1, False),
        (Progress.TOO_FEW, None, False),
    ],
)
def test_a_charge_is_taken_back_only_if_nobody_can_open_the_sum(
    tmp_path: Path, progress: Progress, count: int | None, charged: bool
) -> None:
    journal, ledger = Journal(tmp_path / "journal"), Ledger(tmp_path / "ledger")
    turn = journal.begin(Turn(0, 1, KEY, False, "mine", 5))
    occasion = Occasion(board=KEY, task=KEY, bundle=0, iteration=1)
    floors = Floors(max_epsilon=100.0, max_colluders=0)
    ledger.charge("mine", occasion, plan=checked().plan, floors=floors, anonymity_set=9)
    position = Position(KEY, progress=progress, counts=None if count is None else (count,))
    current = SimpleNamespace(number=1, submissions={}, positions=[position])
    state = SimpleNamespace(bundles={0: SimpleNamespace(current=current)})
    Client._settle(
        SimpleNamespace(  # type: ignore[arg-type]
            board=SimpleNamespace(state=state),
            journal=journal,
            ledger=ledger,
            _note_acceptance=lambda *_: None,
            _finish=journal.finish,
        )
    )
    assert [made.released for made in ledger.charges()] == [charged]
    assert journal.unfinished() == []
    assert turn.charge == "mine"


@pytest.mark.parametrize("turn", [(1, 1), (0, 2)])
def test_what_was_begun_for_another_turn_is_not_sent_in_this_one(turn: tuple[int, int]) -> None:
    """Another bundle has an iteration of the same number: it is checked and charged by itself."""
    begun: list[Turn] = []
    client = SimpleNamespace(
        _fetch_models=lambda _sitting: None,
        directory=SimpleNamespace(outbox=SimpleNamespace(find=lambda _name: None)),
        drafts=SimpleNamespace(has=lambda *_: False),
        _underway=SimpleNamespace(turn=(0, 1)),
        _begin_post=lambda turn, _sitting: begun.append(turn),
        _seal=lambda *_: 1 / 0,
    )
    now = Turn(*turn, KEY, False, "other", 5)
    Client._take_turn(client, now, SimpleNamespace())  # type: ignore[arg-type]
    assert begun == [now]


def test_a_begun_turn_is_taken_before_anything_else() -> None:
    """A new epoch, or a certifier that was revoked, in an open iteration does not keep a client away."""
    taken = SimpleNamespace(
        _settle=lambda: None,
        state=None,
        _begun=lambda: ("turn", "sitting"),
        _take_turn=lambda *begun: f"took {begun}",
        is_registered=lambda _state: False,
    )
    assert Client.step(taken) == "took ('turn', 'sitting')"  # type: ignore[arg-type]


def test_nothing_is_sent_to_an_iteration_that_others_filled(tmp_path: Path) -> None:
    """Its charge can be taken back then: bytes that left would cost ε for nothing."""
    journal = Journal(tmp_path / "journal")
    turn = journal.begin(Turn(0, 1, KEY, False, "mine", 5))
    size = SimpleNamespace(max_posts=2, post_from=0)
    bundle = SimpleNamespace(current=SimpleNamespace(submissions={1: 1, 2: 2}))
    client = SimpleNamespace(
        state=SimpleNamespace(height=5, class_of=lambda _bundle: size),
        _skip=lambda turn, code, reason: journal.skip(turn, code, reason) or code,
        _post=lambda _turn: 1 / 0,
    )
    sitting = Sitting(client.state, bundle, bundle.current)  # type: ignore[arg-type]
    assert Client._post_in_time(client, turn, sitting) == "iteration-full"  # type: ignore[arg-type]
    assert not journal.may_be_sent(turn)


def test_a_ledger_that_is_gone_is_no_new_one(keys: KeyDirectory, tmp_path: Path) -> None:
    made = make_client(tmp_path / "client", keys, board="http://b", genesis=KEY)
    with open_client(*made) as directory:
        settings = ClientSettings.of(directory.config)
        open_ledger(directory.path, settings, is_new=True)
        (directory.path / "ledger.sqlite").unlink()
        with pytest.raises(InvalidInput, match="nobody knows what was spent"):
            open_ledger(directory.path, settings, is_new=False)
    gone = str(tmp_path / "nowhere" / "ledger.sqlite")
    with pytest.raises(InvalidInput, match="nobody knows what was spent"):
        make_client(tmp_path / "other", keys, board="http://b", genesis=KEY, ledger=gone)


def test_no_certificate_is_accepted_while_a_turn_is_taken(keys: KeyDirectory, tmp_path: Path) -> None:
    made = make_client(tmp_path / "client", keys, board="http://b", genesis=KEY)
    with open_client(*made) as directory:
        settings = ClientSettings.of(directory.config)
        Journal(directory.path / "journal.sqlite").begin(Turn(0, 1, KEY, False, "mine", 5))
        document = CertificateDocument(
            genesis=KEY,
            certifier=KEY,
            d=dataset_digest(load_data(directory.path, settings)).to_bytes(),
            mpk=master_secret(directory.secrets).public_key().to_bytes(),
            dt=7,
            certificate=b"",
        )
        with pytest.raises(InvalidInput, match="under way"):
            accept_certificate(directory, settings, document)


def test_adaptive_noise_has_a_place_also_when_others_filled_the_iteration() -> None:
    task = make_task(privacy={"adaptive": True, "max_posts": 8, "min_clients": 4, "expected_clients": 4})
    plan, sealed = Plan.of(task), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anofel.roles.client.turn.seal_submission", lambda _, update: sealed.append(update))
        Underway((0, 1), SimpleNamespace(), plan, None).seal(plan.spec.max_posts + 5)  # type: ignore[arg-type]
    assert sealed[0].shape == (plan.dimension,)


# Leaving


def test_leaving_deletes_what_can_be_deleted(keys: KeyDirectory, tmp_path: Path) -> None:
    made = make_client(tmp_path / "client", keys, board="http://b", genesis=KEY)
    with open_client(*made) as directory:
        leave_board(directory, destroy_key=False)
        assert "master-secret" in directory.secrets
        with pytest.raises(AlreadyLeft):
            leave_board(directory, destroy_key=False)
        leave_board(directory, destroy_key=True)
    with open_client(*made) as directory:
        assert list(directory.secrets) == []


def test_the_turn_that_was_taken_is_known_after_its_iteration_is_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    turns = [Turn(0, number, bytes(32), False, str(number), 5) for number in (1, 2, 3, 4)]
    for turn in turns:
        journal.begin(turn)
    journal.skip(turns[0], "late", "too late")
    journal.accept(turns[1])
    journal.finish(turns[1], "summed")
    journal.skip(turns[2], "floor-not-met", "too little")
    taken = Client.turns_taken(SimpleNamespace(journal=journal))  # type: ignore[arg-type]
    assert [turn.iteration for turn in taken] == [2, 3]


@pytest.mark.parametrize(
    "change", [{"schema": {"unused": ["note", "remark"]}}, {"task": {"dataset_type": 8}}]
)
def test_a_client_waits_when_somebody_takes_the_name_of_its_task(change: dict[str, Any]) -> None:
    """Whoever announces a task of that name first must not end the clients that wait for it."""
    change = change | {"task": {"name": "lung"} | change.get("task", {})}
    squatter = posted(announce(make_task(**change), key_id=KEY))
    state = SimpleNamespace(tasks={squatter.task_id: squatter}, bundles={})
    client = SimpleNamespace(
        state=state,
        _settle=lambda: None,
        _begun=lambda: None,
        is_registered=lambda _state: True,
        find_task=lambda: find_task(state, Wanted(task="lung"), None, make_task().schema, TYPE),
    )
    assert Client.step(client).startswith("a task")  # type: ignore[arg-type]


# Whom a client trusts with its bundle


def a_bundle(
    *committees: list[CommitteeMember], threshold: int = 2, min_clients: int = 5, absent: int = 0
) -> tuple[SimpleNamespace, SimpleNamespace]:
    names = [bytes([number]) * 32 for number in range(len(committees))]
    shares = {
        name: CommitteeShares(name, name, (KEY,) * len(members), threshold, 0)
        for name, members in zip(names, committees, strict=True)
    }
    progress = [Progress.ABSENT] * absent + [Progress.COLLECTING] * (len(names) - absent)
    current = SimpleNamespace(
        positions=[Position(name, progress=p) for name, p in zip(names, progress, strict=True)]
    )
    facts = SimpleNamespace(limits=SimpleNamespace(min_clients=min_clients))
    state = SimpleNamespace(
        tasks={name: SimpleNamespace(task_id=name, facts=facts) for name in names},
        committee_of=lambda task: SimpleNamespace(generations=[shares[task.task_id]]),
        members_of=lambda one: dict(zip(names, committees, strict=True))[one.run_id],
    )
    bundle = SimpleNamespace(number=0, tasks=tuple(names), current=current, phase=Phase.OPEN)
    state.bundles = {0: bundle}
    return state, bundle


def members(*organisations: str, issuer: str = "CN=Health CA,O=State") -> list[CommitteeMember]:
    return [CommitteeMember(f"CN=Aggregator,O={name}", issuer, name.lower()) for name in organisations]


TWO = (members("A", "B", "C"), members("D", "E", "F"))


TWICE = [replace(member, name=f"{member.name},O=Evil") for member in TWO[0]]
"""Beside a second organisation the first one says nothing."""


def trusting(*required: str, allowed: tuple[str, ...] = (), **more: int) -> Trust:
    return Trust(
        max_colluders=0,
        required=tuple(map(Aggregators.parse, required)),
        allowed=tuple(map(Aggregators.parse, allowed)),
        **more,
    )


@pytest.mark.parametrize(
    ("trust", "bundle", "words"),
    [
        (Trust(), a_bundle(*TWO), "Nobody told this client with how many .* max_colluders"),
        (Trust(max_colluders=0), a_bundle(TWO[0]), "holds 1 live tasks; this client demands 2"),
        (Trust(max_colluders="all"), a_bundle(*TWO, absent=1), "holds 1 live tasks"),
        (Trust(min_clients=6, max_colluders=0), a_bundle(*TWO), "opens counts of 5 posts"),
        (Trust(max_colluders=4), a_bundle(*TWO), "opens counts of 5 posts; this client demands 6"),
        (trusting("O=A", "O=B", "O=C"), a_bundle(TWICE, TWICE), "none that this client requires"),
        (trusting(allowed=("O=A", "O=B", "O=C", "O=D", "O=E")), a_bundle(*TWO), "does not allow: CN=.*O=F"),
        (trusting("O=A", "O=B", "O=D"), a_bundle(*TWO), "2 of them are none that this client requires"),
        (
            trusting("O=A @ CN=Other CA", "O=B", "O=D", "O=E"),
            a_bundle(*TWO),
            "none that this client requires",
        ),
    ],
)
def test_rules_4_to_7_and_11_a_bundle_is_refused(
    trust: Trust, bundle: tuple[SimpleNamespace, SimpleNamespace], words: str
) -> None:
    with pytest.raises(FloorNotMet, match=words):
        trust.check_bundle(*bundle)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "trust",
    [
        Trust(max_colluders=3),
        Trust(min_clients=5, max_colluders="all"),
        trusting("O=A", "O=B", "O=D", "O=E"),
        trusting("O=A @ CN=Health CA", "O=B @ O=State", "O=D", "O=E"),
        trusting(allowed=("CN=Aggregator @ O=State",)),
    ],
)
def test_rules_4_to_7_and_11_a_bundle_is_taken(trust: Trust) -> None:
    trust.check_bundle(*a_bundle(*TWO))  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["", "Clinic A", " @ O=State", "O=A @ nobody"])
def test_words_that_name_no_aggregators_are_refused(words: str) -> None:
    with pytest.raises(InvalidInput, match="names no aggregators"):
        Aggregators.parse(words)
