"""A log that strangers cannot fill."""

import logging
import time
from typing import Final

LOG_SECONDS: Final = 60.0
"""The same kind of trouble is said once in so long."""


class RareLog:
    """Says each kind of trouble at most once a minute, and how often it was left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warn(self, kind: str, sentence: str) -> None:
        """Say a sentence unless its kind was said within the last minute."""
        now = time.monotonic()
        if now - self._said.get(kind, -LOG_SECONDS) < LOG_SECONDS:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._said[kind] = now
        more = self._left_out.pop(kind, 0)
        self._log.warning("%s", f"{sentence} ({more} more like this)" if more else sentence)
