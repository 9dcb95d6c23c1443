"""Every page: complete without JavaScript, closed to foreign content, and not to be talked into anything."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
from starlette.testclient import TestClient

from anofel.disk.sections import InvalidDocument, parse_toml
from anofel.look.serve import make_app
from anofel.look.sources import BoardOnDisk
from anofel.node.files import NodeConfig
from anofel.page.facts import BoardFacts
from anofel.page.promise import PROMISES
from anofel.page.routes import CSP
from anofel.page.source import BlockSummary

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.acts: list[str] = []
        self.headings: list[str] = []
        self._inline = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.acts += [name for name in values if name.startswith("on") or name == "style"]
        if tag == "a":
            self.links.append(values.get("href") or "")
        if tag in ("script", "link", "img", "iframe", "form"):
            self.loads.append(values.get("src") or values.get("href") or values.get("action") or "")
            self._inline = tag == "script" and "src" not in values
        if tag in ("h1", "h2"):
            self.headings.append(tag)

    def handle_data(self, data: str) -> None:
        if self._inline and data.strip():
            self.acts.append(data)


def pages_of(client: TestClient, board: BoardOnDisk) -> Iterator[tuple[str, Page]]:
    """Follow every link from the first page on, as a reader could."""
    todo, done = ["/"], set[str]()
    while todo:
        path = todo.pop()
        if path in done or path.startswith(("/v1/", "#")) or path.endswith("/card.md"):
            continue
        done.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == CSP
        assert "set-cookie" not in answer.headers
        page = Page(answer.text)
        todo += page.links
        yield path, page
    assert {f"/blocks/{height}" for height in range(1, board.height + 1)} <= done


def test_every_link_leads_somewhere_and_no_page_loads_or_runs_anything_else(
    client: TestClient, board: BoardOnDisk
) -> None:
    number = 0
    for path, page in pages_of(client, board):
        number += 1
        assert set(page.loads) == {"/static/icon.svg", "/static/page.css", "/static/page.js", "/search"}, path
        assert not page.acts, path
        assert page.headings.count("h1") == 1, path
        assert all(link.startswith(("/", "#")) for link in page.links), path
    assert number > 50


def test_a_page_with_its_style_and_script_is_small(client: TestClient, board: BoardOnDisk) -> None:
    shared = sum(len(client.get(f"/static/{name}").content) for name in ("icon.svg", "page.css", "page.js"))
    for path, _ in pages_of(client, board):
        assert shared + len(client.get(path).content) <= 100_000, path


def test_the_policy_allows_no_foreign_and_no_inline_code() -> None:
    policy = dict(part.strip().split(" ", 1) for part in CSP.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "unsafe" not in CSP
    assert "http" not in CSP


def test_what_stands_on_the_board_is_text(board: BoardOnDisk) -> None:
    facts = asyncio.run(board.facts())
    members = tuple(replace(one, name=EVIL, organisation=EVIL) for one in facts.committees[0].members)
    evil = replace(
        facts,
        name=EVIL,
        insecure=(EVIL,),
        studies=tuple(replace(s, name=EVIL, owner=EVIL, learns=EVIL, flaws=(EVIL,)) for s in facts.studies),
        committees=(replace(facts.committees[0], members=members), *facts.committees[1:]),
        refusals={EVIL: 10**30},
    )

    class Liar(BoardOnDisk):
        def __init__(self) -> None:
            vars(self).update(vars(board))

        async def facts(self) -> BoardFacts:
            return evil

    client = TestClient(make_app(Liar()))
    for path in ("/", "/about", "/blocks", f"/studies/{facts.studies[0].task}"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        page = Page(answer.text)
        assert not page.acts
        assert "x" not in page.loads


def test_a_study_has_a_card(client: TestClient, board: BoardOnDisk) -> None:
    facts = asyncio.run(board.facts())
    answer = client.get(f"/studies/{facts.studies[0].task}/card.md")
    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.text.startswith("---\n")
    assert facts.genesis in answer.text
    assert client.get(f"/studies/{'0' * 64}/card.md").status_code == 404


def test_the_same_facts_as_documents(client: TestClient, board: BoardOnDisk) -> None:
    facts = asyncio.run(board.facts())
    assert msgspec.json.decode(client.get("/v1/board").content, type=BoardFacts) == facts
    newest, older = msgspec.json.decode(
        client.get("/v1/summaries?limit=2").content, type=tuple[BlockSummary, BlockSummary]
    )
    assert (newest.height, older.height) == (board.height, board.height - 1)
    [first] = client.get("/v1/summaries?before=2").json()
    assert first["height"] == 1
    posting = first["postings"][0]
    shown = client.get(f"/v1/postings/{posting['id']}").json()
    assert (shown["height"], shown["place"], shown["kind"]) == (1, 0, posting["kind"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/blocks/0", 404),
        ("/blocks/-1", 404),
        ("/blocks/99999999", 404),
        ("/blocks/1e3", 404),
        ("/blocks/١", 404),
        ("/blocks?before=x", 404),
        ("/postings/zz", 404),
        (f"/postings/{'0' * 64}", 404),
        (f"/studies/{'0' * 64}", 404),
        ("/static/..%2f..%2froutes.py", 404),
        ("/static/page.html", 404),
        ("/v1/summaries?limit=0", 400),
        ("/v1/summaries?limit=101", 400),
        ("/v1/summaries?before=-1", 400),
        ("/v1/postings/zz", 400),
        (f"/v1/postings/{'0' * 64}", 404),
        ("/v1/blobs/zz", 404),
    ],
)
def test_what_is_not_there(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("number", ["0", "3", "-1", "1e0", "١", "x"])
def test_an_iteration_that_has_not_ended_has_no_page(
    client: TestClient, board: BoardOnDisk, number: str
) -> None:
    task = asyncio.run(board.facts()).studies[0].task
    assert client.get(f"/studies/{task}/iterations/1").status_code == 200
    answer = client.get(f"/studies/{task}/iterations/{number}")
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


def test_a_search_leads_to_blocks_postings_and_studies(client: TestClient, board: BoardOnDisk) -> None:
    study = asyncio.run(board.facts()).studies[0].task
    posting = client.get("/v1/summaries?before=2").json()[0]["postings"][0]["id"]
    for asked, target in (
        (" 1 ", "/blocks/1"),
        (posting.upper(), f"/postings/{posting}"),
        (study, f"/studies/{study}"),
    ):
        answer = client.get("/search", params={"q": asked})
        assert (answer.status_code, answer.headers["location"]) == (303, target)
    for asked in ("", "zz", "0", "ab" * 32, "//evil.example"):
        assert client.get("/search", params={"q": asked}).status_code == 404


def test_the_model_can_be_downloaded(client: TestClient, board: BoardOnDisk) -> None:
    study = asyncio.run(board.facts()).studies[0]
    page = client.get(f"/studies/{study.task}").text
    [path] = re.findall(r'href="(/v1/blobs/[0-9a-f]{64})" download', page)
    assert client.get(path).content == board.blob(bytes.fromhex(study.model or ""))


def test_a_study_says_what_it_promises(client: TestClient, board: BoardOnDisk) -> None:
    study = asyncio.run(board.facts()).studies[0]
    PROMISES.wait(msgspec.json.encode(study.document))
    text = " ".join(re.sub(r"<[^>]+>", "", client.get(f"/studies/{study.task}").text).split())
    assert f"Protection of one {study.unit}:" in text
    assert "guesses right at most" in text
    assert f"of at most {study.max_releases}" in text


def test_an_address_through_tor_is_announced_on_every_page(board: BoardOnDisk) -> None:
    onion = f"http://{'a' * 56}.onion"
    assert "onion-location" not in TestClient(make_app(board)).get("/").headers

    class Announced(BoardOnDisk):
        own = True

    announced = object.__new__(Announced)
    vars(announced).update(vars(board), onion=onion)
    client = TestClient(make_app(announced))
    for path in ("/", "/blocks", "/about"):
        answer = client.get(path)
        assert answer.headers["onion-location"] == onion + path
        assert f'href="{onion}"' in answer.text


@pytest.mark.parametrize("address", ["http://short.onion", "javascript:alert(1)", "https://board.example"])
def test_an_address_through_tor_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidDocument, match="onion"):
        parse_toml(f'onion = "{address}"', NodeConfig, "node.toml")
    text = NodeConfig(onion=f"http://{'b' * 56}.onion").to_toml()
    assert parse_toml(text, NodeConfig, "node.toml").onion.endswith("b.onion")
