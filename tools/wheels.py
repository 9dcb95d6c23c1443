"""Makes and checks what is released: an sdist, and wheels of it for Linux on two processors and with musl.

Run: python tools/wheels.py dist [--target TARGET …]     (make wheels; needs rustup, maturin, ziglang, twine)

Every wheel is built from the unpacked sdist, so an sdist that lacks something is noticed. The one of this
machine is installed in a fresh environment, where it trains with real cryptography, runs the demo, in which
every role is a process, and audits both boards.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TARGETS: Final = {
    "x86_64-unknown-linux-gnu": "manylinux2014",
    "aarch64-unknown-linux-gnu": "manylinux2014",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
}
NEEDED: Final = ("_core.abi3.so", "py.typed", "licenses/LICENSE-MIT", "licenses/LICENSE-APACHE")
DEMO: Final = ("--study", "breast-cancer", "--study", "diabetes", "--clients", 4, "--iterations", 2)
"""Small, with the studies that come with scikit-learn."""
PARTS: Final = ("ark-groth16", "pyo3", "curve25519-dalek")
"""Some of what the Rust part is made of; an SBOM without them is none of it."""


class NotReleasable(Exception):
    """Something is missing or wrong; the message says what."""


def run(*command: object, **settings: object) -> str:
    """Run a program; its output is shown if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **settings)  # type: ignore[call-overload]
    if done.returncode:
        raise NotReleasable(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def check_wheel(path: Path, platform_tag: str) -> None:
    """Refuse a wheel that lacks its core, its licences, its types or its list of parts."""
    if platform_tag not in path.name or "-abi3-" not in path.name:
        raise NotReleasable(f"{path.name} is not for {platform_tag} and every Python from 3.11 on.")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        missing = [name for name in NEEDED if not any(entry.endswith(name) for entry in names)]
        if missing:
            raise NotReleasable(f"{path.name} lacks {', '.join(missing)}.")
        boms = [name for name in names if ".dist-info/sboms/" in name and name.endswith(".cyclonedx.json")]
        if len(boms) != 1:
            raise NotReleasable(f"{path.name} has {len(boms)} lists of its Rust parts (SBOM), not one.")
        bom = json.loads(wheel.read(boms[0]))
    parts = {part["name"]: part.get("version") for part in bom.get("components", [])}
    absent = [name for name in PARTS if not parts.get(name)]
    if bom.get("bomFormat") != "CycloneDX" or absent:
        raise NotReleasable(f"The SBOM of {path.name} does not name {', '.join(absent) or 'its format'}.")


def make_sdist(out: Path) -> Path:
    """Make the source archive."""
    run("maturin", "sdist", "--out", out, cwd=ROOT)
    return max(out.glob("anofel-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def build(sdist: Path, target: str, out: Path, scratch: Path) -> Path:
    """Build the wheel of a target from the sdist."""
    run("rustup", "target", "add", target)
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / target, filter="data")
    (tree,) = (scratch / target).iterdir()
    made, compatibility = scratch / f"{target}-made", TARGETS[target]
    command = ["maturin", "build", "--release", "--locked", "--zig", "--interpreter", sys.executable]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    environment.pop("VIRTUAL_ENV", None)
    run(
        *command,
        "--target",
        target,
        "--compatibility",
        compatibility,
        "--out",
        made,
        cwd=tree,
        env=environment,
    )
    (wheel,) = made.glob("*.whl")
    check_wheel(wheel, compatibility)
    return wheel.replace(out / wheel.name)


def try_out(wheel: Path, scratch: Path) -> None:
    """Install a wheel alone in a fresh environment; train with real cryptography, run the demo, audit."""
    place = scratch / "environment"
    venv.create(place, with_pip=True)
    install = (place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, wheel)
    anofel, work = place / "bin" / "anofel", scratch / "work"
    work.mkdir()
    run(anofel, "new", "small", "--example", "small", cwd=work)
    words = [
        "simulate",
        "small/task.toml",
        "--made-up-rows",
        200,
        "--iterations",
        1,
        "--out",
        "run",
        "--json",
    ]
    done = json.loads(run(anofel, *words, cwd=work))
    if done["iterations"][0]["outcome"] != "summed":
        raise NotReleasable(f"{wheel.name} was installed and opened no sum.")
    audited = json.loads(run(anofel, "audit", "run/board", "--json", cwd=work))
    if audited["sums_recomputed"] != 1:
        raise NotReleasable(f"{wheel.name} was installed and its audit recomputed no sum.")
    run(*install, f"{wheel}[demo]")
    shown = json.loads(run(anofel, "demo", *DEMO, "--no-page", "--dir", "demo", "--json", cwd=work))
    if not shown["audit"]["ok"]:
        raise NotReleasable(f"{wheel.name} was installed and an audit of its demo found something.")
    run(anofel, "audit", "demo", cwd=work)


def main() -> None:
    """Make everything, or what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="anofel-wheels-") as name:
        scratch = Path(name)
        sdist = make_sdist(out)
        print(sdist.name, flush=True)
        made = [sdist]
        for target in asked.target or TARGETS:
            made.append(build(sdist, target, out, scratch))
            print(made[-1].name, flush=True)
            if target == f"{platform.machine()}-unknown-linux-gnu":
                try_out(made[-1], scratch)
                print("  was installed alone, trained, ran the demo, and was audited", flush=True)
        run(sys.executable, "-m", "twine", "check", "--strict", *made)
        print("twine finds nothing wrong", flush=True)


if __name__ == "__main__":
    try:
        main()
    except NotReleasable as error:
        sys.exit(str(error))
