"""Signals end the work, but only where the work says that it may end."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from anofel.stopping import Stopped, check, interruptible, pause, stoppable

BOTH = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in BOTH]
    yield
    assert [signal.getsignal(number) for number in BOTH] == before


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_waits_for_the_end_of_what_must_not_be_cut_short(number: signal.Signals) -> None:
    done = []
    with pytest.raises(Stopped), stoppable():
        signal.raise_signal(number)
        done.append("a write")
        pause(600)
        done.append("never")
    assert done == ["a write"]


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_wakes_a_pause(number: signal.Signals) -> None:
    timer = threading.Timer(0.2, os.kill, (os.getpid(), number))
    timer.start()
    start = time.monotonic()
    with pytest.raises(Stopped), stoppable():
        pause(600)
    assert time.monotonic() - start < 300
    timer.join()


def test_a_signal_ends_an_interruptible_section_at_once() -> None:
    with pytest.raises(Stopped), stoppable(), interruptible():
        with interruptible():
            pass
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("it went on")


def test_what_is_closed_on_the_way_out_is_not_interrupted() -> None:
    closed = []
    with pytest.raises(Stopped), stoppable():
        try:
            signal.raise_signal(signal.SIGTERM)
            check()
        finally:
            signal.raise_signal(signal.SIGINT)  # an impatient person
            pause(0)
            closed.append("the store")
    assert closed == ["the store"]


def test_a_signal_of_an_earlier_run_is_forgotten() -> None:
    with stoppable():
        signal.raise_signal(signal.SIGTERM)
    check()
    with stoppable():
        check()


def test_other_threads_are_never_interrupted() -> None:
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with interruptible():
            inside.set()
            over.wait(600)

    worker = threading.Thread(target=work)
    with stoppable():
        worker.start()
        assert inside.wait(600)
        signal.raise_signal(signal.SIGTERM)  # the main thread is not where it may end
        over.set()
        worker.join()
