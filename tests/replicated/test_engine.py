"""Validators as real processes, each with its engine, over real HTTP."""

import hashlib
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import httpx2
import pytest

from anofel.light_client.client import LightClient
from anofel.messages import Block
from anofel.network.transport import Refused, Transport
from anofel.node.files import FEWEST_ENGINE_BLOCKS, NodeConfig
from anofel.node.replicated.engine import (
    ENGINE,
    HOME,
    EngineMissing,
    EngineRpc,
    check_engine,
    find_engine,
)
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from tests.node.support import OCTETS, SECONDS, wait_until
from tests.replicated.support import Validators, make_validators, needs_engine, running, start


def tip(validators: Validators, number: int) -> tuple[int, str]:
    status = httpx2.get(f"{validators.url(number)}/v1/status", timeout=SECONDS).raise_for_status().json()
    return status["height"], status["tip"]


def height(validators: Validators, number: int) -> int:
    return tip(validators, number)[0]


def height_at(url: str) -> int:
    return httpx2.get(f"{url}/v1/status", timeout=SECONDS).raise_for_status().json()["height"]


def health(validators: Validators, number: int) -> tuple[int, str]:
    """A node that answers well and whose board stands still is not healthy."""
    answer = httpx2.get(f"{validators.url(number)}/v1/health", timeout=SECONDS)
    return answer.status_code, answer.json().get("code", "")


def post(validators: Validators, number: int, data: bytes) -> httpx2.Response:
    url = f"{validators.url(number)}/v1/postings"
    return httpx2.post(url, content=data, headers=OCTETS, timeout=SECONDS)


def in_a_block(validators: Validators, number: int, data: bytes) -> int:
    """Send a posting until a block has it; return the block's height."""
    found: list[int] = []

    def is_there() -> bool:
        answer = post(validators, number, data)
        if answer.status_code == 200 and answer.json()["height"] is not None:
            found.append(answer.json()["height"])
        else:
            assert answer.status_code in (200, 202, 503), answer.text
            time.sleep(0.2)
        return bool(found)

    wait_until(is_there)
    return found[0]


def audit(target: str) -> None:
    command = [sys.executable, "-m", "anofel", "audit", target, "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr.decode()


def same_block(validators: Validators, numbers: range, number: int) -> None:
    """No two nodes show different headers or postings of a height; their seals may differ."""
    shown = set()
    for node in numbers:
        answer = httpx2.get(f"{validators.url(node)}/v1/blocks/{number}", timeout=SECONDS).raise_for_status()
        block = Block.from_bytes(answer.content)
        shown.add((block.header, block.postings))
    assert len(shown) == 1


def test_a_board_of_one_validator_takes_postings_and_blobs(tmp_path: Path, keys: KeyDirectory) -> None:
    """The whole way once: the engine, a posting, a refusal, a blob, a light client, an audit, a restart."""
    needs_engine()
    validators = make_validators(tmp_path, keys, number=1, interval_ms=200)
    good = validators.offer().posting
    with running(validators, 0) as nodes:
        client = LightClient(
            tmp_path / "view", Transport(validators.url(0)), genesis_hash=validators.genesis.hash
        )
        client.post(good)
        at = in_a_block(validators, 0, good.data)
        broken = post(validators, 0, good.data[:-1] + bytes([good.data[-1] ^ 1]))
        assert (broken.status_code, broken.json()["code"]) == (422, "bad-signature")
        twice = validators.signed(validators.authority.issue(Purpose.OWNER, "No certifier"), good.body)
        with pytest.raises(Refused) as caught:
            client.post(twice)
        assert caught.value.code == "author-not-certified"
        blob = client.upload(b"a blob")
        assert len(blob.receipts) == 1
        assert httpx2.get(f"{validators.url(0)}/v1/blobs/{blob.sha256.hex()}").content == b"a blob"
        wait_until(lambda: height(validators, 0) > at)
        client.sync()
        assert len(client.state.certifiers) == 1
        client.close()
        audit(validators.url(0))
        before = height(validators, 0)
        pid = nodes[0].process.pid
        (engine,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(engine), signal.SIGKILL)  # it leaves its socket behind
        wait_until(lambda: height(validators, 0) > before + 1)
        before = height(validators, 0)
    audit(str(validators.path(0)))
    audit(str(validators.copy(0, tmp_path / "copy")))
    with running(validators, 0):
        wait_until(lambda: height(validators, 0) > before)


def test_without_the_engine_a_validator_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE, str(tmp_path / "nothing"))
    with pytest.raises(EngineMissing, match="make engine builds it") as caught:
        find_engine()
    assert caught.value.exit_code == 2
    other = tmp_path / "other"
    other.write_bytes(b"\x7fELF another program")
    monkeypatch.setenv(ENGINE, str(other))
    with pytest.raises(EngineMissing, match="make engine builds the right one"):
        find_engine()


def test_a_validator_without_its_engine_ends_with_one_sentence(tmp_path: Path, keys: KeyDirectory) -> None:
    validators = make_validators(tmp_path, keys, number=1)
    done = subprocess.run(
        [sys.executable, "-m", "anofel", "node", "run", str(validators.path(0)), "--port", "0"],
        env=os.environ | {ENGINE: str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "A replicated board needs the engine CometBFT v0.38.26: make engine builds it" in said
    assert "Traceback" not in said


def test_another_version_is_refused(tmp_path: Path) -> None:
    needs_engine()
    program = find_engine().read_bytes()
    for ours, theirs in ((b"\tv0.38.26\t", b"\tv0.38.25\t"), (b"h1:MIPY", b"h1:XXXX")):
        assert ours in program
        changed = tmp_path / "changed"
        changed.write_bytes(program.replace(ours, theirs))
        with pytest.raises(EngineMissing, match="not github"):
            check_engine(changed)


def engine_keeps_from(directory: Path) -> int:
    settings = tomllib.loads((directory / HOME / "config" / "config.toml").read_text())
    rpc = EngineRpc(Path(settings["rpc"]["laddr"].removeprefix("unix://")))
    try:
        return int(rpc._ask("status")["sync_info"]["earliest_block_height"])
    finally:
        rpc.close()


@pytest.mark.slow
def test_an_engine_drops_its_old_blocks_and_ours_stay(tmp_path: Path, keys: KeyDirectory) -> None:
    needs_engine()
    validators = make_validators(tmp_path, keys, number=1, interval_ms=100)
    directory = validators.path(0)
    (directory / "node.toml").write_bytes(NodeConfig(engine_blocks=FEWEST_ENGINE_BLOCKS).to_toml())
    with running(validators, 0) as nodes:
        first = in_a_block(validators, 0, validators.offer().posting.data)
        assert engine_keeps_from(directory) == 1
        wait_until(lambda: height(validators, 0) > FEWEST_ENGINE_BLOCKS + first + 5)
        kept = engine_keeps_from(directory)
        assert first < kept <= height(validators, 0) - FEWEST_ENGINE_BLOCKS + 2
        client = LightClient(
            tmp_path / "view", Transport(validators.url(0)), genesis_hash=validators.genesis.hash
        )
        client.sync()
        assert len(client.state.certifiers) == 1, "it began at block 1"
        client.close()
        before = height(validators, 0)
        nodes[0].process.kill()
        nodes[0].wait()
    with running(validators, 0):
        wait_until(lambda: height(validators, 0) > before + 1)
        assert engine_keeps_from(directory) >= kept
    audit(str(directory))


@pytest.mark.slow
def test_four_validators_agree_and_one_may_die(tmp_path: Path, keys: KeyDirectory) -> None:
    """Postings through every node, kill -9 of one, of two, and everybody is where the others are again."""
    needs_engine()
    validators = make_validators(tmp_path, keys, number=4)
    everybody = range(4)
    with running(validators, *everybody) as nodes:
        postings = [validators.offer().posting.data for _ in everybody]
        accepted = [in_a_block(validators, number, postings[number]) for number in everybody]

        nodes[3].process.kill()
        nodes[3].wait()
        before = height(validators, 0)
        more = validators.offer().posting.data
        accepted.append(in_a_block(validators, 0, more))
        assert height(validators, 1) > before, "three of four go on"

        nodes[2].process.kill()
        nodes[2].wait()
        time.sleep(5)
        stuck = height(validators, 0)
        time.sleep(10)
        assert height(validators, 0) <= stuck + 1, "two of four stand still"
        wait_until(lambda: health(validators, 0) == (503, "no-progress"))

        for number in (2, 3):
            nodes[number] = start(validators, number)
        last = validators.offer().posting.data
        accepted.append(in_a_block(validators, 3, last))
        wait_until(lambda: min(height(validators, number) for number in everybody) >= accepted[-1])
        wait_until(lambda: health(validators, 0)[0] == 200)
        for number in range(1, accepted[-1] + 1):
            same_block(validators, everybody, number)
        for data, at in zip([*postings, more, last], accepted, strict=True):
            assert {post(validators, number, data).json()["height"] for number in everybody} == {at}
        audit(validators.url(2))
        for node in nodes.values():
            code, words = node.stop()
            assert code == 0, words
    for number in everybody:
        audit(str(validators.path(number)))


@pytest.mark.slow
def test_a_blob_reaches_a_quorum_and_whoever_lacks_it(tmp_path: Path, keys: KeyDirectory) -> None:
    """Three of four keep it before its author hears so; a fourth that lacks it fetches it."""
    needs_engine()
    validators = make_validators(tmp_path, keys, number=4)
    data = os.urandom(100_000)
    name = hashlib.sha256(data).hexdigest()
    with running(validators, 0, 1, 2):
        client = LightClient(
            tmp_path / "view", Transport(validators.url(1)), genesis_hash=validators.genesis.hash
        )
        blob = client.upload(data)
        client.close()
        assert len({receipt.holder for receipt in blob.receipts}) == validators.genesis.quorum == 3
        for number in (0, 1, 2):
            assert httpx2.get(f"{validators.url(number)}/v1/blobs/{name}").content == data
    with running(validators, 0, 1):
        url = f"{validators.url(0)}/v1/blobs/{hashlib.sha256(b'new').hexdigest()}"
        answer = httpx2.put(url, content=b"new", headers=OCTETS, timeout=SECONDS)
        assert (answer.status_code, answer.json()["code"]) == (503, "busy"), "two are no quorum"
