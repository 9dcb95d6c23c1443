"""The script of a machine: its commands in order. Every step is skipped once it is done.

A script makes what is secret on its own machine and takes in and gives out what is public: ``in/`` holds what
people brought, ``out/`` what they carry on.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from shlex import join, quote
from typing import Final

from anofel.node.replicated.engine import ENGINE

WAITS: Final = 75
"""The exit code of a script that waits for files (EX_TEMPFAIL)."""
TLS: Final = "--tls-certificate /etc/anofel/tls/fullchain.pem --tls-key /etc/anofel/tls/privkey.pem"
KEY: Final = "--key-file /etc/anofel/role.key"
PROGRAM: Final = "/opt/anofel/bin/cometbft"
"""Where a validator's machine has the engine."""
_PORTS: Final = "# Ports below 1024 without root.\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"


def template(name: str) -> str:
    """Read a file of this package."""
    return (files("anofel.deploy") / "templates" / name).read_text()


_OUT_OF_MEMORY: Final = """\
# If memory runs out the training process goes, not the client: it posts in time whatever training does.
OOMPolicy=continue
"""


def unit(
    title: str, command: str, *, serves: bool = False, trains: bool = False, engine: bool = False
) -> str:
    """Write a unit of systemd; one that serves may take a port below 1024.

    In one that trains, the end of the training process does not end the role, or its absence would tell of
    the data (D-20). One with an ``engine`` runs the program that lies beside anofel.
    """
    bound = f"{_PORTS}CapabilityBoundingSet=CAP_NET_BIND_SERVICE" if serves else "CapabilityBoundingSet="
    text = template("role.service").replace("@TITLE@", title).replace("@COMMAND@", command)
    extra = (_OUT_OF_MEMORY if trains else "") + (f"Environment={ENGINE}={PROGRAM}\n" if engine else "")
    return text.replace("@CAPABILITIES@", extra + bound)


def script(title: str, lines: Sequence[str], program: str = "anofel") -> str:
    """Write a script; without ``program`` it says so and ends."""
    header = template("header.sh").replace("@TITLE@", title).replace("@PROGRAM@", program)
    return header + "\n".join(lines) + "\n"


def request(purpose: str, name: str, machine: str, keys: str = "x509") -> list[str]:
    """Make a key that stays, and a request that goes to the authority."""
    words = ["anofel", "ca", "request", "--purpose", purpose, "--name", name, "--out", keys]
    return [
        f"[ -d {keys} ] || {join(words)}",
        f"put {keys}/request.pem {machine}.request",
        f"need {machine}.answer 'the authority'",
    ]


def check(purpose: str, name: str, machine: str, others: Sequence[str] = (), keys: str = "x509") -> list[str]:
    """Unpack the authority's answer, the planned files alone, and check it before anything relies on it."""
    files = join(["root.pem", f"{machine}.pem", *(f"{other}.pem" for other in others)])
    words = ["anofel", "ca", "check", f"answer/{machine}.pem", "--key", f"{keys}/key.pem"]
    words += ["--root", "answer/root.pem", "--purpose", purpose, "--name", name]
    return [
        f"mkdir -p answer && tar xf in/{machine}.answer -C answer {files} ||"
        f" {{ echo 'in/{machine}.answer is not what the authority made for {machine}.' >&2; exit 1; }}",
        f"once certificate{keys.removeprefix('x509')} {join(words)}",
    ]


def authority(
    name: str,
    oids: Mapping[str, str],
    requests: Sequence[tuple[str, str, str]],
    colleagues: Mapping[str, Sequence[str]],
) -> list[str]:
    """Sign the requests (machine, name, purpose) whose names are the planned ones, each for its purpose.

    A member of a committee also gets the certificates of its colleagues.
    """
    lines = [f"AUTHORITY={quote(name)}", template("authority.sh").rstrip()]
    for machine, who, purpose in requests:
        lines.append(f"need {machine}.request {quote(f'{who} (machine {machine})')}")
        signing = f"sign {machine} {quote(who)} {oids[purpose]}"
        lines.append(f"[ ! -e in/{machine}.request ] || [ -e {machine}.pem ] || {signing}")
    for machine, _, _ in requests:
        parts = [f"{other}.pem" for other in (machine, *colleagues.get(machine, ()))]
        there = " && ".join(f"[ -e {part} ]" for part in parts)
        lines.append(f"if {there}; then answer {machine} {' '.join(parts)}; fi")
    lines.append("all_here 'Each of them runs its own script first. Answers to the others are in out/.'")
    return lines
