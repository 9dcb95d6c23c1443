"""Every rule has a sentence in the documentation and a test; so has every state."""

import re
from pathlib import Path

from anofel.board import rules
from anofel.board.rule import RULES
from anofel.board.state import Phase, Progress
from anofel.messages.postings import _BODIES

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "board-rules.md").read_text()


def test_the_page_and_the_program_have_the_same_rules_in_the_same_words() -> None:
    page = re.findall(r"^- \*\*([a-z]+ \d+)\*\* `([a-z-]+)`: (.+)$", PAGE, re.M)
    assert page == [(rule.number, rule.code, rule.sentence) for rule in RULES.values()]


def test_every_rule_has_a_test_in_which_it_fails() -> None:
    tests = "\n".join(path.read_text() for path in HERE.glob("test_rules_*.py"))
    tested = set(re.findall(r'(?:refused|alone)\(\s*\w+,\s*"([a-z-]+)"', tests))
    assert tested == set(RULES)


def test_rules_of_a_group_are_numbered_without_gaps() -> None:
    groups: dict[str, list[int]] = {}
    for rule in RULES.values():
        group, number = rule.number.split()
        groups.setdefault(group, []).append(int(number))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in groups.values())


def test_every_state_is_in_the_tables() -> None:
    rows = set(re.findall(r"^\| \*([a-z-]+)\* \|", PAGE, re.M))
    assert rows == {state.value for state in (*Phase, *Progress)}


def test_every_kind_has_a_handler_and_a_limit() -> None:
    assert set(rules.HANDLERS) == set(_BODIES.values())
    for number, body in _BODIES.items():
        assert rules.max_bytes_of(bytes([1, number])) == rules.HANDLERS[body].max_bytes
