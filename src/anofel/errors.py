"""Every error that anofel raises on purpose.

::

    AnofelError                     one sentence; ``code`` is stable and machine-readable
    ├── InvalidInput                the caller gave something that cannot be used
    ├── VerificationError           a proof, signature or other check failed
    └── PeerUnreachable             another party could not be reached

Modules add their own leaves below these. Anything else that escapes is a bug.
"""

from typing import ClassVar


class AnofelError(Exception):
    """The root of all errors raised on purpose. The message is one sentence a user can act on."""

    code: ClassVar[str] = "error"
    """A stable name for scripts; it never changes once published."""

    exit_code: ClassVar[int] = 1
    """What the command line exits with (see ``docs/cli.md``)."""


class InvalidInput(AnofelError, ValueError):
    """The caller gave something that cannot be used."""

    code = "invalid-input"


class VerificationError(AnofelError):
    """A proof, signature or other check failed."""

    code = "verification-failed"


class PeerUnreachable(AnofelError):
    """Another party could not be reached."""

    code = "peer-unreachable"
    exit_code = 3
