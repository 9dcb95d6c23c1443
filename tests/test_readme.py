"""Every command that the README and the pages show exists, and the README's work in the order given."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from anofel.cli import app
from tests.typed import commands_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SET_UP = {"make demo", "make test"}
"""They set everything up first; whoever runs these tests has typed one of them."""
SECONDS = 3600
"""For one command; a busy machine takes a quarter of an hour for 64 clients."""


def shown() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for line in commands_of(page):
            words = shlex.split(line.split(" > ")[0].split(" | ")[0].removesuffix(" &"))
            if words and Path(words[0]).name == "anofel":
                yield page.name, words[1:]


@pytest.mark.parametrize(
    ("page", "words"), [pytest.param(*case, id=f"{case[0]}: {' '.join(case[1])}") for case in shown()]
)
def test_every_command_that_a_page_shows_exists(page: str, words: list[str]) -> None:
    command: Any = get_command(app)
    for word in words:
        commands = getattr(command, "commands", None)
        if commands is not None and not word.startswith("-"):
            assert word in commands, f"{page}: there is no command '{word}'"
            command = commands[word]
    options = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert used <= options | {"--help"}, f"{page}: unknown options {used - options}"


def programs_of_snarkjs() -> list[str]:
    """Where the pinned snarkjs is; nowhere without Node, and then its line is left out."""
    if not all(map(shutil.which, ("node", "npm"))):
        return []
    install = [sys.executable, ROOT / "tools" / "snarkjs" / "install.py"]
    installed = subprocess.run(install, capture_output=True, text=True, check=True)
    return [str(Path(installed.stdout.strip()) / "node_modules" / ".bin")]


@pytest.mark.slow
def test_the_commands_of_the_readme_work_in_the_order_given(tmp_path: Path) -> None:
    for folder in ("examples", "src/anofel/tasks/examples"):  # what a clone has, and the commands read
        shutil.copytree(ROOT / folder, tmp_path / folder)
    tools = [str(Path(sys.executable).parent), *programs_of_snarkjs()]
    environment = os.environ | {"PATH": os.pathsep.join([*tools, os.environ["PATH"]])}
    background: list[subprocess.Popen[bytes]] = []
    try:
        for line in commands_of(ROOT / "README.md"):
            if line in SET_UP or (
                line.startswith("snarkjs") and not shutil.which("snarkjs", path=environment["PATH"])
            ):
                continue
            if line.endswith("&"):
                log = tmp_path / "node.log"
                with log.open("wb") as out:
                    words = shlex.split(line.removesuffix("&"))
                    background.append(
                        subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=out, stderr=out)
                    )
                end = time.monotonic() + SECONDS
                while "answers at" not in log.read_text():
                    assert background[-1].poll() is None, log.read_text()
                    assert time.monotonic() < end, log.read_text()
                    time.sleep(0.2)
                continue
            done = subprocess.run(
                ["bash", "-euc", line],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
    finally:
        for process in background:
            process.terminate()
            process.wait(600)
