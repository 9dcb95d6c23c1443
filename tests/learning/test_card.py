"""The card of a model: one text for people and tools, in which a name is never markup."""

import json
import re
from dataclasses import replace

from anofel.models.card import CardIteration, Course, model_card
from anofel.tasks.task import Task

EVIL = 'x"\n---\n<script>alert(1)</script> | [a](javascript:b)'


def course() -> Course:
    return Course(
        board="b",
        genesis="ab" * 32,
        height=7,
        task_id="cd" * 32,
        owner=EVIL,
        committee=["one", EVIL],
        threshold=2,
        releases=3,
        epsilon_zero_out=0.5,
        iterations=[CardIteration(number=1, outcome="summed", count=12)],
        insecure=["test certificate authority"],
    )


def head_of(card: str) -> dict[str, object]:
    """Read the head as tools do: lines of a name and a JSON value, which is YAML too."""
    _, head, _ = card.split("---\n", 2)
    lines = [line.strip().partition(": ") for line in head.splitlines() if not line.endswith(":")]
    return {name: json.loads(value) for name, _, value in lines}


def test_a_card_says_what_the_board_says() -> None:
    task = Task.example("support2")
    card = model_card(task, digest="ef" * 32, course=course())
    head = head_of(card)
    assert head["task_digest"] == task.digest().hex()
    assert head["model_sha256"] == "ef" * 32
    assert (head["genesis"], head["height"], head["epsilon"]) == ("ab" * 32, 7, 0.5)
    assert (head["delta"], head["unit"]) == (str(task.privacy.delta), task.privacy.unit)
    assert head["min_clients"] == task.privacy.min_clients
    assert "| 1 | summed | 12 |" in card
    assert "INSECURE" in card


def test_names_on_a_card_are_text() -> None:
    task = replace(Task.example("support2"), name=EVIL, study=EVIL)
    card = model_card(task, course=replace(course(), board=EVIL))
    assert card.count("\n---\n") == 1  # nobody ends the head or begins another
    assert "<" not in re.sub(r"&#\d+;", "", card.split("\n---\n", 1)[1])
    assert not re.search(r"(?<!\\)\]\(", card.split("\n---\n", 1)[1])
    assert head_of(card)["task"] == EVIL


def test_without_a_board_a_card_says_that_nobody_can_check_it() -> None:
    card = model_card(Task.example("support2"))
    assert "comes from no board" in card
    assert head_of(card)["epsilon"] is None
