"""The OpenAPI document and the routes say the same, and the node behaves as the document says."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from anofel.node import api_blobs, api_blocks, api_operator, api_outline
from anofel.node.api_openapi import document
from anofel.page.routes import API_ROUTES
from anofel.proofs.keys import KeyDirectory
from tests.node.support import SECONDS, NodeProcess, make_board, running

ROUTES = [*api_blocks.ROUTES, *api_outline.ROUTES, *api_blobs.ROUTES, *api_operator.ROUTES, *API_ROUTES]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> Iterator[NodeProcess]:
    board = make_board(tmp_path_factory.mktemp("openapi") / "node", keys)
    with running(board.directory) as process:
        yield process
        assert process.stop()[0] == 0


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    described = {
        (path, method.upper()) for path, operations in document()["paths"].items() for method in operations
    }
    # Starlette answers HEAD wherever it answers GET; only blobs make a promise about it.
    implied = {(route.path, "HEAD") for route in ROUTES} - {("/v1/blobs/{sha256}", "HEAD")}
    routed = {(route.path, method) for route in ROUTES for method in route.methods or ()} - implied
    assert described == routed


def test_path_parameters_are_those_of_the_routes() -> None:
    for route in ROUTES:
        for operation in document()["paths"][route.path].values():
            named = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert named == set(route.param_convertors)


def test_the_document_is_valid_openapi() -> None:
    assert document()["openapi"] == "3.1.0"
    assert len(list(schema.get_all_operations())) == sum(len(o) for o in document()["paths"].values())


@schema.exclude(path="/v1/events").parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_node_answers_as_described(case: schemathesis.Case, node: NodeProcess) -> None:
    case.call_and_validate(base_url=node.url, checks=CHECKS, timeout=SECONDS)
