"""The page over HTTP: HTML for people, and the same facts as JSON under ``/v1``.

The answers are for everybody the same: no cookie is set, nothing about who asks is kept, and there is no
question about one client. A page asks no other machine for anything, and runs no script but its own.
"""

from importlib.resources import files
from typing import Any, Final

import jinja2
import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.board.waits import duration
from anofel.ids import PostingId
from anofel.page.charts import line_chart
from anofel.page.facts import StudyFacts, card_of
from anofel.page.figure import figure
from anofel.page.iterations import iteration_postings
from anofel.page.promise import PROMISES
from anofel.page.source import MAX_LISTED, PageSource, find_posting, summaries, summary
from anofel.page.words import STEPS, every, many, size
from anofel.serving.numbers import asked_number, decimal
from anofel.serving.problems import PROBLEM, problem_content

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC: Final = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
LISTED: Final = 30
LIT_BLOCKS: Final = 3
"""An arrow of the figure is lit by the postings of so many blocks."""


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("anofel.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.globals.update(steps=STEPS)
    made.filters.update(
        duration=duration, every=every, many=many, size=size, short=lambda text: f"{text[:12]}…"
    )
    return made


_TEMPLATES: Final = _environment()


def source_of(request: Request) -> PageSource:
    """Return the board that is shown."""
    source: PageSource = request.app.state.page
    return source


async def _html(request: Request, name: str, title: str, status: int = 200, **values: Any) -> Response:
    source = source_of(request)
    facts = values.pop("facts", None) or await source.facts()
    text = _TEMPLATES.get_template(name).render(
        board=facts,
        title=title,
        live=source.live,
        own=source.own,
        trouble=source.trouble,
        onion=source.onion,
        here=request.url.path,
        **values,
    )
    headers = _HEADERS | ({"Onion-Location": source.onion + request.url.path} if source.onion else {})
    return Response(text, status, headers, "text/html")


async def _missing(request: Request, what: str) -> Response:
    return await _html(request, "missing.html", "Not here", 404, what=what)


# For people


async def now(request: Request) -> Response:
    """Show where the board stands."""
    source = source_of(request)
    facts = await source.facts()
    blocks = await run_in_threadpool(summaries, source, facts.height + 1, 12)
    return await _html(
        request,
        "now.html",
        facts.name,
        facts=facts,
        blocks=blocks,
        arrows=figure(blocks[:LIT_BLOCKS]),
        seconds=facts.interval_ms / 1000,
    )


async def study(request: Request) -> Response:
    """Show a task: its promise, how it went, and its model."""
    facts = await source_of(request).facts()
    found = facts.study(request.path_params["task"])
    if found is None:
        return await _missing(request, "This board has no such study.")
    promise = await run_in_threadpool(PROMISES.of, msgspec.json.encode(found.document))
    members = next(one for one in facts.committees if one.key_id == found.committee)
    return await _html(
        request,
        "study.html",
        found.name,
        facts=facts,
        study=found,
        promise=promise,
        committee=members,
        charts=_charts(found),
    )


async def iteration(request: Request) -> Response:
    """Show an iteration of a task that is over, with the postings that decided it."""
    source = source_of(request)
    facts = await source.facts()
    found = facts.study(request.path_params["task"])
    number = decimal(request.path_params["iteration"])
    outcome = next((one for one in found.outcomes if one.iteration == number), None) if found else None
    if found is None or outcome is None:
        return await _missing(request, "No iteration of this number has ended in such a study.")
    return await _html(
        request,
        "iteration.html",
        f"{found.name}, iteration {outcome.iteration}",
        facts=facts,
        study=found,
        one=outcome,
        found=await run_in_threadpool(iteration_postings, source, found, outcome),
    )


def _charts(found: StudyFacts) -> list[Any]:
    outcomes = found.outcomes
    drawn = [
        line_chart(
            "ε as the owner states it (zero-out)",
            [(one.iteration, one.epsilon) for one in outcomes if one.epsilon is not None],
            steps=True,
        ),
        line_chart(
            "updates in the sum",
            [(one.iteration, float(one.count)) for one in outcomes if one.count is not None],
            whole=True,
        ),
    ]
    for name in sorted({name for one in outcomes for name in one.reported} - {"noise"}):
        points = [(one.iteration, one.reported[name]) for one in outcomes if name in one.reported]
        drawn.append(line_chart(f"{name}, reported by clients", points))
    return [chart for chart in drawn if chart is not None]


async def card(request: Request) -> Response:
    """Return the card of a study's model, as a file."""
    facts = await source_of(request).facts()
    found = facts.study(request.path_params["task"])
    if found is None:
        return await _missing(request, "No study of this board has this id.")
    text = await run_in_threadpool(card_of, facts, found)
    headers = _HEADERS | {"Content-Disposition": 'attachment; filename="model-card.md"'}
    return Response(text, headers=headers, media_type="text/markdown")


async def blocks(request: Request) -> Response:
    """List blocks, newest first."""
    source = source_of(request)
    before = asked_number(request, "before", source.height + 1)
    if before is None:
        return await _missing(request, "before is the height of a block.")
    listed = await run_in_threadpool(summaries, source, min(before, source.height + 1), LISTED)
    return await _html(request, "blocks.html", "Blocks", blocks=listed)


async def block(request: Request) -> Response:
    """Show a block with its postings."""
    source, text = source_of(request), request.path_params["height"]
    height = decimal(text) or 0
    found = await run_in_threadpool(source.block, height) if 0 < height <= source.height else None
    if found is None:
        return await _missing(request, "There is no such block yet.")
    return await _html(
        request, "block.html", f"Block {height}", block=summary(source, found), header=found.header
    )


async def posting(request: Request) -> Response:
    """Show a posting field by field."""
    name = _id(request.path_params["id"])
    found = await run_in_threadpool(find_posting, source_of(request), name) if name else None
    if found is None:
        return await _missing(request, "No block of this board holds such a posting.")
    return await _html(request, "posting.html", found.kind, posting=found)


async def search(request: Request) -> Response:
    """Go where a height, a posting's id or a study's id leads."""
    asked = request.query_params.get("q", "").strip().lower()
    source = source_of(request)
    target = ""
    if 0 < (height := decimal(asked) or 0) <= source.height:
        target = f"/blocks/{height}"
    elif (name := _id(asked)) is not None:
        if await run_in_threadpool(source.place_of, name) is not None:
            target = f"/postings/{asked}"
        elif (await source.facts()).study(asked) is not None:
            target = f"/studies/{asked}"
    if not target:
        return await _missing(
            request, "A search takes the height of a block, or the 64 digits of a posting or a study."
        )
    return Response(status_code=303, headers=_HEADERS | {"Location": target})


async def about(request: Request) -> Response:
    """Say what the page is, and what reading it reveals."""
    return await _html(request, "about.html", "About this page")


async def static(request: Request) -> Response:
    """Return a file of the page."""
    name = request.path_params["name"]
    if name not in _STATIC:
        return await _missing(request, "There is no such file.")
    data = (files("anofel.page") / "static" / name).read_bytes()
    return Response(data, headers=_HEADERS | {"Cache-Control": "no-cache"}, media_type=_STATIC[name])


# For programs


async def get_board(request: Request) -> Response:
    """Return everything that the page shows of the board, but its blocks."""
    facts = await source_of(request).facts()
    kept = getattr(request.app.state, "board_json", None)
    if kept is None or kept[0] is not facts:
        kept = request.app.state.board_json = facts, _json(facts)
    answer: Response = kept[1]
    return answer


async def get_summaries(request: Request) -> Response:
    """Return what is in the blocks below a height, newest first."""
    source = source_of(request)
    before, limit = asked_number(request, "before", source.height + 1), asked_number(request, "limit", LISTED)
    if before is None or limit is None or not 1 <= limit <= MAX_LISTED:
        return _problem(400, "bad-parameter", f"before is a height, limit at most {MAX_LISTED}.")
    return _json(await run_in_threadpool(summaries, source, min(before, source.height + 1), limit))


async def get_posting(request: Request) -> Response:
    """Return a posting of a block, field by field."""
    name = _id(request.path_params["id"])
    if name is None:
        return _problem(400, "bad-parameter", "A posting is named by 64 hexadecimal digits.")
    found = await run_in_threadpool(find_posting, source_of(request), name)
    if found is None:
        return _problem(404, "posting-unknown", "No block of this board holds such a posting.")
    return _json(found)


def _json(value: object) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(value), headers=headers, media_type="application/json")


def _problem(status: int, code: str, detail: str) -> Response:
    return Response(problem_content(status, code, detail), status, {"Cache-Control": "no-store"}, PROBLEM)


def _id(text: str) -> PostingId | None:
    digits = set("0123456789abcdef")
    return PostingId(bytes.fromhex(text)) if len(text) == 64 and set(text) <= digits else None


API_ROUTES: Final = [
    Route("/v1/board", get_board, methods=["GET"]),
    Route("/v1/summaries", get_summaries, methods=["GET"]),
    Route("/v1/postings/{id}", get_posting, methods=["GET"]),
]
HTML_ROUTES: Final = [
    Route("/", now, methods=["GET"]),
    Route("/studies/{task}", study, methods=["GET"]),
    Route("/studies/{task}/iterations/{iteration}", iteration, methods=["GET"]),
    Route("/studies/{task}/card.md", card, methods=["GET"]),
    Route("/blocks", blocks, methods=["GET"]),
    Route("/blocks/{height}", block, methods=["GET"]),
    Route("/postings/{id}", posting, methods=["GET"]),
    Route("/search", search, methods=["GET"]),
    Route("/about", about, methods=["GET"]),
    Route("/static/{name}", static, methods=["GET"]),
]
ROUTES: Final = [*API_ROUTES, *HTML_ROUTES]
