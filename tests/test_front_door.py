"""``import anofel`` gives what a user needs, lazily, and the documentation lists it."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import anofel

ROOT = Path(__file__).parents[1]
NEEDED = {"Task", "Simulation", "LightClient", "Auditor", "IntegerModel", "__version__"}


@pytest.mark.parametrize("name", anofel.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(anofel, name) is getattr(anofel, name)
    assert name in dir(anofel)


def test_what_a_user_needs_is_among_them() -> None:
    assert set(anofel.__all__) >= NEEDED
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", anofel.__version__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Tsak'"):
        anofel.Tsak  # noqa: B018


def test_types_homes_and_names_agree() -> None:
    """A type checker reads other lines than the interpreter; they say the same."""
    tree = ast.parse((ROOT / "src/anofel/__init__.py").read_text())
    typed = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == anofel._HOME_OF
    assert sorted([*typed, "__version__"]) == sorted(anofel.__all__)
    for name, home in typed.items():
        assert getattr(import_module(home), name) is getattr(anofel, name)


def test_the_page_lists_every_name() -> None:
    page = (ROOT / "docs/python-api.md").read_text()
    table = page.partition("## The names")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(anofel.__all__)


def test_importing_anofel_imports_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import anofel; print(*(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in result.stdout.split()} - {
        "anofel",
        *sys.stdlib_module_names,
    }
    assert not [name for name in result.stdout.split() if name.startswith("anofel.")]
