"""The three statements: what is proven, to whom, and how it is checked.

Each statement has five types: what everybody sees (``…Statement``), what the client keeps
(``…Witness``), and ``…Proof``, ``…Prover`` and ``…Verifier``. A prover is loaded once and proves
many times; ``verify`` raises and returns nothing. ``docs/statements.md`` lists the clauses.
"""

from anofel._core.proofs import (
    OwnershipProof,
    OwnershipProver,
    OwnershipStatement,
    OwnershipVerifier,
    OwnershipWitness,
    RegistrationProof,
    RegistrationProver,
    RegistrationStatement,
    RegistrationVerifier,
    RegistrationWitness,
    SubmissionProof,
    SubmissionProver,
    SubmissionStatement,
    SubmissionVerifier,
    SubmissionWitness,
)

__all__ = [
    "OwnershipProof",
    "OwnershipProver",
    "OwnershipStatement",
    "OwnershipVerifier",
    "OwnershipWitness",
    "RegistrationProof",
    "RegistrationProver",
    "RegistrationStatement",
    "RegistrationVerifier",
    "RegistrationWitness",
    "SubmissionProof",
    "SubmissionProver",
    "SubmissionStatement",
    "SubmissionVerifier",
    "SubmissionWitness",
]
