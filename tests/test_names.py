"""The name of a class, or of a type that stands for others, means one thing in Python and in Rust."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "anofel"
OPTIONS = PACKAGE / "cli"
"""Its types are options of commands, one file for each group."""
EXAMPLES = PACKAGE / "tasks" / "examples"
NOT_TYPES = ("TypeVar", "NewType")


def classes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno


def aliases(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Public names in CapWords that a module gives to types; private ones are seen nowhere else."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Subscript | ast.BinOp):
            continue
        if target.id[0].isupper() and not target.id.isupper():
            yield target.id, node.lineno


def test_no_name_of_a_type_is_defined_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        tree, where = ast.parse(path.read_text()), path.relative_to(PACKAGE)
        found = list(classes(tree))
        if OPTIONS not in path.parents and EXAMPLES not in path.parents:
            found += aliases(tree)
        for name, line in found:
            places[name].append(f"{where}:{line}")
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
