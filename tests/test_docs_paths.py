"""Every path and module that a document or a docstring cites exists; the figure and the lists are true."""

import importlib
import re
import runpy
import tomllib
from functools import cache
from pathlib import Path

import pytest

from anofel import messages

ROOT = Path(__file__).parents[1]
FOLDERS = "src|crates|tests|docs|examples|bench|tools|vectors|requirements"
PATH = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./*-]*[\w*/])")
MODULE = re.compile(r"(?<![\w./-])anofel(?:\.[A-Za-z_]\w*)+")
TAG = re.compile(r"\.v\d+$|^anofel\.(dataset|model)$")
"""Domain tags and names inside files: they look like modules and are none."""
MADE = {"docs/results", "tests/results"}
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(
        ROOT / name
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md")
    ),
]
SOURCES = [
    path
    for folder in ("src", "crates", "tests", "examples", "bench", "tools", "vectors")
    for ending in ("*.py", "*.pyi", "*.rs")
    for path in sorted((ROOT / folder).rglob(ending))
    if path != Path(__file__) and "node_modules" not in path.parts
]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def module_exists(name: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT / "src" / Path(*parts[:length])
        if base.is_dir() or base.with_suffix(".py").is_file():
            found: object = (
                None if length == len(parts) else importlib.import_module(".".join(parts[:length]))
            )
            for part in parts[length:]:
                if not hasattr(found, part):
                    return part in getattr(found, "__dataclass_fields__", {})
                found = getattr(found, part)
            return True
    return False


def missing_paths(text: str) -> list[str]:
    cited = {found.rstrip("/") for found in PATH.findall(text)}
    return sorted(path for path in cited if path not in MADE and not any(ROOT.glob(path)))


def missing_modules(text: str) -> list[str]:
    return sorted({name for name in MODULE.findall(text) if not TAG.search(name) and not module_exists(name)})


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_cited_path_exists(page: Path) -> None:
    text = page.read_text()
    assert missing_paths(text) == []
    assert missing_modules(text) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_import_in_a_document_works(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    for module, names in re.findall(r"^from (anofel\S*) import ([\w, ]+)$", "\n".join(blocks), re.M):
        for name in names.split(", "):
            assert module_exists(f"{module}.{name}")


def test_every_cited_page_and_path_in_the_sources_exists() -> None:
    pattern = re.compile(rf"``((?:{FOLDERS})/[\w./-]*\w)``|`((?:{FOLDERS})/[\w./-]*\w)`")
    found = {
        (named(path), cited)
        for path in SOURCES
        for pair in pattern.findall(path.read_text())
        for cited in pair
        if cited and not (ROOT / cited).exists()
    }
    assert found == set()


def test_nothing_refers_to_what_is_not_in_the_repository() -> None:
    absent = re.compile(r"\bDESIGN\b|\bSTYLE\.md|(?<![\w/-])research/")
    files = [*PAGES, *SOURCES, ROOT / "Makefile", ROOT / "pyproject.toml"]
    assert [named(path) for path in files if absent.search(path.read_text())] == []


def test_the_check_itself_sees_what_is_missing() -> None:
    assert missing_paths("see `src/anofel/nowhere.py`, docs/index.md and `tests/board`") == [
        "src/anofel/nowhere.py"
    ]
    assert missing_modules("`anofel.tasks.task.Task` and anofel.tasks.gone, anofel.task.v1") == [
        "anofel.tasks.gone"
    ]


def test_every_step_and_list_of_the_architecture_names_a_file() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert len(re.findall(r'^\| <a id="step-', page, re.M)) == 11
    lists = re.split(r"^## ", page, flags=re.M)[1:4]
    assert [part.partition("\n")[0] for part in lists] == [
        "The way of an update",
        "The way of a posting",
        "The way of a key",
    ]
    for part in lists:
        lines = re.findall(r"^\d+\. .*$", part, re.M)
        assert len(lines) >= 8
        assert all(re.match(r"\d+\. `src/anofel/\S+\.py`: ", line) for line in lines)


def test_the_figure_is_drawn_from_the_page() -> None:
    tool = runpy.run_path(str(ROOT / "tools/architecture.py"))
    page, figure = (ROOT / "docs/architecture.md").read_text(), (ROOT / "docs/architecture.svg").read_text()
    assert tool["draw"](tool["read_steps"](page)) == figure, "run python tools/architecture.py"
    anchors = re.findall(r'href="architecture\.html#([\w-]+)"', figure)
    assert len(anchors) == 11
    assert all(f'<a id="{anchor}"></a>' in page for anchor in anchors)
    shown = [*tool["POSTINGS"], *", ".join(tool["MORE"].values()).split(", ")]
    assert all(hasattr(messages, name) for name in shown)


def test_every_folder_of_the_tests_is_named() -> None:
    listed = re.findall(r"^\| `tests/([a-z]+)` \|", (ROOT / "tests/README.md").read_text(), re.M)
    folders = [
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"
    ]
    assert sorted(listed) == sorted(folders)


def test_every_package_and_crate_is_in_the_table_of_the_readme() -> None:
    table = (ROOT / "README.md").read_text().partition("## Where things are")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`src/anofel/(\w+)(?:\.py)?`", table))
    inside = (path for path in (ROOT / "src/anofel").iterdir() if not path.name.startswith("_"))
    assert listed == {path.stem for path in inside if path.is_dir() or path.suffix == ".py"}
    crates = set(re.findall(r"`crates/([\w-]+)`", table))
    assert crates == {path.name for path in (ROOT / "crates").iterdir()}


def test_the_architecture_lists_every_package_in_the_order_of_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [name for layer in contracts[0]["layers"] for name in layer.split(" : ")]
    table = (ROOT / "docs/architecture.md").read_text().partition("## Packages")[2]
    assert re.findall(r"^\| `(anofel\.\w+)` \|", table, re.M) == layers
    source = ROOT / "src"
    packages = {
        ".".join(path.parent.relative_to(source).parts) for path in (source / "anofel").rglob("__init__.py")
    }
    named = set(re.findall(r"`(anofel\.[\w.]+)`", table))
    assert packages - {"anofel", "anofel._core"} <= named


def test_every_page_is_reachable_from_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text()
    listed = set(re.findall(r"\]\(([\w-]+\.md)", index)) | {"index.md"}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == listed
