"""The documents and the code say the same, in the same words."""

import re
from pathlib import Path
from typing import Any

import pytest

import anofel
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import board_run

ROOT = Path(__file__).parent.parent
STATEMENTS = ROOT / "crates" / "anofel-circuits" / "src" / "statements"


@pytest.mark.parametrize("statement", ["ownership", "registration", "submission"])
def test_every_clause_is_a_heading_in_the_same_words(statement: str) -> None:
    code = (STATEMENTS / f"{statement}.rs").read_text()
    clauses = re.findall(r'Clause\s*=\s*"([^"]+)"', code)
    headings = re.findall(rf"^### ({statement} .+)$", (ROOT / "docs" / "statements.md").read_text(), re.M)
    assert clauses == headings


def test_every_domain_and_prefix_is_documented() -> None:
    documented = set(re.findall(r"`(anofel/1/[a-z0-9-]+)`", (ROOT / "docs" / "primitives.md").read_text()))
    source = ROOT / "crates" / "anofel-primitives" / "src"
    used = {
        text
        for file in ("hash.rs", "field.rs")
        for text in re.findall(r'"(anofel/1/[^"]+)"', (source / file).read_text())
    }
    assert documented == used


def test_every_page_is_in_the_navigation() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    listed = re.findall(r"^ +- (?:Home: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(pages) == sorted(listed)


def test_the_reference_has_every_name_of_the_front_door() -> None:
    listed = re.findall(r"^::: anofel\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert listed == [name for name in anofel.__all__ if name != "__version__"]


def test_the_python_of_the_readme_trains_a_model(keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ("README.md", "docs/python-api.md")
    program, again = (
        re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)[0] for page in pages
    )
    assert program == again
    assert len([line for line in program.splitlines() if line]) <= 20
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(board_run, "make_insecure_development_keys", lambda _path: keys)
    names: dict[str, Any] = {}
    exec(program.replace("iterations=3", "iterations=1"), names)
    assert names["model"].values.any()


@pytest.mark.parametrize("module", ["learning/pytorch/module.py", "learning/build.py"])
def test_the_rules_about_trainers_are_in_the_same_words(module: str) -> None:
    docstring = (ROOT / "src" / "anofel" / module).read_text().split('"""')[1].replace("``", "`")
    listed = re.findall(r"^\d\. (.+?)(?=^\d\. |^$|\Z)", docstring, re.M | re.S)
    page = " ".join((ROOT / "docs" / "networks.md").read_text().split())
    assert len(listed) >= 3
    for number, rule in enumerate(listed, start=1):
        assert f"{number}. {' '.join(rule.split())}" in page
