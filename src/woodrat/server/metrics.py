"""Measuring: counts and times of requests, in the text format that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds."""


_WORK: Final = (
    ("work_running", "gauge", "Pieces of work being done"),
    ("work_waiting", "gauge", "Pieces of work that wait for a place"),
    ("work_refused_total", "counter", "Calls refused because too many waited"),
)


class Measures:
    """Requests by verb and status, and how long they took by verb. One event loop counts them; no lock is needed."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self.open = 0
        """Requests being answered."""

    def note(self, verb: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (verb, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        buckets = self._buckets.setdefault(verb, [0] * (len(BOUNDS) + 1))
        buckets[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[verb] = self._seconds.get(verb, 0.0) + seconds

    def text(
        self, audit_dropped: int = 0, work: Mapping[str, tuple[int, int, int]] | None = None, *, degraded: bool = False
    ) -> str:
        """Return all of it in the text format, version 0.0.4.

        `work` is, by kind, how many run, wait, and were refused as too many waited.
        """
        found = [
            "# HELP woodrat_requests_total Requests answered, by verb and status.",
            "# TYPE woodrat_requests_total counter",
        ]
        for (verb, status), count in sorted(self._requests.items()):
            found.append(f'woodrat_requests_total{{verb="{verb}",status="{status}"}} {count}')
        found += [
            "# HELP woodrat_request_seconds How long requests took, by verb.",
            "# TYPE woodrat_request_seconds histogram",
        ]
        for verb, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                total += count
                found.append(f'woodrat_request_seconds_bucket{{verb="{verb}",le="{bound}"}} {total}')
            found.append(f'woodrat_request_seconds_sum{{verb="{verb}"}} {self._seconds[verb]:.6f}')
            found.append(f'woodrat_request_seconds_count{{verb="{verb}"}} {total}')
        found += [
            "# HELP woodrat_requests_open Requests being answered now.",
            "# TYPE woodrat_requests_open gauge",
            f"woodrat_requests_open {self.open}",
            "# HELP woodrat_audit_events_dropped_total Events of the read audit that could not be written.",
            "# TYPE woodrat_audit_events_dropped_total counter",
            f"woodrat_audit_events_dropped_total {audit_dropped}",
            "# HELP woodrat_audit_degraded Whether the read audit lost events, or cannot be written now.",
            "# TYPE woodrat_audit_degraded gauge",
            f"woodrat_audit_degraded {int(degraded)}",
        ]
        for place, (name, kind, what) in enumerate(_WORK):
            found += [f"# HELP woodrat_{name} {what}, by kind of work.", f"# TYPE woodrat_{name} {kind}"]
            found += [f'woodrat_{name}{{kind="{of}"}} {counts[place]}' for of, counts in sorted((work or {}).items())]
        return "\n".join(found) + "\n"
