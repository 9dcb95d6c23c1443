import os
import sqlite3
import stat
import subprocess
import sys
import textwrap

import pytest

from anofel.errors import InvalidInput
from anofel.privacy.accounting import epsilon
from anofel.privacy.ledger import AlreadyCharged, BudgetExceeded, FloorNotMet, Floors, Ledger, Occasion
from anofel.privacy.plan import Plan
from tests.patients import make_task

PLAN = Plan.of(make_task(privacy={"noise_multiplier": "20"}))
LOOSE = Floors(max_epsilon=100.0, max_colluders=0)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "deep" / "ledger.sqlite")


def occasion(iteration, task="t1", board="b1", bundle=0):
    return Occasion(board=board.encode(), task=task.encode(), bundle=bundle, iteration=iteration)


def turn(iteration, task="t1", **where):
    return repr(occasion(iteration, task, **where))


def charge(ledger, iteration, task="t1", plan=PLAN, floors=LOOSE, anonymity_set=100, **where):
    name = occasion(iteration, task, **where)
    return ledger.charge(repr(name), name, plan=plan, floors=floors, anonymity_set=anonymity_set)


def charges(ledger):
    return [
        (made.occasion.task.decode(), made.occasion.iteration, made.released) for made in ledger.charges()
    ]


def test_charges_compose_over_iterations_and_tasks(ledger):
    for iteration in range(5):
        charge(ledger, iteration)
    total = charge(ledger, 0, task="t2")
    assert total == pytest.approx(PLAN.epsilon(6, "zero-out"))
    assert ledger.spent(delta=1e-5, relation="replace") == pytest.approx(PLAN.epsilon(6, "replace"))


def test_the_same_document_announced_again_is_charged_again(ledger):
    """The owner announces it twice: another task on the board, another bundle, another board."""
    for where in ({}, {"task": "t2"}, {"bundle": 1}, {"board": "b2"}):
        charge(ledger, 1, **where)
    assert ledger.spent(delta=1e-5) == pytest.approx(PLAN.epsilon(4, "zero-out"))


def test_only_the_turn_that_made_a_charge_can_take_it_back(ledger):
    charge(ledger, 1)
    assert ledger.holds(turn(1))
    with pytest.raises(AlreadyCharged):
        ledger.charge("another turn", occasion(1), plan=PLAN, floors=LOOSE, anonymity_set=100)
    assert not ledger.holds("another turn")
    ledger.refund("another turn")
    assert charges(ledger) == [("t1", 1, True)]
    ledger.refund(turn(1))
    assert charges(ledger) == [("t1", 1, False)]


def test_tasks_with_different_noise_compose(ledger):
    other = Plan.of(make_task(privacy={"noise_multiplier": "10", "mechanism": "skellam"}))
    charge(ledger, 0)
    charge(ledger, 0, task="t2", plan=other)
    both = epsilon([(PLAN.event("zero-out"), 1), (other.event("zero-out"), 1)], 1e-5)
    assert ledger.spent(delta=1e-5) == pytest.approx(both)


def test_an_iteration_is_charged_once_even_after_a_refund(ledger):
    charge(ledger, 0)
    with pytest.raises(AlreadyCharged, match="already made"):
        charge(ledger, 0)
    ledger.refund(turn(0))
    with pytest.raises(AlreadyCharged):
        charge(ledger, 0)
    assert charges(ledger) == [("t1", 0, False)]


def test_floors_use_the_clients_own_delta(ledger):
    loose, strict = (Floors(max_epsilon=0.26, delta=delta, max_colluders=0) for delta in (1e-5, 1e-9))
    assert PLAN.epsilon(1, "zero-out") < 0.26
    with pytest.raises(FloorNotMet, match="single iteration"):
        charge(ledger, 0, floors=strict)
    charge(ledger, 0, floors=loose)


def test_budget_refuses_with_a_sentence_and_charges_nothing(ledger):
    floors = Floors(max_epsilon=PLAN.epsilon(3, "zero-out") + 1e-9, max_colluders=0)
    for iteration in range(3):
        charge(ledger, iteration, floors=floors)
    with pytest.raises(BudgetExceeded, match=r"would bring this data to ε = .* over all tasks"):
        charge(ledger, 3, floors=floors)
    assert len(ledger.charges()) == 3


def test_refund_of_a_sum_that_was_never_released(ledger):
    charge(ledger, 0)
    charge(ledger, 1)
    ledger.refund(turn(0))
    assert ledger.spent(delta=1e-5) == pytest.approx(PLAN.epsilon(1, "zero-out"))
    assert charges(ledger) == [("t1", 0, False), ("t1", 1, True)]
    ledger.refund(turn(9))  # a turn without a charge has nothing to take back


@pytest.mark.parametrize(
    ("floors", "more", "message"),
    [
        ({"min_clients": 9}, {}, "demands 9"),
        ({"min_anonymity_set": 50}, {"anonymity_set": 49}, "demands 50"),
        ({"max_epsilon": 0.01}, {}, "single iteration costs"),
    ],
)
def test_each_floor_refuses_alone(ledger, floors, more, message):
    charge(ledger, 0, anonymity_set=50)
    with pytest.raises(FloorNotMet, match=message):
        charge(ledger, 1, floors=Floors(**({"max_epsilon": 100.0, "max_colluders": 0} | floors)), **more)
    assert len(ledger.charges()) == 1


def test_floor_refuses_unproven_noise_and_weaker_units(ledger):
    with pytest.raises(FloorNotMet, match="unproven"):
        charge(ledger, 0, plan=Plan.of(make_task(privacy={"unit": "paper", "records_per_client": 10})))
    record = Plan.of(make_task(privacy={"unit": "record", "noise_multiplier": "20"}))
    with pytest.raises(FloorNotMet, match="single records"):
        charge(ledger, 0, plan=record)
    charge(ledger, 0, plan=record, floors=Floors(max_epsilon=100.0, unit="record", max_colluders=0))
    with pytest.raises(BudgetExceeded, match="single records"):
        charge(ledger, 1)


def test_total_floor():
    Floors(max_epsilon=PLAN.epsilon(10, "zero-out"), max_colluders=0).check_total(PLAN)
    with pytest.raises(FloorNotMet, match="All 10 iterations"):
        Floors(max_epsilon=PLAN.epsilon(9, "zero-out"), max_colluders=0).check_total(PLAN)


def test_only_the_owner_can_read_the_ledger(tmp_path):
    Ledger(tmp_path / "ledger.sqlite")
    mode = stat.S_IMODE(os.stat(tmp_path / "ledger.sqlite").st_mode)
    assert mode == 0o600


def test_charge_survives_a_crash_right_after_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    script = textwrap.dedent(
        f"""
        import os, pathlib
        from tests.privacy.test_ledger import charge
        from anofel.privacy.ledger import Ledger
        charge(Ledger(pathlib.Path({str(path)!r})), 0)
        os.kill(os.getpid(), 9)
        """
    )
    result = subprocess.run([sys.executable, "-c", script], check=False)
    assert result.returncode == -9
    assert charges(Ledger(path)) == [("t1", 0, True)]


def test_crash_inside_a_charge_leaves_the_old_state(ledger, monkeypatch):
    charge(ledger, 0)
    monkeypatch.setattr("anofel.privacy.ledger.event_to_json", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        charge(ledger, 1)
    monkeypatch.undo()
    assert len(ledger.charges()) == 1
    charge(ledger, 1)


def test_two_processes_cannot_overspend(tmp_path):
    """Ten at once try to take the last three releases; three succeed."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path)
    script = textwrap.dedent(
        f"""
        import pathlib, sys
        from tests.privacy.test_ledger import PLAN, charge
        from anofel.privacy.ledger import BudgetExceeded, Floors, Ledger
        floors = Floors(max_epsilon=PLAN.epsilon(3, "zero-out") + 1e-9, max_colluders=0)
        taken = 0
        for iteration in range(5):
            try:
                charge(Ledger(pathlib.Path({str(path)!r})), iteration, task=sys.argv[1], floors=floors)
                taken += 1
            except BudgetExceeded:
                pass
        print(taken)
        """
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, f"task{n}"], stdout=subprocess.PIPE, text=True)
        for n in range(2)
    ]
    assert sum(int(process.communicate()[0]) for process in running) == 3
    assert len(Ledger(path).charges()) == 3


def test_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 10)
    with pytest.raises(InvalidInput, match="cannot be used"):
        Ledger(path)


def test_entry_of_another_version_is_refused_not_skipped(ledger, tmp_path):
    charge(ledger, 0)
    with sqlite3.connect(tmp_path / "deep" / "ledger.sqlite") as connection:
        connection.execute("""UPDATE charge SET zero_out = '{"kind": "new"}'""")
    connection.close()
    with pytest.raises(InvalidInput, match="unknown kind"):
        charge(ledger, 1)


# Whom the client reckons with: its own number, not the owner's


def test_a_client_that_says_nothing_reckons_with_all_others():
    plan = Plan.of(make_task(privacy={"min_clients": 512, "max_colluders": 0, "max_posts": 512}))
    said_nothing, trusting = Floors(max_epsilon=1e9), Floors(max_epsilon=1e9, max_colluders=0)
    assert (said_nothing.honest(plan), trusting.honest(plan)) == (1, 512)
    assert said_nothing.epsilon(plan, 1) > 10 * trusting.epsilon(plan, 1)
    with pytest.raises(FloorNotMet, match="if 511 of 512 clients collude .say --max-colluders"):
        Floors(max_epsilon=1.0).check_task(plan, 1000)


def test_sybils_of_the_owner_do_not_lower_what_is_charged(ledger):
    """500 registered clients of the owner's own with zero vectors: the charge knows of twelve others."""
    plan = Plan.of(make_task(privacy={"min_clients": 512, "max_colluders": 0, "max_posts": 512}))
    charged = charge(ledger, 1, plan=plan, floors=Floors(max_epsilon=1e9, max_colluders=500))
    assert charged == pytest.approx(plan.epsilon(1, "zero-out", honest=12))
    assert charged > 5 * plan.epsilon(1, "zero-out")
    assert ledger.spent(delta=1e-5) == pytest.approx(charged)


def test_the_more_cautious_number_of_colluders_counts():
    plan = Plan.of(make_task(privacy={"min_clients": 20, "max_colluders": 15, "max_posts": 20}))
    assert Floors(max_epsilon=1.0, max_colluders=3).honest(plan) == 5
    with pytest.raises(FloorNotMet, match="two honest ones must be left"):
        Floors(max_epsilon=1.0, max_colluders=19).honest(plan)
