"""``client run --cover`` over many iterations: posts like any other, and adds nothing and costs nothing."""

from anofel.games.oracle import ClientAux, Oracle
from anofel.games.play import GameTable
from anofel.games.setting import POST_FROM, WINDOW, some_rows
from anofel.games.weak import NOTHING_PUT_BACK

ITERATIONS = 5


def test_a_cover_poster_is_a_daemon_like_any_other(table: GameTable) -> None:
    oracle = table.oracle
    oracle.weaken(NOTHING_PUT_BACK)
    table._strategy = None
    trainers = [oracle.register("client", ClientAux(some_rows(5, seed))) for seed in (1, 2)]
    covers = [oracle.register("client", ClientAux(some_rows(5, seed), cover=True)) for seed in (3, 4)]
    everybody = [*trainers, *covers]
    heights: list[list[int]] = []
    for _ in range(ITERATIONS):
        for client in everybody:
            oracle.train(client)
        released = oracle.access()
        seen = oracle.seen[-1]
        assert oracle.participants[-1] == set(everybody)
        assert [outcome.count for outcome in released.outcomes] == [2, 0], "cover posts count nowhere"
        heights.append([post.height - seen.opened_at for post in seen.posts])
        assert len({len(post.posting.data) for post in seen.posts}) == 1
        assert len({part.payload.length for post in seen.posts for part in post.body.contributions}) == 1
        assert len(seen.uploads()) == len(everybody) * 2
    latest = POST_FROM + WINDOW + 1  # a drawn part of a block may end in the next one
    assert all(POST_FROM < height <= latest for found in heights for height in found)
    for client in covers:
        role = oracle.parties[client].client
        assert [(turn.cover, turn.accepted) for turn in role.journal.turns()] == [(True, True)] * ITERATIONS
        assert role.ledger.charges() == []
        assert fetched(oracle, client) == fetched(oracle, trainers[0])
    for client in trainers:
        assert len(oracle.parties[client].client.ledger.charges()) == ITERATIONS


def fetched(oracle: Oracle, client: bytes) -> list[bytes]:
    """What a client fetched, in its order."""
    return list(oracle.parties[client].client.seen_by._read)
