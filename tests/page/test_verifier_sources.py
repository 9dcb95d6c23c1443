"""What the verifier page and the package say must be the same: rules, lists, limits of kinds."""

import re
import sys
from pathlib import Path

import pytest

from anofel._core.messages import kinds
from anofel.board.rule import RULES
from anofel.board.rules import HANDLERS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "verifier" / "src"
sys.path.insert(0, str(ROOT / "tools"))

import verifier  # noqa: E402


def test_every_rule_has_the_same_number_and_words() -> None:
    text = (SOURCE / "rules.js").read_text("utf-8")
    found = re.findall(r'^  "(.*)": \["(.*)", "(.*)"\],$', text, re.MULTILINE)
    assert found == [(code, rule.number, rule.sentence) for code, rule in RULES.items()]


def test_every_kind_has_the_same_number_length_and_purposes() -> None:
    text = (SOURCE / "admission.js").read_text("utf-8")
    found = {
        name: (int(number), eval(most, {"KIB": 1024}), re.findall(r'"(\w+)"', purposes))
        for name, number, most, purposes in re.findall(
            r"^  (\w+): \{ number: (\d+), handler: \w+, most: ([\w *]+), purposes: \[(.*)\] \},$",
            text,
            re.MULTILINE,
        )
    }
    names = {name: number for number, name, _ in kinds()}
    assert found == {
        body.__name__: (names[body.__name__], handler.max_bytes, [one.value for one in handler.purposes])
        for body, handler in HANDLERS.items()
    }


def test_every_code_that_is_used_is_a_rule() -> None:
    used = set()
    for name in ("admission", "chain"):
        text = (SOURCE / f"{name}.js").read_text("utf-8")
        used |= set(re.findall(r'Rejected\("([a-z-]+)"', text))
        used |= set(re.findall(r'require\([^;]*?"([a-z-]+-[a-z-]+)"[,)]', text, re.DOTALL))
    assert used <= set(RULES), used - set(RULES)
    assert len(used) > 40


def test_the_documentation_lists_what_is_checked_in_the_same_words() -> None:
    text = (SOURCE / "audit.js").read_text("utf-8")
    lists = re.findall(r"export const (?:NOT_)?CHECKED = \[\n(.*?)\n\];", text, re.DOTALL)
    said = [line for part in lists for line in re.findall(r'^  "(.*)",$', part, re.MULTILINE)]
    page = (ROOT / "docs" / "verifier.md").read_text("utf-8")
    shown = page.split("<!-- checked: verifier/src/audit.js -->")[1].split("<!-- end of checked -->")[0]
    assert re.findall(r"^- (.*)$", shown, re.MULTILINE) == said


def test_the_parts_are_laid_in_the_order_in_which_they_need_each_other() -> None:
    known: set[str] = set()
    for name in verifier.ENGINE:
        text = (SOURCE / f"{name}.js").read_text("utf-8")
        assert set(re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.MULTILINE)) <= known, name
        known.add(name)
    assert known == {path.stem for path in SOURCE.glob("*.js")}


def test_nothing_of_the_page_becomes_html() -> None:
    for path in [*SOURCE.glob("*.js"), ROOT / "verifier" / "page.js"]:
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text
        ), path


def test_the_page_runs_its_own_script_alone() -> None:
    made = verifier.page(b"\0asm", "// glue")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe-inline" not in policy[1]
    assert not re.search(r'(src|href)="(?!#)', made)


@pytest.mark.parametrize("mark", ["POLICY", "STYLE", "ENGINE", "WASM", "SCRIPT"])
def test_the_page_has_a_place_for_each_part(mark: str) -> None:
    assert (ROOT / "verifier" / "page.html").read_text("utf-8").count(f"@{mark}@") == 1
