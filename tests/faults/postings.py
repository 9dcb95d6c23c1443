"""Postings that their authors changed and signed again, sent to a real node at the stage where they belong.

Whoever may post may also post nonsense. A changed posting is refused, unless the change makes another valid
posting of its author: then it is not sent, and counted as a variant.
"""

import itertools
import random
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import httpx2

from anofel.errors import AnofelError
from anofel.messages import CommitteeKeyVote, Posting, PrivacyLedger, RevokeCertifier, TaskAnnouncement
from tests.board.prepared import Stages
from tests.board.test_fuzz import Entry, make_corpus, signed_mutation
from tests.board.world import World
from tests.faults.node_process import Findings, node_at, post
from tests.node.support import SECONDS

NODES_AT_ONCE = 2
CONNECTIONS = 4
HOUR_MS = 3_600_000
FREE = {
    PrivacyLedger: {"zero_out", "replace"},
    RevokeCertifier: {"new_epoch"},
    CommitteeKeyVote: {"transcript"},
    TaskAnnouncement: {"document", "bound", "early_end"},
}
"""What an author may say otherwise without breaking a rule; audits and members check it."""


class SlowStages(Stages):
    """Boards on which no block ends while they are attacked, so that nothing is refused for being late."""

    def world(self, num_clients: int = 0, **changes: object) -> World:
        return super().world(num_clients, **{"interval_ms": HOUR_MS, **changes})


def is_variant(original: Posting, data: bytes) -> bool:
    """Whether a changed posting says only what its author is free to say."""
    try:
        changed = Posting.from_bytes(data)
    except AnofelError:
        return False
    if changed.author != original.author or type(changed.body) is not type(original.body):
        return False
    names = (field.name for field in fields(original.body))
    differing = {name for name in names if getattr(original.body, name) != getattr(changed.body, name)}
    return differing <= FREE.get(type(original.body), set())


def attack_node(entries: list[Entry], number: int, seed: int, contents: list[bytes]) -> Findings:
    """Send so many changed postings to one node; the good ones are admitted after all of them."""
    findings, world = Findings(), entries[0][0]
    with tempfile.TemporaryDirectory() as directory:
        node = node_at(world, Path(directory) / "node")
        changed = list(itertools.islice(_changed(entries, seed, contents, findings), number))
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            parts = [(node.url, changed[start::CONNECTIONS]) for start in range(CONNECTIONS)]
            for result in pool.map(_send, *zip(*parts, strict=True)):
                findings.take(result)
        with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
            for _, posting, _ in reversed(entries):
                answer = post(client, posting.data)
                findings.add("good postings")
                if answer.status_code != 202:
                    findings.violations.append(f"A good posting was refused: {answer.text}")
        node.end(findings)
    return findings


def _changed(
    entries: list[Entry], seed: int, contents: list[bytes], findings: Findings
) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    while True:
        entry = chance.choice(entries)
        data = signed_mutation(entry, chance, contents)
        if is_variant(entry[1], data):
            findings.add("variants")
        else:
            yield type(entry[1].body).__name__, data


def _send(url: str, changed: list[tuple[str, bytes]]) -> Findings:
    findings = Findings()
    with httpx2.Client(base_url=url, timeout=SECONDS) as client:
        for kind, data in changed:
            findings.add("changed postings")
            try:
                answer = post(client, data)
            except httpx2.HTTPError as error:
                findings.violations.append(f"No answer to a {kind}: {error!r}: {data.hex()}")
                continue
            if answer.is_success:
                findings.violations.append(f"False accept of a {kind}: {data.hex()}")
            elif answer.status_code >= 500:
                findings.violations.append(f"{answer.status_code} for a {kind}: {data.hex()}")
            else:
                findings.add(f"refused: {answer.json().get('code')}")
    return findings


def attack(stages: Stages, number: int, seed: int) -> Findings:
    """Send changed postings of every kind, each to a node where the unchanged one is admitted."""
    corpus = make_corpus(stages)
    contents = [posting.content for _, posting, _ in corpus]
    boards: dict[int, list[Entry]] = {}
    for entry in corpus:
        boards.setdefault(id(entry[0]), []).append(entry)
    groups = list(boards.values())
    shares = [-(-number * len(entries) // len(corpus)) for entries in groups]
    findings = Findings()
    with ThreadPoolExecutor(NODES_AT_ONCE) as pool:
        seeds = range(seed, seed + len(groups))
        for result in pool.map(attack_node, groups, shares, seeds, [contents] * len(groups)):
            findings.take(result)
    return findings
