"""Stands in for systemd: starts what a unit of this directory says, and leaves it running."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.node.support import SECONDS


def main() -> None:
    if is_running():
        return
    (command,) = re.findall(
        r"^ExecStart=/opt/anofel/bin/(.+)$", Path(f"{sys.argv[1]}.service").read_text(), re.M
    )
    command = command.replace("/etc/anofel", os.environ["ANOFEL_ETC"])
    if os.environ["UNIT_PORT"] != "443":
        command = command.replace(
            "--host 0.0.0.0 --port 443", f"--host 127.0.0.1 --port {os.environ['UNIT_PORT']}"
        )
    log = Path("unit.log")
    with log.open("ab") as out:
        started = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], stdout=out, stderr=out, start_new_session=True
        )
    Path("unit.pid").write_text(str(started.pid))
    if "--port" in command:
        end = time.monotonic() + SECONDS
        while "answers at" not in log.read_text():
            assert started.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)


def is_running() -> bool:
    try:
        os.kill(int(Path("unit.pid").read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main()
