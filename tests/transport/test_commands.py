"""Every command that talks to a board goes through a proxy if it is told to, names and all."""

from collections.abc import Iterator

import pytest
import typer
from typer.main import get_command

from anofel.cli import app
from anofel.cli.board_fit import meeting
from anofel.cli.node_status import status_of_url
from anofel.errors import PeerUnreachable
from tests.transport.servers import HttpServer, SocksServer, answer, unused_port

WITHOUT = {"deploy health", "demo"}
"""Commands with an argument of such a name that asks no board by itself."""


def commands(group: typer.core.TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), {parameter.name or "" for parameter in command.params}


def test_whoever_takes_a_board_takes_a_proxy() -> None:
    group = get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    found = dict(commands(group))
    asking = {name for name, options in found.items() if options & {"board", "where"}} - WITHOUT
    assert {"audit", "look", "node status", "client init", "model fetch", "privacy", "simulate"} <= asking
    assert [name for name in sorted(asking) if "proxy" not in found[name]] == []


def test_the_status_of_a_node_is_asked_for_through_the_proxy() -> None:
    with HttpServer(answer(body=b'{"height": 7}')) as server, SocksServer(server.port) as proxy:
        assert status_of_url("http://board.onion", None, proxy.url) == {"height": 7}
        assert proxy.addresses == [(3, b"board.onion", 80)], "the name is the proxy's to resolve"


def test_a_board_to_meet_is_asked_through_the_proxy_and_never_around_it() -> None:
    with HttpServer(answer(body=b"no genesis")) as server, SocksServer(server.port) as proxy:
        with pytest.raises(PeerUnreachable):
            meeting("http://board.onion", None, proxy.url)
        assert [host for _, host, _ in proxy.addresses] == [b"board.onion"]
        with unused_port() as port, pytest.raises(PeerUnreachable):
            meeting(server.url, None, f"socks5h://127.0.0.1:{port}")
        assert len(server.requests) == 1, "a proxy that is away is not gone around"
