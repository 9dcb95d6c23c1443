"""The documentation as a site, on a phone: no page is wider than its window, and none asks another machine.

Skipped by name where the machine has no Chromium. Slow: the site is built first.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ROOT = Path(__file__).parent.parent
PHONE = {"width": 375, "height": 800}
TOO_WIDE = """() => {
  const scrolls = (element) => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(element).overflowX);
  const held = (element) =>
    element && element !== document.body && (scrolls(element) || held(element.parentElement));
  return [...document.querySelectorAll('.md-content *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !held(element))
    .map((element) => element.tagName + ' ' + element.textContent.trim().slice(0, 60));
}"""
"""What sticks out of the window and is in nothing that scrolls."""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_every_page_fits_a_phone_and_wide_tables_scroll(tmp_path: Path) -> None:
    playwright: Any = pytest.importorskip("playwright.sync_api")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env=quiet)
    asked: list[str] = []
    scrolling = 0
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        page = browser.new_page(viewport=PHONE)
        page.set_default_timeout(120_000)
        page.on("request", lambda request: asked.append(request.url))
        for path in sorted(tmp_path.glob("*.html")):
            page.goto(path.as_uri())
            page.wait_for_load_state()
            assert page.evaluate(TOO_WIDE) == [], path.name
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path.name
            scrolling += page.evaluate(
                "[...document.querySelectorAll('.md-typeset__scrollwrap')]"
                ".filter((wrap) => wrap.scrollWidth > wrap.clientWidth).length"
            )
        browser.close()
    assert scrolling > 0, "some table is wider than a phone"
    assert [url for url in asked if not url.startswith("file://")] == []
