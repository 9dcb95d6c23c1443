"""Record what a running CometBFT says about some of its blocks: vectors that our code did not make.

    python vectors/comet.py SOCKET NODE HEIGHT …

SOCKET is the engine's RPC socket, NODE the directory of the validator that runs it.
"""

import json
import sys
from pathlib import Path

import httpcore2

from anofel.storage.blocks import read_genesis


def main(socket: str, node: str, *heights: str) -> None:
    """Print the file."""
    genesis = read_genesis(Path(node) / "genesis.bin")
    vectors = {
        "genesis": genesis.to_bytes().hex(),
        "commits": [_commit(httpcore2.ConnectionPool(uds=socket), height) for height in heights],
    }
    print(json.dumps(vectors, indent=1))


def _commit(pool: httpcore2.ConnectionPool, height: str) -> object:
    question = {"jsonrpc": "2.0", "id": 1, "method": "commit", "params": {"height": height}}
    headers = {"Content-Type": "application/json"}
    answer = pool.request("POST", "http://engine/", headers=headers, content=json.dumps(question).encode())
    return json.loads(answer.content)["result"]["signed_header"]


if __name__ == "__main__":
    main(*sys.argv[1:])
