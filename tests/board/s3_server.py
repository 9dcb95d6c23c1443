"""A real S3 server for tests: versitygw over a directory, in which a folder is a bucket."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anofel.storage.blobs.s3 import S3Config

ACCESS, SECRET = "anofel-test", "a secret of the tests alone"
_PROGRAM = Path(__file__).parents[2] / ".engine" / "versitygw"  # where make object-storage puts it


class S3Server:
    """The server on a port of its own; it may be stopped and started again."""

    def __init__(self, directory: Path) -> None:
        pytest.importorskip("obstore", reason="The extra anofel[s3] is not installed.")
        program = str(_PROGRAM) if _PROGRAM.is_file() else shutil.which("versitygw")
        if program is None:
            pytest.skip("versitygw is not built (make object-storage).")
        self._program, self.directory = program, directory
        (directory / "sidecar").mkdir(parents=True)
        self._number = 0
        self.new_bucket()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port: int = taken.getsockname()[1]
        self.start()

    @property
    def config(self) -> S3Config:
        return S3Config(bucket=self.bucket, endpoint=f"http://127.0.0.1:{self.port}")

    def objects(self) -> dict[str, bytes]:
        """What is in the bucket."""
        bucket = self.directory / "data" / self.bucket
        return {
            str(path.relative_to(bucket)): path.read_bytes()
            for path in bucket.rglob("*")
            if path.is_file() and not path.relative_to(bucket).parts[0].startswith(".")
        }

    def path(self, name: str) -> Path:
        """Where the server has an object."""
        return self.directory / "data" / self.bucket / name

    def new_bucket(self) -> None:
        """Go on with an empty bucket."""
        self._number += 1
        self.bucket = f"board-{self._number}"
        (self.directory / "data" / self.bucket).mkdir(parents=True)

    def start(self) -> None:
        keys = {"ROOT_ACCESS_KEY_ID": ACCESS, "ROOT_SECRET_ACCESS_KEY": SECRET}
        command = [self._program, "--quiet", "--port", f"127.0.0.1:{self.port}", "posix"]
        command += ["--sidecar", str(self.directory / "sidecar"), str(self.directory / "data")]
        self._process = subprocess.Popen(
            command, env=os.environ | keys, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end, "The S3 server did not start."
                assert self._process.poll() is None, "The S3 server ended."
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def altering(port: int, alter: Callable[[bytes], bytes], *, answers: bool) -> Iterator[int]:
    """A way to the server on which what is sent, or what is answered, is altered; gives its port."""
    ended: list[socket.socket] = []

    def carry(source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]) -> None:
        try:
            while piece := source.recv(1 << 16):
                target.sendall(change(piece))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    client = server.accept()[0]
                except OSError:
                    return
                there = socket.create_connection(("127.0.0.1", port))
                ended.extend((client, there))
                for one, other, changed in ((client, there, not answers), (there, client, answers)):
                    change = alter if changed else bytes
                    threading.Thread(target=carry, args=(one, other, change), daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in ended:
        connection.close()
