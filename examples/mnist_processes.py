"""LeNet5 on MNIST: a board, a certifier, a committee of three, an owner, four clients, each its own process.

Run: python examples/mnist_processes.py [IMAGES.npz]

It needs anofel[torch] and MNIST (anofel study fetch mnist), or an archive of `images` and `labels`. All is
HTTP on this machine, with insecure development keys; one key file opens everybody's key store. Each `run` and
`start` is a command that somebody types in a deployment.
"""

import json
import os
import shlex
import sys
import tempfile
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

HERE = Path(__file__).resolve().parent
TASK = files("anofel.tasks") / "examples" / "mnist-four.toml"
POLICY = HERE / "policies" / "mnist-four.toml"
CLOCK = "--interval 0.5 --bundle-size 1 --bundle-wait 1 --size-class 100000:4 --post-from 10 --train 60"
MEMBERS, CLIENTS = "abc", ("client-1", "client-2", "client-3", "client-4")


def start(words: str) -> Popen[bytes]:
    """Start a command of anofel; what still runs in the end is stopped."""
    process = running.enter_context(Popen([sys.executable, "-m", "anofel", *shlex.split(words)], stdout=PIPE))
    running.callback(process.terminate)
    return process


def run(words: str) -> dict[str, Any]:
    """Run a command to its end; its JSON document is the result."""
    process = start(f"{words} --json")
    printed, _ = process.communicate()
    return dict(json.loads(printed)) if process.returncode == 0 else sys.exit(f"This failed: anofel {words}")


def address(process: Popen[bytes]) -> str:
    """Wait until a service says where it answers."""
    assert process.stdout is not None  # it was asked for
    return process.stdout.readline().decode().split(" at ")[1].strip().removesuffix("/v1/")


def certified(role: str, name: str, options: str = "") -> None:
    """Make the directory of a role that has a certificate."""
    run(f"ca issue ca --purpose {role} --name {name} --out x509/{name}")
    x509 = f"--certificate x509/{name}/certificate.pem --key x509/{name}/key.pem"
    run(f"{role} init {name} {board} {x509} {options}")


own, key = " ".join(f"--file '{Path(path).absolute()}'" for path in sys.argv[1:]), "--key-file roles.key"
os.environ.setdefault("OMP_NUM_THREADS", "1")
with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
    os.chdir(directory)
    run(f"study split '{TASK}' --clients 4 --rows 2000 --out images {own}")
    run("setup dev keys")  # step 0: proof keys, a test authority and a board
    insecure = "--insecure-test-ca ca --insecure-development-keys"
    run(f"node init board --name MNIST --keys keys {insecure} {CLOCK}")
    url = address(start("node run board --port 0"))
    board = f"--board {url} --genesis board/genesis.bin {key}"
    certified("certifier", "clinic", f"--keys keys --policy '{POLICY}'")  # step 1.a
    run(f"certifier enroll clinic {key}")
    clinic = address(start(f"certifier run clinic --port 0 {key}"))
    for name in CLIENTS:  # step 1.b: each client has its images certified, and registers
        floors = "--task digits --max-epsilon 1000000000 --max-colluders 0 --min-bundle 1 --first-wait 0"
        run(f"client init {name} {board} --data images/{name}.npz --schema '{TASK}' --keys keys {floors}")
        run(f"certifier invite clinic --subject {name} --type 0 --token-only --out {name}.json")
        run(f"client request {name} --certifier {clinic} --invitation {name}.json {key}")
        run(f"client register {name} {key}")
    for name in MEMBERS:  # step 1.c: the committee makes its key, and nobody deals it
        certified("aggregator", name)
    members = " ".join(f"--member x509/{name}/certificate.pem" for name in MEMBERS)
    making = f"--name digits --threshold 2 {members} {key}"
    others = [start(f"aggregator keygen {name} {making}") for name in MEMBERS[1:]]
    committee = run(f"aggregator keygen {MEMBERS[0]} {making}")["committee"]
    for other in others:
        other.communicate()
    certified("owner", "owner")  # step 1.d
    run(f"owner announce owner '{TASK}' --committee {committee} --early-end {key}")
    services = [start(f"aggregator run {name} {key}") for name in MEMBERS]  # steps 6 to 8: they open sums
    services += [start(f"client run {name} {key}") for name in CLIENTS]  # steps 3 to 5: they train and post
    result = run(f"owner run owner --validation images/test.npz --end-after {len(CLIENTS)} {key}")
    for entry in result["iterations"]:
        print("iteration {iteration}: {outcome}, {count} clients, {metrics}".format(**entry))
    last = result["iterations"][-1]["iteration"]
    run(f"model export owner/models/digits-{last}.model --out lenet5.safetensors")
    print("audit:", "every rule was kept" if run(f"audit {url}")["ok"] else "refused")
