"""What a node counts for its operator, as Prometheus text. Nothing in it is about a client.

The exposition format is a dozen lines; the client library would bring its own registry and process
metrics for them.
"""

import threading
from collections import Counter
from collections.abc import Iterable


class Metrics:
    """Counters since the start of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accepted: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._bytes = 0

    def accepted(self, kind: str, num_bytes: int) -> None:
        """Count an accepted posting."""
        with self._lock:
            self._accepted[kind] += 1
            self._bytes += num_bytes

    def rejected(self, code: str) -> None:
        """Count a refused posting by the rule's code."""
        with self._lock:
            self._rejected[code] += 1

    @property
    def refusals(self) -> dict[str, int]:
        """Refused postings by the rule's code."""
        with self._lock:
            return dict(self._rejected)

    def text(self, gauges: Iterable[tuple[str, str, int]]) -> str:
        """Write everything, with numbers that the caller reads off the node (name, help, value)."""
        with self._lock:
            accepted, rejected, num_bytes = dict(self._accepted), dict(self._rejected), self._bytes
        lines = [
            *_family("anofel_postings_accepted_total", "Accepted postings by kind.", "counter"),
            *(f'anofel_postings_accepted_total{{kind="{k}"}} {n}' for k, n in sorted(accepted.items())),
            *_family("anofel_postings_rejected_total", "Refused postings by the rule's code.", "counter"),
            *(f'anofel_postings_rejected_total{{code="{c}"}} {n}' for c, n in sorted(rejected.items())),
            *_family("anofel_postings_accepted_bytes_total", "Bytes of accepted postings.", "counter"),
            f"anofel_postings_accepted_bytes_total {num_bytes}",
        ]
        for name, description, value in gauges:
            lines += [*_family(name, description, "gauge"), f"{name} {value}"]
        return "\n".join(lines) + "\n"


def _family(name: str, description: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {description}", f"# TYPE {name} {kind}"
