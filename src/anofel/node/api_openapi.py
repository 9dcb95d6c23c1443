"""The description of the HTTP interface (OpenAPI 3.1). A test holds it against the routes."""

from typing import Any, Final

import msgspec

from anofel.board.rules import MAX_POSTING_BYTES
from anofel.page.facts import BoardFacts
from anofel.page.postings import PostingFacts
from anofel.page.source import MAX_LISTED, BlockSummary
from anofel.proofs.keys import ROLES, STATEMENTS, served_name

OCTETS: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
HEX32: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
HEIGHT: Final = {"type": "integer", "minimum": 0, "maximum": (1 << 53) - 1}

_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "description": "urn:anofel:problem: and the code."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; for a posting, the code of the rule it breaks."},
        "detail": {"type": "string", "description": "One sentence."},
        "culprit": {"type": "string", "description": "The role-holder at fault. Clients have no name."},
    },
}


def _answer(description: str, content: dict[str, Any] | None = None, *headers: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": description}
    if content is not None:
        answer["content"] = content
    if headers:
        answer["headers"] = {name: {"schema": {"type": "string"}} for name in headers}
    return answer


def _problem(description: str) -> dict[str, Any]:
    return _answer(
        description, {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    )


def _json(required: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": required}
    return {"application/json": {"schema": schema}}


def _parameter(
    name: str, where: str, schema: dict[str, Any], description: str, *, required: bool = False
) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "schema": schema,
        "description": description,
        "required": required or where == "path",
    }


def _operation(summary: str, answers: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "parameters": list(parameters), "responses": answers}


_NOT_CHANGED: Final = _answer("The client has these bytes (If-None-Match).", None, "ETag", "Cache-Control")
_IF_NONE_MATCH: Final = _parameter("If-None-Match", "header", {"type": "string"}, "An ETag that is here.")
_IMMUTABLE: Final = ("ETag", "Cache-Control")
_BULK: Final = (
    _parameter("from", "query", HEIGHT | {"minimum": 1}, "The first height.", required=True),
    _parameter(
        "limit", "query", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "How many."
    ),
)
_FRAMED: Final = (
    "Consecutive blocks, each as its length (u32, little-endian) and its canonical bytes. The answer ends "
    "before 4 MiB but holds at least one block; it is empty if there is none yet."
)
_BLOB_NAME: Final = _parameter("sha256", "path", HEX32, "SHA-256 of the blob.")
_LENGTH: Final = _parameter(
    "Content-Length", "header", {"type": "integer", "minimum": 0}, "The exact length.", required=True
)
_RANGE: Final = _parameter("Range", "header", {"type": "string"}, "One range of bytes.")


def _postings() -> dict[str, Any]:
    height = HEIGHT | {"type": ["integer", "null"]}
    accepted = _json({"id": HEX32, "height": height})
    post = _operation(
        "Offer a posting",
        {
            "200": _answer("It had been accepted before; the same answer again.", accepted),
            "202": _answer(
                "Accepted. With a height: it is on the disk and will be in that block. With null, on a board "
                "of several validators: it waits for their decision; until a block has it, send it again.",
                accepted,
            ),
            "400": _problem("Not a posting in its one canonical encoding, or a broken request."),
            "408": _problem("The body did not arrive in time."),
            "411": _problem("No Content-Length."),
            "413": _problem(f"Longer than {MAX_POSTING_BYTES} bytes, or than its kind allows."),
            "415": _problem("Not application/octet-stream."),
            "422": _problem("The posting breaks a rule of the board; the code says which."),
            "503": _problem("The block is full or the node is busy; the same bytes may be sent again."),
        },
    )
    return {"post": post | {"requestBody": {"required": True, "content": OCTETS}}}


def _blobs() -> dict[str, Any]:
    put = _operation(
        "Upload a blob",
        {
            "200": _answer("The blob was there; its receipts are prolonged.", OCTETS),
            "201": _answer("Kept; the canonical bytes of the Blob, with receipts of a quorum.", OCTETS),
            "400": _problem("A broken name or body."),
            "408": _problem("The body did not arrive in time."),
            "411": _problem("No Content-Length."),
            "413": _problem("Longer than a posting may name or this store takes."),
            "415": _problem("Not application/octet-stream."),
            "422": _problem("The bytes have another hash or length."),
            "503": _problem("There is no room now, or too many uploads are under way."),
        },
        _BLOB_NAME,
        _LENGTH,
        _parameter("keep", "query", {"enum": ["here"]}, "Ask no other holder for a receipt."),
        _parameter("ticket", "query", {"type": "string"}, "What gets the blob a reserved place, in Base64."),
    )
    reading = {
        "200": _answer("The blob.", OCTETS, *_IMMUTABLE, "Accept-Ranges"),
        "206": _answer("The range.", OCTETS, *_IMMUTABLE, "Accept-Ranges", "Content-Range"),
        "304": _NOT_CHANGED,
        "400": _problem("Not a name of a blob."),
        "404": _problem("The node does not hold it: it never came, or its time is over."),
        "416": _problem("The range lies outside the blob."),
    }
    get = _operation("Download a blob", reading, _BLOB_NAME, _RANGE, _IF_NONE_MATCH)
    without_body = {status: {"description": answer["description"]} for status, answer in reading.items()}
    head = _operation("Ask for a blob's length", without_body, _BLOB_NAME, _RANGE, _IF_NONE_MATCH)
    return {"put": put | {"requestBody": {"required": True, "content": OCTETS}}, "get": get, "head": head}


def _immutable(summary: str, description: str, unknown: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    answers = {"200": _answer(description, OCTETS, *_IMMUTABLE), "304": _NOT_CHANGED}
    if unknown:
        answers["404"] = _problem(unknown)
    if any(parameter["name"] == "height" for parameter in parameters):
        answers["400"] = _problem("Not a height.")
    return {"get": _operation(summary, answers, *parameters, _IF_NONE_MATCH)}


def _bulk(summary: str, more: str = "") -> dict[str, Any]:
    answers = {"200": _answer(_FRAMED + more, OCTETS), "400": _problem("A broken number.")}
    return {"get": _operation(summary, answers, *_BULK)}


def _operators() -> dict[str, Any]:
    status = {
        "name": {"type": "string"},
        "genesis": HEX32,
        "height": HEIGHT,
        "tip": HEX32,
        "time": {"type": "integer"},
        "interval_ms": {"type": "integer"},
        "rules": {"type": "integer"},
        "insecure": {
            "type": "string",
            "description": "What protects nobody on this board; empty if nothing.",
        },
        "validators": {"type": "integer", "description": "How many make the next block."},
        "may_be_faulty": {"type": "integer", "description": "How many of them may crash or lie."},
    }
    stream = {"text/event-stream": {"schema": {"type": "string"}}}
    last = _parameter("Last-Event-ID", "header", {"type": "string"}, "The last height that was seen.")
    healthy = _json({"status": {"const": "ok"}, "height": HEIGHT})
    return {
        "/v1/status": {"get": _operation("Where the board stands", {"200": _answer("So.", _json(status))})},
        "/v1/events": {
            "get": _operation(
                "One server-sent event per block",
                {
                    "200": _answer("id is the height; data is JSON: height, time, hash, postings.", stream),
                    "400": _problem("Last-Event-ID is not a height."),
                    "503": _problem("Too many subscribers."),
                },
                last,
            )
        },
        "/v1/health": {
            "get": _operation(
                "Whether blocks still come, and the keys of committees can be read",
                {"200": _answer("Yes.", healthy), "503": _problem("No; the code says which.")},
            )
        },
        "/metrics": {
            "get": _operation(
                "Counters for Prometheus",
                {"200": _answer("Text format 0.0.4.", {"text/plain": {"schema": {"type": "string"}}})},
            )
        },
        "/v1/openapi.json": {
            "get": _operation(
                "This document", {"200": _answer("OpenAPI 3.1.", _json({"openapi": {"const": "3.1.0"}}))}
            )
        },
    }


_PAGE_SCHEMAS = msgspec.json.schema_components(
    (BoardFacts, list[BlockSummary], PostingFacts), ref_template="#/components/schemas/{name}"
)


def _page() -> dict[str, Any]:
    """What the page shows, as JSON."""

    def content(schema: dict[str, Any]) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    (board, summaries, posting), _ = _PAGE_SCHEMAS
    name = _parameter("id", "path", HEX32, "The posting's name.")
    before = _parameter("before", "query", HEIGHT, "Only blocks below this height.")
    limit = _parameter(
        "limit", "query", {"type": "integer", "minimum": 1, "maximum": MAX_LISTED}, "How many at most."
    )
    return {
        "/v1/board": {
            "get": _operation(
                "What everybody may see of the board after its last block",
                {"200": _answer("As the page shows it.", content(board))},
            )
        },
        "/v1/summaries": {
            "get": _operation(
                "What is in blocks, newest first",
                {
                    "200": _answer("The blocks.", content(summaries)),
                    "400": _problem("Not a height, or not a number of blocks."),
                },
                before,
                limit,
            )
        },
        "/v1/postings/{id}": {
            "get": _operation(
                "A posting field by field, with the rules that it passed",
                {
                    "200": _answer("The posting.", content(posting)),
                    "400": _problem("Not a name of a posting."),
                    "404": _problem("No block holds such a posting."),
                },
                name,
            )
        },
    }


def _outline() -> dict[str, Any]:
    """What clients in header mode fetch."""
    number = {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1}
    place = _parameter("place", "path", number, "Its place in the block, from 0.")
    at = _parameter("height", "path", HEIGHT, "The height of a block.")
    names = " In the place of each posting stands its name (32 bytes)."
    return {
        "/v1/names": _bulk("Headers, the signatures under them, and the names of postings", names),
        "/v1/outline": {
            "get": _operation(
                "What the header of one of the last blocks vouches for of the state",
                {
                    "200": _answer("A MessagePack map from part to its bytes; all but equal parts.", OCTETS),
                    "400": _problem("Not a height."),
                    "404": _problem("Not one of the last blocks."),
                },
                _parameter("height", "query", HEIGHT | {"minimum": 1}, "The block.", required=True),
                _parameter(
                    "known", "query", HEIGHT, "A block whose parts are known; equal ones are left out."
                ),
            )
        },
        "/v1/leaves": {
            "get": _operation(
                "Leaves of a client tree, in their order",
                {
                    "200": _answer("32 bytes each.", OCTETS),
                    "400": _problem("A broken number."),
                    "404": _problem("The tree of this epoch is not here any more."),
                },
                _parameter("epoch", "query", number, "The epoch.", required=True),
                _parameter("from", "query", number, "The first place.", required=True),
                _parameter(
                    "limit", "query", {"type": "integer", "minimum": 1, "maximum": 1 << 17}, "How many."
                ),
            )
        },
        "/v1/blocks/{height}/postings/{place}": _immutable(
            "A posting by its place in a block", "Its bytes.", "There is none.", at, place
        ),
    }


_KEYS = [served_name(name, role) for role in reversed(ROLES) for name in STATEMENTS]


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    name = _parameter("name", "path", {"enum": _KEYS}, "The statement, and .proving for its proving key.")
    height = _parameter("height", "path", HEIGHT, "The height of a block.")
    left_out = " The list of postings is left out (empty): what remains vouches for the header."
    return {
        "openapi": "3.1.0",
        "info": {"title": "anofel bulletin board", "version": "1"},
        "paths": {
            "/v1/postings": _postings(),
            "/v1/genesis": _immutable("Genesis", "The canonical bytes of Genesis.", ""),
            "/v1/keys/{name}": _immutable("A proof key", "The key file.", "No such key.", name),
            "/v1/headers": _bulk("Headers and the signatures under them", left_out),
            "/v1/blocks": _bulk("Blocks"),
            "/v1/blocks/{height}": _immutable("A block", "Its canonical bytes.", "Not there yet.", height),
            **_outline(),
            "/v1/blobs/{sha256}": _blobs(),
            **_operators(),
            **_page(),
        },
        "components": {"schemas": {"Problem": _PROBLEM, **_PAGE_SCHEMAS[1]}},
    }
