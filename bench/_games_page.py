"""The tables of docs/games.md, written from the counts that bench/games.py made."""

import json
from pathlib import Path
from typing import Any

from anofel.games.adversaries.catalogue import CATALOGUE
from anofel.games.adversary import Adversary
from anofel.games.play import BROKEN
from anofel.games.put_back import CATALOGUE as WEAKENINGS
from anofel.games.put_back import weakening_named

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "games"
PAGE = ROOT / "docs" / "games.md"
BEGIN = "<!-- results: bench/games.py page -->"
END = "<!-- end of results -->"


def write_page() -> None:
    """Replace what stands between the marks of the page."""
    document = json.loads((RESULTS / "plays.json").read_text())
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n\n{tables(document)}\n\n{END}{tail}")


def tables(document: dict[str, Any]) -> str:
    """Return both tables, and that of the leaks."""
    rows = {(row["game"], row["adversary"], row["weakened"]): row for row in document["rows"]}
    parts = []
    for game, title in (("anon", "### AnonGame"), ("dind", "### DINDGame")):
        lines = [
            "| adversary | looks at | the paper's choice | leak put back | ours | bound |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_line(found, rows) for found in CATALOGUE if found.game == game]
        parts += [title, "\n".join(lines)]
    lines = ["| `--weaken` | in the paper | what is different |", "|---|---|---|"]
    lines += [f"| `{w.name}` | {'yes' if w.is_papers else ''} | {w.about} |" for w in WEAKENINGS]
    parts += ["### What is put back", "\n".join(lines)]
    where = document["machine"]
    parts.append(
        f"`{document['command']}`; {where['cpu']} with {where['cores']} cores, Python {where['python']}, "
        f"NumPy {where['numpy']}."
    )
    return "\n\n".join(parts)


def _line(found: Adversary, rows: dict[tuple[str, str, str], dict[str, Any]]) -> str:
    papers, leaks = [], []
    for name in found.weakened:
        cell = _cell(rows.get((found.game, found.name, name)), name)
        (papers if weakening_named(name).is_papers else leaks).append(cell)
    ours = rows.get((found.game, found.name, ""))
    shown = _cell(ours)
    if ours is not None and ours["verdict"] == BROKEN:
        shown = f"**{shown}**"
    bound = f"{found.bound():.3f}"
    cells = [found.name, found.about, "; ".join(papers) or "–", "; ".join(leaks) or "–", shown, bound]
    return f"| {' | '.join(cells)} |"


def _cell(row: dict[str, Any] | None, name: str = "") -> str:
    label = f"`{name}` " if name else ""
    if row is None:
        return f"{label}not played"
    return f"{label}{row['wins']} of {row['plays']} ({row['low']:.2f} … {row['high']:.2f})"
