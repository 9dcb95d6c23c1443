"""Workers that own the clients of a simulation: processes on this machine, or Dask workers on several."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anofel.errors import InvalidInput
from anofel.simulation.workers.links import ORDER_SECONDS, Link
from anofel.simulation.workers.process import ProcessLink

_log = logging.getLogger("anofel.simulation")


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where the clients of a simulation live."""

    number: int = 0
    """How many workers there are; with Dask 0 means all that are there."""
    dask: str = ""
    """The address of a Dask scheduler; without it workers are processes on this machine."""
    seconds: float = ORDER_SECONDS
    """The longest that a worker may take over one client. One that takes longer is lost."""
    on_loss: Callable[[str], None] = _log.warning
    """Hears of workers that are lost, with their names."""

    def __post_init__(self) -> None:
        if self.number < 0 or (not self.number and not self.dask):
            raise InvalidInput("Workers are at least one.")
        if not self.seconds > 0:
            raise InvalidInput("The time that a worker may take is more than 0 seconds.")

    def start(self) -> list[Link]:
        """Start them. Raises ``WorkerLost`` and ``InvalidInput``; none is left then."""
        if self.dask:
            return list(_dask_links(self.dask, self.number))
        links: list[Link] = []
        try:
            for number in range(1, self.number + 1):
                links.append(ProcessLink(number))
        except BaseException:
            for link in links:
                link.close()
            raise
        return links


def _dask_links(address: str, number: int) -> Sequence[Link]:
    try:
        from anofel.simulation.workers.dask_link import dask_links
    except ModuleNotFoundError as error:
        if error.name != "distributed":
            raise
        raise InvalidInput("Workers of Dask need the extra: pip install 'anofel[dask]'.") from None
    return dask_links(address, number)
