"""What lying clients can do, with each defence: scaled, reversed and poisoned updates, Sybils, bad posts.

Run: python bench/attacks.py [--only STUDY …] [--iterations N] [--out DIR] [--json]
     python bench/attacks.py page

Two parts. *Lies about the protocol* (garbage words, a long secret, an update in a decoy, a false
bit …) go through the real cryptography, with a committee of three, and a board: what is refused,
where, with which code, and whether the sum is that of the honest clients. *Lies about the update*
are within the protocol; they are played over the plain integers that a deployment encrypts, without
the encryption, with 1, 5 and 10 % liars. With a norm proof a liar sends as much of its vector as
may pass, 2.85·B, which takes 2^128 attempts. Every run is written when it is done, and one that is
there is not played again. Data: anofel study fetch.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # several threads on few cores are slower

import numpy as np
from _attack_lies import lies_over_a_board, lies_to_a_committee
from _attack_report import RESULTS, write, write_page
from _attack_runs import ATTACKS, DEFENCES, SHARES, Game, Setting, settings
from _learning_report import machine

from anofel.errors import AnofelError
from anofel.learning.splits import split_rows
from anofel.studies.catalogue import study_named
from anofel.studies.fetch import fetch, is_fetched
from anofel.studies.load import load_study

SEED = 0


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def game_of(setting: Setting) -> Game:
    study = study_named(setting.study)
    if not is_fetched(study):
        note(f"fetching {study.name} ...")
        fetch(study)
    train, test = load_study(study, SEED)
    if setting.rows is not None:
        train = train.take(np.random.default_rng(SEED).permutation(len(train))[: setting.rows])
    return Game(setting, split_rows(train, setting.clients, "iid", SEED), test, SEED)


def runs() -> list[tuple[str, str, float]]:
    """Defence, attack and share of liars of every run; those without liars first."""
    honest = [(defence, "", 0.0) for defence in DEFENCES]
    return honest + [
        (defence, attack, share) for attack, share, defence in product(ATTACKS, SHARES, DEFENCES)
    ]


def sweep(setting: Setting, out: Path) -> dict[str, Any]:
    """Play what is not played yet; every run is written at once."""
    path, command = out / f"{setting.study}.json", f"python bench/attacks.py --only {setting.study}"
    head = {
        "study": setting.study,
        "measure": setting.measure,
        "remark": setting.remark,
        "iterations": setting.iterations,
        "clients": setting.clients,
        "groups": setting.groups.number,
        "command": command,
    }
    found = json.loads(path.read_text()) if path.exists() else {}
    alike = all(found.get(key) == value for key, value in head.items() if key != "remark")
    result = head | {"machine": machine(), "runs": found["runs"] if alike else []}
    done = {(run["defence"], run["attack"], run["share"]) for run in result["runs"]}
    left = [key for key in runs() if key not in done]
    game = game_of(setting) if left else None
    for number, (defence, attack, share) in enumerate(left, start=1):
        assert game is not None
        outcome = game.play(defence, attack, share)
        result["runs"].append({"defence": defence, "attack": attack, "share": share, **asdict(outcome)})
        write(result, path)
        note(f"{setting.study}, {number} of {len(left)}: {defence}, {attack or '-'}, {share:.0%}: {outcome}")
    return result


def main() -> None:
    known = [setting.study for setting in settings()]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["page"], help="write docs/attacks.md from the results")
    parser.add_argument("--only", nargs="*", default=[*known, "protocol"], choices=[*known, "protocol"])
    parser.add_argument("--iterations", type=int, help="shortens the runs; for trying out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true", help="print the results for programs")
    options = parser.parse_args()
    if options.what == "page":
        write_page()
        return
    results: dict[str, Any] = {}
    if "protocol" in options.only:
        results["protocol"] = {
            "command": "python bench/attacks.py --only protocol",
            "machine": machine(),
            "committee": lies_to_a_committee(),
            "board": lies_over_a_board(),
        }
        write(results["protocol"], options.out / "protocol.json")
        for row in (*results["protocol"]["committee"], *results["protocol"]["board"]):
            note(f"{row['lie']}: {row['refused']} ({row['where']})")
    for setting in settings():
        if setting.study in options.only:
            if options.iterations:
                setting = Setting(**{**vars(setting), "iterations": options.iterations})
            results[setting.study] = sweep(setting, options.out)
    if options.json:
        print(json.dumps(results, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except AnofelError as error:
        sys.exit(f"bench/attacks.py: {error}")
