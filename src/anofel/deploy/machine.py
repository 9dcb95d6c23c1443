"""What one machine of a plan gets: its script, its checklist, and public files."""

from dataclasses import dataclass
from typing import Final

from anofel.deploy import scripts

SCRIPT: Final = "go.sh"
CHECKLIST: Final = "CHECKLIST.txt"
HTTPS: Final = 443


@dataclass(frozen=True)
class Machine:
    """What one machine gets."""

    name: str
    title: str
    lines: list[str]
    files: dict[str, bytes]
    """Public files and units."""
    brings: list[str]
    """What people carry to it, and from whom."""
    gives: list[str]
    prepare: list[str]
    """What its operator does by hand before the script runs."""
    ports: tuple[int, ...] = ()
    """Where others reach it."""
    program: str = "anofel"
    """What its script needs first of all."""

    def contents(self) -> dict[str, bytes]:
        """Return its directory."""
        parts = {
            "Before": self.prepare,
            "What is carried to in/": self.brings,
            "What is carried on from out/": self.gives,
        }
        text = f"{self.title}\n\nRun: sh {SCRIPT}   (again whenever a file has arrived)\n"
        for heading, entries in parts.items():
            text += f"\n{heading}\n" + "".join(f"  [ ] {entry}\n" for entry in entries or ["nothing"])
        text += "\nNever carried: x509/key.pem, role.key, the role's directory. They stay on this machine.\n"
        return {
            SCRIPT: scripts.script(self.title, self.lines, self.program).encode(),
            CHECKLIST: text.encode(),
            **self.files,
        }
