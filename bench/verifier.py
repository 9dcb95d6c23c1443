"""What a check in the browser costs, and what a look at a node's page costs the node.

    python bench/verifier.py board.anofel --board run/board

Needs Chromium and the page (make verifier). The archive is any that ``anofel board export`` wrote; the time
of a check is that of the browser, from the choice of the file to the verdict; beside it stands the CPU time
of all its processes, which a busy machine changes less. A look is one page, asked
for over loopback of ``anofel look``, which makes pages as a node does; its cost is the server's own CPU time.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "dist" / "verifier" / "anofel-verifier.html"
PATIENCE = 3_600_000


def launched(tools: Any) -> Any:
    """Start Chromium."""
    return tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])


FIRST_PAINT = """() => new Promise((resolve) => {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
  });
  observer.observe({ type: "paint", buffered: true });
})"""


def first_paint(page: Any) -> float:
    """Milliseconds from the request of a page until something of it was painted."""
    return float(page.evaluate(FIRST_PAINT))


def check(archive: Path) -> None:
    """Check an archive in Chromium and print how long it took."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = launched(tools)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(PAGE.as_uri())
        page.wait_for_selector("#checked li")
        paint = first_paint(page)
        start, before = time.perf_counter(), _cpu_below(os.getpid())
        page.set_input_files("#file", str(archive))
        page.wait_for_selector("#result:not([hidden]), #trouble:not([hidden])")
        seconds, spent = time.perf_counter() - start, _cpu_below(os.getpid()) - before
        figures = page.inner_text("#figures").replace("\n", " ")
        verdict = page.inner_text("#verdict")
        browser.close()
    print(
        f"first paint {paint:.0f} ms; {archive.name}: {seconds:.1f} s, {spent:.1f} s of CPU, "
        f"{verdict}: {figures}"
    )


def looks(directory: Path, number: int) -> None:
    """Ask for a page again and again, and print what one costs the server, and when a browser paints it."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "anofel", "look", str(directory), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        url = json.loads(text)["url"]
        urllib.request.urlopen(url).read()
        before = _cpu(process.pid)
        for _ in range(number):
            size = len(urllib.request.urlopen(url).read())
        spent = (_cpu(process.pid) - before) / number
        with sync_playwright() as tools:
            browser = launched(tools)
            page = browser.new_page()
            page.goto(url, timeout=PATIENCE)
            paint = first_paint(page)
            browser.close()
        process.terminate()
    print(
        f"a look at the first page: {1000 * spent:.1f} ms of the server's CPU, {size / 1000:.0f} kB, "
        f"first paint {paint:.0f} ms"
    )


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_below(pid: int) -> float:
    """CPU time of the processes that descend from one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    below, found = {pid}, set[int]()
    while below:
        found |= below
        below = {child for child, parent in parents.items() if parent in below} - found
    return sum(_cpu(one) for one in found - {pid})


def main() -> None:
    """Run everything that the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, nargs="?")
    parser.add_argument("--board", type=Path, help="the directory of a board, to be looked at")
    parser.add_argument("--looks", type=int, default=200)
    arguments = parser.parse_args()
    data = PAGE.read_bytes()
    print(f"the verifier: {len(data) / 1000:.0f} kB, {len(gzip.compress(data, 9)) / 1000:.0f} kB compressed")
    static = ROOT / "src" / "anofel" / "page" / "static"
    print(
        f"the page's style and script: {sum(path.stat().st_size for path in static.iterdir()) / 1000:.0f} kB"
    )
    if arguments.archive:
        check(arguments.archive)
    if arguments.board:
        looks(arguments.board, arguments.looks)


if __name__ == "__main__":
    main()
