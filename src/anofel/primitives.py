"""Keys, commitments, tags and nullifiers: the values that AnoFel's parties hold and post.

Public values read and write canonical bytes (``from_bytes``, ``to_bytes``) and compare by value.
Secret values are drawn from the operating system (``generate``), never printed, and wiped when
dropped; ``to_secret_bytes`` is for the key store alone.
"""

from anofel._core.primitives import (
    Certificate,
    CertifierKey,
    CertifierSecret,
    Commitment,
    DatasetDigest,
    DatasetType,
    Epoch,
    IterationNullifier,
    MasterPublicKey,
    MasterSecret,
    MessageKey,
    MessageKeyHash,
    MessageSecret,
    Possession,
    RegistrationNullifier,
    Root,
    Salt,
    Scope,
    Tag,
    TypeBlinding,
    TypeCommitment,
)
from anofel._core.trees import (
    CertifierFrontier,
    CertifierPath,
    CertifierTree,
    ClientFrontier,
    ClientPath,
    ClientTree,
    NameSet,
)

__all__ = [
    "Certificate",
    "CertifierFrontier",
    "CertifierKey",
    "CertifierPath",
    "CertifierSecret",
    "CertifierTree",
    "ClientFrontier",
    "ClientPath",
    "ClientTree",
    "Commitment",
    "DatasetDigest",
    "DatasetType",
    "Epoch",
    "IterationNullifier",
    "MasterPublicKey",
    "MasterSecret",
    "MessageKey",
    "MessageKeyHash",
    "MessageSecret",
    "NameSet",
    "Possession",
    "RegistrationNullifier",
    "Root",
    "Salt",
    "Scope",
    "Tag",
    "TypeBlinding",
    "TypeCommitment",
]
