"""Print where the genuine powers of tau of power 8 are, a file in the sources of the crate ppot-rs.

The tests call this; nothing of it is in the package. Cargo fetches the crate, pinned by the lock file, and
the file must have the hash that snarkjs publishes for it.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

MANIFEST = Path(__file__).parent / "Cargo.toml"
BLAKE2B = (
    "d6a8fb3a04feb600096c3b791f936a578c4e664d262e4aa24beed1b7a9a96aa5"
    "eb72864d628db247e9293384b74b36ffb52ca8d148d6e1b8b51e279fdf57b583"
)


def fetch() -> Path:
    """Find the file, whose hash was checked."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", MANIFEST]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    crate = next(package for package in found["packages"] if package["name"] == "ppot-rs")
    path = Path(crate["manifest_path"]).parent / "8.ptau"
    if hashlib.blake2b(path.read_bytes()).hexdigest() != BLAKE2B:
        raise SystemExit(f"{path} is not the published file")
    return path


if __name__ == "__main__":
    print(fetch())
    sys.exit(0)
