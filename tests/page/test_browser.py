"""The page in a real browser: nothing breaks its policy, and it can be read by everybody.

Skipped by name where the machine has no Chromium.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.chromium import CHROMIUM, PATIENCE, SCREENSHOTS, launched, opened

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def url(history: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "anofel", "look", str(history), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        document = ""
        while not document.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "anofel look ended before it was ready"
            document += line
        yield json.loads(document)["url"]
        process.terminate()
        assert process.wait(600) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as opened:
        yield opened


def paths(url: str, browser: Any) -> dict[str, str]:
    page, _ = opened(browser, url)
    study = page.locator("a[href^='/studies/']").first.get_attribute("href")
    posting = page.locator("a[href^='/postings/']").first.get_attribute("href")
    page.close()
    found = {"now": "", "study": study.lstrip("/"), "posting": posting.lstrip("/")}
    found["iteration"] = f"{found['study']}/iterations/1"
    return found | {"blocks": "blocks", "block": "blocks/1", "about": "about"}


def test_no_page_breaks_its_policy_or_asks_another_machine(url: str, browser: Any) -> None:
    for path in paths(url, browser).values():
        page, trouble = opened(browser, url + path)
        assert page.locator("h1").count() == 1
        page.close()
        assert not trouble, path


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_every_page_fits_and_can_be_read_by_everybody(url: str, browser: Any, width: int, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for name, path in paths(url, browser).items():
        page, _ = opened(browser, url + path, width=width, dark=dark)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, path
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
        if SCREENSHOTS:
            look = f"{width}-{'dark' if dark else 'light'}"
            page.screenshot(path=str(Path(SCREENSHOTS) / f"page-{name}-{look}.png"), full_page=True)
            page.screenshot(path=str(Path(SCREENSHOTS) / f"top-{name}-{look}.png"))
        page.close()


@pytest.mark.slow
def test_the_keyboard_reaches_the_content_and_every_link(url: str, browser: Any) -> None:
    page, _ = opened(browser, url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    page.close()


@pytest.mark.slow
def test_the_page_is_complete_without_javascript(url: str, browser: Any) -> None:
    with_script, _ = opened(browser, url)
    context = browser.new_context(java_script_enabled=False)
    without = context.new_page()
    without.goto(url, timeout=PATIENCE)
    assert without.locator("main").inner_text() == with_script.locator("main").inner_text()
    context.close()
    with_script.close()
