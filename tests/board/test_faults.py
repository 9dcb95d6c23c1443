"""The campaign of ``tests/faults`` in small: real nodes, changed postings, malformed requests.

Its kills are in ``tests/node/test_crash.py``, which it shares.
"""

import subprocess
import sys

from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import Stages
from tests.board.test_fuzz import first_entries
from tests.faults import postings, requests


def test_a_node_refuses_what_its_authors_changed(stages: Stages) -> None:
    fresh = stages("fresh")
    members = fresh.make_members(3)
    entries = first_entries(fresh, members, fresh.make_run(members, 2))
    findings = postings.attack_node(entries, 80, 1, [posting.content for _, posting, _ in entries])
    assert findings.violations == []
    assert findings.counts["changed postings"] == 80
    assert findings.counts["good postings"] == len(entries)


def test_a_node_survives_malformed_requests(keys: KeyDirectory) -> None:
    number = len(requests.READS + requests.WRITES) + 60
    findings = requests.attack(keys, number, 1)
    assert findings.violations == []
    assert findings.counts["malformed requests"] == number
    assert findings.counts["answer: 4xx"] > number // 3


def test_the_campaign_can_be_started() -> None:
    command = [sys.executable, "-m", "tests.faults.campaign", "--help"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
