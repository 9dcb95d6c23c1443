"""Workers on the machines of a Dask cluster: one for each worker process of Dask, as an actor.

An actor lives in the process that made it, so the secrets of its clients never leave that process. What
crosses are the same bytes as with a process on this machine, and the proof keys, once; Dask carries them
through its scheduler. Dask brings its own security (``tls://`` addresses, by its own configuration).
"""

import secrets
import threading
import time
from typing import Any, Final

from distributed import Client

from anofel.errors import InvalidInput, PeerUnreachable
from anofel.simulation.workers.links import WorkerLost
from anofel.simulation.workers.worker import Worker

CONNECT_SECONDS: Final = 30
WORKERS_SECONDS: Final = 60
"""How long one waits for workers that have not joined the scheduler yet."""
_LOOK_SECONDS: Final = 2.0
"""How often one looks whether a worker is still there, while it is silent."""


class DaskWorker:
    """A worker as an actor of Dask."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        self._worker = Worker()

    def identify(self) -> str:
        """Name this very object: Dask makes a new one where a machine comes back."""
        return self.token

    def obey(self, token: str, order: bytes) -> bytes:
        """Do one order."""
        if token != self.token:
            raise WorkerLost("The worker was made anew, without its clients.")
        return self._worker.obey(order)


class _Cluster:
    """The connection to a scheduler, which ends with the last of its links."""

    def __init__(self, client: Client, links: int) -> None:
        self.client, self._links, self._lock = client, links, threading.Lock()

    def leave(self) -> None:
        with self._lock:
            self._links -= 1
            if not self._links:
                self.client.close()


class DaskLink:
    """The simulation's end."""

    is_here: Final = False

    def __init__(self, cluster: _Cluster, number: int, address: str) -> None:
        """Make the worker. Raises ``WorkerLost``."""
        self.name = f"Worker {number} (Dask, {address})"
        self._cluster, self._address = cluster, address
        self._closed = threading.Event()
        client = cluster.client
        try:
            self._future = client.submit(
                DaskWorker,
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
            self._actor: Any = self._future.result(timeout=WORKERS_SECONDS)
            with client.as_current():  # an actor binds itself to the client of its first call
                named = self._actor.identify()
            self._token: str = named.result(timeout=WORKERS_SECONDS)
        except Exception as error:
            self.close()
            raise WorkerLost(
                f"{self.name} cannot be used: {_sentence(error)}. The same version of anofel must be "
                "installed on every machine."
            ) from None

    def converse(self, order: bytes, seconds: float) -> bytes:
        """Send an order and wait for its answer. Raises ``WorkerLost``."""
        until = time.monotonic() + seconds
        try:
            answer = self._actor.obey(self._token, order)
            while not self._closed.is_set():
                left = until - time.monotonic()
                if left <= 0:
                    raise WorkerLost(f"{self.name} did not answer within {seconds:g} seconds.")
                try:
                    said: bytes = answer.result(timeout=min(left, _LOOK_SECONDS))
                except TimeoutError:
                    self._look()
                else:
                    return said
        except WorkerLost:
            raise
        except Exception as error:
            raise WorkerLost(f"{self.name} is lost: {_sentence(error)}.") from None
        raise WorkerLost(f"{self.name} was closed.")

    def _look(self) -> None:
        """A worker that the scheduler does not know any more answers nothing."""
        if self._address not in self._cluster.client.nthreads():
            raise WorkerLost(f"{self.name} left the scheduler.")

    def close(self) -> None:
        """Let the worker go; one that hangs goes with its process, which is Dask's."""
        if not self._closed.is_set():
            self._closed.set()
            if hasattr(self, "_future"):
                self._future.release()
            self._actor = None
            self._cluster.leave()


def dask_links(address: str, number: int) -> list[DaskLink]:
    """Make one worker on each of so many Dask workers, or on all that are there for 0.

    Raises ``PeerUnreachable``, ``InvalidInput``, ``WorkerLost``.
    """
    client = _connect(address)
    try:
        client.wait_for_workers(max(number, 1), timeout=WORKERS_SECONDS)
        there = sorted(client.nthreads())
    except TimeoutError:
        client.close()
        raise InvalidInput(
            f"The Dask scheduler {address} has fewer than {max(number, 1)} workers after {WORKERS_SECONDS} "
            f"seconds; start more with: dask worker {address}"
        ) from None
    chosen = there[:number] if number else there
    cluster, links = _Cluster(client, len(chosen)), list[DaskLink]()
    try:
        for place, where in enumerate(chosen, start=1):
            links.append(DaskLink(cluster, place, where))
    except BaseException:
        for link in links:
            link.close()
        client.close()
        raise
    return links


def _connect(address: str) -> Client:
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except ValueError as error:
        raise InvalidInput(f"'{address}' is no address of a Dask scheduler: {_sentence(error)}.") from None
    except OSError:
        raise PeerUnreachable(
            f"No Dask scheduler answers at {address} within {CONNECT_SECONDS} seconds; start one with: "
            "dask scheduler"
        ) from None


def _sentence(error: Exception) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(". ")
