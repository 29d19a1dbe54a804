"""Agreement: a ledger must give the same answers as the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from woodrat import Ledger, NotFound, Past, Refused, Report
from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.testing.model import runs as model_runs
from woodrat.testing.model.tenant import Model, ModelPast

PAGE: Final = 3
"""Page size of lists: small, so that most lists have several pages."""
BLAME: Final = ("observation", "entity", "op", "agent", "observed_at", "priority", "value", "removed", "wins")
"""Members of a verdict that the model has too; reasons are compared up to the model's detail."""

Where = tuple[str, str, Json]
"""A condition: field, operator, operand."""


def check_same(question: str, answered: object, expected: object) -> None:
    """Assert that an answer is the model's, to the byte."""
    if form.serialise(answered) != form.serialise(expected):
        where, one, other = _difference(answered, expected, "")
        raise AssertionError(f"{question}: {where or 'the answer'}\n  answered {one!r}\n  expected {other!r}")


def _difference(one: Any, other: Any, where: str) -> tuple[str, Any, Any]:
    """Return the place where two values first differ, and both there."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(f"{where}/{name}", one.get(name, ...), other.get(name, ...)) for name in sorted({*one, *other})]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{where}/{place}", *both) for place, both in enumerate(zip(one, other, strict=True))]
    else:
        return where, one, other
    for place, left, right in pairs:
        if left is ... or right is ... or form.serialise(left) != form.serialise(right):
            return _difference(left, right, place)
    return where, one, other


def take_in(ledger: Ledger, model: Model) -> int:
    """Add the new entries of the log to the model; return their number."""
    entries = ledger.log.entries(after=model.position)
    model.append(entries)
    return len(entries)


def check_log(ledger: Ledger, model: Model) -> None:
    """Assert that the log has the model's entries, and no erased body."""
    for entry, known in zip(ledger.log.entries(), model.entries, strict=True):
        gone = known.position in model.erased
        assert entry.body == (None if gone else known.body), f"entry {entry.position} differs from the accepted one"


def check_write(model: Model, before: int, report: object) -> None:
    """Assert that a call's log entries match its report, and that a refused, repeated or dry call left none.

    `before` is the position before the call, and `report` None where it was refused.
    """
    new = list(range(before + 1, model.position + 1))
    if not isinstance(report, Report):
        assert report is not None or not new, f"a refused call left {new}"
        return
    if report.dry_run or report.repeated:
        assert not new, f"a call that writes nothing left {new}"
        return
    assert list(report.positions) == new, f"the call reports {report.positions} and left {new}"
    assert report.position == model.position
    held: dict[str, int] = {stored.observation.id: stored.position for stored in model.at().known}
    for id in report.observations:
        assert id in held, f"{id} is reported and not in the log"
        assert (held[id] <= before) is (id in report.known), f"{id} was known before, or was not"
    # An erasure that an import brings may say others again; everything else reports all it says.
    if not any(model.entries[position].kind == "erasure" for position in new):
        assert {id for id, position in held.items() if position > before} <= {*report.observations}


def check(
    past: Past,
    expected: ModelPast,
    *,
    refs: Iterable[Ref] | None = None,
    where: Sequence[Sequence[Where]] = (),
    words: Iterable[str] = (),
) -> None:
    """Ask a ledger at a moment everything: of all entities, or of some, and of the whole."""
    check_same("position", past.position, expected.position)
    for ref in expected.entities if refs is None else refs:
        check_entity(past, expected, ref)
    check_lists(past, expected)
    types = sorted({ref.type for ref in expected.entities})
    for type in (None, *types):
        for conditions in ((), *where):
            check_query(past, expected, type, conditions)
    for text in words:
        for type in (None, *types):
            check_search(past, expected, text, type)


# One entity


def check_entity(past: Past, expected: ModelPast, ref: Ref) -> None:
    """Compare one entity: its values, their provenance and timeline, and its relations."""
    if expected.meant(str(ref)) != [ref]:  # no observation of it, and its key is a value of another
        check_name(past, expected, str(ref))
        return
    shown = expected.show(ref)
    try:
        answered, erased_at = past.show(ref).to_json(), None
    except NotFound as missing:
        answered, erased_at = None, missing.details.get("erased_at")
    check_same(f"show {ref}", answered, shown)
    check_same(f"show {ref}: where it was erased", erased_at, expected.model.erased_at(ref) if shown is None else None)
    stored = [[position, said.id] for position, said in expected.stored(expected.group(ref))]
    if not stored:
        for verb in (past.blame, past.history, past.observations):
            assert _is_unknown(verb, ref), f"{ref} is not known, and {verb.__name__} answers"
        return
    for name, claims in expected.blame(ref).items():
        check_same(f"blame {ref}#{name}", [_verdict(one.to_json()) for one in past.blame(ref)[name]], claims)
    steps = [{**step, "observation": step["observation"].to_json()} for step in expected.history(ref)]
    check_same(f"history {ref}", [step.to_json() for step in _all(past.history, ref)], steps)
    found = [[item.position, item.observation.id] for item in _all(past.observations, ref)]
    check_same(f"observations {ref}", found, stored)
    if shown is not None:
        for depth in (1, 2):
            links = [link.to_json() for link in _all(past.related, ref, depth=depth)]
            check_same(f"related {ref} within {depth}", links, expected.related(ref, depth))


def _verdict(answered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a verdict that the model has; of the reason why a claim does not enter the merge, its
    beginning.
    """
    kept = {name: value for name, value in answered.items() if name in BLAME}
    reason = str(answered["reason"])
    entity = str(answered["entity"])
    beginnings = ("has no effect", "does not fit: ", f"{entity} is deleted")
    found = next((one for one in beginnings if reason.startswith(one)), "")
    if reason.startswith("withdrawn by "):
        found = reason.partition(",")[0]
    if reason.startswith(f"{entity} is deleted; it would take part"):
        found = ""
    return {**kept, **{name: answered[name] for name in ("assigned", "by_arrival", "because")}, "reason": found}


# Lists


def check_lists(past: Past, expected: ModelPast) -> None:
    """Compare everything: values, observations, conflicts, duplicates, fingerprints."""
    check_same("values", {ref: found.to_json() for ref, found in past.values().items()}, expected.values())
    stored = [[position, said.id] for position, said in expected.observations]
    check_same("observations", [[item.position, item.observation.id] for item in _all(past.observations)], stored)
    seen = [[said.observed_at, position, said.id] for position, said in expected.timeline()]
    events = [[event.observed_at, event.position, event.observation.id] for event in _all(past.timeline)]
    check_same("timeline", events, seen)
    check_same("conflicts", [conflict.to_json() for conflict in _all(past.conflicts)], expected.conflicts())
    arrivals = [[str(conflict.entity), conflict.field] for conflict in _all(past.conflicts, arrival=True)]
    check_same("conflicts by arrival", arrivals, [[entity, name] for entity, name in expected.arrivals()])
    check_same("duplicates", [found.to_json() for found in _all(past.duplicates)], expected.duplicates())
    check_same("fingerprint", past.fingerprint(), expected.fingerprint())
    check_same(
        "fingerprint with provenance", past.fingerprint(provenance=True), expected.fingerprint(with_winners=True)
    )


def check_query(past: Past, expected: ModelPast, type: str | None, where: Sequence[Where]) -> None:
    """Compare queries with conditions, in every order: by key and by each field."""
    conditions: dict[str, dict[str, Json]] = {}
    for name, op, operand in where:
        conditions.setdefault(name, {})[op] = operand
    for sort in (None, *dict.fromkeys(name for name, _, _ in where)):
        for descending in (False, True):
            asked: dict[str, Any] = {"entity_type": type, "where": conditions, "sort": sort, "descending": descending}
            answered = [[str(one.entity), one.version] for one in _all(past.query, **asked)]
            found = [[str(ref), expected.version(ref)] for ref in expected.query(type, where, sort, descending)]
            check_same(f"query {asked}", answered, found)


def check_search(past: Past, expected: ModelPast, text: str, type: str | None) -> None:
    """Ask for entities by words."""
    found = expected.search(text, type)
    hits = _all(past.search, text, entity_type=type)
    answered = [[str(hit.snapshot.entity), list(hit.fields)] for hit in hits]
    check_same(f"search {text!r} {type}", answered, [[entity, fields] for entity, fields in found.items()])


def check_name(past: Past, expected: ModelPast, name: str) -> None:
    """Ask for an entity by a name that may be loose."""
    meant = expected.meant(name)
    try:
        answered = [str(past.show(name).entity)]
    except NotFound:
        answered = []
    except Refused:
        answered = ["refused"]
    found = [str(ref) for ref in meant if expected.show(ref) is not None] if len(meant) == 1 else ["refused"]
    check_same(f"show {name!r}", answered, found)


# Runs


def check_runs(past: Past, expected: ModelPast, refs: Iterable[Ref]) -> None:
    """Compare runs, their decisions and evidence, and later changes."""
    summaries = [run.summary() for run in model_runs.runs(expected)]
    answered = [_part(run.to_json(), summaries) for run in _all(past.runs.list)]
    check_same("runs", answered, summaries)
    for name in ("agent", "subject", "conversation", "status"):
        for value in sorted({str(one[name]) for one in summaries if one[name] is not None}):
            found = [run.id for run in _all(past.runs.list, **{name: value})]
            check_same(f"runs of {name} {value}", found, [one["id"] for one in summaries if one[name] == value])
    for ref in refs:
        reasons = [[one.run, one.decision.stage, one.decision.chosen] for one in _all(past.why, ref)]
        check_same(f"why {ref}", reasons, [list(one) for one in model_runs.why(expected, ref)])
        for _, said in expected.stored([ref]):
            leaned = {one.run: one.distance for one in past.impact(said.id, limit=1_000).runs}
            check_same(f"impact {said.id}", leaned, model_runs.impact(expected, said.id))
    changed = [
        [one.run, one.decision.stage, one.decision.chosen, one.now.chosen]
        for one in _all(past.stale)
        if one.outcome == "flip" and not any(belief.missing for belief in one.beliefs)
    ]
    check_same("stale", changed, [list(one) for one in model_runs.stale(expected)])


def _part(answered: Mapping[str, Any], like: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in answered.items() if not like or name in like[0]}


def _all(verb: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """Return all items of a list, page by page."""
    return list(_pages(verb, arguments, options))


def _pages(verb: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Any]:
    cursor = None
    while True:
        page = verb(*arguments, **options, limit=PAGE, cursor=cursor)
        assert len(page.items) <= PAGE
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def _is_unknown(verb: Callable[..., object], ref: Ref) -> bool:
    try:
        verb(ref)
    except NotFound:
        return True
    return False
