"""Verify: what it costs to check a log and all that is derived from it, against reading the same bodies once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.rows import Row
from bench.stage import Pair, Stage
from bench.timing import Figure, take_turns
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.verify import reader as verify_reader

_PEAK = """
import sys, woodrat
from woodrat.engines.sqlite import connection
connection.CACHE_KIBIBYTES = 2_048  # a bound of its own, which the short log would not reach
with woodrat.open(sys.argv[1], readonly=True) as ledger:
    assert ledger.verify().sound
with open("/proc/self/status") as status:  # not getrusage, which counts what the parent had too
    print(next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM")))
"""


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("verify-log", "digests, commitments, bodies and tree of {s.long:,} / read + SHA-256", 8, _log),
        Row("verify", "verify of {s.long:,} with all state / read + SHA-256", 30, _whole),
        Row("verify-memory", "peak memory of verify of {s.long:,}, page cache apart / of a tenth", 1.2, _memory),
    ]


def _log(stage: Stage) -> Figure:
    pair = stage.checked
    engine = SqliteEngine(pair.path, readonly=True)

    def ours(_: object) -> None:
        with engine.view(pair.ledger.tenant) as view:
            log, wrong = verify_reader.check_log(view, view.extent(), (), lambda count: None)
            assert [*log.damage, *wrong] == [], "the log is what was written"

    try:
        return _against_raw(stage, pair, ours)
    finally:
        engine.close()


def _whole(stage: Stage) -> Figure:
    pair = stage.checked

    def ours(_: object) -> None:
        assert pair.ledger.verify().sound, "what is kept is what the log says"

    return _against_raw(stage, pair, ours)


def _against_raw(stage: Stage, pair: Pair, ours: Callable[[object], None]) -> Figure:
    return take_turns(
        [[None]] * 5,
        ours,
        lambda _: pair.raw.digest_all(),
        per=stage.scale.long,
        per_against=stage.scale.long,
        seconds=stage.scale.seconds,
    )


def _memory(stage: Stage) -> Figure:
    """Return the most memory that verifying takes in a process of its own, for a long and for a short log."""
    return Figure(_peak(stage.checked.path), _peak(stage.checked_short.path), "B")


def _peak(path: Path) -> float:
    done = subprocess.run([sys.executable, "-c", _PEAK, str(path)], check=True, capture_output=True, text=True)
    return float(done.stdout)
