"""Notes: the verb that keeps a text about something.

A note is an entity like any other, related to its subject. Saying the same of the same subject again is no news: the
note is found by its key, and only another agent, or a stated time, makes another observation of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, shown
from woodrat.ledger import ownership, plans, redaction
from woodrat.ledger.arguments import EXISTING, Arguments
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import resolve_ref
from woodrat.ledger.write import Writer
from woodrat.merge import fold
from woodrat.state import relation
from woodrat.state.note import ABOUT, NOTE, note_ref
from woodrat.state.observation import ASSERT
from woodrat.state.record import parse_records
from woodrat.state.redaction import REDACTED

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.canon.moment_words import Time
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.ledger.arguments import About, Within
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft, Sent
    from woodrat.state.match import Match
    from woodrat.state.observation import Observation

NOTHING_WRITTEN = "Nothing was written."


def remember(
    context: Context,
    text: str,
    *,
    about: str | Ref | None = None,
    match: str = EXISTING,
    observed_at: Time | None = None,
    priority: int | None = None,
    source: str | None = None,
    run: str | None = None,
    step: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Keep a text as a note, about an entity or about nothing in particular."""
    arguments = Arguments(within)
    note = _Note(context, arguments, text, about, match)
    seen = arguments.time("observed_at", observed_at, context.clock)
    note.told = arguments.about(observed_at=seen, priority=priority, source=source, run=run, step=step)
    arguments.check()

    def redact(view: View) -> tuple[Sent, str | None] | None:
        hidden = note.hide(redaction.fields_of(view, NOTE))
        return (arguments.given, arguments.key("remember", idempotency_key)) if hidden else None

    key = arguments.key("remember", idempotency_key)
    report = Writer(context).write("remember", arguments.given, note.plan, key=key, dry_run=dry_run, redact=redact)
    return arguments.told_times(context, report)


class _Note:
    """One call of `remember`."""

    told: About
    """What the call says about its observation."""

    def __init__(self, context: Context, arguments: Arguments, text: object, about: object, match: object) -> None:
        self._context, self._arguments = context, arguments
        self._about = about
        self._matches = arguments.match_subject(match)
        self._text = text if isinstance(text, str) else ""
        if not isinstance(text, str) or not text.strip():
            problem = "the note is empty" if isinstance(text, str) else f"expected text, got {shown(text)}"
            arguments.faults.append(Fault("text", problem, "Say what to remember, in a sentence."))
        else:
            arguments.given["text"] = text
            arguments.faults += _faults(text)
        arguments.refer(about=about)
        self.hide(context.hidden)

    def hide(self, names: frozenset[str]) -> bool:
        """Take out what is hidden; return whether that was anything."""
        found = False
        for name in names & {"text", ABOUT} & self._arguments.given.keys():
            self._arguments.given[name] = REDACTED
            found = True
            if name == ABOUT:
                self._about = None
            else:
                self._text = REDACTED
        return found

    def plan(self, draft: Draft) -> None:
        """Plan the note and its relation, or what this agent said of it before."""
        about, before = self.told, draft.before
        if about.run is not None and self._arguments.within is None:
            ownership.check_write(self._context, draft.view, about.run, NOTHING_WRITTEN)
        subject, match = self._subject(draft)
        ref = note_ref(self._text, subject)
        if subject is not None and not before.exists(subject):
            draft.hints.append(f"{subject} is not known yet; the note waits under that name.")
        known = _said_before(draft, ref) if about.observed_at is None else None
        if known is not None:
            draft.say(known)
            if before.snapshot(ref).fields.get("text") != self._text:
                draft.hints.append(f"{ref} was changed since it was said; `show` has what it says now.")
        else:
            record: dict[str, Any] = {"entity_type": NOTE, "text": self._text, "$": {"key": ref.key}}
            if subject is not None:
                record[ABOUT] = str(subject)
            records = parse_records(record, [])
            matched = {} if match is None else {record.path: match for record in records}
            plans.store(
                draft, records, about, [], strict="types" in self._context.strict, entities=[None], matched=matched
            )
        if subject is not None and not _is_related(draft, ref, subject):
            plans.relate(draft, ref, ABOUT, subject, None, {}, plans.relation_parts(draft, about))

    def _subject(self, draft: Draft) -> tuple[Ref | None, Match | None]:
        """Return what the note is about, and how that was found where it was not by its key."""
        if self._about is None:
            return None, None
        if not self._matches:
            return resolve_ref(draft.before, self._about, NOTHING_WRITTEN), None
        subject = find_ref(draft.before, self._about, NOTHING_WRITTEN, path=ABOUT)
        match = draft.before.matched
        draft.matched += [] if match is None else [match]
        return subject, match


def _faults(text: str) -> list[Fault]:
    """Return what keeps a text from being stored."""
    found: list[Fault] = []
    parse_records({"entity_type": NOTE, "text": text}, found)
    return [Fault("text", fault.problem, fault.remedy) for fault in found]


def _said_before(draft: Draft, ref: Ref) -> Observation | None:
    """Return the latest assertion by which this agent said a note that it has not withdrawn."""
    stored = draft.before.stored((ref,))
    live = fold.live_digests({found.observation.digest: found.observation for found in stored})
    for found in reversed(stored):
        said = found.observation
        if said.agent == draft.agent and said.op == ASSERT and said.digest in live:
            return said
    return None


def _is_related(draft: Draft, ref: Ref, subject: Ref) -> bool:
    edge = relation.relation(ref, ABOUT, subject)
    return draft.before.exists(edge) and not draft.before.state(edge).deleted
