"""The views have the fields of the layouts, and the page has their tables."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel import messages
from anofel._core import messages as core
from anofel.errors import InvalidInput, MalformedMessage
from anofel.messages import Blob, ChainAuthor, EndTask, KeyAuthor, Posting, Receipt, Vote, make_posting

PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text()
GENESIS = b"g" * 32
END = EndTask(task=b"t" * 32)
CHAIN = ChainAuthor((b"leaf", b"issuer"))


def sign(data: bytes) -> bytes:
    return b"s" * 64


@pytest.mark.parametrize("name", core.layouts())
def test_a_view_has_the_fields_of_its_layout(name: str) -> None:
    view = getattr(messages, name)
    assert [field.name for field in dataclasses.fields(view)] == [field for field, _ in core.layout(name)]


def test_there_is_a_view_for_each_layout_and_no_other() -> None:
    views = {
        name
        for name in messages.__all__
        if isinstance(view := getattr(messages, name), type) and issubclass(view, messages.View)
    }
    assert views - {"View"} == set(core.layouts())


@pytest.mark.parametrize("name", core.layouts())
def test_the_page_has_the_table_of_the_layout(name: str) -> None:
    section = PAGE.split(f"\n### {name}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| (\w+) \| (.+?) \| .+ \|$", section, re.M)
    assert rows == [("field", "type"), *core.layout(name)]


def test_the_page_has_no_other_layouts_and_all_kinds() -> None:
    assert re.findall(r"^### (.+)$", PAGE, re.M) == core.layouts()
    kinds = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \|$", PAGE, re.M)
    assert [(int(number), name, author) for number, name, author in kinds] == core.kinds()


def test_the_page_names_every_prefix() -> None:
    sources = Path(messages.__file__).parent.glob("*.py")
    used = {text for file in sources for text in re.findall(r'b"(anofel/1/[^"]+)"', file.read_text())}
    assert set(re.findall(r"`(anofel/1/[a-z-]+)`", PAGE)) == used


def test_a_posting_is_what_was_signed_for_one_board() -> None:
    seen = []
    posting = make_posting(END, CHAIN, GENESIS, lambda data: seen.append(data) or sign(data))
    assert seen == [b"anofel/1/posting" + GENESIS + posting.content]
    assert posting.data == posting.content + sign(b"")
    assert (posting.body, posting.author, posting.kind) == (END, CHAIN, 13)
    assert Posting.from_bytes(posting.data) == posting


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: make_posting(END, KeyAuthor(bytes(32)), GENESIS, sign),
            "EndTask.author: the value must be a list",
        ),
        (
            lambda: make_posting(END, CHAIN, GENESIS, lambda _: b"short"),
            "EndTask.signature: 5 bytes instead of 64",
        ),
        (
            lambda: Vote(validator=-1, signature=bytes(64)).to_bytes(),
            "Vote.validator: the number is out of range",
        ),
        (lambda: Vote(validator=2**70, signature=bytes(64)).to_bytes(), "Vote.validator: the number is out"),
        (
            lambda: Vote(validator=True, signature=bytes(64)).to_bytes(),
            "Vote.validator: the value must be a number",
        ),
        (lambda: Vote(validator=1, signature=None).to_bytes(), "Vote.signature: the value must be bytes"),  # type: ignore[arg-type]
        (lambda: core.encode("Vote", (1,)), "Vote: the record has 1 values instead of 2"),
        (lambda: core.encode("Vote", 7), "Vote: the value must be a record"),  # type: ignore[arg-type]
        (
            lambda: core.encode("RevokeCertifier", (bytes(64), 1)),
            "RevokeCertifier.new_epoch: the value must be a flag",
        ),
        (
            lambda: Blob(
                sha256=bytes(32), length=1, receipts=(Receipt(holder=1, expires=1, signature=b""),)
            ).to_bytes(),
            "Blob.receipts[0].signature: 0 bytes instead of 64",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(make, message: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_a_text_with_a_lone_surrogate_is_refused() -> None:
    values = [b"" if kind == "text(64)" else 0 for _, kind in core.layout("Genesis")]
    values[1] = "\ud800"
    with pytest.raises(MalformedMessage, match="Genesis.name: the text is not UTF-8"):
        core.encode("Genesis", values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: core.decode("Nothing", b""),
        lambda: core.layout("Nothing"),
        lambda: core.encode_posting(99, (), ()),
        lambda: core.encode_posting(-1, (), ()),
        lambda: make_posting(Vote(validator=1, signature=bytes(64)), CHAIN, GENESIS, sign),  # type: ignore[arg-type]
        lambda: make_posting(END, CHAIN, b"short", sign),
        lambda: messages.receipt_bytes(GENESIS, b"short", 1, 1),
        lambda: messages.receipt_bytes(GENESIS, bytes(32), -1, 1),
        lambda: messages.receipt_bytes(GENESIS, bytes(32), 1, 2**64),
    ],
)
def test_a_wrong_use_has_a_named_error(make) -> None:
    with pytest.raises(InvalidInput):
        make()


@given(st.binary(max_size=400), st.sampled_from([None, *core.layouts()]))
def test_random_bytes_are_refused_or_come_back(data: bytes, name: str | None) -> None:
    try:
        again = (
            Posting.from_bytes(data).data
            if name is None
            else getattr(messages, name).from_bytes(data).to_bytes()
        )
    except MalformedMessage:
        return
    assert again == data
