"""Install snarkjs under .cache/, pinned by hash, and print the folder that holds it.

The tests and the benchmark call this; nothing of it is in the package, because snarkjs is under the GPL.
Exits with code 3 and one sentence if Node or npm is missing.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache"
MANIFEST = ("package.json", "package-lock.json")
MISSING = 3


def install() -> Path:
    """Install once for each state of the lock file."""
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    target = CACHE / f"snarkjs-{digest[:16]}"
    if target.exists():
        return target
    CACHE.mkdir(exist_ok=True)
    # Elsewhere first and then renamed, so that half an installation is never used.
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        fresh = Path(temporary) / "snarkjs"
        fresh.mkdir()
        for name in MANIFEST:
            shutil.copy(HERE / name, fresh)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(npm, cwd=fresh, check=True, stdout=sys.stderr)
        try:
            fresh.rename(target)
        except OSError:
            if not target.exists():  # Otherwise another process was faster.
                raise
    return target


def main() -> int:
    """Say where snarkjs is, or what is missing."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            print(f"snarkjs needs Node and npm ('{tool}' was not found).", file=sys.stderr)
            return MISSING
    print(install())
    return 0


if __name__ == "__main__":
    sys.exit(main())
