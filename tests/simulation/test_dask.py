"""Workers of Dask: a real scheduler, and workers in network namespaces of their own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from anofel.errors import InvalidInput, PeerUnreachable
from anofel.privacy import protect
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import InsecurePlainSimulation, Simulation, Workers
from tests.simulation import coins
from tests.simulation.test_workers import SMALL, custom, same

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
SECONDS = 300


@contextmanager
def running(*command: str, log: Path, prefix: tuple[str, ...] = ()) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of Dask as a Dask user starts it; ends with all that it started."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "distributed.cli." + command[0], *command[1:]],
            stdout=out,
            stderr=out,
            cwd=log.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h"},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(host: str, port: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex((host, port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the scheduler did not begin to listen")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def known_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protect, "draw_noise", coins.draw_noise)
    monkeypatch.setattr(protect, "round_within", coins.round_within)


# What a user gets wrong


def test_nobody_at_the_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anofel.simulation.workers.dask_link.CONNECT_SECONDS", 1)
    with pytest.raises(PeerUnreachable, match="No Dask scheduler answers at tcp://127.0.0.1:"):
        Workers(dask=f"tcp://127.0.0.1:{free_port()}").start()


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(InvalidInput, match="'carrier-pigeon://loft' is no address of a Dask scheduler"):
        Workers(dask="carrier-pigeon://loft").start()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "anofel.simulation.workers.dask_link", raising=False)
    with pytest.raises(InvalidInput, match=r"pip install 'anofel\[dask\]'"):
        Workers(dask="tcp://127.0.0.1:1").start()


# A real scheduler and two machines


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def two_machines() -> Iterator[tuple[str, list[str]]]:
    """Two network namespaces on a bridge; gives the address of this side and the names of theirs."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need iproute2 (apt install iproute2)")
    tag = f"{os.getpid() % 100000}"
    bridge, names = f"anb{tag}", [f"anofel-{tag}-{number}" for number in (1, 2)]
    net = f"10.{os.getpid() % 200 + 20}.77"
    with ExitStack() as stack:
        try:
            ip("link", "add", bridge, "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        stack.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{net}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for number, name in enumerate(names, start=2):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            here, there = f"anv{tag}{number}", f"anw{tag}{number}"
            ip("link", "add", here, "type", "veth", "peer", "name", there)
            ip("link", "set", here, "master", bridge, "up")
            ip("link", "set", there, "netns", name)
            ip("-n", name, "addr", "add", f"{net}.{number}/24", "dev", there)
            ip("-n", name, "link", "set", there, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield f"{net}.1", names


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_two_machines_give_the_integers_of_one_process_and_one_may_die(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    """The second machine dies after the first iteration; the third finds it gone."""
    (tmp_path / "place").mkdir()
    with two_machines() as (host, names), ExitStack() as stack:
        port = free_port()
        scheduler = ("dask_scheduler", "--host", host, "--port", str(port), "--no-dashboard")
        stack.enter_context(running(*scheduler, log=tmp_path / "scheduler.log"))
        wait_for(host, port)
        address = f"tcp://{host}:{port}"
        machines = [
            stack.enter_context(
                running(
                    *("dask_worker", address, "--nthreads", "1", "--no-dashboard"),
                    *("--local-directory", str(tmp_path / name)),
                    log=tmp_path / f"{name}.log",
                    prefix=("ip", "netns", "exec", name),
                )
            )
            for name in names
        ]
        losses: list[str] = []
        workers = Workers(number=2, dask=address, seconds=SECONDS, on_loss=losses.append)
        with Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=workers) as simulation:
            run = simulation.run(3)
            first, second = next(run), next(run)
            os.killpg(machines[1].pid, signal.SIGKILL)
            machines[1].wait()
            third = next(run)
    same([first, second], list(InsecurePlainSimulation([custom("one", 4, 3)]).run(2)))
    assert (third.outcome, third.count) == ("summed", 2)
    assert len(losses) == 1
    assert losses[0].endswith("its 2 clients do not post any more.")
    assert "(Dask, tcp://" in losses[0]
