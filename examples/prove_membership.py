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

from anofel.keys import make_insecure_development_keys
from anofel.phase1_setup.certification import (
    Credential,
    fresh_nonce,
    issue_certificate,
    request_certificate,
)
from anofel.phase1_setup.client_registration import register
from anofel.phase2_training.submit_update import MembershipContent, prove_membership
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    Epoch,
    IterationNullifier,
    MasterSecret,
    MessageSecret,
    Salt,
    Scope,
    TypeBlinding,
)

T = TypeVar("T")
console = Console(highlight=False)
GENESIS = bytes(32)  # the name of the board; a real one is the hash of its genesis


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
    salt, epoch = Salt.generate(), Epoch(GENESIS, 0)
    registered = timed(
        "registration proof",
        lambda: register(
            credential,
            salt=salt,
            message_secret=MessageSecret.generate(),
            certifiers=certifiers,
            epoch=epoch,
            prover=registration,
        ),
    )
    timed("board verifies", lambda: registration_check.verify(registered.statement(), registered.proof))
    clients = ClientTree()
    others = [Commitment(d, MasterSecret.generate(), dt, Salt.generate()) for _ in range(99)]
    clients.append([*others[:40], registered.commitment, *others[40:]])
    console.print(f"  the board sees comm {short(registered.commitment.to_bytes())},")
    console.print(
        f"    nullifier {short(registered.nullifier.to_bytes())}, tag {short(registered.tag.to_bytes())},"
    )
    console.print(
        f"    and a proof of {len(registered.proof.to_bytes())} bytes; not the certifier, not d, not mpk"
    )

    seen: set[IterationNullifier] = set()

    def submit(iteration: int) -> MembershipContent:
        content = timed(
            "submission proof",
            lambda: prove_membership(
                credential,
                salt=salt,
                message_secret=MessageSecret.generate(),
                rho=TypeBlinding.generate(),
                clients=clients,
                scope=Scope(GENESIS, 0, iteration),
                prover=submission,
            ),
        )
        timed("board verifies", lambda: submission_check.verify(content.statement(), content.proof))
        fresh = content.nullifier not in seen
        seen.add(content.nullifier)
        console.print(
            f"  the board sees one of {len(clients)} clients,"
            f" nullifier {short(content.nullifier.to_bytes())},"
            f" tag {short(content.tag.to_bytes())}, dt commitment {short(content.type_commitment.to_bytes())}"
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
