"""Which decisions are stale: those whose evidence is believed otherwise now, made again on what is believed now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.canon import form
from woodrat.explain import references
from woodrat.explain.references import named_observations, read_ref
from woodrat.explain.remake import SAME, is_whole, remake
from woodrat.explain.stale import Belief, Stale
from woodrat.ledger.pages import Page, PageRequest
from woodrat.merge import blame, fold
from woodrat.runs import steps
from woodrat.runs.evidence import LaterChange
from woodrat.runs.steps import Decision, Read
from woodrat.runs.values import REDACTED
from woodrat.state.fact import Fact
from woodrat.state.observation import DELETE, RETRACT, Observation
from woodrat.state.run_owner import is_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.read import Reader
    from woodrat.log.entry import Entry
    from woodrat.runs.record import RunRecord

_WINDOW, _WINDOW_MAX = 1_024, 65_536


def stale(tracer: Tracer, request: PageRequest, *, same: bool) -> Page[Stale]:
    """Return decisions whose evidence is believed otherwise now, the latest in the log first.

    Those that would come out the same are left out unless asked for. Decisions whose evidence nothing touched since are
    not looked at; with a valid time, or where the index has far to go, every decision is.
    """
    (before,) = request.place_of(int) or (tracer.through + 1,)
    found: list[Stale] = []
    for entry in _touched(tracer, before):
        one = stale_decision(tracer, entry)
        if one is None or (one.outcome == SAME and not same):
            continue
        if len(found) == request.limit:
            cursor = request.cursor_at([found[-1].decision.position])
            return Page(tuple(found), cursor, request.position)
        found.append(one)
    return Page(tuple(found), None, request.position)


def _touched(tracer: Tracer, before: int) -> Iterator[Entry]:
    """Yield the decisions before a position whose evidence may be believed otherwise now, the latest first."""
    if tracer.reader.asof.effective is not None or tracer.is_behind:
        yield from _decided(tracer, before)
        return
    last: int | None = None
    for position in tracer.touched(before):
        entry = tracer.view.entry(position) if position != last else None
        last = position
        if entry is not None:
            yield entry


def _decided(tracer: Tracer, before: int) -> Iterator[Entry]:
    """Yield the decisions before a position, the latest first, window by window."""
    high, window = min(before - 1, tracer.through), _WINDOW
    while high >= 0:
        low = max(-1, high - window)
        yield from reversed(list(tracer.view.entries(low, high, {"run.decided"})))
        high, window = low, min(window * 2, _WINDOW_MAX)


def stale_decision(tracer: Tracer, entry: Entry) -> Stale | None:
    """Return a decision whose evidence is believed otherwise now; none when it is believed as it was."""
    body: Any = None if entry.body is None else form.decode(entry.body)
    decision = steps.part_of(entry.kind, entry.position, body) if isinstance(body, dict) else None
    run = body.get("run") if isinstance(body, dict) else None
    if not isinstance(decision, Decision) or not isinstance(run, str):
        return None
    looked = references.evidence(decision)
    origins: dict[str, Mapping[str, Any]] = {**decision.facts_origin, **looked}
    record: RunRecord | None = None
    now: dict[str, Fact] = {}
    beliefs: list[Belief] = []
    for key, origin in origins.items():
        ref = read_ref(origin)
        if ref is None or not _spoken_since(tracer, ref, origin, decision, key):
            continue
        if record is None:
            record = tracer.recounter.bare(run)
            if not is_part(entry.kind, body, record.agent):
                return None
        read = read_by(record, origin)
        if read is not None and not read.present:
            continue  # it asked for a moment, and would be told the same
        effective = None if read is None else read.effective
        belief, fact = _belief(tracer, decision, key, origin, ref, effective)
        if fact is not None:
            now[key] = fact
        if belief is not None and key in looked:
            beliefs.append(belief)
    if record is None or not beliefs:
        return None
    return Stale(
        run=run,
        agent=record.agent,
        query=record.query,
        subject=record.subject,
        answer=record.answer,
        decision=decision,
        beliefs=tuple(beliefs),
        now=remake(decision, now),
    )


def read_by(record: RunRecord, origin: Mapping[str, Any]) -> Read | None:
    """Return the read that a fact came from: of several at one position one that saw the same, best of the present."""
    entity, position, named = origin.get("entity"), origin.get("position"), set(named_observations(origin))
    reads = [read for read in record.reads if read.entity == entity and read.as_of == position]
    field = str(origin["field"])
    return max(reads, key=lambda read: (set(read.behind(field)) == named, read.present), default=None)


def _spoken_since(tracer: Tracer, ref: Ref, origin: Mapping[str, Any], decision: Decision, key: str) -> bool:
    """Return whether belief about a fact may be another than when it was read."""
    position = origin.get("position")
    if type(position) is not int or tracer.reader.version(ref) > position:
        return True
    # Nothing was said of it since; its schema may have become another.
    fact, before = _fact(tracer, ref, str(origin["field"]), None), decision.known_facts.get(key)
    return set(fact.origin["observations"]) != set(named_observations(origin)) or not form.same(before, fact.value)


def _fact(tracer: Tracer, ref: Ref, field: str, effective: str | None) -> Fact:
    snapshot = tracer.snapshot(ref, effective)
    if snapshot is None:
        return Fact(field, None, {"kind": "read", "entity": str(ref), "field": field, "observations": []}, missing=True)
    return snapshot.fact(field)


def _belief(
    tracer: Tracer, decision: Decision, key: str, origin: Mapping[str, Any], ref: Ref, effective: str | None
) -> tuple[Belief | None, Fact | None]:
    """Return a fact as it is believed now, and both beliefs where they differ or rest on other observations."""
    was = named_observations(origin)
    if was and all(tracer.observation(id) is None for id in was):
        return None, None  # it was read from another log, and what that holds now cannot be told
    field = str(origin["field"])
    fact = _fact(tracer, ref, field, effective)
    values = decision.known_facts
    before: Json = values.get(key)
    current = named_observations(fact.origin)
    if not is_whole(before):
        equal = set(was) == set(current)
    else:
        equal = (key in values) is not fact.missing and form.same(before, fact.value)
    if equal and set(was) == set(current):
        # Left as it is on record: a value that was hidden or cut stays so.
        return None, None
    reader = tracer.reader_by(effective)
    change, reason = _change(reader, ref, field, was, fact)
    cause = _cause(reader, ref, field, was, change)
    belief = Belief(
        key=key,
        entity=str(ref),
        field=field,
        before=before,
        now=REDACTED if before == REDACTED else fact.value,
        missing=fact.missing,
        observations=was,
        observations_now=current,
        change=change,
        reason=reason,
        changed_by=None if cause is None else cause.agent,
        because=None if cause is None else steps.text(cause.optional.get("reason")),
    )
    return belief, fact


def later_change(tracer: Tracer, origin: Mapping[str, Any], before: Json) -> LaterChange | None:
    """Return what became of a value that was read; none where it is still believed, or nobody here can tell."""
    ref, was = read_ref(origin), named_observations(origin)
    if ref is None or (was and all(tracer.observation(id) is None for id in was)):
        return None
    field = str(origin["field"])
    fact = _fact(tracer, ref, field, None)
    if set(named_observations(fact.origin)) == set(was):
        return None
    change, _ = _change(tracer.reader, ref, field, was, fact)
    cause = _cause(tracer.reader, ref, field, was, change)
    return LaterChange(
        change=change,
        now=REDACTED if before == REDACTED else fact.value,
        observation=None if cause is None else cause.id,
        agent=None if cause is None else cause.agent,
        observed_at=None if cause is None else cause.observed_at,
        because=None if cause is None else steps.text(cause.optional.get("reason")),
    )


def _cause(reader: Reader, ref: Ref, field: str, was: tuple[str, ...], change: str) -> Observation | None:
    """Return the observation because of which a field is believed otherwise than the observations behind it said."""
    stored = reader.stored(reader.group(ref))
    if change in ("retracted", "deleted"):
        op = RETRACT if change == "retracted" else DELETE
        gone = {item.observation.digest for item in stored if item.observation.id in was}
        causes = [item.observation for item in stored if item.observation.op == op]
        if op == RETRACT:
            causes = [said for said in causes if not gone.isdisjoint(said.replaces)]
        return causes[-1] if causes else None
    snapshot = reader.find(ref)
    origin = None if snapshot is None else snapshot.blame.get(field)
    return next((s.observation for s in stored if origin is not None and s.observation.id == origin.observation), None)


def _change(reader: Reader, ref: Ref, field: str, was: tuple[str, ...], fact: Fact) -> tuple[str, str]:
    """Return what became of the observations that a fact rested on, and why they no longer hold."""
    if not was:
        return "stated", "nothing was said of it before"
    members = reader.group(ref)
    known = {stored.observation.digest: stored.observation for stored in reader.stored(members)}
    verdicts = {str(v.observation): v for v in blame.blame(known.values(), members, reader.rules(ref.type), field)}
    reason = next((verdicts[id].reason for id in was if id in verdicts and not verdicts[id].wins), "others joined it")
    live = fold.live_digests(known)
    if any(said.id in was and digest not in live for digest, said in known.items()):
        return "retracted", reason
    snapshot = reader.find(ref)
    if snapshot is None or snapshot.deleted:
        return "deleted", reason
    origin = snapshot.blame.get(field)
    return ("corrected" if origin is not None and origin.corrected and not fact.missing else "superseded"), reason
