"""Secrets of committees are kept as long as an iteration can need them, and not longer."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.board.state import Committee, CommitteeShares, KeyRun, KeyVote, State
from anofel.disk.keystore import KeyFile, Keystore
from anofel.messages import HandoverTerms, Run
from anofel.roles.aggregator.key_secrets import forget_stale, run_name, share_name

KEY, ME, OTHER = b"\xaa" * 32, b"\x01" * 32, b"\x02" * 32
OLD, NEW = b"\x10" * 32, b"\x11" * 32
FIRST, SECOND, FAILED = b"\x20" * 32, b"\x21" * 32, b"\x22" * 32


def shares(run_id: bytes, shares_id: bytes, epoch: int, members: tuple[bytes, ...]) -> CommitteeShares:
    return CommitteeShares(run_id, shares_id, members, 2, epoch)


def a_run(
    run_id: bytes, *, base: bytes = b"", made: bytes = b"", members: tuple[bytes, ...] = (ME, OTHER)
) -> KeyRun:
    handover = HandoverTerms(key_id=KEY, dealers=(1, 2)) if base else None
    described = Run(nonce=run_id, scheme=0, threshold=2, members=members, handover=handover)
    run = KeyRun(run_id, described, ME, 1, base=base, share_epoch=1 if base else 0, done=bool(made))
    if made:
        run.votes = {number: KeyVote(KEY, made, bytes(32)) for number in (1, 2)}
    return run


def board(current: CommitteeShares, *runs: KeyRun, pending: CommitteeShares | None = None) -> State:
    committee = Committee(KEY, 0, current, pending)
    return SimpleNamespace(  # type: ignore[return-value]
        committees={KEY: committee}, runs={run.run_id: run for run in runs}
    )


@pytest.fixture
def store(tmp_path: Path) -> Keystore:
    made = Keystore.create(tmp_path / "store", KeyFile.generate(tmp_path / "key"), role="aggregator")
    made["role-key"] = b"never touched"
    return made


def keep(store: Keystore, *names: str) -> None:
    for name in names:
        store[name] = b"secret"


BOTH = (ME, OTHER)


def test_after_key_generation_the_state_goes_when_the_share_is_kept(store: Keystore) -> None:
    state = board(shares(FIRST, OLD, 0, BOTH), a_run(FIRST, made=OLD))
    keep(store, run_name(FIRST))
    assert forget_stale(state, store, ME) == [], "without the share the state is all there is"
    keep(store, share_name(OLD))
    assert forget_stale(state, store, ME) == [run_name(FIRST)]
    assert set(store) == {"role-key", share_name(OLD)}


def test_shares_stay_while_the_new_ones_wait_for_an_outcome(store: Keystore) -> None:
    keep(store, share_name(OLD), share_name(NEW), run_name(SECOND))
    runs = (a_run(FIRST, made=OLD), a_run(SECOND, base=OLD, made=NEW))
    waiting = board(shares(FIRST, OLD, 0, BOTH), *runs, pending=shares(SECOND, NEW, 1, BOTH))
    assert forget_stale(waiting, store, ME) == []
    in_force = board(shares(SECOND, NEW, 1, BOTH), *runs)
    assert set(forget_stale(in_force, store, ME)) == {share_name(OLD), run_name(SECOND)}


def test_a_handover_under_way_or_failed_touches_nothing(store: Keystore) -> None:
    keep(store, share_name(OLD), run_name(SECOND))
    state = board(shares(FIRST, OLD, 0, BOTH), a_run(FIRST, made=OLD), a_run(SECOND, base=OLD))
    assert forget_stale(state, store, ME) == []


def test_states_of_runs_that_the_committee_went_past_go(store: Keystore) -> None:
    """They hold the old share, too."""
    keep(store, run_name(FAILED), run_name(FIRST), share_name(NEW))
    runs = (a_run(FIRST, made=OLD), a_run(FAILED, base=OLD), a_run(SECOND, base=OLD, made=NEW))
    state = board(shares(SECOND, NEW, 1, BOTH), *runs)
    assert set(forget_stale(state, store, ME)) == {run_name(FAILED), run_name(FIRST)}


def test_who_leaves_keeps_nothing(store: Keystore) -> None:
    keep(store, share_name(OLD), run_name(SECOND))
    runs = (a_run(FIRST, made=OLD), a_run(SECOND, base=OLD, made=NEW, members=(OTHER,)))
    state = board(shares(SECOND, NEW, 1, (OTHER,)), *runs)
    assert set(forget_stale(state, store, ME)) == {share_name(OLD), run_name(SECOND)}
    assert set(store) == {"role-key"}


def test_who_stays_keeps_the_state_until_its_share_is_there(store: Keystore) -> None:
    keep(store, share_name(OLD), run_name(SECOND))
    state = board(shares(SECOND, NEW, 1, BOTH), a_run(SECOND, base=OLD, made=NEW))
    assert forget_stale(state, store, ME) == [share_name(OLD)]
