"""Every domain tag of the package, in Python and Rust, has one spelling and one use."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAG = re.compile(r'"(anofel/[^"\s]*)"')
FORM = re.compile(r"anofel/1(/[a-z0-9]+(-[a-z0-9]+)*)+(/\{\w+\})?(\\x00)?")
NOT_A_TAG = {"anofel/1"}
"""The first eight bytes of a node's ``signed.bin``; a file's mark, not a tag."""


def tags() -> list[str]:
    sources = [*ROOT.glob("src/anofel/**/*.py"), *ROOT.glob("crates/*/src/**/*.rs")]
    code = (file.read_text() for file in sources if not file.stem.endswith("_tests"))
    return [tag for text in code for tag in TAG.findall(text) if tag not in NOT_A_TAG]


def test_every_domain_tag_has_the_one_form() -> None:
    found = tags()
    assert len(found) > 50
    assert [tag for tag in found if not FORM.fullmatch(tag)] == []


def test_no_domain_tag_stands_for_two_things() -> None:
    assert [tag for tag, uses in Counter(tags()).items() if uses > 1] == []
