"""``anofel game``: names, refusals in one sentence, and a play."""

import json

import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.games.adversaries.catalogue import CATALOGUE
from anofel.games.put_back import CATALOGUE as WEAKENINGS
from anofel.proofs.keys import KeyDirectory


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["game", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_everything_that_can_be_played_is_listed() -> None:
    found = json.loads(run("list", "--json"))
    assert [entry["name"] for entry in found["adversaries"]] == [entry.name for entry in CATALOGUE]
    assert [entry["name"] for entry in found["weakenings"]] == [entry.name for entry in WEAKENINGS]
    assert "post-when-ready" in run("list")


def test_unknown_names_are_refused_before_anything_is_made() -> None:
    with pytest.raises(InvalidInput, match="No adversary of this game"):
        run("dind", "--adversary", "post-time")
    with pytest.raises(InvalidInput, match="There is no weakening 'nothing'"):
        run("anon", "--adversary", "post-time", "--weaken", "nothing")


@pytest.mark.slow
def test_a_game_from_the_shell(keys: KeyDirectory) -> None:
    words = ("--adversary", "message-key", "--plays", "2", "--keys", str(keys.path), "--json")
    found = json.loads(run("anon", *words, "--weaken", "one-key"))
    assert (found["wins"], found["plays"], found["bound"]) == (2, 2, 0.5)
    assert found["verdict"] == "within the bound", "two plays prove nothing"
