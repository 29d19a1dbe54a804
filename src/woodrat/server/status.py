"""Status: health, readiness and metrics of a server, for its operators."""

from __future__ import annotations

import asyncio
import os
import shutil
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import TenantId
from woodrat.errors import Corrupt, Forbidden, Unavailable, WoodratError
from woodrat.server.access import METRICS
from woodrat.server.keys import KEYS_TENANT
from woodrat.server.problems import NOTHING_DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from woodrat.engines.engine import Engine
    from woodrat.server.audit import Audit
    from woodrat.server.keys import Callers
    from woodrat.server.rates import Turns
    from woodrat.server.requests import Exchange
    from woodrat.server.writes import WriteExecutor


DISK_BYTES_MIN: Final = 16 * 1_048_576
"""Free disk space below which the server reports that it is degraded."""


class Status:
    """Answers `/healthz`, `/readyz` and `/metrics`."""

    def __init__(
        self,
        engine: Engine,
        callers: Callers,
        audit: Audit,
        measures: Measures,
        turns: Mapping[str, Turns],
        writes: WriteExecutor,
        thread: Executor,
        lacking: Callable[[], Mapping[str, int]],
        refused: Callable[[], Sequence[str]],
    ) -> None:
        self._engine, self._callers, self._audit = engine, callers, audit
        self._measures, self._turns, self._writes = measures, turns, writes
        self._thread = thread
        self._lacking, self._refused = lacking, refused

    async def healthy(self, exchange: Exchange) -> None:
        """The process answers."""
        await exchange.answer({"status": "ok"})

    async def ready(self, exchange: Exchange) -> None:
        """Check that the engine answers, and report, where a reader can tell, whether it could write."""
        problem = await asyncio.get_running_loop().run_in_executor(self._thread, degraded, self._engine)
        if problem is not None:
            problem = str(without_path(Unavailable(problem), self._engine))
            await exchange.answer({"status": "degraded", "problem": problem}, 503)
            return
        # Calls are answered as ever, so load balancers need not react; but an operator should look.
        refused = await asyncio.get_running_loop().run_in_executor(self._thread, self._refused)
        problems = [self._audit.problem, _older(len(refused)) if refused else None]
        problem = " ".join(each for each in problems if each is not None)
        await exchange.answer({"status": "degraded", "problem": problem} if problem else {"status": "ok"})

    async def metrics(self, exchange: Exchange) -> None:
        """Counts over all tenants are for the operator, with a key for them, or on this machine without keys."""
        caller = self._callers.identify(exchange)
        if caller.key != "" and METRICS not in caller.grants:
            text = f"This key may not read metrics, which are about all tenants. {NOTHING_DONE} Ask the operator for a "
            raise Forbidden(text + f"key with the grant {METRICS!r}.", {"grant": METRICS})
        work = {name: (turns.running, turns.waiting, turns.refused) for name, turns in self._turns.items()}
        work["writes"] = (self._writes.open, 0, 0)
        text = self._measures.text(self._audit.dropped, work, degraded=self._audit.problem is not None)
        text += indexes_text(self._lacking())
        await exchange.send(text.encode(), b"text/plain; version=0.0.4")


def indexes_text(lacking: Mapping[str, int]) -> str:
    """Return the lag of the indexes, in the text format of metrics."""
    samples = [(f'{{index="{name}"}}', count) for name, count in sorted(lacking.items())]
    return _family("index_lacking", "gauge", "Entries that an index does not know yet, over all tenants.", samples)


def _family(name: str, kind: str, what: str, samples: Iterable[tuple[str, object]]) -> str:
    """Return one metric in the text format: its description, and its values by labels."""
    lines = [f"# HELP woodrat_{name} {what}", f"# TYPE woodrat_{name} {kind}"]
    return "\n".join([*lines, *(f"woodrat_{name}{labels} {value}" for labels, value in samples), ""])


def _older(tenants: int) -> str:
    """Say that writes are refused, without naming tenants, since a probe shows no key."""
    return (
        f"Writes of {tenants} tenant{'s' if tenants > 1 else ''} are refused: the signing keys remember more than "
        "the database holds, as after a restored backup. Reads go on. `woodrat doctor --tenant T` has details; "
        "accept the log as it is with `woodrat checkpoint --new-epoch REASON --tenant T`."
    )


def degraded(engine: Engine) -> str | None:
    """Return the fault that stops the engine, if any."""
    try:
        with engine.view(TenantId(KEYS_TENANT)) as view:
            view.head()
        engine.check_writes()  # reads work, but no write will until a restart
    except WoodratError as error:
        return str(error)
    path = engine.path
    if path is not None:
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
        if free < DISK_BYTES_MIN:
            return f"The disk has {free} bytes left. Reads go on; writes may be refused. Free some space."
    return None


def without_path(error: WoodratError, engine: Engine) -> WoodratError:
    """Return an error without the path of the database."""
    if not isinstance(error, Unavailable | Corrupt):
        return error
    text = str(error)
    for path in (engine.location, engine.path):
        text = text.replace(path, "the database") if path else text
    if text == str(error):
        return error
    return type(error)(text, {name: value for name, value in error.details.items() if name != "path"})


STREAMS: Final = ("exports", "follows", "progress", "waits")
"""Kinds of streams: full exports of a log, followers of a log, long reads with progress, and calls that wait for new
entries.
"""
BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds."""


_WORK: Final = (
    ("work_running", "gauge", "Pieces of work being done"),
    ("work_waiting", "gauge", "Pieces of work that wait for a place"),
    ("work_refused_total", "counter", "Calls refused because too many waited or were open"),
)


class Measures:
    """Requests by verb and status, and their durations by verb. One event loop counts them; no lock is needed."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self.open = 0
        """Requests being answered."""
        self.streams = dict.fromkeys(STREAMS, 0)
        """Open streams by kind; they are also counted as requests."""

    @property
    def calls_open(self) -> int:
        """Return the number of running requests that are not streams."""
        return self.open - sum(self.streams.values())

    @contextmanager
    def streaming(self, kind: str) -> Iterator[None]:
        """Count a stream while it is open."""
        self.streams[kind] += 1
        try:
            yield
        finally:
            self.streams[kind] -= 1

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

        `work` has, by kind, the numbers of running, waiting and refused tasks.
        """
        requests = [
            (f'{{verb="{verb}",status="{status}"}}', count) for (verb, status), count in sorted(self._requests.items())
        ]
        streams = [(f'{{kind="{kind}"}}', count) for kind, count in self.streams.items()]
        degraded_text = "Whether the read audit lost events, or cannot be written now."
        dropped_text = "Events of the read audit that could not be written."
        found = [
            _family("requests_total", "counter", "Requests answered, by verb and status.", requests),
            _family("request_seconds", "histogram", "Duration of requests, by verb.", []),
            *(line for verb in sorted(self._buckets) for line in self._histogram(verb)),
            _family("requests_open", "gauge", "Requests being answered now.", [("", self.open)]),
            _family("streams_open", "gauge", "Streams that are open now, by kind.", streams),
            _family("audit_events_dropped_total", "counter", dropped_text, [("", audit_dropped)]),
            _family("audit_degraded", "gauge", degraded_text, [("", int(degraded))]),
        ]
        for place, (name, kind, what) in enumerate(_WORK):
            counted = [(f'{{kind="{of}"}}', counts[place]) for of, counts in sorted((work or {}).items())]
            found.append(_family(name, kind, f"{what}, by kind of work.", counted))
        return "".join(found)

    def _histogram(self, verb: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._buckets[verb], strict=True):
            total += count
            yield f'woodrat_request_seconds_bucket{{verb="{verb}",le="{bound}"}} {total}\n'
        yield f'woodrat_request_seconds_sum{{verb="{verb}"}} {self._seconds[verb]:.6f}\n'
        yield f'woodrat_request_seconds_count{{verb="{verb}"}} {total}\n'
