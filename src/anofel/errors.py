"""Every error that anofel raises on purpose.

::

    AnofelError                     one sentence; ``code`` is stable and machine-readable
    ├── InvalidInput                the caller gave something that cannot be used
    │   ├── InvalidKeyFile          a file is not the key that is needed
    │   ├── OutOfRange              a result does not fit the numbers it is written in
    │   ├── MalformedMessage        bytes or values are not a message; names layout, field and fault
    │   ├── UnsatisfiedStatement    a witness does not satisfy its statement; names the clause
    │   └── WrongUsage              options of a command that do not go together
    ├── VerificationError           a proof, signature or other check failed
    │   ├── InvalidCeremony         a file or transcript of a key ceremony does not hold
    │   ├── InvalidProof            a proof is malformed or not valid; a batch names the bad ones
    │   └── InvalidSignature        a signature is not valid
    └── PeerUnreachable             another party could not be reached

Modules add their own leaves below these. Anything else that escapes is a bug.
"""

from typing import ClassVar


class AnofelError(Exception):
    """The root of all errors raised on purpose. The message is one sentence a user can act on."""

    code: str = "error"
    """A stable name for scripts; it never changes once published. A refusal by a peer carries the peer's."""

    exit_code: ClassVar[int] = 1
    """What the command line exits with (see ``docs/cli.md``)."""


class InvalidInput(AnofelError, ValueError):
    """The caller gave something that cannot be used."""

    code = "invalid-input"


class InvalidKeyFile(InvalidInput):
    """A file is not the key that is needed."""

    code = "invalid-key-file"


class OutOfRange(InvalidInput):
    """A result does not fit the numbers it is written in."""

    code = "out-of-range"


class MalformedMessage(InvalidInput):
    """Bytes or values are not a message of the layout (``docs/messages.md``)."""

    code = "malformed-message"


class WrongUsage(InvalidInput):
    """Options of a command do not go together, or one is not of its form."""

    code = "wrong-usage"
    exit_code = 2


class UnsatisfiedStatement(InvalidInput):
    """A witness does not satisfy its statement, so there is nothing to prove."""

    code = "unsatisfied-statement"

    def __init__(self, message: str, clause: str) -> None:
        super().__init__(message)
        self.clause = clause
        """The clause that fails, in the words of ``docs/statements.md``."""


class VerificationError(AnofelError):
    """A proof, signature or other check failed."""

    code = "verification-failed"


class InvalidCeremony(VerificationError):
    """A file or transcript of a key ceremony does not hold; the message names the check."""

    code = "invalid-ceremony"


class InvalidProof(VerificationError):
    """A proof is malformed or not valid for its statement."""

    code = "invalid-proof"

    def __init__(self, message: str, indices: list[int] | None = None) -> None:
        super().__init__(message)
        self.indices = indices
        """In a batch, the positions of the bad proofs."""


class InvalidSignature(VerificationError):
    """A signature is not valid."""

    code = "invalid-signature"


class PeerUnreachable(AnofelError):
    """Another party could not be reached."""

    code = "peer-unreachable"
    exit_code = 3
