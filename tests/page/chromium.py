"""Chromium, and the verifier page in it."""

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 120_000
"""Milliseconds: a busy machine takes its time."""
SCREENSHOTS = os.environ.get("ANOFEL_SCREENSHOTS")
"""A directory for pictures of the page, to be looked at."""
VERIFIER = Path(__file__).parents[2] / "dist" / "verifier" / "anofel-verifier.html"
GOOD = "Everything follows the rules"
BAD = "A rule was broken"
DAMAGED = "This copy is damaged or incomplete"


@contextmanager
def launched() -> Iterator[Any]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        opened = tools.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE
        )
        yield opened
        opened.close()


def opened(browser: Any, path: str, *, width: int = 1200, dark: bool = False) -> tuple[Any, list[str]]:
    """Open a page; what breaks its policy, fails, or asks another machine is written down."""
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page.set_default_timeout(PATIENCE)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(path[:16]) else trouble.append(request.url)
    )
    page.goto(path)
    return page, trouble


def verdict(page: Any) -> str:
    """Wait for what the verifier page says in the end."""
    page.wait_for_selector("#result:not([hidden]), #trouble:not([hidden])")
    return str(page.inner_text("#verdict" if page.is_visible("#result") else "#trouble"))


def check_file(page: Any, name: str, data: bytes) -> str:
    """Give the verifier page a file."""
    page.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": data})
    return verdict(page)


def findings(page: Any) -> list[tuple[int, int | None, str, str]]:
    """Return what is wrong, as the verifier page lists it: block, posting, rule, reason."""
    rows = page.eval_on_selector_all(
        "#findings tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return [(int(block), None if place == "–" else int(place), rule, why) for block, place, rule, why in rows]


def engine_in(browser: Any) -> Any:
    """Open the modules of the verifier in a page, to be asked by ``evaluate``; each is called ``$name``."""
    text = VERIFIER.read_text("utf-8")
    parts = dict(re.findall(r'<script type="text/plain" id="(\w+)">(.*?)</script>', text, re.DOTALL))
    page = browser.new_page(bypass_csp=True)
    page.set_default_timeout(10 * PATIENCE)
    page.goto(VERIFIER.as_uri())
    page.add_script_tag(
        content=parts["engine"]
        + f"""
globalThis.onmessage = null;
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
async function begin() {{
  const packed = new Blob([bytes({json.dumps(parts["wasm"])})]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("gzip"));
  wasm_bindgen.initSync({{ module: await new Response(stream).arrayBuffer() }});
}}"""
    )
    page.evaluate("begin()")
    return page


def base64_of(data: bytes) -> str:
    """Write bytes for ``bytes()`` in the page of :func:`engine_in`."""
    return base64.b64encode(data).decode()
