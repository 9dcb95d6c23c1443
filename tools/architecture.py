"""Draws docs/architecture.svg from the table of steps in docs/architecture.md.

The page says what each arrow is; this file only says where it goes.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "architecture.md", DOCS / "architecture.svg"
WIDTH, HEIGHT = 1240, 600
ROW = re.compile(r'^\| <a id="(step-\w+)"></a>(\S+) \| `(\S+)` \| (.+?) \| (\w+) (?:→ (\w+)|alone) \|$', re.M)
STYLE = """
  .ground { fill: #fbfaf7 } .board { fill: #eef1f4; stroke: #8a97a6 } .cell { fill: #fff; stroke: #cdd5de }
  .role { fill: #fff; stroke: #2f4858; stroke-width: 1.6 }
  .line { stroke: #2f4858; stroke-width: 1.8; fill: none } .off { stroke-dasharray: 5 5 }
  .head, .disc { fill: #2f4858 }
  text { fill: #1d2b36; font: 16px system-ui, sans-serif }
  .name { font-size: 20px; font-weight: 650 } .step { fill: #fff; font-weight: 700 }
  .small, .faint { font-size: 16px } .faint { fill: #55636f }
  .posting { font: 13px ui-monospace, monospace }
  a:hover .words { text-decoration: underline } a:focus .disc, a:hover .disc { fill: #b3541e }
  @media (prefers-color-scheme: dark) {
    .ground, .cell { fill: #14191e } .cell { stroke: #3b4753 }
    .board, .role { fill: #1d252d } .board { stroke: #5d6b79 } .role, .line { stroke: #9fb6c6 }
    .head, .disc { fill: #9fb6c6 }
    text { fill: #e4eaef } .step { fill: #14191e } .faint { fill: #a3b0bb }
    a:focus .disc, a:hover .disc { fill: #f0a267 }
  }
"""


class Step(NamedTuple):
    """A row of the table."""

    anchor: str
    number: str
    module: str
    words: str
    source: str
    target: str


class Box(NamedTuple):
    """A role: its place, its name, and what it is."""

    x: int
    y: int
    width: int
    name: str
    words: str


BOX_HEIGHT = 72
BOARD_X, BOARD_Y, BOARD_WIDTH, BOARD_HEIGHT = 104, 242, 876, 124
POSTINGS = ("CertifierKeyOffer", "Registration", "CommitteeKeyVote", "Model", "Submission", "Aggregate")
MORE = {"CommitteeKeyVote": "DkgRound", "Model": "TaskAnnouncement", "Aggregate": "CountShare, SumShare"}
EDGE = 6
CELL = (BOARD_WIDTH - 2 * EDGE) // len(POSTINGS)
COLUMN = [BOARD_X + EDGE + CELL * place + CELL // 2 for place in range(len(POSTINGS))]
BOXES = {
    "certifier": Box(36, 62, 260, "certifier", "vouches for data: a hospital"),
    "aggregators": Box(410, 62, 552, "aggregators", "a committee; t of n open a sum together"),
    "client": Box(266, 468, 552, "client", "holds data; nobody learns that it takes part"),
    "owner": Box(1104, 242, 122, "owner", "has a task"),
}
ACROSS = dict(zip(("1.a", "1.b", "1.c", "3", "5", "8"), COLUMN, strict=True)) | {"6": COLUMN[4]}
"""Vertical arrows, by their x."""
WORDS_LEFT = ("3", "6")
ALONG = {"1.d": BOARD_Y + 34, "8′": BOARD_Y + 92}
"""Horizontal arrows between the board and the owner, by their y."""
LOOPS = {"4": 514, "7": 658}
"""What a role does by itself."""


def read_steps(page: str) -> list[Step]:
    """Read the table."""
    return [Step(*row) for row in ROW.findall(page)]


def draw(steps: list[Step]) -> str:
    """Draw the whole figure."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title">',
        '<title id="title">Roles around the board, and the steps of the paper</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        *_board(),
        *_certificate(),
        *(_box(box, tall=BOARD_HEIGHT if name == "owner" else BOX_HEIGHT) for name, box in BOXES.items()),
        *(_arrow(step) for step in steps),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _board() -> list[str]:
    parts = [
        f'<rect class="board" x="{BOARD_X}" y="{BOARD_Y}" width="{BOARD_WIDTH}" '
        f'height="{BOARD_HEIGHT}" rx="8"/>',
        _text(BOARD_X + EDGE + 7, BOARD_Y + 27, "the board", "name"),
        _text(BOARD_X + 134, BOARD_Y + 27, "signed blocks of postings; everybody checks every rule", "faint"),
    ]
    for place, posting in enumerate(POSTINGS):
        x, y = BOARD_X + EDGE + CELL * place + 3, BOARD_Y + 48
        middle = x + (CELL - 6) / 2
        parts.append(f'<rect class="cell" x="{x}" y="{y}" width="{CELL - 6}" height="62" rx="4"/>')
        lines = [posting, *MORE[posting].split(", ")] if posting in MORE else [posting]
        top = y + 35 - 8 * (len(lines) - 1)
        parts += [_text(middle, top + 17 * n, line, "posting", "middle") for n, line in enumerate(lines)]
    return parts


def _certificate() -> list[str]:
    """The first half of step 1.b does not cross the board."""
    start, end, left = BOXES["certifier"].y + BOX_HEIGHT, BOXES["client"], 66
    y = end.y + BOX_HEIGHT // 2
    return [
        f'<path class="line off" d="M{left} {start} V{y - 14} Q{left} {y} {left + 14} {y} H{end.x - 10}"/>',
        _head(end.x, y, "right"),
        _text(left + 14, y - 40, "1.b, first half:", "small"),
        _text(left + 14, y - 18, "a certificate over data", "small"),
    ]


def _box(box: Box, tall: int) -> str:
    middle = box.x + box.width / 2
    return (
        f'<rect class="role" x="{box.x}" y="{box.y}" width="{box.width}" height="{tall}" rx="8"/>'
        + _text(middle, box.y + tall / 2 - 4, box.name, "name", "middle")
        + _text(middle, box.y + tall / 2 + 18, box.words, "faint", "middle")
    )


def _arrow(step: Step) -> str:
    if step.number in ACROSS:
        inner = _vertical(step, ACROSS[step.number])
    elif step.number in ALONG:
        inner = _horizontal(step, ALONG[step.number])
    else:
        inner = _loop(step, LOOPS[step.number])
    title = f"<title>{escape(f'{step.number}: {step.module}')}</title>"
    return f'<a href="architecture.html#{step.anchor}" target="_top">{title}{inner}</a>'


def _vertical(step: Step, x: int) -> str:
    role = BOXES[step.source if step.target == "board" else step.target]
    above = role.y < BOARD_Y
    near, far = (role.y + BOX_HEIGHT, BOARD_Y) if above else (role.y, BOARD_Y + BOARD_HEIGHT)
    start, end = (near, far) if step.target == "board" else (far, near)
    way = "down" if end > start else "up"
    back = -9 if way == "down" else 9
    y = (near + far) / 2
    right = step.number not in WORDS_LEFT
    return (
        f'<path class="line" d="M{x} {start} V{end + back}"/>{_head(x, end, way)}{_disc(x, y, step.number)}'
        + _text(x + (24 if right else -24), y + 5, step.words, "words small", "start" if right else "end")
    )


def _horizontal(step: Step, y: int) -> str:
    left, right = BOARD_X + BOARD_WIDTH, BOXES["owner"].x
    line = (
        f'<path class="line" d="M{left} {y} H{right - 9}"/>{_head(right, y, "right")}'
        if step.source == "board"
        else f'<path class="line" d="M{right} {y} H{left + 9}"/>{_head(left, y, "left")}'
    )
    below = y > BOARD_Y + BOARD_HEIGHT / 2
    words = _text((left + right) / 2, y + (36 if below else -24), step.words, "words small", "middle")
    return line + _disc((left + right) // 2, y, step.number) + words


def _loop(step: Step, x: int) -> str:
    box = BOXES[step.source]
    above = box.y < BOARD_Y
    edge = box.y if above else box.y + BOX_HEIGHT
    out = -1 if above else 1
    top, bend = edge + 34 * out, edge + 6 * out
    return (
        f'<path class="line" d="M{x} {edge} C{x} {top} {x + 56} {top} {x + 56} {bend}"/>'
        f"{_head(x + 56, edge, 'down' if above else 'up')}{_disc(x + 28, edge + 25 * out, step.number)}"
        + _text(x + 70, edge + 24 * out + 5, step.words, "words small")
    )


def _head(x: float, y: float, way: str) -> str:
    dx, dy = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}[way]
    back = (x - 11 * dx, y - 11 * dy)
    one = (back[0] + 5.5 * dy, back[1] + 5.5 * dx)
    two = (back[0] - 5.5 * dy, back[1] - 5.5 * dx)
    return f'<path class="head" d="M{x:g} {y:g} L{one[0]:g} {one[1]:g} L{two[0]:g} {two[1]:g} Z"/>'


def _disc(x: float, y: float, number: str) -> str:
    return f'<circle class="disc" cx="{x:g}" cy="{y:g}" r="16"/>' + _text(
        x, y + 5.5, number, "step small", "middle"
    )


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


if __name__ == "__main__":
    FIGURE.write_text(draw(read_steps(PAGE.read_text())))
