"""The names of things on a board: 32 bytes each, and types of their own, so that none passes for another."""

from typing import NewType

GenesisHash = NewType("GenesisHash", bytes)
"""A board."""
BlockHash = NewType("BlockHash", bytes)
"""A block, by its header."""
PostingId = NewType("PostingId", bytes)
"""A posting."""
BlobHash = NewType("BlobHash", bytes)
"""A blob: the SHA-256 of its content."""
Subject = NewType("Subject", bytes)
"""A role-holder, by its certificate."""
CertificateId = NewType("CertificateId", bytes)
"""A certificate; a renewal changes it."""
RunId = NewType("RunId", bytes)
"""A run of key generation or of a handover."""
KeyId = NewType("KeyId", bytes)
"""A committee, by its public key; a handover does not change it."""
SharesId = NewType("SharesId", BlobHash)
"""One generation of a committee's shares, by the hash of its key file."""
TaskId = NewType("TaskId", bytes)
"""An announced task."""
Nullifier = NewType("Nullifier", bytes)
"""A submission in its iteration, by the nullifier of its client."""
SetDigest = NewType("SetDigest", bytes)
"""A set of submissions, by their nullifiers."""
AgreedDigest = NewType("AgreedDigest", bytes)
"""The sets of all groups that a committee agreed on."""
ChangeId = NewType("ChangeId", bytes)
"""A change of validators that is proposed."""
