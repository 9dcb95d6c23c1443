"""LeNet5 on MNIST, every role its own process: board, certifier, committee of three, owner, four clients.

Run: python examples/mnist_processes.py [IMAGES.npz]

It needs anofel[torch] and MNIST (anofel study fetch mnist), or an archive of `images` and `labels`.
Everything runs over HTTP on this machine, with insecure development keys, in a temporary directory.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLIENTS, MEMBERS = 4, ("a", "b", "c")
TASK = """
task = { name = "digits", study = "mnist" }
model = { kind = "lenet5" }
training = { algorithm = "fedavg", learning_rate = 0.05, momentum = 0.9, epochs = 2 }
rule = { lr_num = 1 }
[privacy]                # four clients cannot have privacy and quality: this shows the mechanics
clipping_norm = 10
noise_multiplier = 0.0005
max_releases = 2
min_clients = 4
max_colluders = 1
"""
running: list[subprocess.Popen[bytes]] = []


def anofel(*words: object, key: str = "") -> dict:
    """Run a command to its end; its JSON document is the result."""
    done = subprocess.run(command(*words, "--json", key=key), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def start(*words: object, key: str = "") -> subprocess.Popen[bytes]:
    """Start a role that goes on running."""
    running.append(subprocess.Popen(command(*words, key=key), stdout=subprocess.PIPE))
    return running[-1]


def command(*words: object, key: str) -> list[str]:
    """Spell a command of this machine."""
    lock = ["--key-file", f"{key}.key"] if key else []
    return [sys.executable, "-m", "anofel", *map(str, words), *lock]


def main() -> None:
    """Set everybody up, train, measure, export, audit."""
    # What everybody agrees on: proof keys, a test authority, a board of one bundle size, a task.
    anofel("setup", "dev", "keys")
    numbers = ["--interval", 0.5, "--bundle-size", 1, "--bundle-wait", 1, "--size-class", f"100000:{CLIENTS}"]
    times = ["--post-from", 10, "--train", 60]
    insecure = ["--insecure-test-ca", "ca", "--insecure-development-keys"]
    anofel("node", "init", "board", "--name", "MNIST", "--keys", "keys", *insecure, *numbers, *times)
    node = start("node", "run", "board", "--port", 0)
    assert node.stdout is not None
    url = node.stdout.readline().decode().split(" at ")[1].strip().removesuffix("/v1/")
    Path("task.toml").write_text(TASK)
    board = ["--board", url, "--genesis", "board/genesis.bin"]

    def certified(role: str, name: str, *options: object) -> None:
        anofel("ca", "issue", "ca", "--purpose", role, "--name", name, "--out", f"{name}-x509")
        x509 = ["--certificate", f"{name}-x509/certificate.pem", "--key", f"{name}-x509/key.pem"]
        anofel(role, "init", name, *board, *x509, *options, key=name)

    # Step 1.a: the certifier. Step 1.c: the committee makes its key, and nobody deals it.
    Path("policy.toml").write_text('[[dataset]]\ntype = 0\nschema = "task.toml"\nmax_duplicates = 9\n')
    certified("certifier", "clinic", "--keys", "keys", "--policy", "policy.toml")
    anofel("certifier", "enroll", "clinic", key="clinic")
    for name in MEMBERS:
        certified("aggregator", name)
    members = [word for name in MEMBERS for word in ("--member", f"{name}-x509/certificate.pem")]
    words = ["--name", "digits", "--threshold", 2, *members]
    others = [start("aggregator", "keygen", name, *words, key=name) for name in MEMBERS[1:]]
    committee = anofel("aggregator", "keygen", MEMBERS[0], *words, key=MEMBERS[0])["committee"]
    for other in others:
        other.wait()

    # Step 1.b: each client has its images certified, and registers.
    for number in range(CLIENTS):
        name, data = f"client-{number}", f"{number}.npz"
        own = [
            "--data",
            data,
            "--schema",
            "task.toml",
            "--keys",
            "keys",
            "--max-epsilon",
            1e9,
            "--first-wait",
            0,
        ]
        anofel("client", "init", name, *board, *own, key=name)
        anofel("certifier", "nonce", "clinic", "--subject", name, "--type", 0, "--out", f"{name}.nonce")
        anofel("client", "request", name, "--nonce", f"{name}.nonce", "--out", f"{name}.request", key=name)
        shown = ["--request", f"{name}.request", "--data", data, "--out", f"{name}.certificate"]
        anofel("certifier", "certify", "clinic", *shown, key="clinic")
        anofel("client", "accept", name, f"{name}.certificate", key=name)
        anofel("client", "register", name, key=name)

    # Step 1.d: the owner announces. Steps 3 to 5: clients train. Steps 6 to 8: the committee opens sums.
    certified("owner", "owner")
    anofel("owner", "announce", "owner", "task.toml", "--committee", committee, "--early-end", key="owner")
    for name in MEMBERS:
        start("aggregator", "run", name, key=name)
    for number in range(CLIENTS):
        start("client", "run", f"client-{number}", key=f"client-{number}")
    result = anofel("owner", "run", "owner", "--validation", "test.npz", "--end-after", CLIENTS, key="owner")
    for entry in result["iterations"]:
        start_of_line = f"iteration {entry['iteration']}: {entry['outcome']}"
        print(f"{start_of_line}, {entry['count']} clients, {entry['metrics']}")
    model = f"owner/models/{result['iterations'][-1]['model']}.model"
    anofel("model", "export", model, "--out", "lenet5.safetensors")
    print(f"audit: {'every rule was kept' if anofel('audit', url)['ok'] else 'refused'}")


def split_images(archive: str | None) -> None:
    """Write each client's images, and some to measure by."""
    if archive is None:
        from anofel.studies.catalogue import study_named
        from anofel.studies.load import load_study

        rows, _ = load_study(study_named("mnist"))
        images, labels = rows.features[:2400, ..., 0], rows.labels[:2400]
    else:
        with np.load(archive) as found:
            images, labels = found["images"], found["labels"]
    names = [*(f"{number}.npz" for number in range(CLIENTS)), "test.npz"]
    for name, part in zip(names, np.array_split(np.arange(len(labels)), len(names)), strict=True):
        np.savez(name, images=images[part], labels=labels[part])


if __name__ == "__main__":
    archive = str(Path(sys.argv[1]).absolute()) if len(sys.argv) > 1 else None
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        split_images(archive)
        begin = time.monotonic()
        try:
            main()
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
        print(f"{time.monotonic() - begin:.0f} seconds", file=sys.stderr)
