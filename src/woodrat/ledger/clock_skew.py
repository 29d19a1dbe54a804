"""Skew: how far a log's clock is ahead of this machine's, and what to say of it.

The log's time only goes forward. After a clock that jumped ahead was set right, the log stays where it was: times that
it sets lie in the future until the machine's clock has passed it. That cannot be undone, so whoever writes is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import moment
from woodrat.errors import Corrupt

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine

SKEW_MICROS: Final = 5 * 60 * 1_000_000
"""How far the log's clock may be ahead of the machine's before that is told."""
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def skew_hint(now: str, recorded_at: str | None) -> str | None:
    """Return what to tell of a log at `recorded_at` on a machine that shows `now`; none where it is not far ahead."""
    if recorded_at is None or recorded_at <= now:
        return None
    ahead = moment.to_micros(recorded_at) - moment.to_micros(now)
    if ahead <= SKEW_MICROS:
        return None
    return (
        f"The log's clock is {_span(ahead)} ahead of this machine's: the log is at {_shown(recorded_at)}, and this "
        f"machine at {_shown(now)}. Times that the log sets (recorded_at, and observed_at where none is given) are in "
        "the future until this machine's clock passes the log's. Check this machine's clock; if it is right, state "
        "observed_at."
    )


def skew_of(engine: Engine, tenant: TenantId, clock: Clock) -> str | None:
    """Return what to tell of a tenant's log on this machine; none too where its end cannot be read."""
    try:
        with engine.view(tenant) as view:
            return skew_hint(clock.now(), view.head().recorded_at)
    except Corrupt:
        return None


def _span(micros: int) -> str:
    """Return a span in whole units of the largest that fits, as people say it."""
    seconds = micros // 1_000_000
    for size, name in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'s' * (count != 1)}"
    return f"{seconds} seconds"


def _shown(time: str) -> str:
    """Return a moment as people write it: 16 Nov 2026, 15:56 UTC."""
    return f"{int(time[8:10])} {_MONTHS[int(time[5:7]) - 1]} {time[:4]}, {time[11:16]} UTC"
