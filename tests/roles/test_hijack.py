"""Others replay an honest committee's messages over a real node, to become its members."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from anofel.board.key_runs import complete_rounds, min_rounds
from anofel.committee import schemes
from anofel.committee.interface import RoundMessage
from anofel.messages import Body, ChainAuthor, Run, make_posting
from anofel.network.transport import Refused
from anofel.phase1_setup.step1c_committee_key import generation_run, post_key, post_round, posted_round
from anofel.pki.certificates import RoleKey
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.key_ceremony import KeyCeremony, describe_run
from tests.roles.support import SECONDS, Deployment, deployed

HONEST = ("member-a", "member-b", "member-c")
THIEVES = ("thief-a", "thief-b", "thief-c")


@pytest.fixture
def world(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("hijack"), keys) as made:
        yield made


def run_of(world: Deployment, names: tuple[str, ...], label: str) -> tuple[Run, dict[bytes, RoleKey]]:
    for name in names:
        world.init("aggregator", name)
    places = [world.path / f"{name}-certificate" for name in names]
    roles = [RoleKey.from_files(place / "certificate.pem", place / "key.pem") for place in places]
    subjects = {role.subject: role for role in roles}
    return describe_run(label, list(subjects), 2, "lattice"), subjects


def post(world: Deployment, role: RoleKey, body: Body) -> None:
    genesis = world.view.genesis.hash
    world.view.post(make_posting(body, ChainAuthor(role.chain), genesis, role.sign))


def test_a_replayed_run_is_refused_and_the_honest_one_established(world: Deployment) -> None:
    run, _ = run_of(world, HONEST, "honest")
    stolen, thieves = run_of(world, THIEVES, "stolen")
    genesis = world.view.genesis.hash
    run_id, stolen_id = run.run_id(genesis), stolen.run_id(genesis)
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                world.playing(lambda directory, view: KeyCeremony(directory, view, run), name)  # type: ignore[arg-type]
            )
            for name in HONEST
        ]
        end = time.monotonic() + SECONDS
        waiting = list(members)
        while waiting:  # all rounds are complete for everybody, and nobody has posted the key
            assert time.monotonic() < end
            for member in list(waiting):
                member.board.sync()
                known = member.state.runs.get(run_id)
                if known is not None and complete_rounds(known) == min_rounds(run):
                    waiting.remove(member)
                else:
                    member.step()

        world.view.sync()
        read, known = world.view.attachments.read, world.view.state.runs[run_id]
        rounds = [
            [
                RoundMessage(run_id=run_id, round=number, sender=sender, body=read(name))
                for sender, name in sorted(posted_round(known, number).items())
            ]
            for number in range(min_rounds(run))
        ]
        observed = schemes.by_name("lattice").key_generation().observe(generation_run(run, genesis), rounds)
        key, transcript = observed.key, observed.transcript
        for number, messages in enumerate(rounds):
            for message in messages:
                again = RoundMessage(run_id=stolen_id, round=number, sender=message.sender, body=message.body)
                role = thieves[stolen.members[message.sender - 1]]
                post(world, role, post_round(stolen, again, world.view.upload(again.body)))
            world.wait(
                lambda state, number=number: (  # type: ignore[misc]
                    stolen_id in state.runs and complete_rounds(state.runs[stolen_id]) > number
                ),
                "the replayed round",
            )
        for number, subject in enumerate(stolen.members, start=1):
            blob = world.view.upload(key.to_bytes())
            with pytest.raises(Refused) as refused:
                post(
                    world,
                    thieves[subject],
                    post_key(stolen, number, key, transcript, blob, genesis=genesis),
                )
            assert refused.value.code == "key-not-of-its-run"

        while not all(member.is_done for member in members):
            assert time.monotonic() < end
            for member in members:
                member.board.sync()
                member.step()
    world.view.sync()
    (committee,) = world.view.state.committees.values()
    assert (committee.key_id, committee.current.members) == (key.key_id, run.members)
    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", world.node.url], capture_output=True, text=True
    )
    assert audited.returncode == 0, audited.stderr
