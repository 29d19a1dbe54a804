"""Spoken times: what times in words, dates and `datetime` objects turn out to be, by the clock of whoever says them.

Every surface turns them into times before it does anything else, and says in the answer's `times` what they turned out
to be, by argument. What is sent, hashed and recorded is the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from woodrat.ledger.moments import in_time
from woodrat.records import replace

if TYPE_CHECKING:
    from woodrat.clock import Clock

T = TypeVar("T")

TIMES: Final = ("observed_at", "valid_from", "since", "until", "valid_at")
"""Parameters that are times."""
MOMENTS: Final = ("as_of", "before", "after", "against", "moment")
"""Parameters that are moments; `now` stays what it is until the log is looked at."""
SPELLED: Final = {"before": "from", "after": "to"}
"""What surfaces call them, where that is another word."""
RECORD_TIMES: Final = ("observed_at", "valid_from")
"""What `$` of a record may hold that is a time."""
TOLD_MAX: Final = 20
"""Of how many times an answer says what they turned out to be."""


def resolved(given: Mapping[str, Any], clock: Clock) -> tuple[dict[str, Any], dict[str, str]]:
    """Return arguments with times in place of words, and what those turned out to be, by argument."""
    found, told = dict(given), dict[str, str]()
    for name in (*TIMES, *MOMENTS):
        if given.get(name) is not None:
            found[name] = in_argument(name, given[name], clock, told)
    if "records" in given:
        found["records"] = in_records(given["records"], clock, told)
    return found, told


def in_argument(name: str, said: object, clock: Clock, told: dict[str, str]) -> object:
    """Return one argument as a time in place of words; what those turned out to be is added to `told`."""
    if said is None or (said == "now" and name in MOMENTS):
        return said
    return _resolved(said, SPELLED.get(name, name), clock, told)


def in_records(records: object, clock: Clock, told: dict[str, str]) -> object:
    """Return records with times in place of words under `$`; what those turned out to be is added to `told`."""
    if isinstance(records, dict):
        return _in_record(records, "", clock, told)
    if not isinstance(records, list) or not any(type(record) is dict and "$" in record for record in records):
        return records
    return [_in_record(record, f"/{number}", clock, told) for number, record in enumerate(records)]


def _in_record(record: Any, path: str, clock: Clock, told: dict[str, str]) -> Any:
    about = record.get("$") if type(record) is dict else None
    if type(about) is not dict or not any(name in about for name in RECORD_TIMES):
        return record
    times = {name: _resolved(about[name], f"{path}/$/{name}", clock, told) for name in RECORD_TIMES if name in about}
    if all(times[name] is about[name] for name in times):
        return record
    return {**record, "$": {**about, **times}}


def _resolved(said: object, name: str, clock: Clock, told: dict[str, str]) -> object:
    time = in_time(said, clock)
    if time is not said and isinstance(time, str) and len(told) < TOLD_MAX:
        told[name] = time
    return time


def with_times(answer: T, told: Mapping[str, str]) -> T:
    """Return an answer that says what times turned out to be; one that has no place for it as it is."""
    if not told or not hasattr(answer, "times"):
        return answer
    if hasattr(answer, "but"):
        return answer.but(times=told)  # type: ignore[no-any-return]
    return replace(answer, times=told)  # type: ignore[type-var]
