"""Write keys, proofs and constraint systems for tools that share no code with ours.

snarkjs reads ``verification_key.json``, ``proof.json`` and ``public.json``; iden3's tools read the
constraint system (``.r1cs``) and an assignment (``.wtns``).
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anofel._core import keys as _keys
from anofel.disk.files import write_new_directory
from anofel.errors import InvalidInput
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    Epoch,
    MasterSecret,
    MessageSecret,
    Salt,
    Scope,
    TypeBlinding,
    TypeCommitment,
)
from anofel.proofs import statements as proofs
from anofel.proofs.keys import STATEMENTS, KeyDirectory

FIELD_BYTES = 32


def export_statement(
    keys: KeyDirectory,
    statement: str,
    out: Path,
    *,
    proof: Path | None = None,
    inputs: Path | None = None,
    example: bool = False,
) -> dict[str, str]:
    """Write the files into a new directory and say what each one is.

    The directory appears whole or not at all. Raises ``InvalidInput`` for a wrong request.
    """
    if statement not in STATEMENTS:
        raise InvalidInput(f"there is no statement named {statement!r}; there are {', '.join(STATEMENTS)}.")
    if example and (proof or inputs):
        raise InvalidInput("--example makes its own proof; do not give --proof or --inputs with it.")
    if out.exists():
        raise InvalidInput(f"{out} exists already; give the name of a new directory.")
    verifier = getattr(keys, f"{statement}_verifier")()
    contents: dict[str, tuple[str, bytes]] = {
        "verification_key.json": ("the verification key", verifier.to_snarkjs().encode()),
        "circuit.r1cs": ("the constraint system", _keys.r1cs(statement)),
    }
    if proof:
        parsed = getattr(proofs, f"{statement.capitalize()}Proof").from_bytes(_read(proof))
        contents["proof.json"] = ("the proof", parsed.to_snarkjs().encode())
    if inputs:
        contents["public.json"] = ("the public inputs", _public_inputs(statement, _read(inputs)))
    if example:
        made = make_example(statement)
        made_proof = getattr(keys, f"{statement}_prover")().prove(made.statement, made.witness)
        contents["proof.json"] = ("a proof of a made-up statement", made_proof.to_snarkjs().encode())
        contents["public.json"] = ("its public inputs", made.statement.to_snarkjs().encode())
        contents["witness.wtns"] = ("its witness", made.statement.to_secret_wtns(made.witness))
    write_new_directory(out, {name: data for name, (_, data) in contents.items()})
    return {name: what for name, (what, _) in contents.items()}


@dataclass(frozen=True)
class Example:
    """A true statement about people and data that do not exist."""

    statement: Any
    witness: Any


def make_example(statement: str) -> Example:
    """Make up a certifier and a client, and let the client state something true."""
    certifier, msk, salt = CertifierSecret.generate(), MasterSecret.generate(), Salt.generate()
    d, dt = DatasetDigest.of_chunks([b"an example"]), DatasetType(1)
    a = MessageSecret.generate().public_key().hash()
    genesis = secrets.token_bytes(32)
    commitment = Commitment(d, msk, dt, salt)
    if statement == "ownership":
        key, nonce = certifier.public_key(), secrets.token_bytes(32)
        return Example(
            proofs.OwnershipStatement(mpk=msk.public_key(), certifier=key, nonce=nonce, d=d),
            proofs.OwnershipWitness(msk=msk),
        )
    if statement == "registration":
        epoch, certifiers = Epoch(genesis, 0), CertifierTree()
        certifiers.append([certifier.public_key()])
        return Example(
            proofs.RegistrationStatement(
                certifier_root=certifiers.root(),
                commitment=commitment,
                nullifier=msk.registration_nullifier(d, epoch),
                epoch=epoch,
                tag=msk.tag(a),
                a=a,
            ),
            proofs.RegistrationWitness(
                d=d,
                dt=dt,
                salt=salt,
                msk=msk,
                certifier=certifier.public_key(),
                certificate=certifier.certify(d, msk.public_key(), dt),
                path=certifiers.path(0),
            ),
        )
    scope, clients, rho = Scope(genesis, 0, 0), ClientTree(), TypeBlinding.generate()
    clients.append([commitment])
    return Example(
        proofs.SubmissionStatement(
            client_root=clients.root(),
            nullifier=msk.iteration_nullifier(d, scope),
            tag=msk.tag(a),
            a=a,
            scope=scope,
            type_commitment=TypeCommitment(dt, rho),
        ),
        proofs.SubmissionWitness(d=d, dt=dt, salt=salt, msk=msk, path=clients.path(0), rho=rho),
    )


def _public_inputs(statement: str, data: bytes) -> bytes:
    """Public inputs, 32 bytes each, as snarkjs reads them."""
    names = _keys.shape(statement).public_inputs
    if len(data) != FIELD_BYTES * len(names):
        raise InvalidInput(
            f"the {statement} statement has {len(names)} public inputs of {FIELD_BYTES} bytes, "
            f"but the file has {len(data)} bytes."
        )
    return _keys.public_inputs_to_snarkjs(data).encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
