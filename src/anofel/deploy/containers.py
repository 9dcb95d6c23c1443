"""The same plan as containers: one image for all roles, one service for each machine."""

import json
from collections.abc import Mapping, Sequence

from anofel.deploy.scripts import template


def containerfile() -> str:
    """Write the image: the package from a wheel that lies beside the file, and a user without rights."""
    return template("Containerfile")


def compose(machines: Sequence[str], checks: Mapping[str, Sequence[str]]) -> str:
    """Write the services. Each sees its own directory alone; one that waits for files is started again."""
    lines = [
        "# One service for each machine: podman compose up MACHINE, on the machine it is for.",
        "# People carry files from out/ to in/, as CHECKLIST.txt says; what waits is started again.",
        "services:",
    ]
    for machine in machines:
        lines += [
            f"  {machine}:",
            "    build: .",
            "    image: anofel",
            "    restart: on-failure",
            "    read_only: true",
            "    cap_drop: [ALL]",
            "    cap_add: [NET_BIND_SERVICE]",
            "    security_opt: ['no-new-privileges:true']",
            "    tmpfs: [/tmp]",
            "    volumes:",
            f"      - ./{machine}:/var/lib/anofel",
            f"      - {machine}-etc:/etc/anofel",
            "    healthcheck:",
            f"      test: {json.dumps(['CMD', *checks[machine]])}",
            "      interval: 60s",
            "      timeout: 20s",
            "      start_period: 600s",
        ]
    lines += ["volumes:", *(f"  {machine}-etc: {{}}" for machine in machines)]
    return "\n".join(lines) + "\n"
