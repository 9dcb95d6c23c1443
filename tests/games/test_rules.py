"""What the oracle answers, and when a right guess does not count: over the real client, board and steps."""

import pytest

from anofel.games.oracle import ClientAux, Oracle, QueryRefused
from anofel.games.parties import LoadedKeys
from anofel.games.play import GameTable
from anofel.games.rules import AnonGame, DINDGame, Game
from anofel.games.setting import some_rows
from anofel.games.weak import NOTHING_PUT_BACK
from anofel.messages import Posting, Registration
from anofel.primitives import MasterSecret
from anofel.roles.client.files import MASTER


@pytest.fixture
def oracle(table: GameTable) -> Oracle:
    """The board of all tests, with nobody registered."""
    table.oracle.weaken(NOTHING_PUT_BACK)
    table._strategy = None
    return table.oracle


def register(oracle: Oracle, number: int) -> list[bytes]:
    return [oracle.register("client", ClientAux(some_rows(5, seed))) for seed in range(100, 100 + number)]


def ended(oracle: Oracle, game: Game, *helpers: bytes) -> Game:
    for helper in helpers:
        oracle.train(helper)
    oracle.pass_by()
    return game


def test_a_right_guess_wins_and_a_wrong_one_does_not(oracle: Oracle) -> None:
    first, second, helper = register(oracle, 3)
    game = AnonGame(oracle, bit=1)
    game.challenge(first, second)
    ended(oracle, game, helper)
    assert oracle.participants == [{second, helper}], "cl_1 trains, cl_0 does not"
    assert game.finish(1).won
    assert not game.finish(0).won


def test_without_a_challenge_nobody_wins(oracle: Oracle) -> None:
    game = AnonGame(oracle, bit=0)
    assert game.finish(0).reason == "There was no challenge."
    assert not game.finish(0).won


def test_who_corrupts_a_client_of_the_challenge_knows_and_does_not_win(oracle: Oracle) -> None:
    first, second, helper = register(oracle, 3)
    game = AnonGame(oracle, bit=0)
    game.challenge(first, second)
    ended(oracle, game, helper)
    seen = oracle.corrupt(first)
    assert [turn.accepted for turn in seen.turns] == [True], "its journal says that it trained"
    verdict = game.finish(0)
    assert verdict.right
    assert not verdict.won
    assert "(a)" in verdict.reason


def test_a_lone_honest_client_is_no_game(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    game = AnonGame(oracle, bit=0)
    game.challenge(first, second)
    ended(oracle, game)
    assert "(b)" in game.finish(0).reason


def test_helpers_stay_honest_to_the_end(oracle: Oracle) -> None:
    first, second, helper = register(oracle, 3)
    game = AnonGame(oracle, bit=0)
    game.challenge(first, second)
    ended(oracle, game, helper)
    assert game.finish(0).won
    oracle.corrupt(helper)
    assert "(b)" in game.finish(0).reason


def test_one_post_for_each_client_tells_who_was_asked_twice_and_that_does_not_count(oracle: Oracle) -> None:
    """D-01: the paper's client would post twice; ours posts once, and the number of posts is the bit."""
    for bit in (0, 1):
        oracle.weaken(NOTHING_PUT_BACK)
        first, second, helper = register(oracle, 3)
        game = AnonGame(oracle, bit=bit)
        game.challenge(first, second)
        oracle.train(first)
        ended(oracle, game, helper)
        assert len(oracle.seen[-1].posts) == 2 + bit
        verdict = game.finish(bit)
        assert verdict.right
        assert "(c)" in verdict.reason


def test_the_client_of_dindgame_stays_honest(oracle: Oracle) -> None:
    (helper,) = register(oracle, 1)
    game = DINDGame(oracle, bit=1)
    client = game.challenge(ClientAux(some_rows(5, 1)), ClientAux(some_rows(6, 2)))
    ended(oracle, game, helper)
    assert oracle.parties[client].rows == some_rows(6, 2)
    assert game.finish(1).won
    oracle.corrupt(client)
    assert not game.finish(1).won


def test_queries_out_of_order_are_refused(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    with pytest.raises(QueryRefused, match="set up once"):
        oracle.setup()
    with pytest.raises(QueryRefused, match="each with a committee"):
        oracle.register("committee")
    with pytest.raises(QueryRefused, match="with its dataset"):
        oracle.register("client")
    with pytest.raises(QueryRefused, match="No client is registered"):
        oracle.train(bytes(32))
    with pytest.raises(QueryRefused, match="accessed once"):
        oracle.access()
    with pytest.raises(QueryRefused, match="At most 1 members"):
        oracle.corrupt_aggregators(0, 2)
    game = AnonGame(oracle)
    with pytest.raises(QueryRefused, match="two registered clients"):
        game.challenge(first, first)
    game.challenge(first, second)
    with pytest.raises(QueryRefused, match="one challenge"):
        game.challenge(first, second)
    oracle.pass_by()
    dind = DINDGame(oracle)
    with pytest.raises(QueryRefused, match="valid for one task"):
        dind.challenge(ClientAux(some_rows(5, 1)), ClientAux(some_rows(5, 2), task=1))


def test_a_game_without_committees_has_no_iterations(loaded: LoadedKeys) -> None:
    with Oracle(loaded) as oracle:
        oracle.setup()
        (client,) = register(oracle, 1)
        with pytest.raises(QueryRefused, match="committees first"):
            oracle.train(client)


def test_corruption_hands_over_what_the_machine_holds(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    oracle.train(first)
    oracle.train(second)
    released = oracle.access()
    assert [outcome.progress for outcome in released.outcomes] == ["summed", "too-few"]
    assert released.outcomes[0].count == 2
    found = oracle.corrupt(first)
    assert MasterSecret.from_bytes(found.secrets[MASTER]).public_key()
    assert {"certificate", "salt/0"} <= set(found.secrets)
    assert [(turn.accepted, turn.outcome) for turn in found.turns] == [(True, "summed")]
    assert [charge.released for charge in found.charges] == [True]
    assert found.outbox == ["registration/0/1"], "a submission is forgotten when its iteration is over"
    assert found.said
    assert (found.path / "rows.csv").read_bytes().startswith(b"age,pressure,ill")
    (member,) = oracle.corrupt_aggregators(0, 1)
    assert member.share.member == 1


def test_a_crashed_client_posts_once_all_the_same(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    oracle.train(first)
    oracle.train(second)
    oracle.advance(1)
    oracle.crash(first)
    oracle.pass_by()
    assert oracle.participants == [{first, second}]
    assert len(oracle.seen[0].posts) == 2


def test_the_node_sees_the_same_kinds_of_requests_from_everybody(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    for client in (first, second):
        oracle.train(client)
    oracle.pass_by()
    seen = oracle.seen[0]
    since = [request for request in seen.requests if request.time >= seen.opened_at]
    posts = [request for request in since if request.method == "POST"]
    uploads = [request for request in since if request.method == "PUT"]
    assert len(posts) == 2
    assert len({request.sent for request in posts}) == 1
    assert len(uploads) == 4
    assert len({request.sent for request in uploads}) == 1
    assert not any(request.source for request in seen.requests)
    assert len([name for name in seen.model_names() if name]) == len(set(seen.model_names())) == 2


def test_tasks_that_are_announced_again_are_another_bundle_with_the_same_clients(oracle: Oracle) -> None:
    clients = register(oracle, 2)
    for number in range(2):
        first = oracle.bundle.number
        for client in clients:
            oracle.train(client)
        oracle.pass_by()
        assert oracle.participants[-1] == set(clients)
        if not number:
            oracle.announce_again()
            assert oracle.bundle.number != first
    assert oracle.seen[-1].number == 1
    nullifiers = {bytes(post.body.nullifier) for seen in oracle.seen for post in seen.posts}
    assert len(nullifiers) == 4


def test_in_a_new_epoch_a_client_that_is_told_to_train_registers_again(oracle: Oracle) -> None:
    first, second = register(oracle, 2)
    oracle.begin_epoch()
    assert len(oracle.node.followed.state.clients) == 0
    oracle.parties[second].client.send_registration()
    oracle.advance()
    oracle.train(first)
    assert len(oracle.node.followed.state.clients) == 2
    oracle.train(second)
    oracle.pass_by()
    assert oracle.participants == [{first, second}]
    shown = [Posting.from_bytes(data).body for block in oracle.node.blocks for data in block.postings]
    again = [body.nullifier for body in shown if isinstance(body, Registration)][-4:]
    assert len(set(again)) == 4


def test_an_iteration_that_ends_early_takes_no_more_posts(oracle: Oracle) -> None:
    clients = register(oracle, 2)
    for client in clients:
        oracle.train(client)
    oracle.end_early()
    oracle.pass_by()
    assert oracle.participants == [set()]


def test_who_is_cut_off_does_not_post_and_who_covers_posts_without_training(oracle: Oracle) -> None:
    first, second, third = register(oracle, 3)
    oracle.train(first)
    oracle.train(second)
    oracle.cover(third)
    oracle.cover(first)
    oracle.cut(second)
    oracle.pass_by()
    oracle.cut(second, is_cut=False)
    assert oracle.participants == [{first, third}]
    covering = [oracle.parties[client].client.journal.turns()[0].cover for client in (first, third)]
    assert covering == [False, True], "who was told to train trains"


def test_what_the_adversary_registers_is_its_own(oracle: Oracle) -> None:
    (honest,) = register(oracle, 1)
    sybil = oracle.register("client", ClientAux(some_rows(5, 1), sybil=True))
    oracle.own_committees = {1}
    assert len(oracle.corrupt_aggregators(1, 1)) == 3
    with pytest.raises(QueryRefused, match="At most 1"):
        oracle.corrupt_aggregators(0, 2)
    oracle.train(honest)
    oracle.train(sybil)
    released = oracle.access()
    assert released.outcomes[0].count == 2, "it counts"
    assert not oracle.parties[sybil].is_honest
    game = AnonGame(oracle, bit=0)
    assert not game.finish(0).won


@pytest.mark.slow
def test_the_same_people_on_another_board_have_the_same_keys_and_other_nullifiers(oracle: Oracle) -> None:
    other = oracle.other_board()
    aux = ClientAux(some_rows(5, 1), person="anybody")
    here, there = oracle.register("client", aux), other.register("client", aux)
    secrets = [
        board.parties[name].client.directory.secrets[MASTER].reveal()
        for board, name in ((oracle, here), (other, there))
    ]
    assert secrets[0] == secrets[1]
    assert here != there
