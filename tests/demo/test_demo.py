"""The demo as a user meets it: a process that starts many, and ends with an audit and nothing left."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from anofel.demo.misbehave import EXPECTED
from tests.node.support import SECONDS, wait_until
from tests.replicated.support import needs_engine

SMALL = ("--study", "breast-cancer", "--study", "diabetes", "--clients", "4", "--iterations", "2")
"""Data that comes with an installed package; two members per committee, of whom both are needed."""
COMMITTEE = ("--committee", "2", "--threshold", "2")
PORTS = (8470, 8480)
"""Where a board and a certifier listen by default."""


def start(directory: Path, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "anofel", "demo", "--dir", str(directory), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(directory: Path) -> list[int]:
    """Every process whose command names the directory, or that prints into it, and that is still alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_text() + str((entry / "fd" / "1").readlink())
        except OSError:
            continue
        if str(directory) in words:
            found.append(int(entry.name))
    return found


def taken(port: int) -> socket.socket | None:
    """Listen on a port; None if somebody else does already, which serves as well."""
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        return None
    listener.listen()
    return listener


def test_a_small_demo_trains_refuses_and_is_accepted_by_an_audit(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    listeners = [taken(port) for port in PORTS]
    try:
        process = start(directory, *SMALL, *COMMITTEE, "--json")
        out, errors = process.communicate(timeout=2 * SECONDS)
    finally:
        for listener in listeners:
            if listener is not None:
                listener.close()
    assert process.returncode == 0, errors
    document = json.loads(out)
    assert document == json.loads((directory / "demo.json").read_text())
    assert document["dir"] == str(directory)
    check_iterations(document["iterations"])
    refused = {entry["what"]: entry["code"] for entry in document["refused"]}
    assert refused == EXPECTED
    assert document["audit"]["ok"]
    assert 6 <= document["audit"]["clients"] <= 8  # on a busy machine the late ones may come too late
    assert document["audit"]["sums_pruned"] == 0
    for words in ("is killed", "is started again", "joins late", *EXPECTED.values()):
        assert words in errors
    assert (directory / "quality.png").read_bytes().startswith(b"\x89PNG")
    assert processes_of(directory) == []

    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", str(directory)], capture_output=True, text=True
    )
    assert audited.returncode == 0, audited.stderr

    again = start(directory, *SMALL)
    _, errors = again.communicate(timeout=SECONDS)
    assert again.returncode == 1
    assert "exists already" in errors


@pytest.mark.slow
def test_a_demo_of_four_validators_bears_that_one_dies(tmp_path: Path) -> None:
    """Every node and every engine a process of its own; a node that answers is audited at the end."""
    needs_engine()
    directory = tmp_path / "demo"
    process = start(directory, *SMALL, *COMMITTEE, "--validators", "4", "--json")
    out, errors = process.communicate(timeout=2 * SECONDS)
    assert process.returncode == 0, errors
    document = json.loads(out)
    check_iterations(document["iterations"])
    assert {entry["what"]: entry["code"] for entry in document["refused"]} == EXPECTED
    assert document["audit"]["ok"]
    for words in ("validator-3 is killed", "validator-3 is started again", "joins late", *EXPECTED.values()):
        assert words in errors
    wait_until(lambda: processes_of(directory) == [])
    told = {tomllib.loads(path.read_text())["board"] for path in (directory / "roles").glob("*/role.toml")}
    for place in range(4):
        audited = subprocess.run(
            [sys.executable, "-m", "anofel", "audit", str(directory / f"node{place}")],
            capture_output=True,
            text=True,
        )
        assert audited.returncode == 0, audited.stderr
    assert len(told) == 3, "the roles talk to different nodes, and nobody to the one that dies"


@pytest.mark.slow
def test_the_page_shows_the_demo_from_its_beginning_until_ctrl_c(tmp_path: Path) -> None:
    directory, said = tmp_path / "demo", list[str]()
    process = start(directory, *SMALL, *COMMITTEE, "--page")
    assert process.stdout is not None
    assert process.stderr is not None
    listening = threading.Thread(target=lambda lines: said.extend(lines), args=(process.stderr,))
    talking = threading.Thread(target=process.stdout.read)
    listening.start()
    talking.start()

    def address_after(words: str) -> str:
        """Wait for a sentence, and give the address in it."""
        wait_until(lambda: any(words in line for line in said) or process.poll() is not None, 4 * SECONDS)
        assert process.poll() is None, "".join(said[-20:])
        (line,) = (line for line in said if words in line)
        return line.split(words)[1].split()[0]

    try:
        running = address_after("Watch the board in a browser: ")
        assert "Now" in urlopen(running).read().decode()
        finished = address_after("The board's page stays at ")
        assert finished == running
        assert "breast-cancer" in urlopen(finished).read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0, "".join(said[-20:])
    finally:
        process.kill()
        listening.join()
        talking.join()
        process.stdout.close()
        process.stderr.close()
    assert processes_of(directory) == []


def check_iterations(entries: list[dict[str, Any]]) -> None:
    """Two sums of each study, with quality and a growing ε; an iteration may have had too few posts."""
    for task in ("breast-cancer", "diabetes"):
        of_task = [entry for entry in entries if entry["task"] == task]
        assert {entry["outcome"] for entry in of_task} <= {"summed", "too-few"}
        summed = [entry for entry in of_task if entry["outcome"] == "summed"]
        assert len(summed) == 2
        assert all(2 <= entry["count"] <= 4 for entry in summed)
        assert 0 < summed[0]["epsilon"] < summed[1]["epsilon"] <= 1
        assert all(set(entry["metrics"]) == {"loss", "accuracy", "auc"} for entry in summed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_demo_leaves_no_process(tmp_path: Path, number: int) -> None:
    directory = tmp_path / "demo"
    process = start(directory, *SMALL, *COMMITTEE)
    try:
        end = time.monotonic() + SECONDS
        while len(processes_of(directory)) < 6:  # the demo, the board, certifiers and aggregators
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(number)
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    if number == signal.SIGKILL:  # nobody is left to wait for the others
        wait_until(lambda: processes_of(directory) == [])
    else:
        assert process.returncode == 1
        assert "no process is left" in errors
    assert processes_of(directory) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--study", "mnist"), "knows the studies"),
        (("--study", "diabetes", "--study", "diabetes"), "can be given once"),
        (("--threshold", "1"), "above half"),
        (("--clients", "2"), "--clients"),
        (("--scheme", "plain"), "lattice"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    process = start(tmp_path / "demo", *options)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode in (1, 2)
    assert words in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
