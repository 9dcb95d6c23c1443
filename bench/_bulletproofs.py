"""Bulletproofs beside the contribution proof: a Rust program, built and run once."""

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, EXAMPLE = "anofel-committee", "bench_bulletproofs"


@dataclass(frozen=True)
class RangeProof:
    """A proof that so many coordinates lie within 16 bits: CPU seconds of one thread, and bytes."""

    coordinates: int
    prove: float
    verify: float
    bytes: int

    @property
    def name(self) -> str:
        """What it is, for a table."""
        return f"Bulletproofs, ranges and no norm, extrapolated from {self.coordinates:,}"

    def extrapolated(self, length: int) -> dict[str, float]:
        """Return the figures for a longer vector, in proofs of this size one after another."""
        factor = length / self.coordinates
        return {"prove": self.prove * factor, "verify": self.verify * factor, "bytes": self.bytes * factor}


@functools.cache
def measured() -> RangeProof:
    """Build the program, run it, and read its figures. Raises ``OSError`` where there is no Rust."""
    command = ["cargo", "build", "--release", "--locked", "--package", PACKAGE, "--example", EXAMPLE]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "examples" / EXAMPLE
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return RangeProof(**json.loads(output))
