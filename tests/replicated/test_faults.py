"""Short forms of the fault campaign (``tests.faults.replicated``), and how an engine ends with its node."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anofel.proofs.keys import KeyDirectory
from tests.faults import networks
from tests.faults.node_process import Findings
from tests.faults.replicated import PARTS, Part
from tests.node.support import wait_until
from tests.replicated.support import needs_engine

SHORT = 0.02
"""One fault of each kind, or a few."""


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS.values(), ids=lambda part: part.__name__)
def test_a_board_of_validators_bears(part: Part, keys: KeyDirectory, tmp_path: Path) -> None:
    needs_engine()
    if part.__name__ == "partitions" and networks.why_not():
        pytest.skip(f"There are no networks of test here: {networks.why_not()}.")
    findings = Findings()
    part(keys, tmp_path, findings, 7, SHORT)
    assert not findings.violations
    assert findings.counts["blocks"] > 2


NODE = """
import asyncio, sys
from pathlib import Path
from anofel.node.replicated.engine import EngineProcess

home = Path(sys.argv[1])
asyncio.run(EngineProcess(home / "engine", home, home / "rpc").keep_running())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel ends no child with its parent")
def test_an_engine_ends_with_a_node_that_is_killed(tmp_path: Path) -> None:
    """One that went on would keep the next one from its files for ever."""
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nwhile :; do sleep 1; done\n")
    engine.chmod(0o755)
    node = subprocess.Popen([sys.executable, "-c", NODE, str(tmp_path)])
    try:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
        pid = int((tmp_path / "pid").read_text())
        assert is_there(pid)
        node.kill()
        node.wait()
        wait_until(lambda: not is_there(pid), 60)
    finally:
        node.kill()
        node.wait()


def is_there(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_an_engine_that_left_its_socket_is_started_again(tmp_path: Path) -> None:
    """The socket of one that was killed is in the way of the next, which says so and ends."""
    engine = tmp_path / "engine"
    engine.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/rpc ] && exit 1\n: > {tmp_path}/rpc\necho $$ >> {tmp_path}/pids\n"
        "while :; do sleep 1; done\n"
    )
    engine.chmod(0o755)
    node = subprocess.Popen([sys.executable, "-c", NODE, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        for number in (1, 2, 3):
            wait_until(lambda wanted=number: len(pids(tmp_path)) == wanted)
            time.sleep(0.1)
            os.kill(pids(tmp_path)[-1], signal.SIGKILL)
    finally:
        node.kill()
        node.wait()


def pids(directory: Path) -> list[int]:
    path = directory / "pids"
    return [int(word) for word in path.read_text().split()] if path.exists() else []
