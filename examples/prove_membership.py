"""A certifier signs, a client registers and submits twice, and a double submission is caught.

Every party is a variable here; in a deployment each is a machine, and the board is between them.
Run it with ``python examples/prove_membership.py``.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from anofel.board.statements import registration_statement
from anofel.ids import GenesisHash
from anofel.messages import Registration
from anofel.phase1_setup.step1b_certification import (
    Credential,
    fresh_nonce,
    issue_certificate,
    request_certificate,
)
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.phase2_training.step5_submission import Membership, prove_membership
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    MasterSecret,
    MessageSecret,
    Salt,
    TypeBlinding,
)
from anofel.proofs.keys import make_insecure_development_keys
from anofel.proofs.statements import RegistrationProof, SubmissionProof

T = TypeVar("T")
console = Console(highlight=False)
GENESIS = GenesisHash(bytes(32))  # the name of the board; a real one is the hash of its genesis


def timed(what: str, work: Callable[[], T]) -> T:
    """Do something, and say how long it took."""
    start = time.perf_counter()
    result = work()
    console.print(f"  {what}: {(time.perf_counter() - start) * 1000:.1f} ms")
    return result


def short(data: bytes) -> str:
    """The first bytes of a value, enough to tell it from another."""
    return data[:6].hex() + "…"


def main() -> None:
    """Walk through the paper's setup and training, as far as proofs go."""
    with tempfile.TemporaryDirectory() as directory:
        console.print("[bold]0. Keys[/] (insecure development setup)")
        keys = timed("made", lambda: make_insecure_development_keys(Path(directory) / "keys"))
        ownership, registration, submission = timed(
            "provers loaded",
            lambda: (keys.ownership_prover(), keys.registration_prover(), keys.submission_prover()),
        )
        certifier_check = keys.ownership_verifier()
        registration_check, submission_check = keys.registration_verifier(), keys.submission_verifier()

    console.print("\n[bold]1.a Certifiers[/] offer their keys on the board")
    hospital = CertifierSecret.generate()
    certifiers = CertifierTree()
    certifiers.append([CertifierSecret.generate().public_key(), hospital.public_key()])
    console.print(
        f"  the board sees {len(certifiers)} certifiers, root {short(certifiers.root().to_bytes())}"
    )

    console.print("\n[bold]1.b A client[/] has its dataset certified")
    msk, d, dt = MasterSecret.generate(), DatasetDigest.of_chunks([b"age,outcome\n71,1\n"]), DatasetType(7)
    nonce = fresh_nonce()
    request = timed(
        "ownership proof",
        lambda: request_certificate(
            msk, d, dt, certifier=hospital.public_key(), nonce=nonce, prover=ownership
        ),
    )
    certificate = timed(
        "certifier checks and signs",
        lambda: issue_certificate(request, secret=hospital, nonce=nonce, verifier=certifier_check),
    )
    console.print(f"  the certifier sees d {short(d.to_bytes())}, mpk {short(request.mpk.to_bytes())}, dt 7")
    credential = Credential(msk, d, dt, hospital.public_key(), certificate)

    console.print("\n[bold]    and registers[/] anonymously")
    salt, message_secret = Salt.generate(), MessageSecret.generate()
    posting = timed(
        "registration proof",
        lambda: make_registration(
            credential,
            salt=salt,
            certifiers=certifiers,
            genesis=GENESIS,
            epoch=0,
            message_secret=message_secret,
            prover=registration,
        ),
    )
    registered = posting.body
    assert isinstance(registered, Registration)
    statement = registration_statement(
        genesis=GENESIS,
        epoch=registered.epoch,
        certifier_root=registered.certifier_root,
        commitment=registered.commitment,
        nullifier=registered.nullifier,
        tag=registered.tag,
        message_key=message_secret.public_key().to_bytes(),
    )
    proof = RegistrationProof.from_bytes(registered.proof)
    timed("board verifies", lambda: registration_check.verify(statement, proof))
    clients = ClientTree()
    others = [Commitment(d, MasterSecret.generate(), dt, Salt.generate()) for _ in range(99)]
    clients.append([*others[:40], Commitment.from_bytes(registered.commitment), *others[40:]])
    console.print(f"  the board sees comm {short(registered.commitment)},")
    console.print(f"    nullifier {short(registered.nullifier)}, tag {short(registered.tag)},")
    console.print(f"    and a proof of {len(registered.proof)} bytes; not the certifier, not d, not mpk")

    seen: set[bytes] = set()

    def submit(iteration: int) -> Membership:
        content = timed(
            "submission proof",
            lambda: prove_membership(
                credential,
                salt=salt,
                rho=TypeBlinding.generate(),
                clients=clients,
                genesis=GENESIS,
                bundle=0,
                iteration=iteration,
                prover=submission,
            ),
        )
        statement = content.statement(clients.root().to_bytes(), GENESIS)
        proof = SubmissionProof.from_bytes(content.proof)
        timed("board verifies", lambda: submission_check.verify(statement, proof))
        fresh = content.nullifier not in seen
        seen.add(content.nullifier)
        console.print(
            f"  the board sees one of {len(clients)} clients,"
            f" nullifier {short(content.nullifier)},"
            f" tag {short(content.tag)}, dt commitment {short(content.type_commitment)}"
        )
        console.print(
            "  [green]accepted[/]"
            if fresh
            else "  [red]refused: this nullifier was seen in this iteration[/]"
        )
        return content

    for iteration in (1, 2):
        console.print(f"\n[bold]5. The client submits[/] in iteration {iteration}")
        submit(iteration)
    console.print("\n[bold]5. The client submits again[/] in iteration 2, with a fresh key and a fresh proof")
    submit(2)
    console.print(
        f"\nThree valid proofs, {len(seen)} accepted postings; nobody can link the two to each other."
    )


if __name__ == "__main__":
    main()
