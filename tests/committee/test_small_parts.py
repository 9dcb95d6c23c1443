"""The names of the schemes, and the fixed layouts."""

import pytest

from anofel.committee import schemes
from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee
from anofel.committee.interface import Handover, KeyGeneration, Scheme
from anofel.framing import Reader, Writer


def test_every_scheme_has_its_name_and_offers_the_interface() -> None:
    assert schemes.DEFAULT in schemes.NAMES
    for name in schemes.NAMES:
        scheme: Scheme = schemes.by_name(name)
        generation: KeyGeneration = scheme.key_generation()
        handover: Handover = scheme.handover()
        assert scheme.name == name
        assert 0 < generation.min_rounds <= generation.max_rounds(CommitteeShape(num_members=3, threshold=2))
        assert handover is not None


def test_another_scheme_is_refused() -> None:
    with pytest.raises(InvalidCommittee, match="There is no scheme rot13"):
        schemes.by_name("rot13")


def test_what_is_written_is_read_and_nothing_else() -> None:
    data = Writer().number(7, 2).raw(b"ab").framed(b"cde").done()
    reader = Reader(data)
    assert (reader.number(2), reader.raw(2), reader.framed()) == (7, b"ab", b"cde")
    reader.end()
    with pytest.raises(ValueError, match="too early"):
        Reader(data[:-1]).raw(len(data))
    with pytest.raises(ValueError, match="left over"):
        Reader(data).end()
