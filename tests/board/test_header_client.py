"""A client that follows headers has what it needs of the state, and refuses every lie of a node about it."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from anofel.board import roots
from anofel.board.outline import PARTS, UNNAMED, FalseOutline, part_of, read_outline
from anofel.board.seat import Sitting
from anofel.cli.evidence import evidence as evidence_command
from anofel.errors import AnofelError, InvalidInput, PeerUnreachable
from anofel.light_client import sample
from anofel.light_client.base import BoardMisbehaved
from anofel.light_client.evidence import NoEvidence, PostingEvidence, check_posting, shown_by
from anofel.light_client.header_client import HeaderClient
from anofel.messages import EndTask, KeyAuthor, Registration, Submission, make_posting
from anofel.messages.postings import Posting, posting_id
from anofel.network.transport import Refused, Transport
from anofel.primitives import MessageSecret
from anofel.privacy.ledger import FloorNotMet
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.trust import Aggregators, Trust
from tests.board.prepared import Stages, a_submission, fork
from tests.board.served import ServedWorld, serving
from tests.node.support import SECONDS


@pytest.fixture
def served(stages: Stages, keys: KeyDirectory) -> ServedWorld:
    """A board whose first iteration is open."""
    made = ServedWorld(stages("open"), keys)
    made.next_block()
    return made


@pytest.fixture
def client(served: ServedWorld, tmp_path: Path) -> Iterator[HeaderClient]:
    with serving(served) as url:
        transport = Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS)
        made = HeaderClient(tmp_path / "view", transport, genesis_hash=served.world.genesis.hash)
        yield made
        made.close()


def test_the_state_of_headers_has_every_root_and_every_number(
    served: ServedWorld, client: HeaderClient
) -> None:
    client.sync()
    theirs, ours = served.world.board.state, client.state
    assert ours.height == len(served.blocks)
    for name in ("certifiers", "clients", "committees", "tasks", "bundles"):
        assert getattr(roots, name)(ours) == getattr(served.blocks[-1].header, name)
    for one, other in zip(ours.tasks.values(), theirs.tasks.values(), strict=True):
        assert (one.facts, one.announcement, one.model) == (other.facts, other.announcement, other.model)
    mine, true = Sitting.of(ours, 0), Sitting.of(theirs, 0)
    assert [seat.addressee for seat in mine.seats] == [seat.addressee for seat in true.seats]
    assert mine.clients.root() == true.clients.root()
    assert mine.size == true.size
    for committee in ours.committees.values():
        assert committee.current == theirs.committees[committee.key_id].current
        assert all(member == UNNAMED for member in ours.members_of(committee.current))
    assert [fields(bundle) for bundle in ours.bundles.values()]


def test_it_begins_near_the_end_and_goes_on_after_a_restart(
    served: ServedWorld, client: HeaderClient
) -> None:
    client.sync()
    assert not any("from=1&" in path for path in served.asked if path.startswith("/v1/names"))
    height = client.state.height
    served.next_block()
    client.sync()
    client.close()
    served.asked.clear()
    again = HeaderClient(client.directory, client.transport)
    assert again.state.height == height + 1
    assert roots.bundles(again.state) == served.blocks[-1].header.bundles
    served.next_block()
    again.sync()
    assert again.state.height == height + 2
    asked = [path for path in served.asked if path.startswith("/v1/leaves")]
    assert asked == [], "leaves that are here are not fetched again"
    again.close()


def test_it_posts_sees_its_own_posting_and_how_many_there_are(
    served: ServedWorld, client: HeaderClient
) -> None:
    client.sync()
    posting = a_submission(served.world, 0, 0)
    assert not client.holds(posting.id)
    client.post(posting)
    served.next_block()
    client.sync()
    assert client.holds(posting.id)
    assert client.checked == 1, "of so few every one is drawn"


def test_what_is_fetched_does_not_depend_on_who_asks(
    served: ServedWorld, client: HeaderClient, tmp_path: Path
) -> None:
    """One has posted and the other has not: they ask for the same, in the same order."""
    with serving(served) as url:
        other = HeaderClient(tmp_path / "other", Transport(url), genesis_hash=served.world.genesis.hash)
        client.sync()
        other.sync()
        client.post(a_submission(served.world, 0, 0))
        served.next_block()
        asked = []
        for one in (client, other):
            served.asked.clear()
            one.sync()
            asked.append(served.asked.copy())
        assert asked[0] == asked[1]
        assert not any("task" in path or "path" in path for path in asked[0])
        other.close()


# Lies


def of_outline(change: Callable[[dict[str, Any]], None]) -> Callable[[ServedWorld, str, bytes], bytes | None]:
    """Change the decoded parts of an outline."""

    def lie(_world: ServedWorld, path: str, answer: bytes) -> bytes:
        if not path.startswith("/v1/outline"):
            return answer
        parts = {name: msgspec.msgpack.decode(part) for name, part in msgspec.msgpack.decode(answer).items()}
        change(parts)
        return msgspec.msgpack.encode({name: msgspec.msgpack.encode(part) for name, part in parts.items()})

    return lie


def wrong_leaf(_world: ServedWorld, path: str, answer: bytes) -> bytes:
    return bytes(32) + answer[32:] if path.startswith("/v1/leaves") else answer


def withheld_leaf(_world: ServedWorld, path: str, answer: bytes) -> bytes:
    return answer[:-32] if path.startswith("/v1/leaves") else answer


def swapped_leaves(_world: ServedWorld, path: str, answer: bytes) -> bytes:
    return answer[32:64] + answer[:32] + answer[64:] if path.startswith("/v1/leaves") else answer


def no_leaves(_world: ServedWorld, path: str, answer: bytes) -> bytes | None:
    return None if path.startswith("/v1/leaves") else answer


def no_outline(_world: ServedWorld, path: str, answer: bytes) -> bytes | None:
    return None if path.startswith("/v1/outline") else answer


def false_inclusion(_world: ServedWorld, path: str, answer: bytes) -> bytes:
    """Name a posting that no block holds."""
    return answer.replace(answer[-32:], bytes(32)) if path.startswith("/v1/names") else answer


def change_task(parts: dict[str, Any]) -> None:
    parts["tasks"][0]["owner"] = bytes(32)


def change_document(parts: dict[str, Any]) -> None:
    parts["tasks"][0]["announcement"], parts["tasks"][1]["announcement"] = (
        parts["tasks"][1]["announcement"],
        parts["tasks"][0]["announcement"],
    )


def change_model(parts: dict[str, Any]) -> None:
    parts["tasks"][0]["model"] = bytes(32)


def hide_task(parts: dict[str, Any]) -> None:
    del parts["tasks"][0]


def change_key(parts: dict[str, Any]) -> None:
    parts["committees"]["committees"][0]["current"]["shares_id"] = bytes(32)


def change_holder(parts: dict[str, Any]) -> None:
    parts["committees"]["validators"]["eras"]["eras"][0]["quorum"] = 0


def change_phase(parts: dict[str, Any]) -> None:
    parts["bundles"][0]["phase"] = "closed"


def change_deadline(parts: dict[str, Any]) -> None:
    parts["bundles"][0]["current"]["close_by"] += 1


def change_root(parts: dict[str, Any]) -> None:
    parts["bundles"][0]["current"]["client_root"] = bytes(32)


def change_size(parts: dict[str, Any]) -> None:
    parts["clients"]["size"] -= 1


def change_certifier(parts: dict[str, Any]) -> None:
    parts["certifiers"]["records"][0]["in_force"] = False


def widen_window(parts: dict[str, Any]) -> None:
    parts["certifiers"]["window"].append(bytes(32))


OUTLINES = (
    change_task, change_document, change_model, hide_task, change_key, change_holder,
    change_phase, change_deadline, change_root, change_size, change_certifier, widen_window,
)  # fmt: skip
LIES = {
    **{lie.__name__: lie for lie in (wrong_leaf, withheld_leaf, swapped_leaves, no_leaves, no_outline)},
    **{change.__name__: of_outline(change) for change in OUTLINES},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_the_state_is_no_answer(served: ServedWorld, client: HeaderClient, lie: str) -> None:
    served.lie = LIES[lie]
    with pytest.raises(PeerUnreachable):
        client.sync()
    assert client.state.height == 0
    assert not (client.directory / "evidence").exists(), "nobody signed it"
    served.lie = lambda _world, _path, answer: answer
    client.sync()
    assert client.state.height == len(served.blocks)


def test_a_false_inclusion_is_no_answer(served: ServedWorld, client: HeaderClient) -> None:
    client.sync()
    served.world.board.post(a_submission(served.world, 0, 0))
    served.next_block()
    served.lie = false_inclusion
    with pytest.raises(PeerUnreachable):
        client.sync()
    assert not client.holds(bytes(32))  # type: ignore[arg-type]


def test_a_false_key_or_model_has_another_hash(served: ServedWorld, client: HeaderClient) -> None:
    client.sync()
    task = next(iter(client.state.tasks.values()))
    served.lie = lambda _world, path, answer: b"other" if path.startswith("/v1/blobs") else answer
    assert task.model is not None
    for name in (task.model, client.state.committee_of(task).current.shares_id):
        with pytest.raises(AnofelError):
            client.attachments.read(name)  # type: ignore[arg-type]


def test_what_no_digest_covers_is_not_taken_from_a_node(served: ServedWorld) -> None:
    state, header = served.world.board.state, served.blocks[-1].header
    parts = {name: part_of(state, name) for name in PARTS}
    tasks = msgspec.msgpack.decode(parts["tasks"])
    tasks[0]["facts"]["max_releases"] = 1000
    tasks[0]["organisation"] = "Friends"
    committees = msgspec.msgpack.decode(parts["committees"])
    committees["runs"][0]["share_epoch"] = 7
    committees["runs"][0]["entered"] = {1: {"name": "CN=X", "issuer": "CN=Y", "organisation": "Friends"}}
    parts |= {"tasks": msgspec.msgpack.encode(tasks), "committees": msgspec.msgpack.encode(committees)}
    read = read_outline(served.world.genesis, header, parts, {})
    task = next(iter(read.tasks.values()))
    assert task.facts == next(iter(state.tasks.values())).facts
    assert task.organisation == ""
    run = next(iter(read.runs.values()))
    assert run.share_epoch == 0
    assert all(member == UNNAMED for member in run.entered.values()), "a node names nobody"
    committee = next(iter(read.committees.values()))
    friends = (Aggregators.parse("O=Friends"),)
    for demands in (Trust(max_colluders=0, allowed=friends), Trust(max_colluders=0, required=friends)):
        with pytest.raises(FloorNotMet):
            demands._check_holders(read, committee.current, task.task_id)
    with pytest.raises(FalseOutline):
        read_outline(served.world.genesis, header, {**parts, "bundles": b"\xc1"}, {})


# Samples


def bad_submission(served: ServedWorld) -> bytes:
    """A submission whose membership proof is somebody else's."""
    world = served.world
    good, other = a_submission(world, 0, 0), a_submission(world, 1, 0)
    assert isinstance(good.body, Submission)
    assert isinstance(other.body, Submission)
    secret = MessageSecret.generate()
    body = replace(good.body, proof=other.body.proof)
    author = KeyAuthor(secret.public_key().to_bytes())
    return make_posting(body, author, world.genesis.hash, secret.sign).data


def test_a_posting_that_breaks_a_rule_is_evidence_that_anyone_can_check(
    served: ServedWorld, client: HeaderClient, capsys: pytest.CaptureFixture[str]
) -> None:
    client.sync()
    served.forge_block(bad_submission(served))
    with pytest.raises(BoardMisbehaved, match="breaks a rule, and the validators signed it") as caught:
        client.sync()
    assert client.state.height == len(served.blocks) - 1, "the block does not count"
    (path,) = caught.value.evidence.iterdir()
    evidence = PostingEvidence.from_bytes(path.read_bytes())
    genesis = served.world.genesis
    assert "membership proof" in check_posting(evidence, genesis, client.verifier)
    (shown,) = shown_by(caught.value.evidence, genesis, client.verifier)
    assert shown.file == path.name
    evidence_command(client.directory, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["genesis"] == genesis.hash.hex()
    assert [one["file"] for one in said["shown"]] == [path.name]
    with pytest.raises(InvalidInput, match="another board"):
        evidence_command(client.directory, genesis="00" * 32)
    good = a_submission(served.world, 0, 0)
    for forged in (
        msgspec.structs.replace(evidence, posting=good.data),
        msgspec.structs.replace(evidence, place=1),
        msgspec.structs.replace(evidence, before=evidence.after),
        msgspec.structs.replace(evidence, after_parts=evidence.before_parts | {"bundles": b"\x90"}),
    ):
        with pytest.raises(AnofelError):
            check_posting(forged, genesis, client.verifier)
    other = fork(served.world)
    other.validator = MessageSecret.generate()
    unsigned = replace(served.blocks[-1], commit=())
    lie = msgspec.structs.replace(evidence.block, block=replace(unsigned, postings=()).to_bytes())
    with pytest.raises(AnofelError):
        check_posting(msgspec.structs.replace(evidence, block=lie), genesis, client.verifier)


def test_a_good_posting_is_no_evidence(served: ServedWorld, client: HeaderClient) -> None:
    client.sync()
    before, parts = client.state, dict(client._parts)
    client.post(a_submission(served.world, 0, 0))
    served.next_block()
    client.sync()
    block = served.blocks[-1]
    vouched = client._vouched(block.header.height)
    evidence = PostingEvidence(
        block=vouched, place=0, posting=block.postings[0], before=client._vouched(before.height),
        before_parts=parts, after=vouched, after_parts=dict(client._parts), boundaries=[],
    )  # fmt: skip
    with pytest.raises(NoEvidence, match="breaks no rule"):
        check_posting(evidence, served.world.genesis, client.verifier)


def test_a_posting_that_was_drawn_and_is_withheld_stops_the_client(
    served: ServedWorld, client: HeaderClient
) -> None:
    """Otherwise whoever hides a bad posting would wait until others are drawn."""
    client.sync()
    height = client.state.height
    client.post(a_submission(served.world, 0, 0))
    served.next_block()
    served.lie = lambda _world, path, answer: None if "/postings/" in path else answer
    for _ in range(3):
        with pytest.raises(PeerUnreachable):
            client.sync()
        assert client.state.height == height
    served.lie = lambda _world, _path, answer: answer
    client.sync()
    assert client.state.height == height + 1


@pytest.mark.parametrize("kind", ["registration", "bytes", "early", "addressees"])
def test_each_kind_of_breach_is_judged(served: ServedWorld, client: HeaderClient, kind: str) -> None:
    client.sync()
    world, secret = served.world, MessageSecret.generate()
    author = KeyAuthor(secret.public_key().to_bytes())
    if kind == "bytes":
        data = b"\x01\x02 no posting"
    elif kind == "registration":
        posting = world.registration(world.certify(seed=77))
        assert isinstance(posting.body, Registration)
        body: Any = replace(posting.body, certifier_root=bytes(32))
        data = make_posting(body, author, world.genesis.hash, secret.sign).data
    else:
        good = a_submission(world, 0, 0)
        assert isinstance(good.body, Submission)
        changes: dict[str, Any] = {"early": {"iteration": 9}, "addressees": {"contributions": ()}}[kind]
        try:
            body = replace(good.body, **changes)
            data = make_posting(body, author, world.genesis.hash, secret.sign).data
        except AnofelError:
            pytest.skip("the encoding does not admit it")
    served.forge_block(data)
    with pytest.raises(BoardMisbehaved):
        client.sync()


def test_good_registrations_and_role_holders_are_not_accused(
    served: ServedWorld, client: HeaderClient
) -> None:
    client.sync()
    world = served.world
    world.add_clients(2)
    served.next_block()
    world.board.post_as(world.owners[0].role, EndTask(task=world.owners[0].task_id))
    served.next_block()
    client.sync()
    assert client.checked >= 3
    assert len(client.state.clients) == len(world.board.state.clients)


def test_the_draw_is_by_chance_and_bounded() -> None:
    assert sample.draw(5, sample.SAMPLE) == [0, 1, 2, 3, 4]
    drawn = [len(sample.draw(1000, 1000)) for _ in range(200)]
    mean = sum(drawn) / len(drawn)
    assert sample.SAMPLE * 0.8 < mean < sample.SAMPLE * 1.2
    assert len({tuple(sample.draw(1000, 1000)) for _ in range(20)}) == 20


def test_the_own_rules_refuse_what_headers_tell(served: ServedWorld, client: HeaderClient) -> None:
    client.sync()
    good = a_submission(served.world, 0, 0)
    assert client._own_refusal(good) is None
    assert isinstance(good.body, Submission)
    secret = MessageSecret.generate()
    late = make_posting(
        replace(good.body, iteration=7),
        KeyAuthor(secret.public_key().to_bytes()),
        served.world.genesis.hash,
        secret.sign,
    )
    refusal = client._own_refusal(late)
    assert isinstance(refusal, Refused)
    assert refusal.code == "iteration-not-open"
    assert posting_id(good.data) == Posting.from_bytes(good.data).id


def test_one_honest_node_is_enough(
    served: ServedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the other one says about headers, state or leaves."""
    monkeypatch.setattr(HeaderClient, "faulty", 1)
    other = copy.copy(served)
    with serving(served) as honest, serving(other) as lying:
        for number, lie in enumerate(("wrong_leaf", "no_leaves", "no_outline", "change_phase", "hide_task")):
            other.lie = LIES[lie]
            transport = Transport([honest, lying], attempts=3, timeout=SECONDS, patience=SECONDS)
            client = HeaderClient(tmp_path / str(number), transport, genesis_hash=served.world.genesis.hash)
            client.sync()
            assert client.state.height == len(served.blocks)
            client.close()
