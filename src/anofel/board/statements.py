"""What a posting proves, from what the posting carries: for provers and verifiers alike.

a is computed here from the message key that signs the posting, never taken from the wire.
"""

from collections.abc import Sequence

from anofel.board.claims import RegistrationClaim, SubmissionClaim
from anofel.committee.context import PostContext
from anofel.committee.count import BallotStatement, BundleCommittee
from anofel.committee.interface import CommitteeKey
from anofel.ids import GenesisHash, Nullifier
from anofel.primitives import (
    Commitment,
    Epoch,
    IterationNullifier,
    MessageKey,
    RegistrationNullifier,
    Root,
    Scope,
    Tag,
    TypeCommitment,
)
from anofel.proofs.statements import (
    RegistrationProof,
    RegistrationStatement,
    SubmissionProof,
    SubmissionStatement,
)


def registration_statement(
    *,
    genesis: GenesisHash,
    epoch: int,
    certifier_root: bytes,
    commitment: bytes,
    nullifier: bytes,
    tag: bytes,
    message_key: bytes,
) -> RegistrationStatement:
    """Return what a registration proves. Raises ``InvalidInput`` for bytes that are not canonical."""
    return RegistrationStatement(
        certifier_root=Root.from_bytes(certifier_root),
        commitment=Commitment.from_bytes(commitment),
        nullifier=RegistrationNullifier.from_bytes(nullifier),
        epoch=Epoch(genesis, epoch),
        tag=Tag.from_bytes(tag),
        a=MessageKey.from_bytes(message_key).hash(),
    )


def submission_statement(
    *,
    client_root: bytes,
    scope: Scope,
    nullifier: Nullifier,
    tag: bytes,
    type_commitment: bytes,
    message_key: bytes,
) -> SubmissionStatement:
    """Return what a submission proves. Raises ``InvalidInput`` for bytes that are not canonical."""
    return SubmissionStatement(
        client_root=Root.from_bytes(client_root),
        nullifier=IterationNullifier.from_bytes(nullifier),
        tag=Tag.from_bytes(tag),
        a=MessageKey.from_bytes(message_key).hash(),
        scope=scope,
        type_commitment=TypeCommitment.from_bytes(type_commitment),
    )


def registration_item(
    claim: RegistrationClaim, genesis: GenesisHash
) -> tuple[RegistrationStatement, RegistrationProof]:
    """Return what a batch verifies of a registration. Raises ``InvalidInput``, ``InvalidProof``."""
    body = claim.body
    statement = registration_statement(
        genesis=genesis,
        epoch=body.epoch,
        certifier_root=body.certifier_root,
        commitment=body.commitment,
        nullifier=body.nullifier,
        tag=body.tag,
        message_key=claim.message_key,
    )
    return statement, RegistrationProof.from_bytes(body.proof)


def submission_item(claim: SubmissionClaim) -> tuple[SubmissionStatement, SubmissionProof]:
    """Return what a batch verifies of a submission. Raises ``InvalidInput``, ``InvalidProof``."""
    body = claim.body
    statement = submission_statement(
        client_root=claim.client_root,
        scope=claim.scope,
        nullifier=body.nullifier,
        tag=body.tag,
        type_commitment=body.type_commitment,
        message_key=claim.message_key,
    )
    return statement, SubmissionProof.from_bytes(body.proof)


def ballot_statement(
    context: PostContext,
    type_commitment: bytes,
    committees: Sequence[tuple[CommitteeKey, tuple[int, ...] | None]],
) -> BallotStatement:
    """Return what a ballot proves to the committees of a bundle, each with the dataset types of its task.

    Raises ``BallotRefused``.
    """
    lines = [
        BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=types)
        for key, types in committees
    ]
    return BallotStatement(context, type_commitment, lines)
