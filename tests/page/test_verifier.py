"""The verifier page in a real browser: right boards pass, wrong ones are found, and nothing foreign runs.

Skipped where the machine has no Chromium, or where the page was not built (``make verifier``).
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anofel.audit.archive import Archive
from anofel.board.chain import InvalidBlock
from anofel.board.rule import Rejected
from anofel.errors import MalformedMessage
from anofel.messages import Block
from tests.audit.replay import Replay
from tests.page.chromium import (
    BAD,
    CHROMIUM,
    DAMAGED,
    GOOD,
    PATIENCE,
    SCREENSHOTS,
    VERIFIER,
    base64_of,
    check_file,
    engine_in,
    launched,
    verdict,
)
from tests.page.verifier_tools import Flip, export, flipped, handed_out, sampled_flips

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not VERIFIER.exists(), reason="the verifier page was not built (make verifier)"),
]
MOST_BYTES = 500_000
"""The whole page, compressed."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as opened:
        yield opened


@pytest.fixture(scope="module")
def archive(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(history, tmp_path_factory.mktemp("verifier") / "board.anofel")


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The page, opened from a disk; what it says on the console or asks of others is a failure."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(10 * PATIENCE)
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("request", lambda request: trouble.append(request.url) if _is_foreign(request.url) else None)
    opened.goto(VERIFIER.as_uri())
    yield opened
    opened.close()
    assert not trouble


def _is_foreign(url: str) -> bool:
    return not url.startswith((VERIFIER.as_uri(), "blob:", "http://127.0.0.1:"))


def test_a_recorded_board_passes_offline_and_a_receipt_finds_its_postings(page: Any, archive: Path) -> None:
    page.context.set_offline(True)
    assert check_file(page, "board.anofel", archive.read_bytes()) == GOOD
    assert page.evaluate("document.activeElement.id") == "verdict"
    opened = Archive.open(archive)
    blocks = [Block.from_bytes(data) for data in opened.blocks()]
    opened.close()
    genesis = page.inner_text("#genesis")
    posts, registrations = names_of(blocks)
    receipt = {
        "format": "anofel receipt 1",
        "genesis": genesis,
        "registrations": registrations[:1],
        "submissions": [*posts[:2], "00" * 32],
    }
    lines = show_receipt(page, receipt)
    assert [line[0] for line in lines] == ["✓", "✓", "✓", "✗"]
    assert "added to the encrypted sum with all others" in lines[1]
    page.set_input_files("#receipt", {"name": "r.json", "mimeType": "application/json", "buffer": b"{}"})
    page.wait_for_selector("#trouble:not([hidden])")
    assert "is no receipt" in page.inner_text("#trouble")


def names_of(blocks: list[Block]) -> tuple[list[str], list[str]]:
    """Return the nullifiers of submissions and of registrations."""
    from anofel.messages import Posting, Registration, Submission

    bodies = [Posting.from_bytes(data).body for block in blocks for data in block.postings]
    posts = [body.nullifier.hex() for body in bodies if isinstance(body, Submission)]
    return posts, [body.nullifier.hex() for body in bodies if isinstance(body, Registration)]


def show_receipt(page: Any, receipt: dict[str, Any]) -> list[str]:
    data = json.dumps(receipt).encode()
    page.set_input_files("#receipt", {"name": "receipt.json", "mimeType": "application/json", "buffer": data})
    page.wait_for_selector("#lines li")
    return [str(text) for text in page.locator("#lines li").all_inner_texts()]


def test_the_page_is_small() -> None:
    assert len(gzip.compress(VERIFIER.read_bytes(), 9)) <= MOST_BYTES


def test_the_page_names_no_path_of_the_machine_that_built_it() -> None:
    text = VERIFIER.read_text("utf-8")
    [packed] = re.findall(r'<script type="text/plain" id="wasm">(.*?)</script>', text, re.DOTALL)
    wasm = gzip.decompress(base64.b64decode(packed))
    assert b"crates/anofel-" in wasm, "it names the places of errors, so it would name such a path"
    for path in (VERIFIER.parents[2], Path.home()):
        assert f"{path}/".encode() not in wasm
        assert f"{path}/" not in text


def test_files_that_are_no_archive_are_named(page: Any, archive: Path) -> None:
    data = archive.read_bytes()
    assert "no archive of a board" in check_file(page, "a", b"something else entirely")
    assert "cut short" in check_file(page, "b", data[:-20])
    assert "damaged" in check_file(page, "c", data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.slow
def test_a_node_is_checked_by_its_address(page: Any, archive: Path) -> None:
    with handed_out(archive) as url:
        page.fill("#address", url)
        page.click("#ask")
        assert verdict(page) == GOOD


@pytest.mark.slow
def test_a_damaged_blob_is_found(page: Any, archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    data[len(data) - 5000] ^= 4
    assert check_file(page, "board.anofel", bytes(data)) == DAMAGED
    assert page.locator("#findings td").nth(2).inner_text() == "blob"
    assert re.search(r"The blob [0-9a-f]{64} is damaged", page.inner_text("#reason"))


@pytest.mark.slow
def test_foreign_content_is_shown_and_never_runs(page: Any, archive: Path) -> None:
    data = archive.read_bytes()
    opened = Archive.open(archive)
    name = opened.genesis[1:5], opened.genesis[5 : 5 + int.from_bytes(opened.genesis[1:5], "little")]
    opened.close()
    evil = b"<img src=x onerror=alert(1)>"
    longer = len(evil) - len(name[1])
    start = data.index(name[0] + name[1])
    head = data.index(b"\x01", 16)
    length = int.from_bytes(data[head + 1 : head + 5], "little") + longer
    changed = data[: head + 1] + length.to_bytes(4, "little") + data[head + 5 : start]
    changed += len(evil).to_bytes(4, "little") + evil + data[start + 4 + len(name[1]) :]
    assert check_file(page, "<b>x</b>.anofel", changed) == BAD
    assert page.inner_text("#which").startswith(evil.decode())
    assert page.locator("img, #which b").count() == 0


FLIPS_IN_ONE_REPLAY = """async ({archive, flips}) => {
  const source = await $sources.openArchive(new Blob([bytes(archive)]));
  const audit = new $audit.Audit(source);
  const { chain } = audit;
  const found = [];
  const flipped = (data, byte, bit) => { const made = data.slice(); made[byte] ^= 1 << bit; return made; };
  const { open, admit } = chain;
  chain.open = (data) => Object.assign(open.call(chain, data), { data });
  let place = 0;
  chain.admit = async (posting, verdicts) => {
    for (const flip of flips) {
      if (flip[0] !== chain.state.height || flip[1] !== place) continue;
      try {
        await admit.call(chain, open.call(chain, flipped(posting.data, flip[2], flip[3])), new Map());
        found.push([...flip, null]);
      } catch (error) { found.push([...flip, error.number ?? String(error)]); }
    }
    place += 1;
    return admit.call(chain, posting, verdicts);
  };
  for await (const data of source.blocks()) {
    const height = chain.state.height + 1;
    for (const flip of flips) {
      if (flip[0] !== height || flip[1] >= 0) continue;
      try {
        const block = wasm_bindgen.decode("Block", flipped(data, flip[2], flip[3]));
        const before = chain.state.height;
        await chain.follow(block);
        found.push([...flip, null]);
      } catch (error) {
        found.push([...flip, chain.state.height === height ? "half taken" : "block"]);
      }
      if (chain.state.height === height) return found;
    }
    place = 0;
    await audit.take(data);
  }
  return found;
}"""


def refused_here(replay: Replay, flip: Flip) -> str | None:
    """Return what an audit says of a flip: the number of a rule, ``block``, or nothing."""
    height, place, byte, bit = flip
    block = replay.blocks[height - 1]
    try:
        if place < 0:
            replay.chain_before(height).follow(Block.from_bytes(flipped(block.to_bytes(), byte, bit)))
        else:
            postings = list(block.postings)
            postings[place] = flipped(postings[place], byte, bit)
            replay.chain_before(height).follow(replace(block, postings=tuple(postings)))
    except MalformedMessage:
        return "block"
    except InvalidBlock as error:
        return error.rejected.rule.number if isinstance(error.rejected, Rejected) else "block"
    return None


def flips_found(browser: Any, archive: Path, flips: list[Flip]) -> dict[Flip, str | None]:
    """Try every flip in one replay of the engine, before what really stands there."""
    page = engine_in(browser)
    asked = {"archive": base64_of(archive.read_bytes()), "flips": flips}
    found = page.evaluate(FLIPS_IN_ONE_REPLAY, asked)
    page.close()
    return {(one[0], one[1], one[2], one[3]): one[4] for one in found}


@pytest.mark.slow
def test_every_flip_that_an_audit_finds_is_found(browser: Any, history: Path, archive: Path) -> None:
    flips = sampled_flips(archive, 80, seed=20_261_119)
    replay = Replay.of(history)
    expected = {flip: refused_here(replay, flip) for flip in flips}
    found = flips_found(browser, archive, flips)
    assert sum(1 for rule in expected.values() if rule is not None) >= 50
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_fits_and_can_be_read_by_everybody(
    browser: Any, archive: Path, width: int, dark: bool
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", bypass_csp=True
    )
    page.set_default_timeout(10 * PATIENCE)
    page.goto(VERIFIER.as_uri())
    page.wait_for_selector("#checked li")
    for step in ("begin", "good", "bad"):
        if step == "good":
            assert check_file(page, "board.anofel", archive.read_bytes()) == GOOD
        if step == "bad":
            data = bytearray(archive.read_bytes())
            data[len(data) // 3] ^= 1
            check_file(page, "board.anofel", bytes(data))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, step
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], step
        if SCREENSHOTS:
            name = f"verifier-{step}-{width}-{'dark' if dark else 'light'}.png"
            page.screenshot(path=str(Path(SCREENSHOTS) / name), full_page=True)
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("lies", [False, True])
def test_a_second_worker_checks_and_adds_and_what_it_says_counts(
    browser: Any, archive: Path, tmp_path: Path, lies: bool
) -> None:
    """With batches of one payload the recorded board has enough for two."""
    text = VERIFIER.read_text("utf-8")
    changes = {
        "const BATCH = 16;": "const BATCH = 1;",
        "this.port.postMessage({ id, order })": 'console.log("asked", this.port.postMessage({ id, order }))',
    }
    if lies:
        changes["payloads.sum(codec, places)"] = "payloads.sum(codec, live ? places : places.slice(1))"
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "page.html").write_text(text, "utf-8")
    page = browser.new_page()
    page.set_default_timeout(10 * PATIENCE)
    if page.evaluate("navigator.hardwareConcurrency") < 2:
        pytest.skip("this machine has one processor")
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((tmp_path / "page.html").as_uri())
    assert check_file(page, "board.anofel", archive.read_bytes()) == (BAD if lies else GOOD)
    assert any(line.startswith("asked") for line in said)
    page.close()
