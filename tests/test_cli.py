"""What every command has in common: version, exit codes, errors for people and for programs, completion."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from anofel.cli import HEADINGS, app
from anofel.cli.output import note, print_table, print_text

TERMINAL = {"COLUMNS": "60", "LINES": "40", "TTY_COMPATIBLE": "1", "TERM": "dumb"}
PAGE = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()


def anofel(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anofel", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment}
    )


def test_the_version_is_that_of_the_package() -> None:
    done = anofel("--version")
    assert (done.returncode, done.stdout) == (0, f"anofel {version('anofel')}\n")


CASES = {
    "refused": (["privacy", "none.toml"], 1, "invalid-input"),
    "an option that is not there": (["privacy", "none.toml", "--quick"], 2, "wrong-usage"),
    "a command that is not there": (["privcy"], 2, "wrong-usage"),
    "an argument that is missing": (["predict", "a.model"], 2, "wrong-usage"),
    "a value that is none": (["simulate", "--clients", "many"], 2, "wrong-usage"),
    "options that do not go together": (["simulate", "--resume"], 2, "wrong-usage"),
    "an option without another": (["new", "wards", "--from", "rows.csv"], 2, "wrong-usage"),
    "a role that is not there, before a passphrase is asked for": (
        ["owner", "run", "nobody"],
        1,
        "role-directory",
    ),
    "a hash of another length": (
        ["model", "fetch", "http://127.0.0.1:1", "wards", "--genesis", "00"],
        2,
        "wrong-usage",
    ),
    "nobody answers": (["node", "status", "http://127.0.0.1:1"], 3, "peer-unreachable"),
}


@pytest.mark.parametrize(("words", "code", "error"), CASES.values(), ids=CASES)
def test_an_error_has_its_exit_code_and_is_json_for_programs(words: list[str], code: int, error: str) -> None:
    """One document on standard output and one sentence on standard error; for people the latter alone."""
    assert re.search(rf"^\| {code} \|", PAGE, re.M), "the page names the code"
    done = anofel(*words, "--json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert {name: document[name] for name in ("error", "exit_code")} == {"error": error, "exit_code": code}
    assert done.stderr == f"anofel: {document['message']}\n"
    for_people = anofel(*words)
    assert (for_people.returncode, for_people.stdout) == (code, "")
    assert "Traceback" not in for_people.stderr
    assert for_people.stderr.strip()


def test_a_prompt_that_nobody_answers_is_an_error_for_programs_too(tmp_path: Path) -> None:
    """The role's passphrase is asked for, and there is nobody at the terminal."""
    (tmp_path / "role.toml").write_text(
        f'role = "owner"\nboard = "https://b"\ngenesis = "{"0" * 64}"\n[settings]\n'
    )
    command = [sys.executable, "-m", "anofel", "owner", "run", str(tmp_path)]
    ended = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 600}
    done = subprocess.run([*command, "--json"], **ended)  # type: ignore[call-overload]
    assert (done.returncode, json.loads(done.stdout)["error"]) == (1, "aborted")
    assert done.stderr.endswith("Aborted.\n")
    for_people = subprocess.run(command, **ended)  # type: ignore[call-overload]
    assert (for_people.returncode, for_people.stdout) == (1, "")
    assert "Traceback" not in done.stderr + for_people.stderr


def completed(*words: str) -> list[str]:
    """What the shell offers after these words, the last of which is begun."""
    asked = {
        "_ANOFEL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["anofel", *words]),
        "COMP_CWORD": str(len(words)),
    }
    program = [sys.executable, "-c", "import sys; sys.argv = ['anofel']; from anofel.cli import main; main()"]
    done = subprocess.run(
        program, capture_output=True, text=True, timeout=600, env={**os.environ, **asked}, check=False
    )
    return done.stdout.split()


def test_names_of_studies_and_examples_are_completed() -> None:
    assert completed("study", "fetch", "sup") == ["support2"]
    assert completed("simulate", "--study", "nw") == ["nwtco"]
    assert "small" in completed("new", "trial", "--example", "")
    assert completed("study", "fetch", "zzz") == []


def commands(group: object, *words: str) -> list[tuple[str, ...]]:
    found = []
    for name, command in getattr(group, "commands", {}).items():
        found += [(*words, name), *commands(command, *words, name)]
    return found


def test_every_command_has_an_example_and_answers_programs() -> None:
    found = get_command(app)
    checked = 0
    for words in commands(found):
        command: Any = found
        for word in words:
            command = command.commands[word]
        if not hasattr(command, "commands"):
            checked += 1
            assert f"anofel {' '.join(words)} " in f"{command.help} ".replace("\\[", "["), words
            assert "Example" in command.help, words
            assert "--json" in [name for parameter in command.params for name in parameter.opts], words
            rows = [row.split(" | ")[0] for row in PAGE.splitlines() if row.startswith("| `anofel")]
            start = f"`anofel {' '.join(words[:-1])}".rstrip()
            name = rf"(?<![\w-]){words[-1]}(?![\w-])"
            assert any(start in row and re.search(name, row) for row in rows), f"docs/cli.md has no {words}"
    assert checked > 50


def test_ctrl_c_is_told_to_programs_too() -> None:
    """One document on standard output, and no stack trace, also while the command line is being imported."""
    begin = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = begin + (
        "import anofel.cli.study as study\n"
        "study.print_json = study.print_table = lambda *_: signal.raise_signal(signal.SIGINT)\n"
        "sys.argv = ['anofel', 'study', 'list', *sys.argv[1:]]\n"
        "from anofel.__main__ import run; run()"
    )
    importing = begin + (
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'anofel.cli': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['anofel', '--version']\n"
        "from anofel.__main__ import run; run()"
    )
    cases = ((command, ["--json"], "interrupted"), (command, [], ""), (importing, [], ""))
    for program, words, expected in cases:
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=600, check=False
        )
        assert (done.returncode, done.stderr) == (130, ""), words
        assert (json.loads(done.stdout)["error"] if done.stdout else "") == expected


def shown_help(*words: str, columns: int) -> list[str]:
    wide = {"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)}
    shown = CliRunner().invoke(app, [*words, "--help"], env=wide)
    assert shown.exit_code == 0
    return shown.output.splitlines()


def test_help_fits_60_columns_and_says_in_words_what_a_value_is() -> None:
    for words in commands(get_command(app)):
        lines = shown_help(*words, columns=60)
        assert [line for line in lines if len(line) > 60] == [], words
        text = "\n".join(lines)
        for name in ("<bool>", "<str>", "<int", "<float", "list[", "<=", "{"):
            assert name not in text, words


def test_help_fills_its_lines_and_keeps_square_brackets() -> None:
    """Rich takes ``[default: …]`` in a help text for markup, and a docstring breaks its lines anywhere."""
    for words in [(), *commands(get_command(app))]:
        command: Any = get_command(app)
        for word in words:
            command = command.commands[word]
        helps = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
        for text in filter(None, helps):
            assert "\n" not in text.replace("\n\n", ""), words
            assert Text.from_markup(text).plain == text.replace(r"\[", "["), words


def test_commands_stand_under_the_headings_of_the_documentation() -> None:
    nav = (Path(__file__).parents[1] / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    documented = [heading for heading in re.findall(r"^  - (.+?):", nav, re.M) if heading in HEADINGS]
    shown = re.findall(r"^╭─ (.+?) ─", "\n".join(shown_help(columns=80)), re.M)
    assert shown == ["Options", *documented] == ["Options", *HEADINGS]


def write_status(path: Path, role: str, kept: dict[str, object]) -> None:
    (path / "status.json").write_text(json.dumps(kept))
    words = f'role = "{role}"\nboard = "https://b"\ngenesis = "{"0" * 64}"\n[settings]\n'
    (path / "role.toml").write_text(words)


def iteration(number: int, **told: object) -> dict[str, object]:
    """What an owner writes down of an iteration."""
    nothing = {"metrics": None, "reported": None, "shortened": False, "rejected": False, "culprits": []}
    counted = {"iteration": number, "outcome": "summed", "count": 6, "groups": [6], "posts": 6}
    return counted | {"releases": number, "model": f"{number:064x}"} | nothing | told


def test_an_owner_sees_the_quality_of_its_models_at_60_columns(tmp_path: Path) -> None:
    measured = {"loss": 0.58861, "accuracy": 0.62252, "auc": 0.8941}
    nothing = {"outcome": "undecodable", "count": None, "groups": None}
    kept = {"epsilon": [], "iterations": [iteration(1, metrics=measured), iteration(2, **nothing)]}
    write_status(tmp_path, "owner", kept)
    lines = anofel("owner", "status", str(tmp_path), **TERMINAL).stdout.splitlines()
    assert max(map(len, lines[1:])) <= 60
    assert [line.split() for line in lines[-3:]] == [
        ["iteration", "outcome", "count", "posts", "accuracy", "auc", "loss"],
        ["1", "summed", "6", "6", "0.6225", "0.8941", "0.5886"],
        ["2", "undecodable", "–", "6", "–", "–", "–"],
    ]
    assert json.loads(anofel("owner", "status", str(tmp_path), "--json").stdout) == kept
    told = [iteration(1, groups=[3, 3], rejected=True, culprits=[2], reported={"loss": 0.6})]
    write_status(tmp_path, "owner", {"iterations": told})
    shown = [
        line.split() for line in anofel("owner", "status", str(tmp_path), **TERMINAL).stdout.splitlines()
    ]
    assert ["1", "summed", "6", "6", "3,", "3", "yes", "2"] in shown, "what is said of an iteration is shown"
    assert shown[-3:] == [["reported", "by", "clients"], ["iteration", "loss"], ["1", "0.6"]]


def test_a_client_reads_why_it_skipped_at_60_columns(tmp_path: Path) -> None:
    reason = "The client was not there at the drawn time."
    posted = {"bundle": 0, "iteration": 1, "cover": False, "posted": True, "skipped": "", "reason": ""}
    late = posted | {"iteration": 2, "posted": False, "skipped": "late", "reason": reason}
    turns = [posted | {"outcome": "summed"}, late | {"outcome": "too-few"}]
    write_status(tmp_path, "client", {"iterations": turns})
    lines = anofel("client", "status", str(tmp_path), **TERMINAL).stdout.splitlines()
    assert max(map(len, lines[1:])) <= 60
    assert ["2", "no", "late", "too-few"] in [line.split() for line in lines]
    assert lines[-1].rstrip().split(maxsplit=1) == ["2", reason], "in one line"


def test_status_is_for_people_and_fits_60_columns(tmp_path: Path) -> None:
    """No epoch seconds, no Python None, ids that do not fold a table; programs get all of it."""
    ids = [f"{number:064x}" for number in (1, 2)]
    rows = [{"committee": name, "member": 2, "has_share": True, "task": None} for name in ids]
    kept = {"time": 1_795_033_907, "height": 573, "waits_for": "a task", "trouble": "", "committees": rows}
    write_status(tmp_path, "aggregator", kept)
    shown = anofel("aggregator", "status", str(tmp_path), **TERMINAL).stdout
    assert "2026-11-18 20:31:47 UTC" in shown
    assert "None" not in shown
    lines = [line.rstrip() for line in shown.splitlines()]
    assert [line.split() for line in lines[-2:]] == [[f"{name[:16]}…", "2", "yes", "–"] for name in ids]
    assert all(len(line) <= 60 for line in lines[1:]), "but for the title, which names a path"
    assert json.loads(anofel("aggregator", "status", str(tmp_path), "--json").stdout) == kept


def test_square_brackets_in_what_is_said_stay(capsys: pytest.CaptureFixture[str]) -> None:
    for say in (note, print_text):
        say("pip install 'anofel[demo]'")
    print_table("anofel[demo]", ["[bold]"], [["[red]x[/red]"]])
    said = capsys.readouterr()
    assert said.err == "pip install 'anofel[demo]'\n"
    assert said.out.split() == ["pip", "install", "'anofel[demo]'", "anofel[demo]", "[bold]", "[red]x[/red]"]


def test_columns_of_a_table_move_closer_before_a_cell_folds() -> None:
    words = ["iteration", "outcome", "count", "posts", "ε", "accuracy", "auc", "loss"]
    cells = ["1", "summed", "4", "4", "0.386", "0.6844", "0.8561", "0.5911"]
    script = f"from anofel.cli.output import print_table; print_table('A title', {words}, [{cells}])"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **TERMINAL}
    )
    lines = shown.stdout.splitlines()
    assert [line.split() for line in lines] == [["A", "title"], words, cells], shown.stderr
    assert max(map(len, lines)) <= 60
