"""The paper's games: every adversary against the program as it ships, and against its leak put back.

Run: python bench/games.py [--plays N] [--weakened N] [--chunk N] [--only NAME …] [--keys DIR] [--out DIR]
     python bench/games.py page

Adversaries with the same queries share plays. Every chunk of plays is written when it is done; a run that is
started again goes on, in rounds, until each row has as many plays as were asked for. Nothing is downloaded.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _games_page import PAGE, RESULTS, write_page
from _learning_report import machine

from anofel.disk.files import replace_file
from anofel.errors import AnofelError
from anofel.games.adversaries.catalogue import CATALOGUE
from anofel.games.adversary import Adversary
from anofel.games.parties import LoadedKeys
from anofel.games.play import GameTable, Score, play_games
from anofel.games.put_back import weakening_named
from anofel.games.weak import NOTHING_PUT_BACK
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys

FILE = "plays.json"


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Record:
    """The counts so far, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found = json.loads(path.read_text())["rows"] if path.exists() else []
        self.rows = {(row["game"], row["adversary"], row["weakened"]): row for row in found}

    def plays(self, adversary: Adversary, weakened: str) -> int:
        row = self.rows.get((adversary.game, adversary.name, weakened))
        return 0 if row is None else int(row["plays"])

    def add(self, score: Score) -> None:
        row = self.rows.get((score.game, score.adversary, score.weakened))
        if row is not None:
            score.plays += row["plays"]
            score.wins += row["wins"]
            score.void += row["void"]
            score.reasons.update(row["reasons"])
        self.rows[score.game, score.adversary, score.weakened] = score.document()

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [self.rows[key] for key in sorted(self.rows)]
        document = {"command": "python bench/games.py", "machine": machine(), "rows": rows}
        replace_file(self.path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def jobs(record: Record, known: Sequence[Adversary], options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The next chunk of everything that is not done, least played first."""
    left: list[tuple[Any, ...]] = []
    for adversary in known:
        for weakened in adversary.weakened:
            played = record.plays(adversary, weakened)
            wanted = adversary.decisive * options.weakened
            if played < wanted:
                left.append((played, [adversary], weakened, min(wanted - played, options.chunk)))
    groups: dict[Any, list[Adversary]] = {}
    for adversary in known:
        groups.setdefault(adversary.strategy, []).append(adversary)
    for group in groups.values():
        fewest = min(record.plays(adversary, "") for adversary in group)
        behind = [adversary for adversary in group if record.plays(adversary, "") == fewest]
        if fewest < options.plays:
            left.append((fewest, behind, "", min(options.plays - fewest, options.chunk)))
    return sorted(left, key=lambda job: job[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["page"], help=f"write the tables of {PAGE.name}")
    parser.add_argument("--plays", type=int, default=2000, help="against the program as it ships")
    parser.add_argument("--weakened", type=int, default=1, help="times as many as decide, against each leak")
    parser.add_argument("--chunk", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="names of adversaries")
    parser.add_argument("--keys", type=Path, help="a directory of proof keys; made anew unless given")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true", help="print the counts for programs")
    options = parser.parse_args()
    if options.what == "page":
        write_page()
        return
    known = [found for found in CATALOGUE if not options.only or found.name in options.only]
    record = Record(options.out / FILE)
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="anofel-games-") as scratch:
        made = options.keys or make_insecure_development_keys(Path(scratch) / "keys").path
        keys = LoadedKeys(KeyDirectory.open(made))
        table = stack.enter_context(GameTable(keys))
        while left := jobs(record, known, options):
            _, group, weakened, plays = left[0]
            variant = weakening_named(weakened) if weakened else NOTHING_PUT_BACK
            for score in play_games(group, plays, keys, variant, table=table):
                note(f"{score.adversary} {weakened or '(ours)'}: {score.wins} of {score.plays}")
                record.add(score)
            record.write()
    if options.json:
        print(json.dumps([record.rows[key] for key in sorted(record.rows)], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except AnofelError as error:
        sys.exit(f"bench/games.py: {error}")
