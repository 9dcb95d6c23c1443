"""The programs that bench/proofs.py measures, each kept running so that start-up is in no figure."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import _table
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
SNARKJS = ROOT / "tools" / "snarkjs"
GNARK = ROOT / "tools" / "gnark"
# Both statements have at most 2^13 rows.
POWER = 13


@dataclass(frozen=True)
class Taken:
    """Seconds on the clock, and seconds of all cores together where the system tells."""

    wall: float
    cpu: float | None


class Server:
    """A program that answers each line, a JSON array of strings, with one line of JSON."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        """Start the program."""
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: str | Path) -> Any:
        """Wait for the answer to one command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"The benchmark stopped at {words}: the program behind it ended.")
        return json.loads(answer)

    def close(self) -> None:
        """End the program."""
        self._process.communicate()


class Circuits:
    """Our prover and `ark-groth16`, both in one Rust program."""

    def __init__(self) -> None:
        """Build and start the program."""
        example = ["--release", "--locked", "--package", "anofel-circuits", "--example", "bench_proofs"]
        subprocess.run(["cargo", "build", *example], cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self._scratch = tempfile.TemporaryDirectory()
        self._server = Server([target / "release" / "examples" / "bench_proofs", self._scratch.name])

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the program and remove its files."""
        self._server.close()
        self._scratch.cleanup()

    def describe(self) -> dict[str, dict[str, Any]]:
        """Sizes of every statement."""
        described: dict[str, dict[str, Any]] = self._server.ask("describe")
        return described

    def measure(self, work: str, statement: str) -> Taken:
        """What one piece of work takes."""
        return Taken(*self._server.ask("measure", work, statement))

    def export(self, statement: str, directory: Path) -> None:
        """Write a statement's constraints, a witness, a key, a proof and its public inputs."""
        self._server.ask("export", statement, directory)

    def insecure_powers(self, file: Path) -> None:
        """Write powers of tau whose τ was known: good for nothing but to time snarkjs."""
        self._server.ask("powers", str(POWER), file)


class Snarkjs:
    """A running snarkjs with a key for each statement, on the constraints that we exported."""

    def __init__(self, installed: Path, directories: dict[str, Path]) -> None:
        """Start Node."""
        self._directories = directories
        self._server = Server(["node", SNARKJS / "serve.mjs", installed])

    @classmethod
    @contextlib.contextmanager
    def start(
        cls, circuits: Circuits, statements: Sequence[str], progress: Console
    ) -> Iterator["Snarkjs | None"]:
        """Install snarkjs, make its keys where they are not cached, and run; none without Node."""
        install = subprocess.run(
            [sys.executable, SNARKJS / "install.py"], stdout=subprocess.PIPE, text=True, check=False
        )
        if install.returncode != 0:
            yield None
            return
        installed = Path(install.stdout.strip())
        sizes = circuits.describe()
        directories = {
            name: _with_key(circuits, installed, name, sizes[name]["digest"], progress) for name in statements
        }
        snarkjs = cls(installed, directories)
        try:
            yield snarkjs
        finally:
            snarkjs._server.close()

    def measure(self, work: str, statement: str) -> Taken:
        """What one piece of work takes."""
        extensions = {"prove": ("zkey", "wtns"), "verify": ("vk.json", "public.json", "proof.json")}
        files = (self._directories[statement] / f"{statement}.{end}" for end in extensions[work])
        return Taken(*self._server.ask(work, *files))


class Gnark:
    """A running gnark with keys of its own, on the constraints that we exported, row by row."""

    def __init__(self, program: Path, files: dict[str, tuple[Path, Path]]) -> None:
        """Start the program."""
        self._files = files
        self._server = Server([program])

    @classmethod
    @contextlib.contextmanager
    def start(
        cls, circuits: Circuits, statements: Sequence[str], progress: Console
    ) -> Iterator["Gnark | None"]:
        """Build the program where it is not cached, and run it; none without Go."""
        if shutil.which("go") is None:
            yield None
            return
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum", "main.go"):
            digest.update((GNARK / name).read_bytes())
        program = CACHE / f"gnark-{digest.hexdigest()[:16]}"
        if not program.exists():
            progress.print("Go fetches and builds gnark (once; some minutes) ...")
            CACHE.mkdir(exist_ok=True)
            subprocess.run(["go", "build", "-mod=readonly", "-o", program, "."], cwd=GNARK, check=True)
        with tempfile.TemporaryDirectory() as scratch:
            files = {}
            for name in statements:
                circuits.export(name, Path(scratch))
                files[name] = (Path(scratch, f"{name}.r1cs"), Path(scratch, f"{name}.wtns"))
            gnark = cls(program, files)
            try:
                yield gnark
            finally:
                gnark._server.close()

    def measure(self, work: str, statement: str) -> Taken:
        """What one piece of work takes; gnark's key is made before, at the first of it."""
        return Taken(*self._server.ask(work, *self._files[statement]))


def _with_key(circuits: Circuits, installed: Path, name: str, digest: str, progress: Console) -> Path:
    """Make a folder with a statement's files and snarkjs's key for it, cached by the constraints' digest."""
    directory = CACHE / "bench" / f"{name}-{digest[:16]}"
    directory.mkdir(parents=True, exist_ok=True)
    circuits.export(name, directory)
    key = directory / f"{name}.zkey"
    if not key.exists():
        progress.print(f"snarkjs makes its key for {name} (once; half a minute or more) ...")
        unfinished = directory / "unfinished.zkey"
        powers = directory / "insecure.ptau"
        circuits.insecure_powers(powers)
        cli = installed / "node_modules" / "snarkjs" / "cli.js"
        constraints = directory / f"{name}.r1cs"
        setup: list[str | Path] = ["node", cli, "groth16", "setup", constraints, powers, unfinished]
        subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(key)
        powers.unlink()
    return directory


def machine(snarkjs: Snarkjs | None, gnark: Gnark | None) -> list[str]:
    """Say where and with which versions this ran."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    ark = next(package["version"] for package in locked if package["name"] == "ark-groth16")
    versions = [_output("rustc", "--version"), f"ark-groth16 {ark}"]
    if snarkjs is not None:
        wanted = json.loads((SNARKJS / "package.json").read_text())["dependencies"]["snarkjs"]
        versions += [f"snarkjs {wanted}", f"Node {_output('node', '--version')}"]
    if gnark is not None:
        wanted = next(line for line in (GNARK / "go.mod").read_text().splitlines() if "/gnark v" in line)
        versions += [f"gnark {wanted.split()[-1]}", _output("go", "env", "GOVERSION")]
    wide = "avx512ifma" in " ".join(_table.cpu_flags())
    versions.append(f"{'with' if wide else 'without'} AVX-512 IFMA")
    return [_table.machine(), "; ".join(versions)]


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
