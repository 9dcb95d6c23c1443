"""``anofel`` that is killed at a point: ``python -m tests.roles.dying before|after METHOD TIMES words …``.

The faults are put around the real code here; the package knows nothing of them.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

METHODS = {
    "store": "anofel.roles.outbox:Outbox._store",
    "post": "anofel.light_client.client:LightClient.post",
    "answer": "anofel.roles.outbox:Outbox._write_answer",
    "upload": "anofel.light_client.client:LightClient.upload",
    "secrets": "anofel.disk.keystore:Keystore.save",
    "charge": "anofel.privacy.ledger:Ledger.charge",
    "draft": "anofel.roles.client.draft:Drafts.keep",
    "drop": "anofel.roles.client.draft:Drafts.drop",
    "log": "anofel.roles.certifier.log:CertifierLog.add",
}
"""Everything that a role writes down or sends."""


def install(moment: str, method: str, times: int) -> None:
    """Kill this process before or after the n-th call of a method."""
    module, _, name = METHODS[method].partition(":")
    owner, _, attribute = name.partition(".")
    kind = getattr(import_module(module), owner)
    real: Callable[..., Any] = getattr(kind, attribute)
    left = times

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(kind, attribute, call)


if __name__ == "__main__":
    from anofel.cli import main

    install(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.argv = ["anofel", *sys.argv[4:]]
    main()
