"""The page while its board goes on, and of a board that is out to harm its readers, in a real browser."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from anofel.look.serve import make_app
from anofel.look.sources import BoardOnDisk
from anofel.page.facts import BoardFacts
from anofel.proofs.keys import KeyDirectory
from anofel.serving.listening import listen
from anofel.serving.server import GuardedServer
from tests.node.support import OCTETS, make_board, running
from tests.page.chromium import CHROMIUM, launched, opened

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>{{7*7}}\u202e'
LONG = "Ä" * 4000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as opened_browser:
        yield opened_browser


WATCH = """() => {
  window.seen = new Promise((resolve) => {
    new MutationObserver(() => {
      const moving = [...document.querySelectorAll(".arrow.new")].map((arrow) => arrow.dataset.step);
      if (moving.length) resolve(moving);
    }).observe(document.body, { childList: true, subtree: true });
  });
}"""


@pytest.mark.slow
def test_a_posting_lights_its_arrow_on_an_open_page(browser: Any, keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "board", keys, interval_ms=3000)
    with running(board.directory) as node:
        page, trouble = opened(browser, node.url)
        assert page.locator(".arrow.lit").count() == 0
        page.evaluate(WATCH)
        answer = httpx2.post(f"{node.url}/v1/postings", content=board.posting().data, headers=OCTETS)
        assert answer.status_code == 202
        assert set(page.evaluate("() => window.seen")) == {"1.a"}
        page.wait_for_selector("text=/; the next (in|is)/")
        page.wait_for_selector(".arrow.lit", state="detached")
        assert "1 certifier in force" in page.inner_text("#certifiers")
        page.close()
    assert not trouble


def evil(facts: BoardFacts) -> BoardFacts:
    """The facts of a board whose names are code and whose numbers are far too large."""
    huge = 10**30
    members = tuple(
        replace(one, name=EVIL, organisation=LONG, issuer=EVIL) for one in facts.committees[0].members
    )
    seats = tuple(
        replace(
            seat,
            name=EVIL,
            count=huge,
            members=tuple(replace(one, name=EVIL + LONG) for one in seat.members),
        )
        for seat in facts.bundles[0].seats
    )
    bundle = replace(
        facts.bundles[0],
        seats=seats,
        posts=huge,
        max_posts=huge,
        num_clients=huge,
        until=huge,
        iteration=huge,
    )
    studies = tuple(
        replace(
            study,
            name=EVIL,
            owner=LONG,
            learns=EVIL,
            data=EVIL,
            flaws=(EVIL,),
            releases=huge,
            max_releases=huge,
            min_clients=huge,
            epsilon_zero_out=1e300,
            document={EVIL: [EVIL, huge, LONG], "rule": {"kind": EVIL}},
            outcomes=tuple(
                replace(
                    one,
                    iteration=one.iteration * huge,
                    count=huge,
                    posts=huge,
                    reported={EVIL: 1e300, "noise": 1e-300},
                )
                for one in study.outcomes
            ),
        )
        for study in facts.studies
    )
    return replace(
        facts,
        name=EVIL,
        insecure=(EVIL, LONG),
        registered=huge,
        bundles=(bundle,),
        studies=studies,
        committees=(replace(facts.committees[0], members=members), *facts.committees[1:]),
        refusals={EVIL: huge},
    )


@contextmanager
def served(board: BoardOnDisk, change: Callable[[BoardFacts], BoardFacts]) -> Iterator[str]:
    """Serve the page of a board with other facts."""
    made = change(board.now)

    class Liar(BoardOnDisk):
        def __init__(self) -> None:
            vars(self).update(vars(board))

        async def facts(self) -> BoardFacts:
            return made

    server = GuardedServer(make_app(Liar()), max_connections=64)
    with listen("127.0.0.1", 0) as taken:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([taken])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
        finally:
            server.stop()
            thread.join()


def test_a_board_of_code_and_giant_numbers_is_shown_and_nothing_runs(
    browser: Any, board: BoardOnDisk
) -> None:
    with served(board, evil) as url:
        study = board.now.studies[0].task
        for path in ("", f"studies/{study}", "blocks", "about"):
            for width in (1200, 390):
                page, trouble = opened(browser, url + path, width=width)
                assert page.title() not in ("1", "2")
                assert page.locator("img, main script, header script").count() == 0
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
                page.close()
                assert not trouble, path
        page, _ = opened(browser, url)
        assert EVIL.replace("\u202e", "") in page.inner_text("h1").replace("\u202e", "")
        page.close()
