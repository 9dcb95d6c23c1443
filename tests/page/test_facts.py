"""The page says what the board says."""

import asyncio
from typing import get_args

import pytest

from anofel.board.rule import RULES
from anofel.board.waits import duration
from anofel.look.sources import BoardOnDisk
from anofel.messages import Aggregate, CountShare, EndIteration, Model, Posting, RejectModel, SumShare
from anofel.messages.postings import Body
from anofel.page.charts import line_chart
from anofel.page.facts import BoardFacts
from anofel.page.figure import figure
from anofel.page.iterations import iteration_postings
from anofel.page.postings import posting_facts, rules_of
from anofel.page.source import summaries
from anofel.page.words import STEPS, every, many, size
from anofel.proofs.keys import KeyDirectory
from tests.board.committee import CommitteeBoard


def facts_of(board: BoardOnDisk) -> BoardFacts:
    return asyncio.run(board.facts())


def test_numbers_are_those_of_the_state(board: BoardOnDisk) -> None:
    facts = facts_of(board)
    assert (facts.registered, facts.epoch, len(facts.studies), len(facts.committees)) == (5, 0, 2, 2)
    assert [one.in_force for one in facts.certifiers].count(False) == 1
    [bundle] = facts.bundles
    assert (bundle.phase, bundle.iteration, bundle.num_clients) == ("waiting", 2, 5)
    done = [[(m.sum_stated, m.count_share, m.sum_share) for m in seat.members] for seat in bundle.seats]
    nobody = (False, False, False)
    assert done == [[(True, True, True)] * 2 + [nobody], [(True, True, False)] * 2 + [nobody]]
    first, second = facts.studies
    assert [(one.iteration, one.outcome, one.count) for one in first.outcomes] == [
        (1, "summed", 2),
        (2, "summed", 2),
    ]
    assert [one.outcome for one in second.outcomes] == ["summed", "too-few"]
    assert first.outcomes[0].epsilon == second.epsilon_zero_out
    assert first.epsilon_zero_out is None, "its owner stated nothing after the second sum"
    assert second.ended
    assert not first.ended


def test_every_kind_of_posting_is_shown_with_all_its_fields(board: BoardOnDisk) -> None:
    seen = set()
    for height in range(1, board.height + 1):
        block = board.block(height)
        assert block is not None
        for place, data in enumerate(block.postings):
            posting = Posting.from_bytes(data)
            facts = posting_facts(posting, height, place)
            seen.add(facts.kind)
            shown = {field.name.split(" ")[0].split(".")[0] for field in facts.fields}
            assert shown == set(type(posting.body).__dataclass_fields__)
            assert facts.rules
    assert seen == {body.__name__ for body in get_args(Body)} - {"ChangeValidators", "SignChange"}


def test_a_change_of_validators_is_shown_with_all_its_fields(keys: KeyDirectory) -> None:
    board = CommitteeBoard(keys)
    change = board.change(1, board.seats[1].with_new_key().entry(board.genesis.nonce))
    for posting in (board.proposal(0, change), board.signature(2, change)):
        facts = posting_facts(posting, 1, 0)
        shown = {field.name.split(" ")[0].split(".")[0] for field in facts.fields}
        assert shown == set(type(posting.body).__dataclass_fields__)
        assert {rule.number.split()[0] for rule in facts.rules} >= {"posting", "validator"}


def test_rules_are_those_of_the_board_and_none_is_left_out() -> None:
    shown = {rule.number: rule for kind in STEPS for rule in rules_of(kind)}
    assert shown.keys() == {rule.number for rule in RULES.values()}
    assert all(shown[rule.number].sentence == rule.sentence for rule in RULES.values())


def test_an_arrow_is_lit_by_its_postings_only(board: BoardOnDisk) -> None:
    listed = summaries(board, board.height + 1, 100)
    [kinds] = [block for block in listed if [one.kind for one in block.postings] == ["EndTask"]][:1]
    assert [arrow.step for arrow in figure([kinds]) if arrow.lit] == ["8′"]
    assert sum(arrow.lit for arrow in figure(listed)) == sum(len(block.postings) for block in listed)
    newest = {arrow.step: arrow.last for arrow in figure(listed)}
    assert newest["8′"] == max(block.height for block in listed if block.postings)
    assert newest["1.b"] < newest["5"] < newest["6"] < newest["8"] < newest["8′"]


def test_a_chart_holds_its_points_inside_its_box() -> None:
    for values in ([3.0], [1.0, 1.0], [-2.0, 1e6], [0.1, 0.9, 0.5]):
        chart = line_chart("values", list(enumerate(values, start=1)))
        assert chart is not None
        assert all(chart.left <= x <= chart.right for x, _, _ in chart.points)
        assert all(0 <= y <= chart.bottom for _, y, _ in chart.points)
        assert min(row.at for row in chart.rows) <= min(y for _, y, _ in chart.points) + 0.1
        assert max(row.at for row in chart.rows) >= max(y for _, y, _ in chart.points) - 0.1
    assert line_chart("nothing", []) is None


def test_what_is_counted_begins_at_zero_and_has_no_parts() -> None:
    for values in ([2.0, 2.0], [0.0], [1.0], [3.0, 7.0, 512.0]):
        chart = line_chart("numbers", list(enumerate(values, start=1)), whole=True)
        assert chart is not None
        assert chart.rows[0].words == "0"
        assert all(float(row.words).is_integer() for row in chart.rows)
        assert float(chart.rows[-1].words) >= max(1.0, *values)


def test_words_for_times_and_sizes() -> None:
    assert [duration(s) for s in (-1, 1, 119, 121, 7300, 200_000)] == [
        "0 seconds",
        "1 second",
        "119 seconds",
        "2 minutes",
        "2 hours",
        "2 days",
    ]
    assert [every(s) for s in (0.1, 1, 5, 300)] == [
        "every 0.1 seconds",
        "every second",
        "every 5 seconds",
        "every 5 minutes",
    ]
    assert [many(n, "block") for n in (0, 1, 2)] == ["0 blocks", "1 block", "2 blocks"]
    assert [size(n) for n in (1, 1500, 2_500_000)] == ["1 bytes", "1.5 kB", "2.5 MB"]


def test_an_iteration_leads_to_the_postings_of_owner_and_committee_that_decided_it(
    board: BoardOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: dict[tuple[str, int], list[str]] = {}
    for height in range(1, board.height + 1):
        block = board.block(height)
        assert block is not None
        for posting in map(Posting.from_bytes, block.postings):
            if isinstance(posting.body, (Model, EndIteration, Aggregate, CountShare, SumShare, RejectModel)):
                name = posting.body.task.hex(), posting.body.iteration
                expected.setdefault(name, []).append(posting.id.hex())
    kinds = set()
    for study in facts_of(board).studies:
        for outcome in study.outcomes:
            found = iteration_postings(board, study, outcome)
            kinds |= {one.kind for one in found.postings}
            assert found.complete
            assert [one.id for one in found.postings] == expected.get((study.task, outcome.iteration), [])
    assert kinds == {"Model", "EndIteration", "Aggregate", "CountShare", "SumShare", "RejectModel"}
    # Blocks far from where an iteration opened, closed and was over are left out, and this is said.
    monkeypatch.setattr("anofel.page.iterations.MAX_AWAY", 0)
    near = iteration_postings(board, study, outcome)
    assert not near.complete
    assert {one.height for one in near.postings} <= {outcome.opened_at, outcome.closed_at, outcome.over_at}
