"""LeNet5 on MNIST, every role its own process: board, certifier, committee of three, owner, four clients.

Run: python examples/mnist_processes.py [IMAGES.npz]

It needs anofel[torch] and MNIST (anofel study fetch mnist), or an archive of `images` and `labels`. All is
HTTP on this machine, with insecure development keys; one key file opens everybody's key store. Each line of
``main`` is what somebody types in a deployment.
"""

import json
import os
import shlex
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np

from anofel.learning.splits import iid
from anofel.studies.catalogue import study_named
from anofel.studies.load import hold_out, load_file, load_study

TASK = Path(__file__).parent / "tasks" / "mnist-four.toml"
BOARD = "--interval 0.5 --bundle-size 1 --bundle-wait 1 --size-class 100000:4 --post-from 10 --train 60"
INSECURE = "--insecure-test-ca ca --insecure-development-keys"
POLICY = '[[dataset]]\ntype = 0\nschema = "task.toml"\nmax_duplicates = 9\n'
KEY = "--key-file roles.key"
CLIENTS, MEMBERS = range(4), "abc"
running = ExitStack()


def start(words: str) -> Popen[bytes]:
    """Start a command of anofel; what still runs in the end is stopped."""
    process = running.enter_context(Popen([sys.executable, "-m", "anofel", *shlex.split(words)], stdout=PIPE))
    running.callback(process.terminate)
    return process


def run(words: str) -> dict:
    """Run a command to its end; its JSON document is the result."""
    process = start(f"{words} --json")
    printed, _ = process.communicate()
    assert process.returncode == 0, words
    return json.loads(printed)


def main() -> None:
    """Set everybody up, train, measure, export, audit."""
    run("setup dev keys")  # step 0: proof keys, a test authority and a board
    run(f"node init board --name MNIST --keys keys {INSECURE} {BOARD}")
    said = start("node run board --port 0").stdout.readline().decode()  # … at http://127.0.0.1:PORT/v1/
    url = said.split(" at ")[1].strip().removesuffix("/v1/")
    board = f"--board {url} --genesis board/genesis.bin {KEY}"

    def certified(role: str, name: str, options: str = "") -> None:
        run(f"ca issue ca --purpose {role} --name {name} --out x509/{name}")
        x509 = f"--certificate x509/{name}/certificate.pem --key x509/{name}/key.pem"
        run(f"{role} init {name} {board} {x509} {options}")

    certified("certifier", "clinic", "--keys keys --policy policy.toml")  # step 1.a
    run(f"certifier enroll clinic {KEY}")
    for name in MEMBERS:  # step 1.c: the committee makes its key, and nobody deals it
        certified("aggregator", name)
    members = " ".join(f"--member x509/{name}/certificate.pem" for name in MEMBERS)
    making = f"--name digits --threshold 2 {members} {KEY}"
    others = [start(f"aggregator keygen {name} {making}") for name in MEMBERS[1:]]
    committee = run(f"aggregator keygen {MEMBERS[0]} {making}")["committee"]
    for other in others:
        other.communicate()
    for number in CLIENTS:  # step 1.b: each client has its images certified, and registers
        name, data = f"client-{number}", f"--data {number}.npz"
        floors = "--schema task.toml --keys keys --max-epsilon 1e9 --first-wait 0"
        run(f"client init {name} {board} {data} {floors}")
        run(f"certifier nonce clinic --subject {name} --type 0 --out {name}.nonce")
        run(f"client request {name} --nonce {name}.nonce --out {name}.request {KEY}")
        run(f"certifier certify clinic --request {name}.request {data} --out {name}.certificate {KEY}")
        run(f"client accept {name} {name}.certificate {KEY}")
        run(f"client register {name} {KEY}")
    certified("owner", "owner")  # step 1.d
    run(f"owner announce owner task.toml --committee {committee} --early-end {KEY}")
    for name in MEMBERS:  # steps 6 to 8: the committee opens sums
        start(f"aggregator run {name} {KEY}")
    for number in CLIENTS:  # steps 3 to 5: clients train and post
        start(f"client run client-{number} {KEY}")
    result = run(f"owner run owner --validation test.npz --end-after {len(CLIENTS)} {KEY}")
    for entry in result["iterations"]:
        print("iteration {iteration}: {outcome}, {count} clients, {metrics}".format(**entry))
    run(f"model export owner/models/{result['iterations'][-1]['model']}.model --out lenet5.safetensors")
    print("audit:", "every rule was kept" if run(f"audit {url}")["ok"] else "refused")


def write_files(archive: Path | None) -> None:
    """Write the task, the certifier's policy, each client's images, and some to measure by."""
    shutil.copy(TASK, "task.toml")
    Path("policy.toml").write_text(POLICY)
    mnist = study_named("mnist")
    train, test = load_study(mnist) if archive is None else hold_out(load_file(archive, mnist.schema()), 0)
    parts = [
        *iid(train.take(np.arange(len(train))[:2000]), len(CLIENTS), seed=0),
        test.take(np.arange(len(test))[:500]),
    ]
    for name, rows in zip([*CLIENTS, "test"], parts, strict=True):
        np.savez(f"{name}.npz", images=rows.features[..., 0], labels=rows.labels)


if __name__ == "__main__":
    own = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else None
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as directory, running:
        os.chdir(directory)
        write_files(own)
        main()
