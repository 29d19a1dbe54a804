"""Entities: the commands that read entities and their observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.cli.command import CommandResult, Invocation, at_moment
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, changed, fields, time, value
from woodrat.errors import Fault, Refused, shown
from woodrat.records import replace
from woodrat.server import wire
from woodrat.state.locator import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from woodrat.api.past import Past
    from woodrat.ledger.pages import Page
    from woodrat.merge.blame import Verdict
    from woodrat.merge.diff import Changes
    from woodrat.merge.snapshot import Contender, Snapshot
    from woodrat.state.asof import Stored
    from woodrat.state.observation import Observation

NO_READ = "Nothing was read."
PAGE_MAX = 1_000
"""Items per request when all are wanted: the largest page."""


def show(call: Invocation) -> CommandResult:
    """Show the state of an entity."""
    snapshot = call.ask(call.past())
    return CommandResult(snapshot.to_json(), lambda paper: _snapshot(paper, snapshot))


def elements(call: Invocation) -> CommandResult:
    """List the elements of a collection, some at a time."""
    ref, mark, field = call.given.ref.rpartition("#")
    if not mark or not field:
        problem = f"{shown(call.given.ref)} names no field"
        raise Refused([Fault("REF#FIELD", problem, "Add the field after a #, as in 'contact/Ana#tags'.")], NO_READ)
    page = call.ask(call.past(), ref=ref, field=field)

    def text(paper: Paper) -> None:
        for element in page.elements:
            paper.line(value(element))
        rest = "" if page.cursor is None else f"; more: add --cursor {page.cursor}"
        paper.line(f"{len(page.elements)} of {page.total} elements, read at position {page.position}{rest}", DIM)

    return CommandResult(page.to_json(), text, list(page.elements))


def search(call: Invocation) -> CommandResult:
    """Find entities by words; one hit is explained."""
    given = call.given
    past = call.caught_up()
    page = call.ask(past)
    found = [hit.snapshot for hit in page.items]
    if len(found) == 1 and page.cursor is None and given.cursor is None:
        return _explained(past.at(page.position), found[0])
    return _found(found, page.cursor, page.position, f"Nothing matches {value(given.query)}.")


def entities(call: Invocation) -> CommandResult:
    """List entities."""
    given = call.given
    past = call.past()
    if given.duplicates or given.duplicates_of is not None:
        others = (given.where, given.sort, given.descending, given.all)
        if any(other not in ([], None, False) for other in others):
            asked = "--duplicates" if given.duplicates_of is None else "--duplicates-of"
            problem = f"{asked} can only be combined with --entity-type, --limit and --cursor"
            raise Refused([Fault("woodrat entities list", problem, "Leave the other options out.")], NO_READ)
        return _duplicates(call, past)
    most: dict[str, Any] = {}
    if given.all:
        if given.limit is not None or given.cursor is not None:
            problem = "--all cannot be combined with --limit or --cursor"
            raise Refused([Fault("woodrat entities list", problem, "Leave them out, or leave out --all.")], NO_READ)
        most["limit"] = PAGE_MAX
    page = call.ask(past, **most)
    if given.all:
        page = replace(page, items=tuple(page), cursor=None)
    return _found(page.items, page.cursor, page.position, "No entities.")


def _found(found: Sequence[Snapshot], cursor: str | None, position: int, none: str) -> CommandResult:
    def text(paper: Paper) -> None:
        if not found:
            paper.line(none)
            return
        paper.table(("ENTITY", "FIELDS", "ID"), [(str(s.entity), fields(s.fields), s.entity.id) for s in found])
        if cursor is not None:
            paper.line(f"More: add --cursor {cursor}", DIM)

    rows = [snapshot.to_json() for snapshot in found]
    note = None if cursor is None else f"More: add --cursor {cursor}"
    return CommandResult(wire.listing(rows, position, cursor), text, rows, note=note)


def page_of(call: Invocation, past: Past) -> Page[Any]:
    """Return the requested page; the whole list, as one page, without --limit."""
    if call.given.limit is not None:
        page: Page[Any] = call.ask(past)
        return page
    page = call.ask(past, limit=PAGE_MAX)
    return replace(page, items=tuple(page), cursor=None)


def page_answer(
    page: Page[Any], text: Callable[[Paper], None], rows: Sequence[Mapping[str, Any]] | None = None
) -> CommandResult:
    """Return the answer of a list command, with the way to the next page."""
    listed = [item.to_json() for item in page.items] if rows is None else rows
    more = None if page.cursor is None else f"More: add --cursor {page.cursor}"

    def told(paper: Paper) -> None:
        text(paper)
        if more is not None:
            paper.line(more, DIM)

    return CommandResult(wire.listing(listed, page.position, page.cursor), told, listed, note=more)


def _duplicates(call: Invocation, past: Past) -> CommandResult:
    given = call.given
    limit = PAGE_MAX if given.limit is None else given.limit
    page = past.duplicates(given.entity_type, ref=given.duplicates_of, limit=limit, cursor=given.cursor)
    if given.limit is None:
        page = replace(page, items=tuple(page), cursor=None)
    rows = [item.to_json() for item in page.items]

    def text(paper: Paper) -> None:
        if not rows:
            nobody = "No two entities share" if given.duplicates_of is None else "No other entity shares"
            paper.line(f"{nobody} an identifying value.")
        for row in rows:
            named = ", ".join(str(item) for item in row["entities"])
            about = {name: item for name, item in row.items() if name != "entities"}
            paper.line(f"{fields(about)}: {named}")
        if rows:
            paper.line("They are not merged automatically; `woodrat merge REF REF` states that two are the same.", DIM)

    return page_answer(page, text, rows)


def observations(call: Invocation) -> CommandResult:
    """List observations."""
    page = page_of(call, call.past())
    return page_answer(
        page,
        lambda paper: _observations(paper, page.items) if page else paper.line("No observations."),
    )


def history(call: Invocation) -> CommandResult:
    """Show how belief about an entity changed."""
    page = page_of(call, call.past())

    def text(paper: Paper) -> None:
        rows = []
        for step in page.items:
            o = step.observation
            what = ("; ".join(map(changed, step.changes)) or "no change") + _because(o.optional.get("reason"))
            rows.append((str(step.position), time(o.observed_at), o.agent, o.op, what, o.id))
        paper.table(("POSITION", "OBSERVED AT", "AGENT", "OP", "CHANGE", "OBSERVATION"), rows)

    return page_answer(page, text)


def timeline(call: Invocation) -> CommandResult:
    """Show observations in order of time."""
    page = page_of(call, call.past())

    def text(paper: Paper) -> None:
        if not page:
            paper.line("No observations in that time.")
            return
        rows = []
        for event in page.items:
            o = event.observation
            rows.append((time(event.observed_at), str(o.entity), o.agent, o.op, _said(o), o.id))
        paper.table(("OBSERVED AT", "ENTITY", "AGENT", "OP", "FIELDS", "OBSERVATION"), rows)

    return page_answer(page, text)


def diff(call: Invocation) -> CommandResult:
    """Show the differences between two moments, or between a saved state and a moment."""
    given = call.given
    if (given.before is None) == (given.against is None):
        problem = "nothing to compare with" if given.before is None else "--from and --against are both given"
        raise Refused([Fault("woodrat diff", problem, "Add either --from M or --against FILE.")], NO_READ)
    if given.after is not None and given.as_of is not None and given.after != given.as_of:
        problem = f"--to {given.after} and --as-of {given.as_of} name two different moments"
        raise Refused([Fault("woodrat diff", problem, "Leave one of them out.")], NO_READ)
    if given.as_of is None:
        given.as_of = given.after
    if given.against is not None:
        from woodrat.cli import inputs

        known = inputs.records(given.against, "--against", NO_READ)
        past = call.past()
        changes = _against(past, known, given)
        start: Any = given.against
    else:
        past = call.past()
        changes = call.ask(past, before=at_moment(past, given.before, "--from").position, after=past.position)
        start = changes.before
    end = changes.after

    valid = "" if given.valid_at is None else f"; valid at {time(given.valid_at)}"
    given.as_of = given.valid_at = None  # both moments are stated here

    def text(paper: Paper) -> None:
        if not changes:
            paper.line("No difference.")
        for change in changes:
            style = {"added": GREEN, "removed": YELLOW}.get(change.kind, BOLD)
            paper.line(f"{change.kind} {change.entity}", style)
            if change.kind == "changed" and change.members_before != change.members_after:
                paper.line(f"  members: {', '.join(change.members_before)} → {', '.join(change.members_after)}")
            if change.was_deleted != change.is_deleted:
                paper.line("  deleted" if change.is_deleted else "  restored")
            for field in change.fields:
                paper.line(f"  {changed(field)}")
        since = start if given.against is not None else call.recorded(past, start)
        paper.line(f"(from {since}; to {call.recorded(past, end)}{valid})", DIM)

    rows = [change.to_json() for change in changes]
    code = wire.FOUND_SOMETHING if given.exit_code and changes else wire.DONE
    against = {} if given.against is None else {"against": given.against}
    return CommandResult({**changes.to_json(), **against}, text, rows, code)


def _against(past: Past, known: Any, given: Any) -> Changes:
    """Compare with a saved state; faults of the file name the file."""
    try:
        return past.diff_against(known, given.ref, entity_type=given.entity_type)
    except Refused as refusal:
        name = "standard input" if given.against == "-" else given.against
        found = (replace(f, path=f.path.replace("against", name, 1)) for f in refusal.faults)
        raise Refused(found, NO_READ) from None


def blame(call: Invocation) -> CommandResult:
    """Show every claim on a field or on all fields."""
    past = call.past()
    found = call.noted(wire.blamed(past, call.given.ref, **call.arguments({"ref"})))
    rows = [{"field": name, **verdict.to_json()} for name, verdicts in found.items() for verdict in verdicts]
    return CommandResult(found.to_json(), lambda paper: _claims(paper, found), rows)


def conflicts(call: Invocation) -> CommandResult:
    """List fields in conflict, or decided only by arrival."""
    arrival = bool(call.given.arrival)
    page = page_of(call, call.past())

    def text(paper: Paper) -> None:
        if not page:
            paper.line("No field was decided by arrival alone." if arrival else "No agents disagree.")
            return
        cells = [
            (f"{conflict.entity}#{conflict.field}", _claimed(claim), claim.agent, seen(claim), claim.observation)
            for conflict in page.items
            for claim in conflict.claims
        ]
        paper.table(("FIELD", "VALUE", "AGENT", "OBSERVED AT", "OBSERVATION"), cells)
        if arrival:
            paper.line("The first value of each field won: it arrived later; no observation time was given.", DIM)
            paper.line("`woodrat blame REF#FIELD` shows every claim. Sending observed_at settles a field.", DIM)

    return page_answer(page, text)


def related(call: Invocation) -> CommandResult:
    """Show the relations of an entity."""
    page = page_of(call, call.past())

    def text(paper: Paper) -> None:
        if not page:
            about = call.given.ref if page.matched is None else page.matched.entity
            paper.line(f"{about} has no relations.")
            return
        cells = [(str(r.depth), str(r.start), r.type, str(r.end), fields(r.fields)) for r in page.items]
        paper.table(("DEPTH", "FROM", "TYPE", "TO", "FIELDS"), cells)

    return page_answer(page, text)


# What several verbs print


def _because(reason: Any) -> str:
    """Return the stated reason, to append to a line."""
    return f", because {value(reason)}" if isinstance(reason, str) else ""


def _explained(past: Past, snapshot: Snapshot) -> CommandResult:
    """Return a snapshot with the reason behind every value and every observation it was merged from."""
    verdicts, kept = past.blame(snapshot.entity), tuple(past.observations(snapshot.entity, limit=PAGE_MAX))

    def text(paper: Paper) -> None:
        _snapshot(paper, snapshot)
        paper.line()
        paper.line("Claims, and why they won or lost", BOLD)
        _claims(paper, verdicts)
        paper.line()
        paper.line(f"Observations, all {len(kept)} preserved", BOLD)
        _observations(paper, kept)

    return CommandResult(wire.explained(snapshot, verdicts, kept), text)


def _snapshot(paper: Paper, snapshot: Snapshot) -> None:
    paper.line(str(snapshot.entity), BOLD)
    paper.line(f"  {snapshot.entity.id}, version {snapshot.version}, read at position {snapshot.position}", DIM)
    others = [str(member) for member in snapshot.members if member != snapshot.entity]
    if others:
        paper.line(f"  merged with {', '.join(others)}")
    if snapshot.deleted:
        paper.line("  deleted; `woodrat restore` brings it back", YELLOW)
        return
    if snapshot.problem is not None:
        paper.line(f"  {snapshot.problem}", YELLOW)
    rows = []
    for name, found in snapshot.fields.items():
        origin = snapshot.blame[name]
        policy = f"{origin.policy}, corrected" if origin.corrected else origin.policy
        seen = time(origin.observed_at)
        rows.append((name, value(found), origin.agent, seen, policy, str(origin.claims), origin.observation))
    paper.table(("FIELD", "VALUE", "AGENT", "OBSERVED AT", "POLICY", "CLAIMS", "OBSERVATION"), rows)
    for name, origin in snapshot.blame.items():
        if origin.because is not None:
            paper.line(f"  {name} was corrected{_because(origin.because)}")
        if origin.by_arrival:
            paper.line(f"  {name}: {BY_ARRIVAL[origin.policy == 'first']}", YELLOW)
    for conflict in snapshot.conflicts:
        sides = ", ".join(f"{value(claim.value)} ({claim.agent})" for claim in conflict.claims)
        paper.line(f"  in conflict: {conflict.field}: {sides}", YELLOW)


BY_ARRIVAL: Final = (
    "arrived later; no observation time was given",
    "arrived first: another value arrived later; no observation time was given",
)
"""Notes on a field decided only by arrival: under most policies, and under `first`."""


def _claimed(claim: Contender) -> str:
    """Return the content of a claim; for a collection, its additions and removals."""
    gone = f"without {value(list(claim.removed))}" if claim.removed else ""
    return gone if gone and claim.value == [] else "; ".join(filter(None, (value(claim.value), gone)))


def seen(claim: Contender | Verdict) -> str:
    """Return the time of observation of a claim, or a note that it only has its time of arrival."""
    return f"{time(claim.observed_at)} (arrival)" if claim.assigned else time(claim.observed_at)


def _claims(paper: Paper, found: Mapping[str, Sequence[Verdict]]) -> None:
    rows, styles = [], []
    read: list[tuple[str, str, str | None]] = []
    for name, verdicts in found.items():
        for v in verdicts:
            said = value(v.value) if not v.removed or v.value is not None else f"without {value(list(v.removed))}"
            outcome = "wins" if v.wins else "loses"
            rows.append((name, outcome, said, v.agent, seen(v), v.observation, v.reason + _because(v.because)))
            styles.append(GREEN if v.wins else "")
            if v.locator is not None:
                read.append((v.observation, f"{v.source}, {words(v.locator)}", v.excerpt))
    paper.table(("FIELD", "CLAIM", "VALUE", "AGENT", "OBSERVED AT", "OBSERVATION", "REASON"), rows, styles)
    for observation, where, excerpt in dict.fromkeys(read):
        paper.line(f"  {paper.id(observation)} was read in {where}", DIM)
        for line in () if excerpt is None else excerpt.splitlines():
            paper.line(f"    | {line}")


def _observations(paper: Paper, found: Sequence[Stored]) -> None:
    rows = []
    for item in found:
        o = item.observation
        rows.append((str(item.position), time(o.observed_at), str(o.entity), o.agent, o.op, _said(o), o.id))
    paper.table(("POSITION", "OBSERVED AT", "ENTITY", "AGENT", "OP", "FIELDS", "OBSERVATION"), rows)


def _said(observation: Observation) -> str:
    parts = [fields(observation.fields)] if observation.fields else []
    parts += [f"without {name}={value(list(items))}" for name, items in observation.remove.items()]
    reason = observation.optional.get("reason")
    where = observation.optional.get("locator")
    if isinstance(where, dict):
        parts.append(f"read at {words(where)}")
    if reason is not None:
        parts.append(f"because: {reason}")
    return "; ".join(parts)
