"""The same plan as containers: one image for all roles, one service for each machine."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from anofel.deploy.scripts import template


def containerfile(*, engine: bool = False) -> str:
    """Write the image: the package from a wheel that lies beside the file, and a user without rights.

    ``engine``: that of validators lies beside the file too.
    """
    return template("Containerfile").replace("@ENGINE@\n", _ENGINE if engine else "")


_ENGINE: Final = "COPY --chmod=755 cometbft /opt/anofel/bin/cometbft\n"
USER: Final = 10001
"""The number of the user in the image."""
_HEAD: Final = f"""# One service for each machine: podman compose up MACHINE, on the machine it is for.
# Before: chown -R {USER} MACHINE, so that the user in the container may write there and nobody else reads it.
# People carry files from out/ to in/, as CHECKLIST.txt says; what waits is started again.
# TLS certificates go into the volume anofel-MACHINE-etc, as tls/fullchain.pem and tls/privkey.pem.
services:"""


def compose(checks: Mapping[str, Sequence[str]], serving: Mapping[str, Sequence[int]]) -> str:
    """Write the services from their health checks; who serves is reachable at its ports.

    Each sees its own directory alone; one that waits for files is started again.
    """
    lines = [_HEAD]
    for machine, check in checks.items():
        ports = ", ".join(f"'{port}:{port}'" for port in serving.get(machine, ()))
        serves = ["    cap_add: [NET_BIND_SERVICE]", f"    ports: [{ports}]"] if ports else []
        lines += [
            f"  {machine}:",
            "    build: .",
            "    image: anofel",
            "    restart: on-failure",
            "    read_only: true",
            "    cap_drop: [ALL]",
            *serves,
            "    security_opt: ['no-new-privileges:true']",
            "    tmpfs: [/tmp]",
            "    volumes:",
            f"      - ./{machine}:/var/lib/anofel",
            f"      - {machine}-etc:/etc/anofel",
            "    healthcheck:",
            f"      test: {json.dumps(['CMD', *check])}",
            "      interval: 60s",
            "      timeout: 20s",
            "      start_period: 600s",
        ]
    lines.append("volumes:")
    lines += [f"  {machine}-etc: {{name: anofel-{machine}-etc}}" for machine in checks]
    return "\n".join(lines) + "\n"
