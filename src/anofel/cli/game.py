"""``anofel game``: play the paper's games against this program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from anofel.cli.output import JsonOption

app = typer.Typer(
    help="Play the paper's games of anonymity and dataset privacy against this program.",
    no_args_is_help=True,
)

AdversaryName = Annotated[str, typer.Option("--adversary", help="Who plays; anofel game list names all.")]
Plays = Annotated[int, typer.Option("--plays", min=1, max=1_000_000, help="How many games are played.")]
WeakenName = Annotated[
    str, typer.Option("--weaken", help="Put a leak back; anofel game list names all.", show_default="none")
]
KeysDirectory = Annotated[
    Path | None,
    typer.Option(
        "--keys", help="A directory of proof keys.", show_default="insecure development keys, made anew"
    ),
]


@app.command()
def anon(
    adversary: AdversaryName,
    plays: Plays = 40,
    weaken: WeakenName = "",
    keys: KeysDirectory = None,
    as_json: JsonOption = False,
) -> None:
    """Play AnonGame: which of two registered clients trains.

    Example: anofel game anon --adversary post-time --weaken post-when-ready --plays 20
    """
    _play("anon", adversary, plays, weaken, keys, as_json=as_json)


@app.command()
def dind(
    adversary: AdversaryName,
    plays: Plays = 40,
    weaken: WeakenName = "",
    keys: KeysDirectory = None,
    as_json: JsonOption = False,
) -> None:
    """Play DINDGame: which of two datasets a new client trains with.

    Example: anofel game dind --adversary sum-likelihood --plays 20
    """
    _play("dind", adversary, plays, weaken, keys, as_json=as_json)


@app.command("list")
def list_all(as_json: JsonOption = False) -> None:
    """Name every adversary, and every leak that can be put back.

    Example: anofel game list
    """
    from anofel.cli.output import print_json, print_table
    from anofel.games.adversaries.catalogue import CATALOGUE
    from anofel.games.put_back import CATALOGUE as WEAKENINGS

    if as_json:
        print_json(
            {
                "adversaries": [
                    {
                        "game": found.game,
                        "name": found.name,
                        "about": found.about,
                        "wins_against": list(found.weakened),
                    }
                    for found in CATALOGUE
                ],
                "weakenings": [
                    {"name": found.name, "about": found.about, "in_the_paper": found.is_papers}
                    for found in WEAKENINGS
                ],
            }
        )
        return
    for game in dict.fromkeys(found.game for found in CATALOGUE):
        rows = [
            [found.name, " ".join([found.about, *_against(found.weakened)])]
            for found in CATALOGUE
            if found.game == game
        ]
        print_table(f"Adversaries of the game {game}", ["name", "what it does"], rows)
    rows = [[found.name, found.about + " As in the paper." * found.is_papers] for found in WEAKENINGS]
    print_table("Leaks that can be put back", ["name", "what is different"], rows)


def _against(leaks: Sequence[str]) -> list[str]:
    return [f"Wins against {' and '.join(leaks)}."] if leaks else []


def _play(game: str, adversary: str, plays: int, weaken: str, keys: Path | None, *, as_json: bool) -> None:
    import tempfile

    from anofel.cli.output import note, print_json, print_table, progress_bar
    from anofel.games.adversaries.catalogue import adversary_named
    from anofel.games.intervals import CONFIDENCE
    from anofel.games.parties import LoadedKeys
    from anofel.games.play import play_games
    from anofel.games.put_back import weakening_named
    from anofel.games.weak import NOTHING_PUT_BACK
    from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys

    player = adversary_named(adversary, game)
    variant = weakening_named(weaken) if weaken else NOTHING_PUT_BACK
    note(f"{player.about} Against: {variant.about}")
    with tempfile.TemporaryDirectory(prefix="anofel-game-") as scratch, progress_bar("playing") as progress:
        if keys is None:
            opened = make_insecure_development_keys(Path(scratch) / "keys")
        else:
            opened = KeyDirectory.open(keys)
        (score,) = play_games([player], plays, LoadedKeys(opened), variant, on_play=progress)
    if as_json:
        print_json(score.document())
        return
    found = score.interval
    print_table(
        f"{score.adversary}: {score.verdict}",
        ["", ""],
        [
            ["wins", f"{score.wins} of {score.plays}"],
            [f"probability of a win ({CONFIDENCE:.0%})", f"{found.low:.3f} to {found.high:.3f}"],
            ["bound", f"{score.bound:.3f}"],
            ["right guesses that did not count", f"{score.void} {' '.join(sorted(score.reasons))}".rstrip()],
        ],
    )
